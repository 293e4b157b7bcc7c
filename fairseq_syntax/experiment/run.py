"""One run of an experiment: train a system with a seed, choose its checkpoint, translate, score, record.

Each step leaves a file when it is done; a run that was stopped goes on after the last of them, and its training after
the last epoch.
"""

import ctypes
import json
import multiprocessing
import os
import re
import shlex
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from ..data.text.recipe import FILE as RECIPE
from ..data.text.tokenizers import load_detokenizer
from ..evaluate.corpus import read_output
from ..evaluate.schemas import Run as Record
from ..evaluate.schemas import read_json
from ..files import lock, written
from ..trees.characters import to_text
from ..trees.text import read_lines
from .plan import CHECKOUT, USER_DIR, Family, Plan, PlanError, System
from .records import COMMIT, commit, describe, environment, hashes, read_log, scores

_SHARED = "--num-workers 0 --log-format json --log-interval 50 --no-progress-bar".split()
_OUT = "@OUT@"  # what shells read as it is
_NO_MEMORY = re.compile("out of memory|OutOfMemory|allocate memory", re.IGNORECASE)
_UPDATES = re.compile(r'train_inner .*"num_updates": "(\d+)"')

_children: set[subprocess.Popen] = set()
_interrupted = threading.Event()  # nothing is started any more
_starting = threading.Lock()  # held from the look at `_interrupted` until a child is among `_children`


class RunError(ValueError):
    """A command of a run failed; the message says which and how its log ends."""


class Interrupted(RunError):
    """A command was ended, or not begun, by `end_children`."""


def allow_children() -> None:
    """Let threads start commands; see `end_children`."""
    _interrupted.clear()


def end_children() -> None:
    """End the commands that threads have started, and let them start no others."""
    with _starting:
        _interrupted.set()
    for child in list(_children):
        _end(child)


def _end(child: subprocess.Popen) -> None:
    """End a child, and what it has started."""
    with suppress(ProcessLookupError):
        os.killpg(child.pid, signal.SIGKILL)


# found before there are threads: a child may have to wait for ever for a lock that one of them held
PRCTL = ctypes.CDLL(None).prctl if sys.platform == "linux" else None


def call(command: list[str], out: IO | int, errors: IO | int | None, **more) -> int:
    """The exit status of a command, which ends with this process. 127 if there is no such program.

    Raises Interrupted: by or after `end_children`.
    """
    more = {"stdin": subprocess.DEVNULL, "stdout": out, "stderr": errors, "env": environment()} | more
    with _starting:
        if _interrupted.is_set():
            raise Interrupted("interrupted")
        try:
            # Ctrl-C is for this process, which ends the child
            child = subprocess.Popen(command, preexec_fn=_die_with_parent, start_new_session=True, **more)
        except FileNotFoundError:
            return 127
        _children.add(child)
    try:
        status = child.wait()
    finally:
        _children.discard(child)
        if child.returncode is None:
            _end(child)
            child.wait()
    if _interrupted.is_set():
        raise Interrupted("interrupted")
    return status


def _die_with_parent() -> None:  # in the child: whoever kills the experiment kills its trainings, too
    if PRCTL:
        PRCTL(1, signal.SIGKILL)


def in_a_child(function: Callable[..., None], *arguments) -> None:
    """Call a function in a child process, which ends with this one, so that its memory is free afterwards.

    Raises RunError: the function raises an error, whose words the message has, or the child was killed.
    """
    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)

    def work() -> None:
        _die_with_parent()
        try:
            function(*arguments)
            sender.send(None)
        except KeyboardInterrupt:
            sender.send(KeyboardInterrupt())
        except BaseException as error:  # its words alone, since not every error can be pickled
            foreseen = isinstance(error, (ValueError, OSError))
            sender.send(RunError(str(error) if foreseen else f"{type(error).__name__}: {error}"))

    child = context.Process(target=work)
    child.start()
    sender.close()
    try:
        error = receiver.recv()
    except EOFError:
        error = RunError("a process was killed (out of memory?)")
    finally:
        child.terminate()
        child.join()
    if error is not None:
        raise error


@dataclass
class Run:
    """A system with a seed, and where its files are.

    Fields:
        plan: the experiment.
        system: of it.
        seed: of everything random.
        out: folder of data, checkpoints and logs.
        results: folder of the records.
        device: options such as --cpu.
    """

    plan: Plan
    system: System
    seed: int
    out: Path
    results: Path
    device: tuple[str, ...] = ("--cpu",)

    @property
    def name(self) -> str:
        return f"{self.system.name}-{self.seed}"

    @property
    def folder(self) -> Path:
        return self.out / "runs" / self.name

    @property
    def record(self) -> Path:
        return self.results / f"{self.name}.json"

    @property
    def trained(self) -> bool:
        """Whether training has ended, and translations are left to make."""
        return (self.folder / "trained").exists()

    @property
    def begun(self) -> bool:
        """Whether there is anything of it."""
        return self.folder.exists() or self.record.exists()

    def updates(self) -> int:
        """How many updates it has been trained for, by its log."""
        log = self.folder / "train.log"
        made = _UPDATES.findall(log.read_text(encoding="utf8", errors="replace")) if log.exists() else []
        return int(made[-1]) if made else 0

    def sentences(self) -> dict[str, int]:
        """Number of sentences of each split."""
        paths = {name: self.out / split.reference for name, split in self.plan.splits.items()}
        return {name: path.read_bytes().count(b"\n") if path.is_file() else 0 for name, path in paths.items()}

    def translated(self) -> int:
        """How many sentences it has translated so far."""
        return sum(path.read_bytes().count(b"\nH-") for path in self.folder.glob("*.generated*"))

    def status(self) -> str:
        """How far it is, in a few words."""
        if self.trained:
            return f"translated {self.translated():,} of {sum(self.sentences().values()):,} sentences"
        if not (made := self.updates()):
            return "starting"
        curve = read_log(self.folder / "train.log")["curve"]
        # some losses include those of other tasks
        better = f", valid nll_loss {curve[-1].get('nll_loss', curve[-1]['loss']):.3f}" if curve else ""
        return f"{made:,} of {self.family.max_updates:,} updates{better}"

    @property
    def family(self) -> Family:
        return self.plan.families[self.system.family]

    @property
    def data(self) -> Path:
        return self.out / self.family.data.replace("{trees}", self.system.trees or self.plan.default_trees)

    def hashes(self) -> dict[str, str]:
        """SHA-256 of what the run is trained on, by file. Raises PlanError: a file is missing."""
        return hashes(self.out, self.plan.hashed_for(self.system))

    def train_command(self) -> list[str]:
        """fairseq-train with all options."""
        family = self.family
        command = ["fairseq-train", str(self.data), "--user-dir", str(USER_DIR), *_SHARED, *self.device]
        command += shlex.split(family.train.replace("{updates}", str(family.max_updates)))
        command += [word.replace("$OUT", str(self.out)) for word in shlex.split(self.system.options)]
        command += ["--seed", str(self.seed), "--max-update", str(family.max_updates)]
        if family.patience:
            command += ["--patience", str(family.patience)]
        return [*command, "--no-epoch-checkpoints", "--save-dir", str(self.folder / "checkpoints")]

    def generate_command(self, subset: str) -> list[str]:
        """fairseq-generate for a subset of the data, with the best checkpoint."""
        command = ["fairseq-generate", str(self.data), "--user-dir", str(USER_DIR), *self.device]
        command += ["--gen-subset", subset, "--path", str(self.checkpoint)]
        return [*command, *shlex.split(self.family.generate)]

    def commands(self) -> dict[str, str]:
        """What a record says of how it was made."""
        valid = self.generate_command(self.plan.splits["valid"].subset)
        return {"train": self.relative(self.train_command()), "generate": self.relative(valid)}

    @property
    def checkpoint(self) -> Path:
        """The best one on the validation set, with which everything is translated."""
        return self.folder / "checkpoints" / "checkpoint_best.pt"

    def relative(self, command: list[str]) -> str:
        """A command without the paths of this machine."""
        places = {str(USER_DIR): "./fairseq_syntax", str(self.out): _OUT, str(CHECKOUT): "."}
        for path, name in places.items():
            command = [word.replace(path, name) for word in command]
        return shlex.join(command).replace(_OUT, "$OUT")

    @contextmanager
    def held(self) -> Iterator[bool]:
        """Whether this process may work on the run, and while it does, no other may."""
        (self.out / "runs").mkdir(parents=True, exist_ok=True)
        with open(self.out / "runs" / f".{self.name}.lock", "a") as file:
            try:
                lock(file, "")
            except BlockingIOError:
                yield False
                return
            yield True

    # --- steps --------------------------------------------------------------------------------------------------------

    def finish(self) -> None:
        """Do all that is left to do.

        Raises:
            RunError: a command failed.
            PlanError: the run was begun with other settings.
        """
        self.folder.mkdir(parents=True, exist_ok=True)
        self._check_beginning()
        if not self.trained:
            if not self._has_ended():
                self.call(self.train_command(), self.folder / "train.log")
            (self.folder / "trained").touch()
        self.keep_search()
        started = time.monotonic()
        for name, split in self.plan.splits.items():
            self._translate(split.subset, self.folder / f"{name}.txt")
        translating = time.monotonic() - started
        self._write(translating)

    def keep_search(self) -> None:
        """Put the options of its search beside the checkpoint."""
        from ..decoding.search import write_search  # with fairseq, which takes seconds

        write_search(self.checkpoint.parent, self.family.generate)

    def _has_ended(self) -> bool:
        """Whether the last training in the log came to its end: called again, fairseq-train would go on."""
        log = self.folder / "train.log"
        text = log.read_text(encoding="utf8", errors="replace") if log.exists() else ""
        return "| done training in " in text.rpartition("+ fairseq-train ")[2]

    def _check_beginning(self) -> None:
        """Keep what the run began with; PlanError if it goes on with something else."""
        advice = f"restore the options of {self.system.name} in {self.plan.path}, and --gpu as it was"
        self._keep("command.txt", self.relative(self.train_command()) + "\n", "other settings", advice)
        data = "".join(f"{digest}  {name}\n" for name, digest in self.hashes().items())
        self._keep("data.sha256", data, "other data", "put them back")

    def _keep(self, name: str, now: str, what: str, advice: str) -> None:
        path = self.folder / name
        if not path.exists():
            with written(str(path)) as file:
                file.write(now)
        elif path.read_text(encoding="utf8") != now:
            raise PlanError(f"{self.folder}: begun with {what} ({name}); remove the folder to start over, or {advice}")

    def call(self, command: list[str], log: Path, output: Path | None = None) -> None:
        """Run a command; what it says is added to `log`, its standard output goes to `output` if there is one."""
        partial = output and output.with_name(output.name + ".partial")
        with open(log, "ab") as errors:
            errors.write(f"+ {shlex.join(command)}\n{COMMIT}{commit()}\n".encode())
            errors.flush()
            out = open(partial, "wb") if partial else errors
            try:
                status = call(command, out, errors)
            finally:
                if partial:
                    out.close()
        if status:
            lines = log.read_text(encoding="utf8", errors="replace").splitlines()
            full = any(_NO_MEMORY.search(line) for line in lines[-30:]) or status == -signal.SIGKILL
            advice = "; for the whole family, halve --max-tokens and give --update-freq 2" if full else ""
            raise RunError(f"{command[0]} ended with {status}; {log} ends: {lines[-1][:300]}{advice}")
        if partial:
            partial.replace(output)

    def _translate(self, subset: str, goal: Path) -> None:
        """Write translations of a subset in its order, unless they are there and the command has not changed."""
        command = self.generate_command(subset)
        made_by, asked = goal.with_suffix(".command"), self.relative(command) + "\n"
        if not made_by.exists() or made_by.read_text(encoding="utf8") != asked:
            generated = goal.with_suffix(".generated")
            for old in (made_by, generated):
                old.unlink(missing_ok=True)
            self.call(command, self.folder / "generate.log", generated)
            hypotheses = read_output(generated).hypotheses
            lines = [hypotheses[i].text for i in sorted(hypotheses)]
            if self.plan.detokenize and not (self.data / RECIPE).exists():
                detokenize = load_detokenizer(self.plan.detokenize["tokenizer"], self.plan.detokenize["language"])
                lines = [detokenize(line.split()) for line in lines]
            if self.family.characters:
                lines = [to_text(line) for line in lines]
            with written(str(goal)) as file:
                file.writelines(line + "\n" for line in lines)
            made_by.write_text(asked, encoding="utf8")

    def _end(self, updates: int) -> str:
        """Why training ended."""
        if updates < self.family.max_updates:
            return "itself"
        return "schedule" if self.family.annealed else "cap"

    def _publish(self, files: dict[str, str]) -> None:
        """Put the translations, and then the record, into the folder of results.

        Raises RunError: another machine, which may share the folder, has put one there: it stays as it is.
        """
        if self.record.exists():
            raise RunError(f"{self.record}: written by another process in the meantime; this run's record is discarded")
        for name in sorted(files, key=self.record.name.__eq__):
            with written(str(self.results / name)) as file:
                file.write(files[name])

    def _write(self, translating: float) -> None:
        """Write the record, and the translations beside it. RunError: somebody else has written one in the meantime."""
        log = read_log(self.folder / "train.log")
        record = {
            "corpus": self.plan.name,
            "system": self.system.name,
            "family": self.system.family,
            "seed": self.seed,
            "trees": self.system.trees or "none",
            "commands": self.commands(),
            **describe(self.device),
            "sha256": self.hashes(),
            **log,
            "stopped": self._end(log["updates"]),
            "checkpoint": {"chosen": self.checkpoint.stem},
            "scores": {},
        }
        record["minutes"]["translate"] = round(translating / 60, 1)
        packed = {}
        for name, split in self.plan.splits.items():
            hypotheses = list(read_lines(self.folder / f"{name}.txt"))
            record["scores"][name] = scores(hypotheses, self.out, split, self.plan.tokenize)
            if name != "valid":
                packed[f"{self.name}.{name}.txt.gz"] = "".join(line + "\n" for line in hypotheses)
        self._publish({self.record.name: json.dumps(record, indent=1, ensure_ascii=False) + "\n", **packed})


def read_records(plan: Plan, results: Path, only: Collection[Path] | None = None) -> list[dict]:
    """The records of an experiment, in its order.

    Args:
        plan: the experiment.
        results: folder of the records.
        only: these records; None: all.

    Raises:
        PlanError: one cannot be read, is of a run that the experiment does not have, or was made by other commands.
    """
    runs = {run.record: run for run in (Run(plan, *run, Path("/OUT"), results, ()) for run in plan.runs())}
    for path in sorted(results.glob("[!.]*.json")):
        if path not in runs:
            raise PlanError(f"{path}: {plan.path} has no such run; add it there, or remove the record")
    found = {path: load(path) for path in runs if path.exists() and (only is None or path in only)}
    of_data: dict[str, tuple[str, Path]] = {}
    for path, record in found.items():
        for name, digest in record["sha256"].items():
            first, where = of_data.setdefault(name, (digest, path))
            if digest != first:
                raise PlanError(
                    f"{path}: trained on another {name} than {where} (sha256); remove the record of the older data"
                )
        for name in plan.splits.keys() ^ record["scores"].keys():
            raise PlanError(f"{path}: it and {plan.path} do not both have {name}; remove the record to run it again")
        for name in plan.splits:
            signature = record["scores"][name]["BLEU"]["signature"]
            if f"tok:{plan.tokenize}" not in signature:
                raise PlanError(
                    f"{path}: BLEU of {name} is {signature}, but {plan.path} has tokenize = {plan.tokenize!r}; restore "
                    "it, or remove the record to score again"
                )
        for verb, now in runs[path].commands().items():
            then = record["commands"].get(verb, "").replace("--cpu ", "", 1)
            if then != now:
                raise PlanError(
                    f"{path}: fairseq-{verb} had other options than {plan.path} has; remove the record and run it "
                    f"again, or restore the old ones in the file. The record's: {then}"
                )
    return list(found.values())


def load(path: Path) -> dict:
    """The record of a run. Raises ValueError if the file is not one, or of another run than its name says."""
    record = read_json(path, Record, "remove it to run it again")
    name = f"{record['system']}-{record['seed']}"
    if path.stem != name:
        raise PlanError(f"{path}: the record is of {name}; give the file its name, or leave it out")
    return record
