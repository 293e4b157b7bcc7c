"""Ask the trained models of an experiment the minimal pairs of the file of its name in probes/, and record the answers.

    python examples/experiments/probes.py examples/experiments/deeper.toml --results docs/results/deeper

A record is RESULTS/PROBE/SYSTEM-SEED.json.gz. What has one is not asked again; models that are not trained yet, or
whose checkpoints are elsewhere, are left for another time.
"""

import argparse
import gzip
import json
import os
import sys
import tomllib
from concurrent.futures import as_completed
from dataclasses import dataclass
from pathlib import Path

from fairseq_syntax.experiment import Experiment
from fairseq_syntax.experiment.plan import Plan, PlanError
from fairseq_syntax.experiment.records import describe
from fairseq_syntax.experiment.run import Run, RunError, hold_lock, read_run, run_logged, worker_pool
from fairseq_syntax.experiment.schedule import chosen_runs
from fairseq_syntax.files import written
from fairseq_syntax.tools.verb import Verb, positive


@dataclass(frozen=True)
class Probe:
    """Minimal pairs for `fairseq-syntax contrast`.

    Fields:
        name: of the folder of its records.
        pairs: folder of the pairs, below the output folder.
        trees: file of the sources' trees, in the folder of the kind that a system reads.
        systems: that are asked; default: all.
    """

    name: str
    pairs: str
    trees: str
    systems: tuple[str, ...] = ()


def probes_of(plan: Plan) -> dict[str, Probe]:
    """The probes of an experiment, by name. Raises PlanError: the file of probes says something that does not fit."""
    path = plan.path.parent / "probes" / plan.path.name
    content = tomllib.loads(path.read_text(encoding="utf8")) if path.exists() else {}
    try:
        probes = {name: Probe(name, **values) for name, values in content.items()}
    except TypeError as error:
        raise PlanError(f"{path}: {error}") from None
    for name, probe in probes.items():
        if unknown := set(probe.systems) - plan.systems.keys():
            raise PlanError(f"{path}: {name}: {unknown}; choose from {', '.join(plan.systems)}")
    return probes


def read_probes(folder: Path) -> dict[str, dict[str, dict[str, dict]]]:
    """The records below a folder of results: name of a probe -> name of a system -> seed -> record, sorted."""
    found: dict[str, dict[str, dict[str, dict]]] = {}
    for path in sorted(folder.glob("*/*.json.gz")):
        record = json.loads(gzip.decompress(path.read_bytes()))
        found.setdefault(path.parent.name, {}).setdefault(record["system"], {})[str(record["seed"])] = record
    return found


@dataclass(frozen=True)
class Question:
    """A probe of a run."""

    probe: Probe
    run: Run

    @property
    def record(self) -> Path:
        return self.run.results / self.probe.name / f"{self.run.name}.json.gz"

    @property
    def checkpoint(self) -> Path | None:
        """That the run was translated with; None if the run has no record yet, or its checkpoint is not here.

        Raises:
            PlanError: the checkpoint is of another training than the record.
        """
        begun = self.run.folder / "command.txt"
        if not (self.run.record.exists() and begun.exists() and self.run.checkpoint.exists()):
            return None
        if begun.read_text(encoding="utf8") != read_run(self.run.record)["commands"]["train"] + "\n":
            raise PlanError(f"{self.run.folder}: not the training of {self.run.record}; give the --output of that one")
        return self.run.checkpoint

    def command(self, checkpoint: Path, answer: Path) -> list[str]:
        """What is to be run."""
        kind, out = self.run.system.trees or "", self.run.out
        folder = out / ("corpus" if kind == "gold" else kind)
        parser = ["--parser", "conllu", "--parser-model", str(folder / self.probe.trees)] if kind else []
        return [
            *("fairseq-syntax", "contrast", str(self.run.data), "--path", str(checkpoint), *self.run.device),
            *("--pairs", str(out / self.probe.pairs), "--name", self.run.name, *parser),
            *("--output", str(answer), "--overwrite"),
        ]

    def ask(self) -> None:
        """Ask, and write the record. Raises RunError: the command failed; PlanError: see `checkpoint`."""
        answer = self.run.folder / f"{self.probe.name}.json"
        command = self.command(self.run.checkpoint, answer)
        run_logged(command, answer.with_suffix(".log"))
        described = describe(self.run.device)
        record = {
            "corpus": self.run.plan.name,
            "system": self.run.system.name,
            "seed": self.run.seed,
            "verb": "contrast",
            "commands": [self.run.relative(command)],
            **{key: described[key] for key in ("commit", "versions", "processor") if key in described},
            **json.loads(answer.read_text(encoding="utf8")),
        }
        with written(str(self.record)) as file:
            json.dump(record, file, ensure_ascii=False, separators=(",", ":"))


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("table", type=Path, metavar="FILE", help="experiment, such as examples/experiments/deeper.toml")
    add("--only", nargs="+", default=[], metavar="NAME", help="these systems, or runs such as pascal-2 (default: all)")
    add("--jobs", type=positive, default=os.cpu_count(), metavar="N", help="at a time, one thread each (%(default)s)")
    add("--output", metavar="DIR", help="data and checkpoints (default: outputs/NAME)")
    add("--results", metavar="DIR", help="records (default: results in the output folder)")


def run(args: argparse.Namespace) -> None:
    experiment = Experiment(args.table, args.output, args.results)
    plan = experiment.plan
    runs = chosen_runs(plan, experiment.out, experiment.results, args.only)
    questions = [
        Question(probe, run)
        for probe in probes_of(plan).values()
        for run in runs
        if not probe.systems or run.system.name in probe.systems
    ]
    left = [question for question in questions if not question.record.exists()]
    ready = [question for question in left if question.checkpoint]
    failed = []
    with hold_lock(experiment.out / "lock-of-probes"), worker_pool(args.jobs) as pool:
        asked = {pool.submit(question.ask): f"{question.probe.name} {question.run.name}" for question in ready}
        for number, future in enumerate(as_completed(asked), start=1):
            said = f"{asked[future]}: {future.exception() or 'done'}"
            print(f"{number} of {len(ready)}: {said}", flush=True)
            failed += [said] if future.exception() else []
    if len(left) > len(ready):
        print(f"{len(left) - len(ready)} left: their models have no record or no checkpoint here")
    if failed:
        raise RunError("\nprobes: ".join(failed))


main = Verb(f"probes: {__doc__[0].lower()}{__doc__[1:]}", add_arguments, run)

if __name__ == "__main__":
    sys.exit(main())
