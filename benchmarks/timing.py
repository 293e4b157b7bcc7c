"""Measuring side by side: the contestants take turns, so that a busy machine is busy for all of them."""

import itertools
import platform
import re
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import torch

# what was measured: part, section and title of each, and its figures; with `--json` written to a file
MEASURED: list[dict] = []
_where = ["", ""]


def part(name: str) -> None:
    """Begin a part."""
    _where[:] = name, ""


def section(title: str) -> None:
    """Begin a section of a part."""
    _where[1] = title
    print(f"\n== {title}")


def _keep(title: str, **figures) -> None:
    MEASURED.append({"part": _where[0], "section": _where[1], "title": title, **figures})


def _keep_ratios(title: str, values: dict[str, float], peer: str, unit: str) -> None:
    ratios = {name: round(values[peer] / value, 4) for name, value in values.items() if name != peer}
    _keep(title, peer=peer, unit=unit, of_peer=round(values[peer], 2), ratios=ratios)


def machine() -> str:
    """What the figures are measured on."""
    processor = platform.processor() or platform.machine()
    return f"{processor}, torch {torch.__version__}, {torch.get_num_threads()} thread(s)"


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


def report_memory(title: str, program: str, arguments: dict[str, list[str]], peer: str) -> None:
    """Print the peak memory of processes, which `program --memory ARGUMENTS` prints, and how much more it is."""
    peaks = {}
    for name, given in arguments.items():
        command = [sys.executable, program, "--memory", *given]
        peaks[name] = float(subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()[-1])
    print(f"\n{title}")
    _keep_ratios(title, peaks, peer, "MiB")
    for name, peak in peaks.items():
        print(f"  {name:28} {peak:10.0f} MiB  {peak / peaks[peer]:6.3f} x {peer}")


def report(title: str, seconds: dict[str, float], peer: str, words: float | None = None) -> None:
    """Print seconds and speed relative to the peer (more is faster); with the `words` of a run also words a second."""
    print(f"\n{title}")
    _keep_ratios(title, {name: 1e3 * value for name, value in seconds.items()}, peer, "ms")
    for name, value in seconds.items():
        rate = "" if words is None else f" {words / value:9.0f} words/s"
        print(f"  {name:28} {value * 1e3:10.1f} ms{rate}   {seconds[peer] / value:6.3f} x {peer}")


def report_table(title: str, header: list[str], rows: list[list[str]]) -> None:
    """Print figures other than ratios, such as errors."""
    print(f"\n{title}")
    _keep(title, header=header, rows=rows)
    for first, *cells in (header, *rows):
        print(f"  {first:34}" + "".join(f"{cell:>14}" for cell in cells))


def markdown(parts: dict[str, dict]) -> str:
    """The tables of what was kept, for a page of docs/: speed relative to the peer, more is faster.

    Args:
        parts: name -> `measured`, and `machine`, `commit` and `date` of the run.
    """
    text = []
    for name, part in parts.items():
        groups = itertools.groupby(
            part["measured"],
            lambda one: (one["section"], one.get("peer"), *one.get("ratios", ()), *one.get("header", ())),
        )
        text.append(f"### {name[0].upper()}{name[1:]}")
        text.append(f"{part['date']}, commit {part['commit']}, {part['machine']}.")
        for (section, peer, *_), group in groups:
            same = list(group)
            if peer is None:
                text.append(same[0]["title"])
                header, rows = same[0]["header"], same[0]["rows"]
            else:
                first = f"{section}, against `{peer}`" if section else f"against `{peer}`"
                header = [first, *(f"`{name}`" for name in same[0]["ratios"])]
                rows = [
                    [
                        f"{one['title']} ({one['of_peer']:,.{0 if one['of_peer'] >= 100 else 1}f} {one['unit']})",
                        *(f"{ratio:.{0 if ratio >= 9.995 else 2}f}x" for ratio in one["ratios"].values()),
                    ]
                    for one in same
                ]
            table = [header, ["---"] + ["---:"] * (len(header) - 1), *rows]
            text.append("\n".join(f"| {' | '.join(row)} |" for row in table))
    return "\n\n".join(text)
