"""Ask the trained models of a table what the file of its name in probes/ says, and record the answers.

    python examples/experiments/probes.py examples/experiments/agreement.toml

A record is docs/results/CORPUS/PROBE/SYSTEM-SEED.json.gz. What has one is not asked again; models that are not trained
yet, or whose checkpoints are elsewhere, are left for another time.
"""

import argparse
import gzip
import json
import os
import shlex
import sys
import tomllib
from collections.abc import Iterator
from concurrent.futures import as_completed
from dataclasses import dataclass, field
from pathlib import Path
from string import Template

from fairseq_syntax.evaluate.corpus import read_output
from fairseq_syntax.experiment import Experiment
from fairseq_syntax.experiment.plan import USER_DIR, Plan, PlanError
from fairseq_syntax.experiment.records import describe, scores
from fairseq_syntax.experiment.run import Run, RunError, load
from fairseq_syntax.experiment.schedule import at_once, chosen_runs, held_folder
from fairseq_syntax.files import written
from fairseq_syntax.tools.verb import Verb, positive

VERBS = {"contrast": "pairs", "attachment": "gold", "unparsed": "inputs"}
"""Verb of a probe -> what it needs."""


@dataclass(frozen=True)
class Probe:
    """What trained models are asked besides translating the splits. $VARIABLES are those of the environment, and OUT.

    Fields:
        name: of the folder of its records.
        verb: contrast or attachment of fairseq-syntax, or unparsed: translate without a parse.
        pairs: folder of minimal pairs, for contrast.
        gold: treebank, for attachment.
        trees: file of trees for contrast, in the folder of the kind that a system reads; without one, Stanza parses.
        inputs: for unparsed: split -> text of its source, below the output folder.
        options: of the verb.
        of_families: further ones, by family.
        systems: that are asked; default: all.
    """

    name: str
    verb: str
    pairs: str = ""
    gold: str = ""
    trees: str = ""
    inputs: dict[str, str] = field(default_factory=dict)
    options: str = ""
    of_families: dict[str, str] = field(default_factory=dict)
    systems: tuple[str, ...] = ()


def probes_of(plan: Plan) -> dict[str, Probe]:
    """The probes of an experiment, by name. Raises PlanError: the file of probes says something that does not fit."""
    path = plan.path.parent / "probes" / plan.path.name
    content = tomllib.loads(path.read_text(encoding="utf8")) if path.exists() else {}
    try:
        probes = {name: Probe(name, **values) for name, values in content.items()}
    except TypeError as error:
        raise PlanError(f"{path}: {error}") from None
    for probe in probes.values():
        if not getattr(probe, VERBS.get(probe.verb, "trees")) or probe.verb not in VERBS:
            raise PlanError(f"{path}: {probe.name}: give a verb of {', '.join(VERBS)}, and its {set(VERBS.values())}")
        for names, known in (
            (probe.systems, plan.systems),
            (probe.inputs, plan.splits),
            (probe.of_families, plan.families),
        ):
            if set(names) - known.keys():
                raise PlanError(f"{path}: {probe.name}: {set(names) - known.keys()}; choose from {', '.join(known)}")
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
    def name(self) -> str:
        return f"{self.probe.name} {self.run.name}"

    @property
    def record(self) -> Path:
        return self.run.results / self.probe.name / f"{self.run.name}.json.gz"

    @property
    def applies(self) -> bool:
        return not self.probe.systems or self.run.system.name in self.probe.systems

    @property
    def checkpoint(self) -> Path | None:
        """That the run was translated with; None if the run has no record yet, or its checkpoint is not here.

        Raises:
            PlanError: the checkpoint is of another training than the record.
        """
        begun = self.run.folder / "command.txt"
        if not (self.run.record.exists() and begun.exists()):
            return None
        record = load(self.run.record)
        if begun.read_text(encoding="utf8") != record["commands"]["train"] + "\n":
            raise PlanError(f"{self.run.folder}: not the training of {self.run.record}; give the --output of that one")
        path = self.run.checkpoint
        return path if path.exists() else None

    def commands(self, checkpoint: Path, answer: Path) -> Iterator[tuple[list[str], Path | None]]:
        """What is to be run, and where the standard output goes."""
        model = [str(self.run.data), "--path", str(checkpoint), *self.run.device]
        options = shlex.split(f"{self.probe.options} {self.probe.of_families.get(self.run.system.family, '')}")
        options = [_filled(option, self.run.out) for option in options]
        if self.probe.verb == "unparsed":
            family = shlex.split(self.run.family.generate)
            for split, text in self.probe.inputs.items():
                command = ["fairseq-interactive", *model, "--user-dir", str(USER_DIR), "--parser", "none"]
                command += ["--input", str(self.run.out / text), "--buffer-size", "100000", *family, *options]
                yield command, answer.with_suffix(f".{split}.generated")
            return
        given = VERBS[self.probe.verb]
        asked = _filled(getattr(self.probe, given), self.run.out)
        asked += "/characters" if self.run.family.characters else ""
        command = ["fairseq-syntax", self.probe.verb, *model, f"--{given}", asked]
        if self.probe.verb == "contrast":
            command += ["--name", self.run.name, *self._parser()]
        yield [*command, *options, "--output", str(answer), "--overwrite"], None

    def _parser(self) -> list[str]:
        """Where `contrast` gets the trees of the sources from."""
        kind = self.run.system.trees
        if not kind:
            return []
        if self.probe.trees:
            folder = self.run.out / ("corpus" if kind == "gold" else kind)
            return ["--parser", "conllu", "--parser-model", str(folder / self.probe.trees)]
        files = {"--parser-tagger": os.environ.get("STANZA_TAGGER"), "--parser-model": os.environ.get("STANZA_PARSER")}
        return [word for option, path in files.items() if path for word in (option, path)]

    def relative(self, command: list[str]) -> str:
        """A command without the paths of this machine."""
        text = self.run.relative(command)
        named = Template(_texts(self.probe)).get_identifiers()
        for name in (*named, "STANZA_TAGGER", "STANZA_PARSER"):
            if os.environ.get(name):
                text = text.replace(os.environ[name], f"${name}")
        return text

    def ask(self) -> None:
        """Ask, and write the record.

        Raises:
            RunError: a command failed.
            PlanError: see `checkpoint`, and `records.scores`.
        """
        checkpoint = self.checkpoint
        if checkpoint is None:
            raise PlanError(f"{self.run.folder}: its checkpoint was removed after the start; ask again")
        answer = self.run.folder / f"{self.probe.name}.json"
        commands = list(self.commands(checkpoint, answer))
        for command, output in commands:
            self.run.call(command, answer.with_suffix(".log"), output)
        if self.probe.verb == "unparsed":
            found = {"scores": {s: self._scores(answer.with_suffix(f".{s}.generated"), s) for s in self.probe.inputs}}
        else:
            found = json.loads(answer.read_text(encoding="utf8"))
        described = describe(self.run.device)
        record = {
            "corpus": self.run.plan.name,
            "system": self.run.system.name,
            "seed": self.run.seed,
            "verb": self.probe.verb,
            "commands": [self.relative(command) for command, _ in commands],
            **{key: described[key] for key in ("commit", "versions", "processor", "gpu") if key in described},
            **found,
        }
        with written(str(self.record)) as file:
            json.dump(record, file, ensure_ascii=False, separators=(",", ":"))

    def _scores(self, generated: Path, split: str) -> dict:
        hypotheses = read_output(generated).hypotheses
        plan, lines = self.run.plan, [hypotheses[i].text for i in sorted(hypotheses)]
        return scores(lines, self.run.out, plan.splits[split], plan.tokenize)


def _filled(text: str, out: Path) -> str:
    """Text with its $VARIABLES replaced."""
    try:
        return Template(text).substitute({**os.environ, "OUT": str(out)})
    except KeyError as error:
        raise PlanError(f"{text}: ${error.args[0]} is not set") from None


def _can_be_asked(probe: Probe, wanted: bool) -> bool:
    """Whether the variables of a probe are set. Raises PlanError: they are not, and it was asked for by name."""
    try:
        _filled(_texts(probe), Path())
    except PlanError as error:
        if wanted:
            raise
        print(f"probes.{probe.name}: left out: {error}")
        return False
    return True


def _texts(probe: Probe) -> str:
    """What may have $VARIABLES."""
    return f"{probe.pairs} {probe.gold} {probe.options}"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("table", type=Path, metavar="FILE", help="experiment, such as examples/experiments/agreement.toml")
    add("--probes", nargs="+", metavar="NAME", help="these only (default: all of the file)")
    add("--only", nargs="+", default=[], metavar="NAME", help="these systems, or runs such as pascal-2 (default: all)")
    add("--jobs", type=positive, default=os.cpu_count(), metavar="N", help="at a time, one thread each (%(default)s)")
    add("--gpu", action="store_true", help="use a GPU (default: CPUs)")
    add("--dry-run", action="store_true", help="only print the commands that are left to run")
    add("--output", metavar="DIR", help="data and checkpoints (default: outputs/NAME)")
    add("--results", metavar="DIR", help="records (default: results in the output folder)")


def run(args: argparse.Namespace) -> None:
    experiment = Experiment(args.table, args.output, args.results)
    plan, known = experiment.plan, probes_of(experiment.plan)
    for name in args.probes or ():
        if name not in known:
            raise PlanError(f"--probes {name}: choose from {', '.join(known) or 'none'}")
    runs = chosen_runs(plan, experiment.out, experiment.results, args.only, () if args.gpu else ("--cpu",))
    probes = [probe for name, probe in known.items() if not args.probes or name in args.probes]
    probes = [probe for probe in probes if _can_be_asked(probe, bool(args.probes))]
    every = [Question(probe, run) for probe in probes for run in runs]
    left = [question for question in every if question.applies and not question.record.exists()]
    ready = [question for question in left if question.checkpoint]
    if args.dry_run:
        for question in ready:
            for command, _ in question.commands(question.checkpoint, question.run.folder / "answer.json"):
                print(question.relative(command))
        return
    failed = {}
    if ready:
        with held_folder(ready[0].run.out, "lock-of-probes"):
            failed = _ask_all(ready, args.jobs)
    if len(left) > len(ready):
        print(f"{len(left) - len(ready)} left: their models have no record or no checkpoint here")
    if failed:
        raise RunError("\nprobes: ".join(f"{name}: {reason}" for name, reason in failed.items()))


def _ask_all(questions: list[Question], jobs: int) -> dict[str, str]:
    """Ask all, `jobs` at a time; returns those that failed, and why."""
    failed: dict[str, str] = {}
    with at_once(jobs) as pool:
        asked = {pool.submit(question.ask): question for question in questions}
        for number, future in enumerate(as_completed(asked), start=1):
            name = asked[future].name
            try:
                future.result()
                said = "done"
            except (RunError, PlanError, OSError, ValueError, LookupError) as error:
                failed[name] = said = str(error)
            print(f"{number} of {len(questions)}: {name}: {said}", flush=True)
    return failed


main = Verb(f"probes: {__doc__[0].lower()}{__doc__[1:]}", add_arguments, run)

if __name__ == "__main__":
    sys.exit(main())
