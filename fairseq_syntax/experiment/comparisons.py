"""Test the systems of an experiment against their baselines and controls, over all seeds, and record what comes out.

A record is RESULTS/comparisons/SPLIT.OTHER.json, as `fairseq-syntax compare` writes it.
"""

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from itertools import chain, product
from pathlib import Path

from ..evaluate.schemas import COMPARISON, FORMAT, read_json
from ..files import written
from .plan import Plan, PlanError, Split, System
from .records import environment
from .run import RunError, read_records


def rivals(plan: Plan, records: list[dict]) -> dict[str, dict[str, list[dict]]]:
    """Baseline -> system -> its records, the baseline first; a baseline of each family."""
    return _beside(plan, records, lambda system: plan.families[system.family].baseline)


def controlled(plan: Plan, records: list[dict]) -> dict[str, dict[str, list[dict]]]:
    """The same of controls: systems that lack the syntax alone."""
    return _beside(plan, records, lambda system: system.control)


def _beside(plan: Plan, records: list[dict], other: Callable[[System], str]) -> dict[str, dict[str, list[dict]]]:
    of_system: dict[str, list[dict]] = {}
    for record in records:
        of_system.setdefault(record["system"], []).append(record)
    found: dict[str, dict[str, list[dict]]] = {}
    for name, system in plan.systems.items():
        baseline = other(system)
        if name != baseline and {name, baseline} <= of_system.keys():
            found.setdefault(baseline, {baseline: of_system[baseline]})[name] = of_system[name]
    return found


def tested(plan: Plan) -> Iterator[tuple[str, Split]]:
    """The splits that systems are compared on: all but the one that checkpoints are chosen on."""
    return ((name, split) for name, split in plan.splits.items() if name != "valid")


def path_of(results: Path, split: str, baseline: str) -> Path:
    """Where a comparison is kept."""
    return results / "comparisons" / f"{split}.{baseline}.json"


def breakdown(split: Split) -> list[str]:
    """What sentences of a split are told apart by, beside baselines: values of `compare --by`."""
    return (["length"] if split.source else []) + ([f"label:{split.labels}"] if split.labels else [])


def load_comparison(path: Path) -> dict:
    """A comparison. Raises PlanError if the file is not one."""
    advice = "remove it to compare again"
    try:
        comparison = read_json(path, COMPARISON, advice)
    except ValueError as error:
        raise PlanError(str(error)) from None
    if comparison["format"] != FORMAT:
        return comparison
    names, base = {system["name"] for system in comparison["systems"]}, comparison["baselines"][0]
    tested = {name for test in comparison["tests"] for name in (test["system"], test["baseline"])}
    groups = [group for kind in comparison["buckets"] for group in kind["groups"]]
    scored = [group["scores"].get("BLEU", {}).keys() for group in groups]
    scored += [group["deltas"].get("BLEU", {}).keys() | {base} for group in groups]
    if not ({base} | tested <= names and all(each == names for each in scored)):
        raise PlanError(f"{path}: tests or buckets cover other systems than the scores; {advice}")
    return comparison


def is_of(comparison: dict, records: dict[str, list[dict]], split: str, kinds: list[str]) -> bool:
    """Whether a comparison is of these records, by system, and not of older ones, and has this form and breakdown."""
    if comparison.get("format") != FORMAT or [kind["by"] for kind in comparison["buckets"]] != kinds:
        return False
    said = {
        (one["name"], run): round(score, 6)
        for one in comparison["systems"]
        for run, score in zip(one["runs"], one["scores"]["BLEU"]["runs"], strict=True)
    }
    return said == {
        (name, str(record["seed"])): round(record["scores"][split]["BLEU"]["score"], 6)
        for name, of_system in records.items()
        for record in of_system
    }


def compare_all(plan: Plan, out: Path, results: Path) -> None:
    """Write the comparisons that are missing or older than the records.

    Args:
        plan: a family without a baseline is left out.
        out: with references, sources and labels.
        results: with records and translations.

    Raises:
        PlanError: see `read_records`.
        RunError: a reference is not there, or `fairseq-syntax compare` failed.
    """
    records = read_records(plan, results)
    beside = [*((*pair, True) for pair in rivals(plan, records).items())]
    beside += [(*pair, False) for pair in controlled(plan, records).items()]
    for (name, split), (baseline, systems, told_apart) in product(tested(plan), beside):
        kinds = breakdown(split) if told_apart else []
        path = path_of(results, name, baseline)
        if path.exists() and is_of(load_comparison(path), systems, name, kinds):
            continue
        for file in filter(None, (split.reference, split.labels)):
            if not (out / file).exists():
                again = f"remove {out / 'prepared'} and run the experiment to make the data again"
                raise RunError(f"{out / file} is missing; give the --output that has it, or {again}")
        for record in chain(*systems.values()):
            run = f"{record['system']}-{record['seed']}"
            if not (results / f"{run}.{name}.txt.gz").exists():
                raise RunError(f"{results}: {run}.{name}.txt.gz is missing; remove {run}.json to translate again")
        command = [sys.executable, "-m", "fairseq_syntax", "compare", "--results", str(results), "--split", name]
        command += ["--reference", str(out / split.reference), "--metrics", "BLEU", "--format", "json"]
        command += ["--tokenize", plan.tokenize]
        command += ["--source", str(out / split.source)] if "length" in kinds else []
        for kind in kinds:
            command += ["--by", kind.replace("label:", f"label:{out}/")]
        for system in systems:
            command += ["--system", system]
        ended = subprocess.run(command, capture_output=True, text=True, env=environment())
        if ended.returncode:
            raise RunError(f"{baseline} and others on {name}: {ended.stderr.strip()[-300:]}")
        found = json.loads(ended.stdout)
        for kind, by in zip(found["buckets"], kinds, strict=True):
            kind["by"] = by
            for group in kind["groups"]:
                del group["sentences"]
        for system in found["systems"]:
            system["files"] = [Path(file).name for file in system["files"]]
        with written(str(path)) as file:
            json.dump(found, file, ensure_ascii=False, indent=1)
        print(f"compared with {baseline}: {name}", file=sys.stderr, flush=True)
