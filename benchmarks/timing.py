"""Measuring side by side: the contestants take turns, so that a busy machine is busy for all of them."""

import platform
import re
import statistics
import time
from collections.abc import Callable
from pathlib import Path

import torch

# part, section and title of a measurement -> name -> ratio to the peer, more is better
RATIOS: dict[str, dict[str, float]] = {}
_where = ["", ""]


def part(name: str) -> None:
    """Begin a part."""
    _where[:] = name, ""


def section(title: str) -> None:
    """Begin a section of a part."""
    _where[1] = title
    print(f"\n== {title}")


def keep(title: str, ratios: dict[str, float]) -> None:
    """Keep ratios for `--json` and `--compare`."""
    RATIOS[": ".join(filter(None, (*_where, title)))] = {name: round(ratio, 4) for name, ratio in ratios.items()}


def compare(old: dict[str, dict[str, float]], tolerance: float) -> list[str]:
    """Lines about the ratios of this run beside those of another one; first those that are worse.

    Args:
        old: of the other run.
        tolerance: a ratio is worse if it is less than `1 - tolerance` times the other one.
    """
    both = [
        (new[name] / old[title][name], f"{title}: {name:28} {old[title][name]:7.3f} -> {new[name]:7.3f}")
        for title, new in RATIOS.items()
        for name in new
        if old.get(title, {}).get(name)
    ]
    return [
        f"{'worse' if change < 1 - tolerance else 'better' if change > 1 + tolerance else 'same':6} {line}"
        for change, line in sorted(both)
    ]


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


def report_memory(title: str, peaks: dict[str, float], peer: str) -> None:
    """Print MiB, and how much more than the peer's they are."""
    print(f"\n{title}")
    keep(title, {name: peaks[peer] / peak for name, peak in peaks.items() if name != peer})
    for name, peak in peaks.items():
        print(f"  {name:28} {peak:10.0f} MiB  {peak / peaks[peer]:6.3f} x {peer}")


def report(
    title: str, seconds: dict[str, float], peer: str, target: str | None = None, words: float | None = None
) -> None:
    """Print seconds and speed relative to the peer (more is faster); with the `words` of a run also words a second."""
    print(f"\n{title}" + (f"; target {target}" if target else ""))
    keep(title, {name: seconds[peer] / value for name, value in seconds.items() if name != peer})
    for name, value in seconds.items():
        rate = "" if words is None else f" {words / value:9.0f} words/s"
        print(f"  {name:28} {value * 1e3:10.1f} ms{rate}   {seconds[peer] / value:6.3f} x {peer}")
