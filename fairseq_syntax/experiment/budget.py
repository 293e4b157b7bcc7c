"""How long an experiment will take, and as much of it as fits into a limit of time."""

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
from .run import Run, at_once, call, say

_OVERHEAD = 1.05  # of the loss on the validation set and of checkpoints: seconds of a training by those of its updates
# How many updates take as long as a sentence of a set: by beam search at the end, greedily in all validations together.
_TRANSLATION, _VALIDATION = 0.13, 0.45
_TIMED, _BEFORE = 30, 10  # updates that are made to time them, and those of them that do not count
_SPEED = re.compile(r'train_inner \| .*"wps": "([\d.]+)".*"wpb": "([\d.]+)"')
_TIMES, _BUDGET = "seconds.json", "budget.json"  # in the output folder


@dataclass(frozen=True)
class Budget:
    """A limit of time, and as much of the experiment as fits into it.

    Fields:
        time: such as 8h or 90m; empty: no limit.
        seeds: the first so many seeds; 0: all.
        updates: percent of each family's `max_updates`.
        systems: number of systems that it was fitted to; 0: not yet.
    """

    time: str = Field("", pattern=r"^(\d+(\.\d+)?[hm])?$")
    seeds: int = Field(0, ge=0)
    updates: int = Field(100, ge=1, le=100)
    systems: int = 0

    @property
    def minutes(self) -> float:
        return float(self.time[:-1]) * (60 if self.time.endswith("h") else 1)


def read_budget(out: Path, asked: str = "") -> Budget:
    """The budget of an output folder, which `asked` replaces if it is another time. Raises PlanError: it is no time."""
    path = out / _BUDGET
    known = Budget(**json.loads(path.read_text(encoding="utf8"))) if path.exists() else Budget()
    if asked in ("", known.time):
        return known
    try:
        return write_budget(out, Budget(asked, 0, known.updates))
    except ValidationError:
        raise PlanError(f"--budget {asked}: give a time such as 8h or 90m") from None


def write_budget(out: Path, budget: Budget) -> Budget:
    """Keep the budget of an output folder."""
    with written(str(out / _BUDGET)) as file:
        json.dump(asdict(budget), file)
    return budget


def fit_budget(budget: Budget, plan: Plan, runs: Sequence[Run], jobs: int) -> Budget:
    """The budget with as many seeds, and then as many updates, as it has time for.

    Runs that have been begun keep their updates, and are not left out.

    Args:
        plan: the whole one.
        runs: all of it; their updates were timed.
        jobs: trainings at a time.

    Raises PlanError: too little time.
    """
    begun = [plan.seeds.index(run.seed) + 1 for run in runs if run.begun and run.seed in plan.seeds]

    def needed(seeds: int, percent: int) -> float:
        minutes = minutes_left([run for run in runs if run.seed in plan.seeds[:seeds]], jobs, percent / 100)
        if minutes is None:
            raise PlanError("--budget: some system could not be timed; remove the budget to learn why")
        return minutes

    percents = [budget.updates] if begun else range(100, 9, -1)
    least = max(begun, default=1)
    seeds = next((n for n in range(len(plan.seeds), least, -1) if needed(n, percents[0]) <= budget.minutes), least)
    percent = next((percent for percent in percents if needed(seeds, percent) <= budget.minutes), None)
    if percent is None:
        short = needed(least, percents[-1])
        raise PlanError(
            f"--budget {budget.time}: {least} of {len(plan.seeds)} seeds with {percents[-1]} % of the updates take "
            f"{duration(short)}; give --budget {math.ceil(short)}m or more, or begin again with fewer --systems"
        )
    return Budget(budget.time, seeds, percent, len(plan.systems))


def minutes_left(runs: Sequence[Run], jobs: int = 1, share: float = 1) -> float | None:
    """Minutes until all runs have a record, `jobs` at a time, by the updates that were timed; None: unknown.

    Args:
        share: of the updates.
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
    """Minutes, or hours, as a reader would write them."""
    return f"{minutes:.0f} min" if minutes < 90 else f"{minutes / 60:.1f} h"


def _timed(out: Path) -> dict[str, list[float]]:
    """Seconds of an update and of a start, of systems."""
    path = out / _TIMES
    return json.loads(path.read_text(encoding="utf8")) if path.exists() else {}


def time_updates(runs: Sequence[Run], jobs: int) -> None:
    """Time updates of each system that has no time, `jobs` at a time; one that fails gets none. See `_timed`."""
    first = {run.system.name: run for run in reversed(runs)}
    left = [run for name, run in first.items() if name not in _timed(run.out)]
    if left:
        say(f"timing {_TIMED} updates of {', '.join(run.system.name for run in left)}")
        with at_once(jobs) as pool:
            found = zip(left, pool.map(_seconds, left), strict=True)
            known = _timed(left[0].out) | {run.system.name: seconds for run, seconds in found if seconds[0]}
        with written(str(left[0].out / _TIMES)) as file:
            json.dump(known, file, indent=1)


def _seconds(run: Run) -> list[float]:
    """Seconds of an update, 0 if it fails, and of a start."""
    began = time.monotonic()
    with TemporaryDirectory() as folder:
        log = Path(folder, "train.log")
        command = [*run.train_command(), "--max-update", str(_TIMED), "--log-interval", str(_BEFORE), "--no-save"]
        command += ["--disable-validation", "--save-dir", folder]
        with open(log, "wb") as file:
            ended = call(command, file, subprocess.STDOUT)
        speeds = _SPEED.findall(log.read_text(encoding="utf8", errors="replace"))[1:]  # the first includes the start
    update = median(float(wpb) / float(wps) for wps, wpb in speeds) if speeds and not ended else 0
    return [round(update, 4), round(max(time.monotonic() - began - _TIMED * update, 0), 1)]
