"""Experiments lead from parallel text, raw or prepared, to an answer with its tests.

from fairseq_syntax.experiment import Experiment
for record in Experiment("study").run():
    print(record["system"], record["seed"], record["scores"]["test"]["BLEU"])
"""

import os
from collections.abc import Sequence
from pathlib import Path

from . import corpus, schedule
from .answer import answer, expectation
from .plan import NAME, PlanError, read_plan
from .run import Run, RunError, load, read_records
from .settings import begin, fit_budget


def default_jobs(gpu: bool) -> int:
    """Trainings at a time: one per core, or one that has the GPU for itself."""
    if gpu:
        return 1
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


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

    Raises ValueError: the file is missing or wrong.
    """

    def __init__(
        self,
        place: str | Path,
        output: str | Path | None = None,
        results: str | Path | None = None,
        trust: bool = False,
    ):
        self.trust = trust
        place = Path(place)
        self.plan = read_plan(place / NAME if place.is_dir() else place)
        own = self.plan.path.parent if self.plan.path.name == NAME else Path("outputs", self.plan.name)
        self.out = Path(output or own).resolve()
        self.results = Path(results).resolve() if results else self.out / "results"
        self.failed: dict[str, str] = {}
        refuse_ways_out(self.out)
        if not self.results.is_relative_to(self.out):
            refuse_ways_out(self.results)

    def runs(self, only: Sequence[str] = (), gpu: bool = False) -> list[Run]:
        """The runs, or those that are named: systems, or runs such as pascal-2. Raises ValueError: a wrong record."""
        runs = schedule.chosen_runs(self.plan, self.out, self.results, only, () if gpu else ("--cpu",))
        read_records(self.plan, self.results, {run.record for run in runs})
        return runs

    def _check_trust(self) -> None:
        if not self.trust and (code := self.plan.runs_code()):
            raise PlanError(f"{self.plan.path}: {code} runs code; read it, and give --trust if you trust its author")

    def prepare(self, runs: int = 0) -> None:
        """Make the data, unless they are there.

        Raises ValueError: they cannot be made, see `corpus.check_needs`; or would run code, and `trust` is not given.
        """
        self._check_trust()
        corpus.check_needs(self.plan, self.out, runs)
        with schedule.held_folder(self.out) as held:
            if self.plan.corpus is not None:
                corpus.prepare(self.plan, self.out)
            elif not (self.out / "prepared").exists():
                schedule.prepare_by_script(self.plan, self.out, held)
                (self.out / "prepared").touch()

    def run(
        self, only: Sequence[str] = (), jobs: int | None = None, gpu: bool = False, every: float = 60
    ) -> list[dict]:
        """Prepare, train, translate and score what has no record; returns all records. What failed is in `failed`.

        The data are made and updates timed first, and what fits into the budget is written into the file.

        Args:
            only: see `runs`.
            jobs: trainings at a time, with one thread each; None for `default_jobs`.
            gpu: train and translate on a GPU.
            every: seconds between two lines of progress.

        Raises ValueError: the data cannot be made, or a record is wrong.
        """
        self._check_trust()
        runs, jobs = self.runs(only, gpu), jobs or default_jobs(gpu)
        if left := [run for run in runs if not run.record.exists()]:
            if not (self.out / "prepared").exists():
                for line in expectation(self.plan):
                    schedule.say(line)
            self.prepare(len(left))
            with schedule.held_folder(self.out):
                # a budget is that of all
                timed = schedule.time_updates(self.runs((), gpu) if self.plan.budget.time else left, jobs)
                self._fit(jobs, gpu, timed)
            runs = self.runs(only, gpu)
            schedule.estimate([run for run in runs if not run.record.exists()], jobs)
            self.failed = schedule.run_all(runs, jobs, every)
        return [load(run.record) for run in runs if run.record.exists()]

    def _fit(self, jobs: int, gpu: bool, timed: bool) -> None:
        """Make the plan fit its budget, if that is new, or nothing has begun and updates were timed anew."""
        whole = read_plan(self.plan.path, whole=True)
        runs = schedule.chosen_runs(whole, self.out, self.results, (), () if gpu else ("--cpu",))
        if whole.budget.time and (not whole.budget.seeds or (timed and not any(run.begun for run in runs))):
            schedule.say(f"budget {whole.budget.time}: {fit_budget(whole, runs, jobs)}")
        self.plan = read_plan(self.plan.path)

    def answer(self) -> list[str]:
        """Write the reports; see `answer.answer`. Raises ValueError: the data, and so the references, are not here."""
        if not (self.out / "prepared").exists():
            raise PlanError(f"{self.out}: the data are missing; to compare, give the --output that has them")
        with schedule.held_folder(self.out, "lock-of-reports"):
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
            if not (run.checkpoint.parent / "generation.json").exists():  # of a version that kept none
                run.keep_search()
        return str(best.data), os.pathsep.join(str(run.checkpoint) for run in chosen)


__all__ = ["Experiment", "PlanError", "Run", "RunError", "begin"]
