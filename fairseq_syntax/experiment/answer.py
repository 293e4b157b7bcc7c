"""What came out of an experiment: in words, as tables, and as a page for each test set and family of systems."""

import subprocess
import sys
from pathlib import Path

from ..evaluate.comparison import in_words, warnings
from ..files import written
from .comparisons import compare_all, controlled, load_comparison, path_of, rivals, tested
from .plan import Plan
from .records import environment
from .run import RunError, read_records


def answer(plan: Plan, out: Path, results: Path) -> list[str]:
    """Write the reports of all systems that have records beside their baseline's; returns what they say in words.

    report.html and report.txt are in the output folder; with several test sets or families, their names follow.

    Raises ValueError: a record, or what is needed to compare, is not as it should be.
    """
    compare_all(plan, out, results)
    records = read_records(plan, results)
    families, said = rivals(plan, records), []
    tests = list(tested(plan))
    for name, split in tests:
        about = f"{name}: " if len(tests) > 1 else ""
        for baseline, systems in families.items():
            comparison = load_comparison(path_of(results, name, baseline))
            words = in_words(comparison) + warnings(comparison)
            controls = [each for each in controlled(plan, records) if each in systems]
            for control in controls:
                words += in_words(load_comparison(path_of(results, name, control)))
            more = [name] * (len(tests) > 1) + [baseline] * (len(families) > 1)
            common = [str(results), "--split", name, "--reference", str(out / split.reference)]
            common += ["--tokenize", plan.tokenize, "--metrics", "BLEU", "chrF"]
            common += [word for each in (baseline, *controls) for word in ("--baseline", each)]
            common += [word for system in systems for word in ("--system", system)]
            common += ["--source", str(out / split.source), "--by", "length"] if split.source else []
            _write(out / "-".join(["report", *more]), f"{plan.name}: {name}", words, common)
            said += [about + line for line in words]
    return said


def _write(stem: Path, title: str, words: list[str], common: list[str]) -> None:
    tables = _call("compare", "--results", *common, "--format", "text")
    with written(f"{stem}.txt") as file:
        file.write("".join(f"{line}.\n" for line in words) + f"\n{tables}")
    _call("report", *common, "--title", title, "--output", f"{stem}.html", "--overwrite")


def _call(verb: str, *arguments: str) -> str:
    command = [sys.executable, "-m", "fairseq_syntax", verb, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, env=environment())
    if done.returncode:
        raise RunError(f"fairseq-syntax {verb}: {done.stderr.strip()[-300:]}")
    return done.stdout
