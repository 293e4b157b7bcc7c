"""The runs of an experiment: which are left, some of them at a time, how long they may take."""

import fcntl
import json
import re
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from contextlib import contextmanager
from datetime import datetime, timedelta
from pathlib import Path
from resource import RUSAGE_CHILDREN, getrusage
from statistics import median
from tempfile import TemporaryDirectory

from ..files import lock, written
from .plan import Plan, PlanError
from .records import environment
from .run import Interrupted, Run, RunError, allow_children, call, end_children, load

_OVERHEAD = 1.05  # of the loss on the validation set and of checkpoints: seconds of a training by those of its updates
# How many updates take as long as a sentence of a set: by beam search at the end, greedily in all validations together.
_TRANSLATION, _VALIDATION = 0.13, 0.45
_TIMED, _BEFORE = 30, 10  # updates that are made to time them, and those of them that do not count
_IDLE = 0.8  # of a core, at least, for a training that is timed
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
        try:
            lock(file, "")
        except BlockingIOError:
            say(f"{out}: waiting for another process that is working here")
            fcntl.flock(file, fcntl.LOCK_EX)
        yield file.fileno()


def prepare_by_script(plan: Plan, out: Path, held: int) -> None:
    """Make the data with the script of the plan. Raises RunError: it fails."""
    log = out / "prepare.log"
    say(f"preparing the data: {plan.prepare}; its log: {log}")
    variables = {**environment(), "PYTHONSAFEPATH": "", "OUT": str(out)}  # its Python files may import their neighbours
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

    def work(run: Run) -> None:
        with run.held() as mine:
            if not mine or run.record.exists():
                return
            active[run.name] = run
            try:
                run.finish()
                score = load(run.record)["scores"]["valid"]["BLEU"]["score"]
                say(f"{run.name}: done, valid BLEU {score:.1f}")
            except Interrupted:
                pass
            except Exception as error:  # nobody else reads what a thread raises
                foreseen = isinstance(error, (OSError, ValueError))
                failed[run.name] = reason = str(error) if foreseen else f"{type(error).__name__}: {error}"
                say(f"{run.name}: failed: {reason}")
            finally:
                del active[run.name]

    with at_once(jobs) as pool:
        futures = {pool.submit(work, run) for run in runs if not run.record.exists()}
        while futures:
            futures = wait(futures, timeout=every, return_when=FIRST_COMPLETED).not_done
            if now := active.copy():
                # what is being done comes first
                left = sorted((run for run in runs if run.name not in failed), key=lambda run: run.name not in now)
                minutes = minutes_left(left, jobs)
                done = sum(run.record.exists() for run in runs)
                words = [f"{done} of {len(runs)} done"] + ([f"{len(failed)} failed"] if failed else [])
                words += [f"{name}: {run.status()}" for name, run in now.items()]
                say(" | ".join(words + ([] if minutes is None else [f"about {duration(max(minutes, 1))} left"])))
    return failed


def duration(minutes: float) -> str:
    """Minutes, or hours, as a reader would write them."""
    return f"{minutes:.0f} min" if minutes < 90 else f"{minutes / 60:.1f} h"


# --- how long ---------------------------------------------------------------------------------------------------------


def minutes_left(runs: Sequence[Run], jobs: int = 1, share: float = 1) -> float | None:
    """Minutes until all runs have a record, `jobs` at a time, by the updates that were timed; None: unknown.

    Args:
        share: of the updates.
    """
    left = []
    for run in (run for run in runs if not run.record.exists()):
        timed = _timed(run.out).get(run.system.name)
        if timed is None:
            return None
        update, start, _ = timed
        sentences = run.sentences()
        updates = run.family.max_updates * share
        training = start + update * (updates * _OVERHEAD + sentences["valid"] * _VALIDATION)
        translating = start * len(sentences) + update * _TRANSLATION * sum(sentences.values())
        trained = 1 if run.trained else min(run.updates() / updates, 1)
        translated = min(run.translated() / max(sum(sentences.values()), 1), 1)
        left.append((1 - trained) * training + (1 - translated) * translating)
    return together(left, jobs) / 60


def together(works: Iterable[float], jobs: int) -> float:
    """Makespan of works, each begun by the first of `jobs` workers that is free."""
    workers = [0.0] * jobs
    for each in works:
        workers[workers.index(min(workers))] += each
    return max(workers)


def _timed(out: Path) -> dict[str, list[float]]:
    """Seconds of an update and of a start, and the share of a core that was free for it, of systems."""
    path = out / "seconds.json"
    known = json.loads(path.read_text(encoding="utf8")) if path.exists() else {}
    return {name: each for name, each in known.items() if len(each) == 3}  # not those of older versions


def time_updates(runs: Iterable[Run], jobs: int) -> bool:
    """Time updates of each system, `jobs` at a time, unless that was done on an idle machine; True if any was timed.

    A system that fails has no time. See `_timed`.
    """
    first = {run.system.name: run for run in reversed(list(runs))}
    left = [run for name, run in first.items() if _timed(run.out).get(name, [0, 0, 0])[2] < _IDLE]
    if not left:
        return False
    say(f"timing {_TIMED} updates of {', '.join(run.system.name for run in left)}")
    used = getrusage(RUSAGE_CHILDREN)
    with at_once(jobs) as pool:
        found = list(pool.map(_seconds, left))
    more = getrusage(RUSAGE_CHILDREN)
    wall = sum(sum(each[2:]) for each in found)
    free = (more.ru_utime + more.ru_stime - used.ru_utime - used.ru_stime) / wall
    if free < _IDLE:
        say(f"trainings get {free:.0%} of a core here, so times are uncertain; they are measured again when you resume")
    known = _timed(left[0].out)
    known |= {run.system.name: [*each[:2], round(free, 2)] for run, each in zip(left, found, strict=True) if each[0]}
    with written(str(left[0].out / "seconds.json")) as file:
        json.dump(known, file, indent=1)
    return True


def _seconds(run: Run) -> tuple[float, float, float]:
    """Seconds of an update, 0 if it fails, and of a start; and of all."""
    began = time.monotonic()
    with TemporaryDirectory() as folder:
        log = Path(folder, "train.log")
        command = [*run.train_command(), "--max-update", str(_TIMED), "--log-interval", str(_BEFORE), "--no-save"]
        command += ["--disable-validation", "--save-dir", folder]
        with open(log, "wb") as file:
            ended = call(command, file, subprocess.STDOUT)
        speeds = _SPEED.findall(log.read_text(encoding="utf8", errors="replace"))[1:]  # the first includes the start
    wall = time.monotonic() - began
    update = median(float(wpb) / float(wps) for wps, wpb in speeds) if speeds and not ended else 0
    return round(update, 4), round(max(wall - _TIMED * update, 0), 1), wall


def estimate(runs: Sequence[Run], jobs: int) -> None:
    """Tell the user how long runs will take, at most where some may end before their last update."""
    minutes = minutes_left(runs, jobs)
    if minutes is not None:
        longest = max(run.family.max_updates for run in runs)
        about = "at most" if any(run.family.patience for run in runs) else "about"
        say(
            f"{len(runs)} runs of up to {longest:,} updates, {min(jobs, len(runs))} at a time: {about} "
            f"{duration(minutes)}, until {datetime.now() + timedelta(minutes=minutes):%a %H:%M}"
        )
