"""One run of an experiment: train a system with a seed, choose its checkpoint, translate, score, record.

Every finished step leaves a file, so that a run that was stopped resumes after its last step, and its training after
its last epoch.
"""

import ctypes
import fcntl
import json
import os
import shlex
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from ..data.text.recipe import RECIPE
from ..data.text.tokenizers import load_detokenizer
from ..evaluate.corpus import read_output
from ..evaluate.schemas import RunRecord, read_json
from ..files import lock, staged, written
from ..trees.characters import to_text
from ..trees.text import read_lines
from .plan import CHECKOUT, PERTURBED, USER_DIR, Family, Plan, PlanError, SystemSettings
from .records import describe, environment, hashes, read_log, scores

_SHARED = "--num-workers 0 --log-format json --log-interval 50 --no-progress-bar".split()
_OUT = "@OUT@"  # needs no quotes in a shell

_interrupted = threading.Event()  # if set, `call` ends its command, and starts no other


class RunError(ValueError):
    """A step of an experiment failed; the message names the step and the reason."""


class Interrupted(RunError):
    """A command was ended, or not started, because of an interrupt."""


def say(message: str) -> None:
    """Print a message about progress on stderr."""
    print(message, file=sys.stderr, flush=True)


def error_message(error: Exception) -> str:
    """Message of an error; the class comes first if it is not one whose messages are for users."""
    return str(error) if isinstance(error, (OSError, ValueError)) else f"{type(error).__name__}: {error}"


# looked up before there are threads: in a child, a lock that one of them held would never be released
PRCTL = ctypes.CDLL(None).prctl if sys.platform == "linux" else None


def _die_with_parent() -> None:  # called in the child, so that trainings do not outlive the experiment
    if PRCTL:
        PRCTL(1, signal.SIGKILL)


def call(command: list[str], out: IO | int, errors: IO | int | None, **more) -> int:
    """Run a command, which ends with this process, and return its exit status; 127 if there is no such program.

    Raises Interrupted: the workers of `worker_pool` were interrupted.
    """
    more = {"stdin": subprocess.DEVNULL, "stdout": out, "stderr": errors, "env": environment()} | more
    if not _interrupted.is_set():
        try:
            # a new session, because Ctrl-C is for this process, which ends the child
            child = subprocess.Popen(command, preexec_fn=_die_with_parent, start_new_session=True, **more)
        except FileNotFoundError:
            return 127
        try:
            while child.poll() is None and not _interrupted.wait(0.1):
                pass
        finally:
            if child.poll() is None:  # with its own children
                os.killpg(child.pid, signal.SIGKILL)
                child.wait()
    if _interrupted.is_set():
        raise Interrupted("interrupted")
    return child.returncode


def run_logged(command: list[str], log: Path, output: Path | None = None, **more) -> None:
    """Run a command, append what it prints to `log`, and write its standard output to `output` instead if given.

    Raises RunError: it fails; the message has the last line of the log.
    """
    with open(log, "ab") as errors, ExitStack() as files:
        errors.write(f"+ {shlex.join(command)}\n".encode())
        errors.flush()
        out = files.enter_context(open(files.enter_context(staged(output)), "wb")) if output else errors
        if status := call(command, out, errors, **more):
            lines = log.read_text(encoding="utf8", errors="replace").splitlines()
            raise RunError(f"{command[0]} ended with {status}; {log} ends: {lines[-1][:300]}")


@contextmanager
def hold_lock(path: Path, wait: bool = True) -> Iterator[int | None]:
    """Hold a lock, and yield its file descriptor; a child that inherits it holds the lock, too.

    If another process holds it, wait for that one, or, without `wait`, yield None.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "a") as file:
        try:
            lock(file, "")
        except BlockingIOError:
            if not wait:
                yield None
                return
            say(f"{path.parent}: waiting for another process that is working here")
            fcntl.flock(file, fcntl.LOCK_EX)
        yield file.fileno()


@contextmanager
def worker_pool(jobs: int) -> Iterator[ThreadPoolExecutor]:
    """A pool of `jobs` workers, whose commands are ended after an interrupt or an error."""
    try:
        with ThreadPoolExecutor(jobs) as pool:
            try:
                yield pool
            except BaseException:
                _interrupted.set()
                pool.shutdown(wait=False, cancel_futures=True)
                raise
    finally:
        _interrupted.clear()


@dataclass
class Run:
    """A system with a seed, and the paths of its files.

    Fields:
        plan: the experiment.
        system: a system of the plan.
        seed: random seed of training.
        out: folder of data, checkpoints and logs.
        results: folder of the records.
        device: options of fairseq such as --cpu.
    """

    plan: Plan
    system: SystemSettings
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
        """True if the last training in the log is complete; if called again, fairseq-train would train on."""
        log = self.folder / "train.log"
        text = log.read_text(encoding="utf8", errors="replace") if log.exists() else ""
        return "| done training in " in text.rpartition("+ fairseq-train ")[2]

    @property
    def begun(self) -> bool:
        """True if the run has a folder or a record."""
        return self.folder.exists() or self.record.exists()

    def sentences(self) -> dict[str, int]:
        """Number of sentences of each split."""
        paths = {name: self.out / split.reference for name, split in self.plan.splits.items()}
        return {name: path.read_bytes().count(b"\n") if path.is_file() else 0 for name, path in paths.items()}

    @property
    def family(self) -> Family:
        return self.plan.families[self.system.family]

    @property
    def data(self) -> Path:
        return self.out / self.family.data.replace("{trees}", self.system.trees or self.plan.default_trees)

    def hashes(self) -> dict[str, str]:
        """SHA-256 of the training data, by file. Raises PlanError: a file is missing."""
        # for raw text, without the perturbed trees of other systems
        others = set(PERTURBED) - {self.system.trees} if self.plan.corpus else ()
        return hashes(self.out, [pattern for pattern in self.plan.hashed if Path(pattern).parts[0] not in others])

    def train_command(self) -> list[str]:
        """The call of fairseq-train, with all options."""
        family = self.family
        command = ["fairseq-train", str(self.data), "--user-dir", str(USER_DIR), *_SHARED, *self.device]
        command += shlex.split(family.train.replace("{updates}", str(family.max_updates)))
        command += [word.replace("$OUT", str(self.out)) for word in shlex.split(self.system.options)]
        command += ["--seed", str(self.seed), "--max-update", str(family.max_updates)]
        if family.patience:
            command += ["--patience", str(family.patience)]
        return [*command, "--no-epoch-checkpoints", "--save-dir", str(self.folder / "checkpoints")]

    def generate_command(self, subset: str) -> list[str]:
        """The call of fairseq-generate for a subset of the data, with the best checkpoint."""
        command = ["fairseq-generate", str(self.data), "--user-dir", str(USER_DIR), *self.device]
        command += ["--gen-subset", subset, "--path", str(self.checkpoint)]
        return [*command, *shlex.split(self.family.generate)]

    def commands(self) -> dict[str, str]:
        """The commands that a record stores, without paths of this machine."""
        valid = self.generate_command(self.plan.splits["valid"].subset)
        return {"train": self.relative(self.train_command()), "generate": self.relative(valid)}

    @property
    def checkpoint(self) -> Path:
        """The checkpoint that is best on the validation set, which translates all splits."""
        return self.folder / "checkpoints" / "checkpoint_best.pt"

    def relative(self, command: list[str]) -> str:
        """A command as text for a shell, with paths relative to the checkout and to $OUT."""
        places = {str(USER_DIR): "./fairseq_syntax", str(self.out): _OUT, str(CHECKOUT): "."}
        for path, name in places.items():
            command = [word.replace(path, name) for word in command]
        return shlex.join(command).replace(_OUT, "$OUT")

    # --- steps --------------------------------------------------------------------------------------------------------

    def finish(self) -> None:
        """Do all remaining steps: train, translate, score, record.

        Raises:
            RunError: a command fails.
            PlanError: the run began with other settings or data.
        """
        from ..decoding.search import write_search  # with fairseq, which takes seconds

        self.folder.mkdir(parents=True, exist_ok=True)
        self._check_beginning()
        if not self.trained:
            run_logged(self.train_command(), self.folder / "train.log")
        write_search(self.checkpoint.parent, self.family.generate)
        started = time.monotonic()
        for name, split in self.plan.splits.items():
            self._translate(split.subset, self.folder / f"{name}.txt")
        translating = time.monotonic() - started
        self._write(translating)

    def _check_beginning(self) -> None:
        """Store the settings and data of a new run; raise PlanError if a resumed run has others."""
        advice = f"restore the options of {self.system.name} in {self.plan.path}, and --gpu as it was"
        self._require_same("command.txt", self.relative(self.train_command()) + "\n", "other settings", advice)
        data = "".join(f"{digest}  {name}\n" for name, digest in self.hashes().items())
        self._require_same("data.sha256", data, "other data", "put them back")

    def _require_same(self, name: str, content: str, kind: str, advice: str) -> None:
        path = self.folder / name
        if not path.exists():
            with written(str(path)) as file:
                file.write(content)
        elif path.read_text(encoding="utf8") != content:
            raise PlanError(f"{self.folder}: begun with {kind} ({name}); remove the folder to start over, or {advice}")

    def _translate(self, subset: str, goal: Path) -> None:
        """Write the translations of a subset in its order, unless the same command has written them already."""
        command = self.generate_command(subset)
        made_by, asked = goal.with_suffix(".command"), self.relative(command) + "\n"
        if not made_by.exists() or made_by.read_text(encoding="utf8") != asked:
            generated = goal.with_suffix(".generated")
            made_by.unlink(missing_ok=True)
            run_logged(command, self.folder / "generate.log", generated)
            lines = [text for _, text in sorted(read_output(generated).hypotheses.items())]
            if self.plan.detokenize and not (self.data / RECIPE).exists():
                detokenize = load_detokenizer(self.plan.detokenize["tokenizer"], self.plan.detokenize["language"])
                lines = [detokenize(line.split()) for line in lines]
            if self.family.characters:
                lines = [to_text(line) for line in lines]
            with written(str(goal)) as file:
                file.writelines(line + "\n" for line in lines)
            made_by.write_text(asked, encoding="utf8")

    def _write(self, translating: float) -> None:
        """Write the translations, and then the record.

        Raises RunError: another process, perhaps on another machine, has written a record, which is kept.
        """
        log, ends = read_log(self.folder / "train.log"), "schedule" if self.family.annealed else "cap"
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
            "stopped": ends if log["updates"] >= self.family.max_updates else "itself",
            "checkpoint": {"chosen": self.checkpoint.stem},
            "scores": {},
        }
        record["minutes"]["translate"] = round(translating / 60, 1)
        if self.record.exists():
            raise RunError(f"{self.record}: written by another process in the meantime; this run's record is discarded")
        for name, split in self.plan.splits.items():
            hyps = list(read_lines(self.folder / f"{name}.txt"))
            record["scores"][name] = scores(hyps, self.out, split, self.plan.tokenize)
            if name != "valid":
                with written(str(self.results / f"{self.name}.{name}.txt.gz")) as file:
                    file.writelines(line + "\n" for line in hyps)
        with written(str(self.record)) as file:
            file.write(json.dumps(record, indent=1, ensure_ascii=False) + "\n")


def read_records(plan: Plan, results: Path) -> list[dict]:
    """Read the records of an experiment from a folder of results, in the order of its runs.

    Raises PlanError: a record is wrong, is of a run that is not in the plan, or was made with other commands or data.
    """
    runs = {run.record: run for run in (Run(plan, *run, Path("/OUT"), results, ()) for run in plan.runs())}
    for path in sorted(results.glob("[!.]*.json")):
        if path not in runs:
            raise PlanError(f"{path}: {plan.path} has no such run; add it there, or remove the record")
    records = {path: read_run(path) for path in runs if path.exists()}
    digests: dict[str, tuple[str, Path]] = {}
    for path, record in records.items():
        for name, digest in record["sha256"].items():
            first, other = digests.setdefault(name, (digest, path))
            if digest != first:
                raise PlanError(
                    f"{path}: trained on another {name} than {other} (sha256); remove the record of the older data"
                )
        differing = list(plan.splits.keys() ^ record["scores"].keys())
        tokenizers = {split["BLEU"]["signature"] for split in record["scores"].values()}
        differing += [signature for signature in tokenizers if f"tok:{plan.tokenize}" not in signature]
        for verb, command in runs[path].commands().items():
            recorded = record["commands"].get(verb, "").replace("--cpu ", "", 1)
            differing += [f"fairseq-{verb} had other options: {recorded}"] if recorded != command else []
        if differing:
            raise PlanError(
                f"{path}: {plan.path} has changed since ({'; '.join(differing)}); restore it, or remove the record to "
                "run it again"
            )
    return list(records.values())


def read_run(path: Path) -> dict:
    """Read the record of a run. Raises ValueError: it is no record, or is of another run than its name says."""
    record = read_json(path, RunRecord, "remove it to run it again")
    name = f"{record['system']}-{record['seed']}"
    if path.stem != name:
        raise PlanError(f"{path}: the record is of {name}; give the file its name, or leave it out")
    return record
