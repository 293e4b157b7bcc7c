"""Choice of the runs of an experiment, and their execution, several at a time."""

from collections.abc import Sequence
from concurrent.futures import as_completed
from pathlib import Path

from ..progress import progress_bar
from .plan import Plan, PlanError
from .records import environment
from .run import Interrupted, Run, error_message, hold_lock, read_run, run_logged, say, worker_pool


def chosen_runs(
    plan: Plan, out: Path, results: Path, only: Sequence[str] = (), device: tuple[str, ...] = ("--cpu",)
) -> list[Run]:
    """All runs of an experiment, or those of the systems or runs (such as pascal-2) that `only` names.

    Raises PlanError: there is no such run.
    """
    runs = [Run(plan, system, seed, out, results, device) for system, seed in plan.runs()]
    for name in only:
        if not any(name in (run.name, run.system.name) for run in runs):
            known = ", ".join(dict.fromkeys(run.system.name for run in runs))
            raise PlanError(f"--only {name}: choose from {known}, or one of their runs, such as {runs[0].name}")
    return [run for run in runs if not only or {run.name, run.system.name} & set(only)]


def prepare_by_script(plan: Plan, out: Path, lock: int) -> None:
    """Make the data with the script of the plan. Raises RunError: it fails."""
    say(f"preparing the data: {plan.prepare}; its log: {out / 'prepare.log'}")
    variables = {**environment(), "PYTHONSAFEPATH": "", "OUT": str(out)}  # its Python files may import each other
    script = str(plan.path.resolve().parent / plan.prepare)
    run_logged(["bash", script], out / "prepare.log", env=variables, pass_fds=(lock,))


def run_all(runs: Sequence[Run], jobs: int) -> dict[str, str]:
    """Finish all runs without a record, `jobs` at a time; returns name of a failed run -> reason.

    Runs that another process is working on are skipped.
    """
    failed: dict[str, str] = {}

    def work(run: Run) -> None:
        with hold_lock(run.out / "runs" / f".{run.name}.lock", wait=False) as mine:
            if mine is None or run.record.exists():
                return
            say(f"{run.name}: begun; its log: {run.folder / 'train.log'}")
            try:
                run.finish()
                say(f"{run.name}: done, valid BLEU {read_run(run.record)['scores']['valid']['BLEU']['score']:.1f}")
            except Interrupted:
                pass
            except Exception as error:  # errors of a thread are read nowhere else
                failed[run.name] = error_message(error)
                say(f"{run.name}: failed: {failed[run.name]}")

    with worker_pool(jobs) as pool:
        left = [pool.submit(work, run) for run in runs if not run.record.exists()]
        for _ in progress_bar(as_completed(left), total=len(left), desc="runs", unit="run"):
            pass
    return failed
