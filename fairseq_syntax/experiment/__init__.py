"""Experiments: from parallel text, raw or prepared, to trained systems, scores and tests (docs/corpus.md)."""

import os
from collections.abc import Sequence
from datetime import datetime, timedelta
from pathlib import Path

from . import corpus
from .answer import answer, expectation
from .budget import duration, fit_budget, minutes_left, read_budget, time_updates, write_budget
from .plan import NAME, PlanError, read_plan
from .run import Run, RunError, hold_lock, read_records, read_run, say
from .schedule import chosen_runs, prepare_by_script, run_all
from .settings import begin


def default_jobs(gpu: bool) -> int:
    """Number of trainings to run at once: one per core, or a single one on a GPU."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return 1 if gpu else cores


def refuse_ways_out(folder: Path) -> None:
    """Raise ValueError if a link below a folder leads out of it, where files would be written elsewhere."""
    for at, folders, names in os.walk(folder):
        for path in (Path(at, name) for name in (*folders, *names)):
            if path.is_symlink() and not path.resolve().is_relative_to(folder):
                raise PlanError(f"{path}: is a link to {path.resolve()}, outside of {folder}; put a copy in its place")


class Experiment:
    """The experiment of a folder.

    Args:
        place: folder of experiment.toml, or the path of such a file.
        output: folder of data, checkpoints, logs and reports; None for that of experiment.toml, or outputs/NAME.
        results: folder of records and translations; None for `results` in the output folder.
        trust: whether to run code that the file names: a script that makes the data, or another --user-dir.
        budget: time limit, such as 8h or 90m; empty for that of an earlier call, if any.

    Raises ValueError: the file is missing or wrong.
    """

    def __init__(
        self,
        place: str | Path,
        output: str | Path | None = None,
        results: str | Path | None = None,
        trust: bool = False,
        budget: str = "",
    ):
        self.trust = trust
        place = Path(place)
        self.plan = self.whole = read_plan(place / NAME if place.is_dir() else place)
        own = self.plan.path.parent if self.plan.path.name == NAME else Path("outputs", self.plan.name)
        self.out = Path(output or own).resolve()
        self.results = Path(results).resolve() if results else self.out / "results"
        self.failed: dict[str, str] = {}
        refuse_ways_out(self.out)
        if not self.results.is_relative_to(self.out):
            refuse_ways_out(self.results)
        self.budget = read_budget(self.out, budget)
        self.plan = self.whole.within(self.budget.seeds, self.budget.updates)

    def runs(self, only: Sequence[str] = (), gpu: bool = False) -> list[Run]:
        """All runs, or those of the systems or runs (such as pascal-2) in `only`. Raises ValueError: a wrong record."""
        read_records(self.plan, self.results)
        return chosen_runs(self.plan, self.out, self.results, only, () if gpu else ("--cpu",))

    def prepare(self) -> None:
        """Make the data, unless they exist.

        Raises ValueError: they cannot be made, see `corpus.check_needs`, or the file would run code without `trust`.
        """
        if not self.trust and (code := self.plan.runs_code()):
            raise PlanError(f"{self.plan.path}: {code} runs code; read it, and give --trust if you trust its author")
        corpus.check_needs(self.plan, self.out)
        with hold_lock(self.out / "lock") as number:
            if self.plan.corpus is not None:
                corpus.prepare(self.plan, self.out)
            elif not (self.out / "prepared").exists():
                prepare_by_script(self.plan, self.out, number)
                (self.out / "prepared").touch()

    def run(self, only: Sequence[str] = (), jobs: int | None = None, gpu: bool = False) -> list[dict]:
        """Prepare the data, finish all runs without a record, and return all records; `failed` names runs that fail.

        First the data are made, updates are timed, and seeds and updates are reduced to fit the budget.

        Args:
            only: see `runs`.
            jobs: number of trainings to run at once, with one thread each; None for `default_jobs`.
            gpu: train and translate on a GPU.

        Raises ValueError: the data cannot be made, or a record is wrong.
        """
        runs, jobs = self.runs(only, gpu), jobs or default_jobs(gpu)
        if left := [run for run in runs if not run.record.exists()]:
            if not (self.out / "prepared").exists():
                for line in expectation(self.plan):
                    say(line)
            self.prepare()
            with hold_lock(self.out / "lock"):
                self._fit(left, jobs, gpu)
            runs = self.runs(only, gpu)
            left = [run for run in runs if not run.record.exists()]
            if minutes := minutes_left(left, jobs):
                about = "at most" if any(run.family.patience for run in left) else "about"
                end = datetime.now() + timedelta(minutes=minutes)
                say(f"{len(left)} runs, {jobs} at a time: {about} {duration(minutes)}, until {end:%a %H:%M}")
            self.failed = run_all(runs, jobs)
        return [read_run(run.record) for run in runs if run.record.exists()]

    def _fit(self, left: list[Run], jobs: int, gpu: bool) -> None:
        """Time updates and, unless done before, choose seeds and updates with which all runs fit the budget."""
        self.budget = read_budget(self.out)  # another process may have fitted it
        fits = not self.budget.time or self.budget.systems == len(self.whole.systems)
        runs = chosen_runs(self.whole, self.out, self.results, (), () if gpu else ("--cpu",))
        time_updates(left if fits else runs, jobs)
        if not fits:
            self.budget = write_budget(self.out, fit_budget(self.budget, self.whole, runs, jobs))
            fitted, seeds = self.budget, len(self.whole.seeds)
            say(f"budget {fitted.time}: {fitted.seeds} of {seeds} seeds, {fitted.updates}% of the updates")
        self.plan = self.whole.within(self.budget.seeds, self.budget.updates)

    def answer(self) -> list[str]:
        """Write the reports, see `answer.answer`. Raises ValueError: the data, with the references, are missing."""
        if not (self.out / "prepared").exists():
            raise PlanError(f"{self.out}: the data are missing; to compare, give the --output that has them")
        self.budget = read_budget(self.out)  # another process may have changed it, or added systems
        self.plan = read_plan(self.plan.path).within(self.budget.seeds, self.budget.updates)
        with hold_lock(self.out / "lock-of-reports"):
            return answer(self.plan, self.out, self.results)

    def model(self, system: str | None = None, ensemble: bool = False) -> tuple[str, str]:
        """Data directory of the run with the best validation BLEU, and its checkpoint, or several joined with colons.

        Args:
            system: name of its system; None for any, except controls with linear or random trees.
            ensemble: whether to return the checkpoints of all its seeds.

        Raises ValueError: there is no such system, no record yet, or a checkpoint is missing.
        """
        own = [name for name, settings in self.plan.systems.items() if settings.trees not in ("linear", "random")]
        if system is not None and system not in own:
            raise PlanError(f"--system {system}: choose from {', '.join(own)}")
        records = {run.name: read_run(run.record) for run in self.runs() if run.record.exists()}
        done = [run for run in self.runs([system] if system else own) if run.name in records]
        if not done:
            message = f"{self.out}: no run{f' of {system}' if system else ''} is finished"
            raise PlanError(f"{message}; run fairseq-syntax experiment {self.out}")
        best = max(done, key=lambda run: records[run.name]["scores"]["valid"]["BLEU"]["score"])
        chosen = [run for run in done if run.system == best.system] if ensemble else [best]
        for run in chosen:
            if not run.checkpoint.is_file():
                raise PlanError(f"{run.checkpoint}: the checkpoint is missing; give the folder where it was trained")
        return str(best.data), os.pathsep.join(str(run.checkpoint) for run in chosen)


__all__ = ["Experiment", "PlanError", "Run", "RunError", "begin"]
