"""The runs of an experiment: which are left, some of them at a time, how long they may take."""

import json
import re
import subprocess
import sys
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from contextlib import contextmanager, suppress
from datetime import datetime, timedelta
from pathlib import Path
from statistics import mean, median
from tempfile import TemporaryDirectory

from ..files import lock, written
from .plan import Plan, PlanError
from .records import environment
from .run import Run, RunError, allow_children, call, end_children, load, status, updates_made

_OVERHEAD = 1.05  # of the loss on the validation set and of checkpoints: seconds of a training by those of its updates
# How many updates take as long as a sentence of a set: by beam search at the end, greedily in all validations together.
_TRANSLATION, _VALIDATION = 0.13, 0.45
_TIMED, _BEFORE = 30, 10  # updates that are made to time them, and those of them that do not count
_SPEED = re.compile(r'train_inner \| .*"wps": "([\d.]+)".*"wpb": "([\d.]+)"')


def chosen_runs(
    plan: Plan, out: Path, results: Path, only: Sequence[str] = (), device: tuple[str, ...] = ("--cpu",)
) -> list[Run]:
    """The runs of an experiment, or those of the systems, or runs such as pascal-2, that `only` names.

    Raises PlanError: there is no such run.
    """
    runs = [Run(plan, system, seed, out, results, device) for system, seed in plan.runs()]
    for name in only:
        if not any(name in (run.name, run.system.name) for run in runs):
            known = ", ".join(dict.fromkeys(run.system.name for run in runs))
            raise PlanError(f"--only {name}: choose from {known}, or one of their runs, such as {runs[0].name}")
    return [run for run in runs if not only or {run.name, run.system.name} & set(only)]


@contextmanager
def held_folder(out: Path, name: str = "lock") -> Iterator[int]:
    """Hold a lock of an output folder, and give its number: a child that inherits it holds the lock, too.

    Another process that holds it is waited for.
    """
    out.mkdir(parents=True, exist_ok=True)
    with open(out / name, "a") as file:
        told = False
        while True:
            try:
                lock(file, "")
                break
            except BlockingIOError:
                if not told:
                    print(f"{out}: waiting for another process that is working here", file=sys.stderr, flush=True)
                told = True
                time.sleep(2)
        yield file.fileno()


def prepare_by_script(plan: Plan, out: Path, held: int) -> None:
    """Make the data with the script of the plan. Raises RunError: it fails."""
    log = out / "prepare.log"
    say(f"preparing the data: {plan.prepare}; its log: {log}")
    variables = {**environment(), "OUT": str(out)}
    with open(log, "wb") as file:
        command = ["bash", str(plan.path.resolve().parent / plan.prepare)]
        ended = call(command, file, file, env=variables, pass_fds=(held,))
    if ended:
        last = log.read_text(encoding="utf8", errors="replace").splitlines()[-1:]
        raise RunError(f"{plan.prepare} ended with {ended}; {log} ends: {''.join(last)[:300]}")


def say(what: str) -> None:
    """Tell the user how the work goes."""
    print(what, file=sys.stderr, flush=True)


@contextmanager
def at_once(jobs: int) -> Iterator[ThreadPoolExecutor]:
    """So many workers; after an interrupt or an error, what they have started is ended."""
    pool = ThreadPoolExecutor(jobs)
    allow_children()
    try:
        yield pool
    except BaseException:
        pool.shutdown(wait=False, cancel_futures=True)
        end_children()
        raise
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def run_all(runs: list[Run], jobs: int, every: float = 60) -> dict[str, str]:
    """Finish all runs without a record, `jobs` at a time; returns those that failed, and why.

    A run that another process works at is left to that one. Every `every` seconds a line tells how far the work is.
    """
    failed: dict[str, str] = {}
    active: dict[str, Run] = {}
    guard = threading.Lock()

    def work(run: Run) -> None:
        with run.held() as mine:
            if not mine or run.record.exists():
                return
            with guard:
                active[run.name] = run
            try:
                run.finish()
                score = load(run.record)["scores"]["valid"]["BLEU"]["score"]
                say(f"{run.name}: done, valid BLEU {score:.1f}")
            except Exception as error:  # nobody else reads what a thread raises
                foreseen = isinstance(error, (OSError, ValueError))
                failed[run.name] = reason = str(error) if foreseen else f"{type(error).__name__}: {error}"
                say(f"{run.name}: failed: {reason}")
            finally:
                with guard:
                    del active[run.name]

    with at_once(jobs) as pool:
        futures = {pool.submit(work, run) for run in runs if not run.record.exists()}
        while futures:
            futures = wait(futures, timeout=every, return_when=FIRST_COMPLETED).not_done
            with guard:
                now = dict(active)
            if now:
                say(_progress(runs, now, failed, jobs))
    return failed


def _progress(runs: list[Run], active: dict[str, Run], failed: dict[str, str], jobs: int) -> str:
    """A line: how many are done, what is being done, how long the rest may take."""
    done = [run for run in runs if run.record.exists()]
    words = [f"{len(done)} of {len(runs)} done"] + ([f"{len(failed)} failed"] if failed else [])
    words += [f"{name}: {status(run)}" for name, run in active.items()]
    # what is being done comes first
    to_do = sorted((run for run in runs if run.name not in failed), key=lambda run: run.name not in active)
    left = minutes_left(to_do, jobs)
    if left is not None:
        words.append(f"about {duration(max(left, 1))} left")
    return " | ".join(words)


def duration(minutes: float) -> str:
    """Minutes, or hours, as a reader would write them."""
    return f"{minutes:.0f} min" if minutes < 90 else f"{minutes / 60:.1f} h"


# --- how long ---------------------------------------------------------------------------------------------------------


def minutes_left(runs: list[Run], jobs: int = 1, share: float = 1) -> float | None:
    """Minutes until all runs have a record, `jobs` at a time; None: unknown.

    A run takes as long as those of its system that have a record, or as its own updates or timed ones say, or as those
    of its family; less what it has trained already.

    Args:
        share: of the updates that are left.
    """
    records = _records(runs)
    left = []
    for run in runs:
        if not run.record.exists():
            needed = _needed(run, records)
            if needed is None:
                return None
            training, translating = needed
            left.append(share * training + translating)
    return together(left, jobs)


def _records(runs: list[Run]) -> dict[str, list[dict]]:
    """The records of an experiment, by the names of systems and of families."""
    found: dict[str, list[dict]] = {}
    for run in chosen_runs(runs[0].plan, runs[0].out, runs[0].results) if runs else ():
        if run.record.exists():
            with suppress(PlanError):  # told when it is needed
                record = load(run.record)
                for name in (run.system.name, run.system.family):
                    found.setdefault(name, []).append(record)
    return found


def _needed(run: Run, records: dict[str, list[dict]]) -> tuple[float, float] | None:
    """Minutes of training and of translating that are left of a run, or None."""
    timed = _read(run.out).get(run.system.name)
    known = records.get(run.system.name) or (None if timed else records.get(run.system.family))
    if known:
        training, translating = (
            mean(record["minutes"].get(key, 0) for record in known) for key in ("train", "translate")
        )
        updates = max(mean(record["updates"] for record in known), 1)  # 0: without validation
        return training * (0 if run.trained else max(1 - updates_made(run) / updates, 0)), translating
    if timed is None:
        return None
    update, start = timed
    sentences = {name: _lines(run.out / split.reference) for name, split in run.plan.splits.items()}
    translating = update * _TRANSLATION * sum(sentences.values()) + start * len(sentences)
    log = run.folder / "train.log"
    update = (_update_seconds(log) if log.exists() else None) or update
    most = run.family.max_updates
    left = 0 if run.trained else max(1 - updates_made(run) / most, 0)
    training = left * update * (most * _OVERHEAD + sentences["valid"] * _VALIDATION)
    return (training + start * (left > 0)) / 60, translating / 60


def _lines(path: Path) -> int:
    return path.read_bytes().count(b"\n") if path.is_file() else 0


def together(minutes: Iterable[float], jobs: int) -> float:
    """Minutes until works are done, each begun by the first of `jobs` workers that is free."""
    workers = [0.0] * jobs
    for each in minutes:
        workers[workers.index(min(workers))] += each
    return max(workers)


def _read(out: Path) -> dict[str, list[float]]:
    path = out / "seconds.json"
    return json.loads(path.read_text(encoding="utf8")) if path.exists() else {}


def time_updates(runs: Iterable[Run], jobs: int) -> None:
    """Time updates of each system, `jobs` at a time, and keep the seconds in the output folder.

    These are the seconds of an update, and until the first one. A system that fails has none.
    """
    first = {run.system.name: run for run in reversed(list(runs))}
    if not first:
        return
    out = next(iter(first.values())).out
    known = _read(out)
    left = [run for name, run in first.items() if name not in known]
    with at_once(jobs) as pool:
        for run, seconds in zip(left, pool.map(_seconds, left), strict=True):
            if seconds is not None:
                known[run.system.name] = seconds
    if left:
        with written(str(out / "seconds.json")) as file:
            json.dump(_read(out) | known, file, indent=1)


def _seconds(run: Run) -> list[float] | None:
    began = time.monotonic()
    with TemporaryDirectory() as folder:
        log = Path(folder, "train.log")
        command = [*run.train_command(), "--max-update", str(_TIMED), "--log-interval", str(_BEFORE), "--no-save"]
        command += ["--disable-validation", "--save-dir", folder]
        with open(log, "wb") as file:
            ended = call(command, file, subprocess.STDOUT)
        update = _update_seconds(log)
    if ended or update is None:
        return None  # its training will tell why
    return [round(update, 4), round(max(time.monotonic() - began - _TIMED * update, 0), 1)]


def _update_seconds(log: Path) -> float | None:
    """Seconds of an update: median of the last twenty lines of a log without the first, which includes the start."""
    found = _SPEED.findall(log.read_text(encoding="utf8", errors="replace"))[1:][-20:]
    # the first line of a resumed training may say 0; those after a validation include it
    seconds = [float(wpb) / float(wps) for wps, wpb in found if float(wps)]
    return median(seconds) if seconds else None


def when(minutes: float) -> str:
    """The time of day when so many minutes are over."""
    return f"{datetime.now() + timedelta(minutes=minutes):%a %H:%M}"
