"""`make bench`: all ratios of this project, from one run. `--quick` only tries that everything works.

`make bench BENCH="--json NEW.json"` keeps the figures; ratios, as seconds are those of a machine and its other work. To
compare with another commit, in one run:

    git worktree add ../before COMMIT
    make bench BENCH="--before ../before"

examples/experiments/results.py writes docs/speed.md from docs/results/speed.json.
"""

import argparse
import json
from datetime import date
from pathlib import Path

import blackout
import changes
import latent_trees
import marginals
import models
import serving
import waits
from checkout import RESULTS, commit
from timing import MEASURED, machine, part, section

from fairseq_syntax.files import written


def time_transformers(quick: bool, names: tuple[str, ...] = models.TRANSFORMERS, sentences: int = 48) -> None:
    """Transformers with syntax against fairseq's."""
    options = {"encoder_layers": 2, "decoder_layers": 2} if quick else {}
    systems = models.transformers(models.size_of(quick), names, **options)
    sizes = ((4, 8, 1), (2, 4, 4, 1)) if quick else ((sentences, 25, 5), (16, 20, 5, 5))
    models.compare("Transformers", systems, *sizes)


def time_recurrent(quick: bool) -> None:
    """Recurrent models against fairseq's LSTM."""
    for width, training in {32: (4, 8, 1)}.items() if quick else {256: (64, 20, 5), 1024: (32, 25, 3)}.items():
        title = f"recurrent models, embeddings and states of {width}"
        models.compare(title, models.recurrent(width), training, (2, 4, 5, 1) if quick else (16, 20, 5, 3))


def time_directed(quick: bool) -> None:
    """Models that read tree distances: recurrent ones against global attention, Transformers against fairseq's."""
    width = 32 if quick else 256
    sizes = ((4, 8, 1), (2, 4, 5, 1)) if quick else ((80, 25, 5), (16, 20, 5, 5))
    models.compare(f"recurrent models, states of {width}", models.directed(width), *sizes)
    time_transformers(quick, models.DISTANCE_TRANSFORMERS, 24)


def time_changes(quick: bool, before: Path) -> None:
    """This checkout against another one."""
    section(f"commit {commit()} against {commit(before)}")
    changes.run(quick, before)


PARTS = {
    "models": time_transformers,
    "recurrent": time_recurrent,
    "attention": time_directed,
    "marginals": marginals.run,
    "blackout": blackout.run,
    "latent-trees": latent_trees.run,
    "memory": models.compare_memory,
    "serving": serving.run,
    "waits": waits.run,
    "changes": time_changes,
}


def main(arguments: list[str] | None = None) -> None:
    """Run and print everything."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="tiny sizes; the figures mean nothing")
    choice = parser.add_mutually_exclusive_group()
    choice.add_argument("--only", choices=[name for name in PARTS if name != "changes"], help="one part")
    choice.add_argument("--before", type=Path, metavar="DIR", help="only this: against another checkout, in turn")
    parser.add_argument(
        "--json", type=Path, metavar="FILE", help="keep the figures in this file, and those of other parts that it has"
    )
    args = parser.parse_args(arguments)
    if args.quick and args.json and args.json.resolve().is_relative_to(RESULTS):
        parser.error(f"--quick: {args.json} is for figures that mean something; name another file")
    if args.before and not (args.before / "fairseq_syntax").is_dir():
        parser.error(f"--before: {args.before} has no fairseq_syntax; name a checkout of this repository")
    kept = json.loads(args.json.read_text(encoding="utf-8")) if args.json and args.json.exists() else {}
    described = {"date": f"{date.today()}", "commit": commit(), "machine": machine()}
    print(machine())
    MEASURED.clear()
    more = {"changes": {"before": args.before}}
    only = "changes" if args.before else args.only
    for name, run in PARTS.items():
        if only == name or (not only and name != "changes"):
            part(name)
            run(args.quick, **more.get(name, {}))
            measured = [one for one in MEASURED if one["part"] == name]
            kept[name] = {**described, "measured": measured}
            if args.json:
                with written(str(args.json)) as file:
                    json.dump({name: kept[name] for name in PARTS if name in kept}, file, indent=1)
                    file.write("\n")


if __name__ == "__main__":
    main()
