"""Tables of an experiment's records."""

import statistics
from collections.abc import Iterable

from fairseq_syntax.evaluate.significance import holm
from fairseq_syntax.evaluate.tables import TableFormat, format_table, probability
from fairseq_syntax.experiment.plan import Plan

_TEST = ("BLEU by seed", "difference", "95 % interval", "detectable", "p", "p, Holm", "p, these outputs", "Holm")


def mean_and_deviation(values: Iterable[float]) -> str:
    """Mean ± standard deviation of a sample; the value alone if there is only one, a dash if there are none."""
    values = list(values)
    if len(values) < 2:
        return f"{values[0]:.1f}" if values else "-"
    return f"{statistics.mean(values):.1f} ± {statistics.stdev(values):.1f}"


def signed(value: float, digits: int = 1) -> str:
    """A difference; -0.04 and +0.04 keep their signs when they are rounded."""
    return f"{value:{'+' if value else ''}.{digits}f}"


def interval(ends: list[float]) -> str:
    """An interval, with one digit more than scores have, to show on which side of 0 it ends."""
    return " to ".join(signed(end, 2) for end in ends)


def scores(plan: Plan, records: list[dict]) -> str:
    """A row a system, in the order of the plan: means and standard deviations over seeds, as Markdown.

    Systems that translate characters stand in a table of their own: they read something else.
    """
    splits = [name for name in plan.splits if name != "valid"]
    challenges = [name for name, scored in records[0]["scores"].items() if "agreement" in scored]
    header = ["system", "trees", "baseline", "seeds", "updates", "valid BLEU", *(f"{name} BLEU" for name in splits)]
    header += [f"{name} agreement, %" for name in challenges]
    rows: dict[bool, list] = {False: [], True: []}
    for name, system in plan.systems.items():
        runs = [record for record in records if record["system"] == name]
        if not runs:
            continue
        family = plan.families[system.family]
        capped = sum(record["stopped"] == "cap" for record in runs)
        updates = f"{statistics.mean(record['updates'] for record in runs):.0f}"
        row = [name, runs[0]["trees"], family.baseline if family.baseline not in ("", name) else "–", len(runs)]
        row += [f"{updates} ({capped} unfinished)" if capped else updates]
        row += [mean_and_deviation(r["scores"][split]["BLEU"]["score"] for r in runs) for split in ("valid", *splits)]
        right = [[r["scores"][split]["agreement"]["overall"]["accuracy"] for r in runs] for split in challenges]
        rows[family.characters].append([*row, *(mean_and_deviation(100 * x for x in some) for some in right)])
    return "\n\n".join(format_table(header, some, TableFormat.markdown) for some in rows.values() if some)


def differences(plan: Plan, split: str, comparisons: list[dict]) -> str:
    """BLEU of each baseline and, below it, of its systems, with tests and by bucket.

    Args:
        plan: whose papers' figures stand beside.
        split: its name.
        comparisons: of `compare --format json`, one a baseline, with the same buckets.
    """
    kinds, rows = comparisons[0]["buckets"], []
    for comparison in comparisons:
        baseline = comparison["baselines"][0]
        groups = [group for kind in comparison["buckets"] for group in kind["groups"]]
        row = [f"**{baseline}**", _by_seed(comparison, baseline), *[""] * len(_TEST)]
        rows.append([*row, *(_with_deviation(group["scores"]["BLEU"][baseline]) for group in groups)])
        for test in comparison["tests"]:
            name = test["system"]
            deltas = [group["deltas"]["BLEU"][name] for group in groups]
            by_group = [f"{signed(delta['mean'])} ({interval(delta['interval'])})" for delta in deltas]
            rows.append([name, *_tested(comparison, test, test["holm"]), plan.systems[name].paper, *by_group])
    header = ["system", *_TEST, "the paper's difference"]
    header += [f"{group['label']} ({group['size']})" for kind in kinds for group in kind["groups"]]
    by = " and by ".join(kind["title"] for kind in kinds)
    title = f"{split}: BLEU beside the baseline in bold" + (f", and differences by {by} (sentences)" if kinds else "")
    return f"{title}\n\n{format_table(header, rows, TableFormat.markdown)}"


def controls(found: dict[str, list[dict]]) -> str:
    """BLEU of systems beside that of their controls, all of them tests of one family on a split.

    Args:
        found: split -> comparisons of `compare --format json`, one a control.
    """
    rows = []
    for split, comparisons in found.items():
        tests = [(comparison, test) for comparison in comparisons for test in comparison["tests"]]
        adjusted: list[dict] = [{"runs": None} for _ in tests]
        for name in ("runs", "randomization"):
            known = [i for i, (_, test) in enumerate(tests) if test["p"][name] is not None]
            for i, p in zip(known, holm([tests[i][1]["p"][name] for i in known]).tolist(), strict=True):
                adjusted[i][name] = p
        for (comparison, test), corrected in zip(tests, adjusted, strict=True):
            rows.append([split, test["system"], test["baseline"], *_tested(comparison, test, corrected)])
    table = format_table(["test set", "system", "control", *_TEST], rows, TableFormat.markdown)
    return f"BLEU against controls\n\n{table}" if rows else ""


def _tested(comparison: dict, test: dict, corrected: dict) -> list:
    """Cells of `_TEST`."""
    return [
        _by_seed(comparison, test["system"]),
        signed(test["delta"]),
        interval(test["interval"]),
        "–" if test["detectable"] is None else f"{test['detectable']:.1f}",
        *(probability(p[name]) for name in ("runs", "randomization") for p in (test["p"], corrected)),
    ]


def _by_seed(comparison: dict, name: str) -> str:
    [system] = (system for system in comparison["systems"] if system["name"] == name)
    return ", ".join(f"{score:.1f}" for score in system["scores"]["BLEU"]["runs"])


def _with_deviation(score: dict) -> str:
    return f"{score['mean']:.1f}" + ("" if score["sd"] is None else f" ± {score['sd']:.1f}")


def commits(records: list[dict]) -> str:
    """Of which commits these are, by name if they are few, and how many are of changed files."""
    names = sorted({commit[:10] for record in records for commit in record.get("commits") or [record["commit"]]})
    changed = sum("-changed" in " ".join([record["commit"], *record.get("commits", ())]) for record in records)
    said = f"commit {', '.join(names)}" if len(names) <= 3 else f"{len(names)} commits"
    return f"{said} ({changed} with changed files)" if changed else said
