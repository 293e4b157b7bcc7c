"""Experiments lead from parallel text, raw or prepared, to an answer with its tests.

from fairseq_syntax.experiment import Experiment
for record in Experiment("study").run():
    print(record["system"], record["seed"], record["scores"]["test"]["BLEU"])
"""

import os
from collections.abc import Sequence
from datetime import datetime, timedelta
from pathlib import Path

from . import corpus
from .answer import answer, expectation
from .budget import duration, fit_budget, minutes_left, read_budget, time_updates, write_budget
from .plan import NAME, PlanError, read_plan
from .run import Run, RunError, held, load, read_records, say
from .schedule import chosen_runs, prepare_by_script, run_all
from .settings import begin


def default_jobs(gpu: bool) -> int:
    """Trainings at a time: one per core, or one that has the GPU for itself."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return 1 if gpu else cores


def refuse_ways_out(folder: Path) -> None:
    """Raise ValueError if a link below a folder leads out of it: what is written must not land elsewhere."""
    for at, folders, names in os.walk(folder):
        for path in (Path(at, name) for name in (*folders, *names)):
            if path.is_symlink() and not path.resolve().is_relative_to(folder):
                raise PlanError(f"{path}: is a link to {path.resolve()}, outside of {folder}; put a copy in its place")


class Experiment:
    """An experiment in a folder.

    Args:
        place: the folder, which holds experiment.toml, or another file like that one.
        output: folder of data, checkpoints, logs and reports; None: that of experiment.toml, or outputs/NAME.
        results: folder of records and translations; None: `results` in the output folder.
        trust: whether the file may run code of its own: a script that makes the data, or another --user-dir.
        budget: time limit, such as 8h or 90m; empty: that of an earlier call, if there is one.

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
        """The runs, or those that are named: systems, or runs such as pascal-2. Raises ValueError: a wrong record."""
        read_records(self.plan, self.results)
        return chosen_runs(self.plan, self.out, self.results, only, () if gpu else ("--cpu",))

    def prepare(self) -> None:
        """Make the data, unless they are there.

        Raises ValueError: they cannot be made, see `corpus.check_needs`; or would run code, and `trust` is not given.
        """
        if not self.trust and (code := self.plan.runs_code()):
            raise PlanError(f"{self.plan.path}: {code} runs code; read it, and give --trust if you trust its author")
        corpus.check_needs(self.plan, self.out)
        with held(self.out / "lock") as number:
            if self.plan.corpus is not None:
                corpus.prepare(self.plan, self.out)
            elif not (self.out / "prepared").exists():
                prepare_by_script(self.plan, self.out, number)
                (self.out / "prepared").touch()

    def run(self, only: Sequence[str] = (), jobs: int | None = None, gpu: bool = False) -> list[dict]:
        """Prepare, train, translate and score what has no record; returns all records. What failed is in `failed`.

        The data are made and updates timed first, and what fits into the budget is chosen.

        Args:
            only: see `runs`.
            jobs: trainings at a time, with one thread each; None for `default_jobs`.
            gpu: train and translate on a GPU.

        Raises ValueError: the data cannot be made, or a record is wrong.
        """
        runs, jobs = self.runs(only, gpu), jobs or default_jobs(gpu)
        if left := [run for run in runs if not run.record.exists()]:
            if not (self.out / "prepared").exists():
                for line in expectation(self.plan):
                    say(line)
            self.prepare()
            with held(self.out / "lock"):
                self._fit(left, jobs, gpu)
            runs = self.runs(only, gpu)
            left = [run for run in runs if not run.record.exists()]
            if minutes := minutes_left(left, jobs):
                about = "at most" if any(run.family.patience for run in left) else "about"
                end = datetime.now() + timedelta(minutes=minutes)
                say(f"{len(left)} runs, {jobs} at a time: {about} {duration(minutes)}, until {end:%a %H:%M}")
            self.failed = run_all(runs, jobs)
        return [load(run.record) for run in runs if run.record.exists()]

    def _fit(self, left: list[Run], jobs: int, gpu: bool) -> None:
        """Time updates, and make the plan fit its budget, which is that of all runs, if that was not done before."""
        self.budget = read_budget(self.out)  # another process may have done it
        fits = not self.budget.time or self.budget.systems == len(self.whole.systems)
        runs = chosen_runs(self.whole, self.out, self.results, (), () if gpu else ("--cpu",))
        time_updates(left if fits else runs, jobs)
        if not fits:
            self.budget = write_budget(self.out, fit_budget(self.budget, self.whole, runs, jobs))
            fitted, seeds = self.budget, len(self.whole.seeds)
            say(f"budget {fitted.time}: {fitted.seeds} of {seeds} seeds, {fitted.updates}% of the updates")
        self.plan = self.whole.within(self.budget.seeds, self.budget.updates)

    def answer(self) -> list[str]:
        """Write the reports; see `answer.answer`. Raises ValueError: the data, and so the references, are not here."""
        if not (self.out / "prepared").exists():
            raise PlanError(f"{self.out}: the data are missing; to compare, give the --output that has them")
        with held(self.out / "lock-of-reports"):
            return answer(self.plan, self.out, self.results)

    def model(self, system: str | None = None, ensemble: bool = False) -> tuple[str, str]:
        """Data directory and checkpoint of the run that is best on the validation set; several joined with colons.

        Args:
            system: of this one; None: of all that read a parser's trees, or none.
            ensemble: all seeds of its system together.

        Raises ValueError: there is no such system, no record yet, or its checkpoint is not here.
        """
        own = [name for name, each in self.plan.systems.items() if each.trees not in ("linear", "random")]
        if system is not None and system not in own:
            raise PlanError(f"--system {system}: choose from {', '.join(own)}")
        records = {run.name: load(run.record) for run in self.runs() if run.record.exists()}
        done = [run for run in self.runs([system] if system else own) if run.name in records]
        if not done:
            whose = f"{self.out}: no run{f' of {system}' if system else ''} is finished"
            raise PlanError(f"{whose}; run fairseq-syntax experiment {self.out}")
        best = max(done, key=lambda run: records[run.name]["scores"]["valid"]["BLEU"]["score"])
        chosen = [run for run in done if run.system == best.system] if ensemble else [best]
        for run in chosen:
            if not run.checkpoint.is_file():
                raise PlanError(f"{run.checkpoint}: the checkpoint is missing; give the folder where it was trained")
        return str(best.data), os.pathsep.join(str(run.checkpoint) for run in chosen)


__all__ = ["Experiment", "PlanError", "Run", "RunError", "begin"]
