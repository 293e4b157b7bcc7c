"""Measuring side by side: the contestants take turns, so that a busy machine is busy for all of them."""

import platform
import re
import statistics
import time
from collections.abc import Callable
from pathlib import Path

import torch


def print_machine() -> None:
    """What the figures were measured on."""
    processor = platform.processor() or platform.machine()
    print(f"{processor}, torch {torch.__version__}, {torch.get_num_threads()} thread(s)")


def side_by_side(contestants: dict[str, Callable[[], object]], rounds: int, warm_up: int = 2) -> dict[str, float]:
    """Median seconds of each contestant; in every round each runs once, in changing order.

    Args:
        contestants: name -> function to time.
        rounds: how often each is timed.
        warm_up: runs before that, not timed.
    """
    names = list(contestants)
    times: dict[str, list[float]] = {name: [] for name in names}
    for round_number in range(warm_up + rounds):
        for name in names[round_number % len(names) :] + names[: round_number % len(names)]:
            start = time.perf_counter()
            contestants[name]()
            if round_number >= warm_up:
                times[name].append(time.perf_counter() - start)
    return {name: statistics.median(values) for name, values in times.items()}


def peak_memory() -> float:
    """MiB that this process has had at most; what its parent had before does not count, as it does for `getrusage`."""
    status = Path("/proc/self/status").read_text()
    return int(re.search(r"VmHWM:\s+(\d+) kB", status)[1]) / 1024


def report(
    title: str, seconds: dict[str, float], peer: str, target: str | None = None, words: float | None = None
) -> None:
    """Print seconds and speed relative to the peer (more is faster); with the `words` of a run also words a second."""
    print(f"\n{title}" + (f"; target {target}" if target else ""))
    for name, value in seconds.items():
        rate = "" if words is None else f" {words / value:9.0f} words/s"
        print(f"  {name:28} {value * 1e3:10.1f} ms{rate}   {seconds[peer] / value:6.3f} x {peer}")
