"""Estimated time of an experiment, and the part of it that fits a time limit."""

import json
import math
import re
import subprocess
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

from pydantic import Field, ValidationError
from pydantic.dataclasses import dataclass

from ..files import written
from .plan import Plan, PlanError
from .run import Run, call, say, worker_pool

_OVERHEAD = 1.05  # seconds of a training, with its checkpoints and validation loss, per second of its updates
# Updates that take as long as one sentence: beam search at the end; greedy search, in all validations together.
_TRANSLATION, _VALIDATION = 0.13, 0.45
_TIMED, _BEFORE = 30, 10  # updates of a timing, and how many of them to skip
_SPEED = re.compile(r'train_inner \| .*"wps": "([\d.]+)".*"wpb": "([\d.]+)"')
_TIMES, _BUDGET = "seconds.json", "budget.json"  # in the output folder


@dataclass(frozen=True)
class Budget:
    """A time limit, and the part of the experiment that fits it.

    Fields:
        time: limit such as 8h or 90m; empty for none.
        seeds: number of seeds, the first ones; 0 for all.
        updates: percent of each family's `max_updates`.
        systems: number of systems for which seeds and updates were chosen; 0 before that.
    """

    time: str = Field("", pattern=r"^(\d+(\.\d+)?[hm])?$")
    seeds: int = Field(0, ge=0)
    updates: int = Field(100, ge=1, le=100)
    systems: int = 0

    @property
    def minutes(self) -> float:
        return float(self.time[:-1]) * (60 if self.time.endswith("h") else 1)


def read_budget(out: Path, asked: str = "") -> Budget:
    """The budget of an output folder, replaced if `asked` is another time. Raises PlanError: that is no time."""
    path = out / _BUDGET
    known = Budget(**json.loads(path.read_text(encoding="utf8"))) if path.exists() else Budget()
    if asked in ("", known.time):
        return known
    try:
        return write_budget(out, Budget(asked, 0, known.updates))
    except ValidationError:
        raise PlanError(f"--budget {asked}: give a time such as 8h or 90m") from None


def write_budget(out: Path, budget: Budget) -> Budget:
    """Write the budget of an output folder, and return it."""
    with written(str(out / _BUDGET)) as file:
        json.dump(asdict(budget), file)
    return budget


def fit_budget(budget: Budget, plan: Plan, runs: Sequence[Run], jobs: int) -> Budget:
    """The budget with as many seeds as its time allows, and then as many updates.

    Once a run has begun, the number of updates is fixed, and its seed is kept.

    Args:
        plan: the plan before any reduction.
        runs: all its runs, see `time_updates`.
        jobs: number of trainings to run at once.

    Raises PlanError: the time is too short for the least number of seeds and updates.
    """
    begun = [plan.seeds.index(run.seed) + 1 for run in runs if run.begun and run.seed in plan.seeds]

    def needed(seeds: int, percent: int) -> float:
        minutes = minutes_left([run for run in runs if run.seed in plan.seeds[:seeds]], jobs, percent / 100)
        if minutes is None:
            raise PlanError("--budget: some system could not be timed; mend it, or remove it from the file")
        return minutes

    percents = [budget.updates] if begun else range(100, 9, -1)
    least = max(begun, default=1)
    seeds = next((n for n in range(len(plan.seeds), least, -1) if needed(n, percents[0]) <= budget.minutes), least)
    percent = next((percent for percent in percents if needed(seeds, percent) <= budget.minutes), None)
    if percent is None:
        short = needed(least, percents[-1])
        raise PlanError(
            f"--budget {budget.time}: {least} of {len(plan.seeds)} seeds with {percents[-1]} % of the updates take "
            f"{duration(short)}; give --budget {math.ceil(short)}m or more (later ones add seeds), or fewer systems"
        )
    return Budget(budget.time, seeds, percent, len(plan.systems))


def minutes_left(runs: Sequence[Run], jobs: int = 1, share: float = 1) -> float | None:
    """Makespan, in minutes, of the unfinished runs, scheduled greedily on `jobs` workers; None if a time is unknown.

    Args:
        share: part of the updates to train for, 0 to 1.
    """
    workers = [0.0] * jobs
    for run in (run for run in runs if not run.record.exists()):
        if run.system.name not in (timed := _timed(run.out)):
            return None
        update, start = timed[run.system.name]
        sentences = run.sentences()
        seconds = start * len(sentences) + update * _TRANSLATION * sum(sentences.values())
        if not run.trained:
            seconds += start + update * (run.family.max_updates * share * _OVERHEAD + sentences["valid"] * _VALIDATION)
        workers[workers.index(min(workers))] += seconds
    return max(workers) / 60


def duration(minutes: float) -> str:
    """A duration as text, such as `45 min` or `2.5 h`."""
    return f"{minutes:.0f} min" if minutes < 90 else f"{minutes / 60:.1f} h"


def _timed(out: Path) -> dict[str, list[float]]:
    """Name of a timed system -> seconds per update and to start."""
    path = out / _TIMES
    return json.loads(path.read_text(encoding="utf8")) if path.exists() else {}


def time_updates(runs: Sequence[Run], jobs: int) -> None:
    """Time and store the updates of untimed systems, `jobs` at once; a failure stores nothing. See `_timed`."""
    first = {run.system.name: run for run in reversed(runs)}
    left = [run for name, run in first.items() if name not in _timed(run.out)]
    if left:
        say(f"timing {_TIMED} updates of {', '.join(run.system.name for run in left)}")
        with worker_pool(jobs) as pool:
            times = zip(left, pool.map(_seconds, left), strict=True)
            known = _timed(left[0].out) | {run.system.name: seconds for run, seconds in times if seconds[0]}
        with written(str(left[0].out / _TIMES)) as file:
            json.dump(known, file, indent=1)


def _seconds(run: Run) -> list[float]:
    """Seconds per update, 0 if training fails, and seconds to start."""
    began = time.monotonic()
    with TemporaryDirectory() as folder:
        log = Path(folder, "train.log")
        command = [*run.train_command(), "--max-update", str(_TIMED), "--log-interval", str(_BEFORE), "--no-save"]
        command += ["--disable-validation", "--save-dir", folder]
        with open(log, "wb") as file:
            ended = call(command, file, subprocess.STDOUT)
        text = log.read_text(encoding="utf8", errors="replace")
        if ended:
            say(f"{run.name} cannot be timed: {''.join(text.splitlines()[-1:])[:300]}")
        speeds = _SPEED.findall(text)[1:]  # the first includes the start
    update = median(float(wpb) / float(wps) for wps, wpb in speeds) if speeds and not ended else 0
    return [round(update, 4), round(max(time.monotonic() - began - _TIMED * update, 0), 1)]
