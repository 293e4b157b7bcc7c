"""Train, translate and score all systems of a table, some at a time, and record each.

    python examples/leaderboard/run.py examples/leaderboard/agreement.toml

A run is a system with a seed; its record is docs/results/CORPUS/SYSTEM-SEED.json, its translations lie beside it. What
has a record is not run again; what was stopped goes on after its last epoch.
"""

import argparse
import os
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, NoReturn

from board import CHECKOUT, Board, BoardError, add_places, places, read_board
from comparisons import compare_all
from table import tables
from training import Run, RunError, load, read_records, status

from fairseq_syntax.files import lock


def build_parser() -> argparse.ArgumentParser:
    """The program's options."""
    parser = argparse.ArgumentParser(
        prog="leaderboard", description="Train, translate and score all systems of a table, and record each run."
    )
    add_arguments(parser)
    parser.add_argument(
        "--every", type=float, default=60, metavar="SECONDS", help="between two lines of progress (%(default)s)"
    )
    return parser


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Which runs of which table, and where their files are; those of probes.py, too."""
    add = parser.add_argument
    add_places(parser)
    add("--systems", nargs="+", metavar="NAME", help="these only (default: all)")
    add("--seeds", nargs="+", type=int, metavar="N", help="these only (default: those of the table)")
    add(
        "--jobs",
        type=int,
        default=os.cpu_count(),
        metavar="N",
        help="at a time, one thread each (%(default)s)",
    )
    add("--gpu", action="store_true", help="use a GPU (default: CPUs)")
    add("--dry-run", action="store_true", help="print the commands of what is left, and do nothing")


def main(argv: list[str] | None = None) -> int:
    """Entry point. Exit status: 0, 1 if a run failed or the data could not be made, 2 for bad usage."""
    parser = build_parser()
    args = parser.parse_args(argv)
    try:
        board = read_board(args.table)
        runs = chosen_runs(board, args)
        read_records(board, places(board, args)[1], {run.record for run in runs})
        pending = [run for run in runs if not run.record.exists()]
        if args.dry_run:
            for run in pending:
                print(run.relative(run.train_command()))
            return 0
        failed = {}
        out, results = places(board, args)
        if pending:
            with only_one(out) as held:
                _prepare(board, out, held)
                failed = _run_all(runs, pending, args.jobs, args.every)
        # records may also have come from another machine
        if out.exists():
            try:
                compare_all(board, out, results)
            except (BoardError, RunError) as error:
                failed["comparisons"] = str(error)
        print(tables(board, [load(run.record) for run in runs if run.record.exists()]))
    except BoardError as error:
        print(f"leaderboard: {error}", file=sys.stderr)
        return 2
    except RunError as error:
        print(f"leaderboard: {error}", file=sys.stderr)
        return 1
    for name, reason in failed.items():
        print(f"failed: {name}: {reason}", file=sys.stderr)
    return 1 if failed else 0


def chosen_runs(board: Board, args: argparse.Namespace) -> list[Run]:
    """The runs that the options of `add_arguments` name. Raises BoardError for wrong ones."""
    unknown = [name for name in args.systems or () if name not in board.systems]
    if unknown:
        raise BoardError(f"--systems {unknown[0]}: choose among {', '.join(board.systems)}")
    if args.jobs < 1:
        raise BoardError(f"--jobs {args.jobs}: must be 1 or more")
    out, results = places(board, args)
    device = () if args.gpu else ("--cpu",)
    runs = [
        Run(board, system, seed, out, results, device)
        for system, seed in board.runs()
        if not args.systems or system.name in args.systems
    ]
    seeds = sorted({run.seed for run in runs})
    for seed in args.seeds or ():
        if seed not in seeds:
            raise BoardError(f"--seeds {seed}: {board.path} has {', '.join(map(str, seeds))} of these systems")
    return [run for run in runs if not args.seeds or run.seed in args.seeds]


@contextmanager
def only_one(out: Path, name: str = "lock") -> Iterator[IO]:
    """Hold the lock of an output folder, and give its file: who inherits that holds the lock, too."""
    out.mkdir(parents=True, exist_ok=True)
    with open(out / name, "a") as file:
        try:
            lock(file, f"{out / name}: another leaderboard is at work in this folder; wait or stop it")
        except BlockingIOError as error:
            raise BoardError(str(error)) from None
        yield file


def _prepare(board: Board, out: Path, held: IO) -> None:
    """Make the data, once; a preparation that was stopped begins again. While it runs, it holds the folder's lock."""
    done, log = out / "prepared", out / "prepare.log"
    if done.exists():
        return
    print(f"preparing the data: {board.prepare}; its log: {log}", flush=True)
    with open(log, "wb") as file:
        command = ["bash", str(board.path.resolve().parent / board.prepare)]
        variables = {**os.environ, "OUT": str(out)}
        ended = subprocess.run(
            command, stdout=file, stderr=file, env=variables, cwd=CHECKOUT, pass_fds=(held.fileno(),)
        )
    if ended.returncode:
        last = log.read_text(encoding="utf8", errors="replace").splitlines()[-1:]
        raise RunError(f"{board.prepare} ended with {ended.returncode}; {log} ends: {''.join(last)[:300]}")
    done.touch()


@contextmanager
def at_once(jobs: int) -> Iterator[ThreadPoolExecutor]:
    """So many workers; an interrupt is not kept waiting for what is queued, as by the executor's own `with`."""
    pool = ThreadPoolExecutor(jobs)
    try:
        yield pool
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


def _run_all(runs: list[Run], pending: list[Run], jobs: int, every: float) -> dict[str, str]:
    """Finish all pending runs, `jobs` at a time; returns those that failed, and why."""
    failed: dict[str, str] = {}
    active: dict[str, tuple[Run, float]] = {}
    guard = threading.Lock()

    def work(run: Run) -> None:
        with guard:
            active[run.name] = (run, time.monotonic())
        try:
            run.finish()
            score = load(run.record)["scores"]["valid"]["BLEU"]["score"]
            print(f"{run.name}: done, valid BLEU {score:.1f}", flush=True)
        except Exception as error:  # nobody else reads what a thread raises
            foreseen = isinstance(error, (RunError, BoardError, OSError, ValueError))
            failed[run.name] = reason = str(error) if foreseen else f"{type(error).__name__}: {error}"
            print(f"{run.name}: failed: {reason}", flush=True)
        finally:
            with guard:
                del active[run.name]

    with at_once(jobs) as pool:
        futures = {pool.submit(work, run) for run in pending}
        while futures:
            futures = wait(futures, timeout=every, return_when=FIRST_COMPLETED).not_done
            with guard:
                now = dict(active)
            if now:
                print(_progress(runs, now, len(failed), jobs), flush=True)
    return failed


def _progress(runs: list[Run], active: dict[str, tuple[Run, float]], failed: int, jobs: int) -> str:
    """A line: how many are done, what is being done, how long the rest may take."""
    done = [run for run in runs if run.record.exists()]
    words = [f"{len(done)} of {len(runs)} done"] + ([f"{failed} failed"] if failed else [])
    words += [f"{name}: {status(run)}" for name, (run, _) in active.items()]
    if done:
        minutes = {run.name: sum(load(run.record)["minutes"].values()) for run in done}
        mean = sum(minutes.values()) / len(done)

        def expected(run: Run) -> float:
            same = [minutes[other.name] for other in done if other.system.family == run.system.family]
            return sum(same) / len(same) if same else mean

        left = sum(expected(run) for run in runs if not run.record.exists())
        spent = sum((time.monotonic() - started) / 60 for _, started in active.values())
        words.append(f"about {_duration(max(left - spent, 1) / jobs)} left")
    return " | ".join(words)


def _duration(minutes: float) -> str:
    return f"{minutes:.0f} min" if minutes < 90 else f"{minutes / 60:.1f} h"


def leave(program: Callable[[], int], name: str) -> NoReturn:
    """Call a program and end the process with its status, without waiting for what it has started: that ends, too."""
    try:
        status = program()
    except KeyboardInterrupt:
        print(f"{name}: stopped; the same command goes on where it was", file=sys.stderr)
        status = 130
    except SystemExit as ended:  # of argparse, which gives a number
        status = ended.code
    except BrokenPipeError:  # nobody reads on
        status = 1
    except BaseException:
        traceback.print_exc()
        status = 1
    for stream in (sys.stdout, sys.stderr):
        with suppress(BrokenPipeError):
            stream.flush()
    os._exit(status)


if __name__ == "__main__":
    leave(main, "leaderboard")
