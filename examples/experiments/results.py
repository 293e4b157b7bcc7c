"""Write the tables of docs/ and the figures of README from the records in docs/results/.

A table stands between `<!-- records: NAME -->` and `<!-- end of records -->`; its systems are those of NAME.toml here.
`<!-- table: NAME -->` to `<!-- end of table -->` is a table of overview.py, and a figure between a mark such as
`<!-- NAME SYSTEM SPLIT WHAT -->` and `<!-- -->` is of the comparison of a system with its baseline. `<!-- speed -->`
has the figures of benchmarks/, kept in docs/results/. Pictures are drawn into differences-NAME.svg.
"""

import argparse
import json
import re
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from statistics import mean

import deeper
import overview
from compared import breakdown, is_of, path_of
from pictures import draw_differences
from table import commits, controls, differences, tables

from fairseq_syntax.experiment.answer import controlled, rivals, tested
from fairseq_syntax.experiment.plan import CHECKOUT, Plan, PlanError, read_plan
from fairseq_syntax.experiment.run import read_records
from fairseq_syntax.pictures.figures import save_figure

sys.path.append(str(CHECKOUT / "benchmarks"))
import timing

_BLOCK = re.compile(r"(<!-- records: ([\w-]+) -->\n).*?(<!-- end of records -->)", re.DOTALL)
_FIGURES = re.compile(r"(<!-- speed -->\n).*?(<!-- end of speed -->)", re.DOTALL)
_TABLE = re.compile(r"(<!-- table: ([\w-]+) -->\n).*?(<!-- end of table -->)", re.DOTALL)
_SAID = re.compile(r"(<!-- ([\w-]+) ([\w-]+) ([\w-]+) (" + "|".join(overview.OF_FIGURE) + r") -->)[^<]*(<!-- -->)")


def _pictures(plan: Plan, folder: Path) -> dict[str, tuple[str, Callable]]:
    """Of those that there are: the file, its caption, and what draws it."""
    records = read_records(plan, folder)
    against = {
        split: [one for one in found if not plan.families[plan.systems[one["baselines"][0]].family].characters]
        for split, found in _compared(plan, records, folder)[0].items()
    }
    trees = {name: system.trees for name, system in plan.systems.items()}
    file, caption = (
        f"differences-{plan.name}.svg",
        "BLEU minus that of the baseline, with 95 % intervals: over other sentences and, where a system or its "
        "baseline has several seeds, over other seeds",
    )
    # a picture of one or two numbers says less than the table
    rows = sum(len(one["systems"]) - 1 for one in next(iter(against.values()), ()))
    return {file: (caption, lambda: draw_differences(against, trees))} if rows > 2 else {}


def generated(plan: Plan, folder: Path, up: str = "") -> str:
    """What the records of an experiment say, and how many of its runs have one.

    Args:
        plan: which systems and seeds there are to be.
        folder: with its records.
        up: from the page to docs/.

    Raises:
        PlanError: a record cannot be read.
    """
    wanted = [f"{system.name}-{seed}" for system, seed in plan.runs()]
    records = read_records(plan, folder)
    if not records:
        return f"No run of {len(wanted)} has a record yet."
    signatures = sorted({record["scores"]["valid"]["BLEU"]["signature"] for record in records})
    said, done = "all runs", {f"{record['system']}-{record['seed']}" for record in records}
    if missing := [name for name in wanted if name not in done]:
        minutes = len(missing) * mean(sum(record["minutes"].values()) for record in records)
        left = f"not run: {', '.join(missing)}; about {minutes:.0f} minutes of one core"
        said = f"{len(records)} of {len(wanted)} runs so far ({left})"
    pictures = (
        f"![{re.split('[,:;(]', caption)[0].strip()}]({up}{file})\n\n*{caption}.*"
        for file, (caption, _) in _pictures(plan, folder).items()
    )
    against, beside_controls = _compared(plan, records, folder)
    # the splits of a baseline one after the other
    compared = [
        differences(plan, split, one)
        for of_baseline in zip(*against.values(), strict=True)
        for split, one in zip(against, of_baseline, strict=True)
    ]
    compared += [controls(split, found) for split, found in beside_controls.items() if found]
    return (
        f"{said.capitalize()}; records and translations: [docs/results/{plan.name}]({up}results/{plan.name}), of "
        f"{commits(records)}; BLEU: `{'`, `'.join(signatures)}`. Mean ± standard deviation over seeds.\n\n"
        + "\n\n".join([*pictures, tables(plan, records), *compared])
    )


def _compared(plan: Plan, records: list[dict], folder: Path) -> tuple[dict[str, list[dict]], dict[str, list[dict]]]:
    """Split -> comparisons with each baseline, and with each control; PlanError if they are older than the records."""

    def read(split: str, baseline: str, systems: list[str], kinds: list[str]) -> dict:
        path = path_of(folder, split, baseline)
        comparison = json.loads(path.read_text(encoding="utf8")) if path.exists() else {}
        if not is_of(comparison, [record for record in records if record["system"] in systems], split, kinds):
            how = "older than the records or this program" if path.exists() else "missing"
            raise PlanError(f"{path}: {how}; run examples/experiments/compared.py {plan.path} FOLDER {folder}")
        return comparison

    baselines, of_controls = rivals(plan, records).items(), controlled(plan, records).items()
    return (
        {name: [read(name, *one, breakdown(split)) for one in baselines] for name, split in tested(plan)},
        {name: [read(name, *one, []) for one in of_controls] for name, _ in tested(plan)},
    )


def renewed(text: str, boards: Path, results: Path, up: str = "") -> str:
    """The page with its tables written again.

    Args:
        text: of the page.
        boards: folder with the files of experiments.
        results: folder with a folder of records for each.
        up: from the page to docs/.

    Raises:
        PlanError: a file or a record cannot be read.
    """

    def block(match: re.Match) -> str:
        plan = read_plan(boards / f"{match[2]}.toml")
        folder = results / match[2]
        return f"{match[1]}\n{generated(plan, folder, up)}\n\n{match[3]}"

    def measured(match: re.Match) -> str:
        record = json.loads((results / "speed.json").read_text(encoding="utf8"))
        return f"{match[1]}\n{timing.markdown(record)}\n\n{match[2]}"

    together = overview.Records(boards, results)
    text = _TABLE.sub(lambda match: f"{match[1]}\n{overview.TABLES[match[2]](together)}\n\n{match[3]}", text)
    text = _SAID.sub(lambda match: f"{match[1]}{overview.figure(together, *match.group(2, 3, 4, 5))}{match[6]}", text)
    return _FIGURES.sub(measured, _BLOCK.sub(block, text))


def main(argv: list[str] | None = None) -> int:
    """Entry point. Exit status: 0, 1 if --check finds old tables, 2 if something cannot be read."""
    parser = argparse.ArgumentParser(
        description="Write the tables of docs/ and the figures of README from the records."
    )
    parser.add_argument(
        "--check", action="store_true", help="write nothing; status 1 if the tables are not the records'"
    )
    args = parser.parse_args(argv)
    records, docs = CHECKOUT / "docs" / "results", CHECKOUT / "docs"
    pages = *sorted(docs.rglob("*.md")), CHECKOUT / "README.md"
    old = {path: path.read_text(encoding="utf8") for path in pages}
    try:
        new = {
            path: renewed(text, Path(__file__).parent, records, "../" * (path.parent.name == "records"))
            for path, text in old.items()
        }
    except PlanError as error:
        print(f"results: {error}", file=sys.stderr)
        return 2
    older = [str(path.relative_to(CHECKOUT)) for path in old if new[path] != old[path]]
    if args.check and older:
        print(
            f"results: {', '.join(older)}: older than the records; run examples/experiments/results.py", file=sys.stderr
        )
        return 1
    if not args.check:
        for path, text in new.items():
            path.write_text(text, encoding="utf8")
        _draw({match[2] for text in new.values() for match in _BLOCK.finditer(text)}, docs)
    return 0


def _draw(names: Iterable[str], docs: Path) -> None:
    """Write the pictures of experiments."""
    for name in names:
        plan = read_plan(Path(__file__).with_name(f"{name}.toml"))
        for file, (_, draw) in _pictures(plan, docs / "results" / name).items():
            save_figure(draw(), docs / file)
        if name == deeper.NAME and any((docs / "results" / name).glob("*.json")):
            save_figure(deeper.draw(plan, docs / "results" / name), docs / "deeper.svg")
    save_figure(
        overview.draw_real_text(overview.Records(Path(__file__).parent, docs / "results")), docs / "real-text.svg"
    )


if __name__ == "__main__":
    sys.exit(main())
