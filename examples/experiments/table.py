"""Tables of an experiment's records."""

import statistics
from collections import defaultdict
from collections.abc import Iterable

from fairseq_syntax.evaluate.significance import holm
from fairseq_syntax.evaluate.tables import TableFormat, format_table, probability
from fairseq_syntax.experiment.plan import Plan


def mean_and_deviation(values: Iterable[float]) -> str:
    """Mean ± standard deviation of a sample; the value alone if there is only one, a dash if there are none."""
    values = list(values)
    if len(values) < 2:
        return f"{values[0]:.1f}" if values else "-"
    return f"{statistics.mean(values):.1f} ± {statistics.stdev(values):.1f}"


def tables(plan: Plan, records: list[dict]) -> str:
    """Scores as Markdown.

    Systems that translate characters stand in tables of their own: they read something else.
    """
    parts = []
    for characters in (False, True):
        some = [r for r in records if plan.families[r["family"]].characters == characters]
        if some:
            parts.append(_scores(plan, some))
    return "\n\n".join(parts) or "no run has a record yet"


def _scores(plan: Plan, records: list[dict]) -> str:
    """A row a system, in the order of the table: means and standard deviations over seeds."""
    splits = [name for name in plan.splits if name != "valid"]
    challenges = _challenges(records)
    header = ["system", "trees", "baseline", "seeds", "updates", "valid BLEU", *(f"{name} BLEU" for name in splits)]
    header += [f"{name} agreement, %" for name in challenges]
    rows = []
    for name, runs in _by_system(plan, records).items():
        capped = sum(record["stopped"] == "cap" for record in runs)
        updates = f"{statistics.mean(record['updates'] for record in runs):.0f}"
        baseline = plan.families[runs[0]["family"]].baseline
        row = [name, runs[0]["trees"], baseline if baseline not in ("", name) else "–", len(runs)]
        row += [f"{updates} ({capped} unfinished)" if capped else updates]
        row += [mean_and_deviation(r["scores"][split]["BLEU"]["score"] for r in runs) for split in ("valid", *splits)]
        row += [
            mean_and_deviation(100 * r["scores"][c]["agreement"]["overall"]["accuracy"] for r in runs)
            for c in challenges
        ]
        rows.append(row)
    return format_table(header, rows, TableFormat.markdown)


def _challenges(records: list[dict]) -> list[str]:
    return [name for name, scores in records[0]["scores"].items() if "agreement" in scores]


def differences(plan: Plan, split: str, comparison: dict) -> str:
    """What `fairseq-syntax compare` says of a split: BLEU of systems beside their baseline's, and by bucket.

    Args:
        plan: whose papers' figures stand beside.
        split: its name.
        comparison: of `compare --format json`.
    """
    baseline, tests = comparison["baselines"][0], comparison["tests"]
    [own] = (system for system in comparison["systems"] if system["name"] == baseline)
    groups = [group for kind in comparison["buckets"] for group in kind["groups"]]
    header = ["system", *_TEST, "the paper's difference", *(f"{group['label']} ({group['size']})" for group in groups)]
    rows = [[baseline, _by_seed(own), *[""] * len(_TEST)]]
    rows[0] += [_with_deviation(group["scores"]["BLEU"][baseline]) for group in groups]
    for test in tests:
        cells = _tested(comparison, test, test["holm"])
        by_group = [_delta(group["deltas"]["BLEU"][test["system"]]) for group in groups]
        rows.append([test["system"], *cells, plan.systems[test["system"]].paper, *by_group])
    kinds = " and by ".join(kind["title"] for kind in comparison["buckets"])
    title = f"{split}: BLEU against {baseline}" + (f", and differences by {kinds} (sentences)" if groups else "")
    return f"{title}\n\n{format_table(header, rows, TableFormat.markdown)}"


def controls(split: str, comparisons: list[dict]) -> str:
    """BLEU of systems beside that of their controls, all of them tests of one family.

    Args:
        split: its name.
        comparisons: of `compare --format json`, one a control.
    """
    tests = [(comparison, test) for comparison in comparisons for test in comparison["tests"]]
    adjusted: list[dict] = [{"runs": None} for _ in tests]
    for name in ("runs", "randomization"):
        known = [i for i, (_, test) in enumerate(tests) if test["p"][name] is not None]
        for i, p in zip(known, holm([tests[i][1]["p"][name] for i in known]).tolist(), strict=True):
            adjusted[i][name] = p
    rows = [
        [test["system"], test["baseline"], *_tested(comparison, test, corrected)]
        for (comparison, test), corrected in zip(tests, adjusted, strict=True)
    ]
    header = ["system", "control", *_TEST]
    title = f"{split}: BLEU against controls"
    return f"{title}\n\n{format_table(header, rows, TableFormat.markdown)}"


_TEST = ("BLEU by seed", "difference", "95 % interval", "detectable", "p", "p, Holm", "p, these outputs", "Holm")


def _tested(comparison: dict, test: dict, corrected: dict) -> list:
    """Cells of `_TEST`."""
    [own] = (system for system in comparison["systems"] if system["name"] == test["system"])
    return [
        _by_seed(own),
        signed(test["delta"]),
        interval(test["interval"]),
        "–" if test["detectable"] is None else f"{test['detectable']:.1f}",
        *(probability(p[name]) for name in ("runs", "randomization") for p in (test["p"], corrected)),
    ]


def _bleu_of_runs(system: dict) -> list[float]:
    return system["scores"]["BLEU"]["runs"]


def _by_seed(system: dict) -> str:
    return ", ".join(f"{score:.1f}" for score in _bleu_of_runs(system))


def signed(value: float, digits: int = 1) -> str:
    # the sign of what is rounded, -0.0 too: a difference of -0.04 is on the other side than one of +0.04
    return f"{value:{'+' if value else ''}.{digits}f}"


def interval(ends: list[float]) -> str:
    # one digit more than scores have, to show on which side of 0 it ends
    return " to ".join(signed(end, 2) for end in ends)


def _with_deviation(score: dict) -> str:
    return f"{score['mean']:.1f}" + ("" if score["sd"] is None else f" ± {score['sd']:.1f}")


def _delta(delta: dict) -> str:
    return f"{signed(delta['mean'])} ({interval(delta['interval'])})"


def commits(records: list[dict]) -> str:
    """Of which commits these are, by name if they are few, and how many are of changed files."""
    names = sorted({commit[:10] for record in records for commit in record.get("commits") or [record["commit"]]})
    changed = sum("-changed" in " ".join([record["commit"], *record.get("commits", ())]) for record in records)
    said = f"commit {', '.join(names)}" if len(names) <= 3 else f"{len(names)} commits"
    return f"{said} ({changed} with changed files)" if changed else said


def _by_system(plan: Plan, records: list[dict]) -> dict[str, list[dict]]:
    found = defaultdict(list)
    for record in records:
        found[record["system"]].append(record)
    return {name: found[name] for name in plan.systems if name in found}
