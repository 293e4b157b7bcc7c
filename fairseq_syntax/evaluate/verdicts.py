"""Verdicts of a comparison of systems, as sentences."""

from .tables import rounded, signed

FEW = 50
"""Number of sentences below which a comparison says little."""
LEAST, LENGTHS = 2, (0.8, 1.25)
"""Least BLEU, and range of the ratio of lengths, of systems that translate."""


def verdicts(comparison: dict) -> list[str]:
    """A sentence about each system and its baseline.

    Nothing is compared if one of them does not translate yet. Otherwise, the first metric decides by its interval, and
    others are named if they say something else. A difference that prints as 0 has no sign.
    """
    systems = {system["name"]: system for system in comparison["systems"]}
    pairs: dict[tuple[str, str], list[dict]] = {}
    for test in comparison["tests"]:
        pairs.setdefault((test["baseline"], test["system"]), []).append(test)
    lines = []
    for (baseline, name), tests in pairs.items():
        pair = systems[baseline], systems[name]
        if faults := [f"{system['name']}: {fault}" for system in pair if (fault := _fault(system))]:
            fault = "these models do not translate yet" if len(faults) == 2 else "one of them does not translate yet"
            lines.append(f"{name} and {baseline}: {fault}; nothing is compared ({'; '.join(faults)})")
        else:
            few = f"; {comparison['sentences']} sentences are too few to conclude much"
            lines.append(_verdict(comparison, pair, tests) + few * (comparison["sentences"] < FEW))
    return lines


def translating(comparison: dict) -> dict:
    """The comparison without the tests of systems that do not translate yet, or whose baseline does not."""
    whole = {system["name"] for system in comparison["systems"] if not _fault(system)}
    return comparison | {"tests": [test for test in comparison["tests"] if {test["system"], test["baseline"]} <= whole]}


def _fault(system: dict) -> str:
    """The first reason why a system does not translate; empty if it does."""
    bleu, (short, long) = system["scores"].get("BLEU"), LENGTHS
    if bleu and bleu["mean"] < LEAST:
        return f"{bleu['mean']:.2f} BLEU, below {LEAST}"
    if bleu and not short <= bleu["length_ratio"] <= long:
        return f"{bleu['length_ratio']:.2f} times the words of the references"
    return ""


def _verdict(comparison: dict, pair: tuple[dict, dict], tests: list[dict]) -> str:
    metrics = {metric["name"]: metric for metric in comparison["metrics"]}
    (first, *others), (baseline, system) = tests, (side["name"] for side in pair)
    metric, runs = metrics[first["metric"]], [len(side["runs"]) for side in pair]
    better, figures = _direction(first, metric), _figures(first, metric)
    if better:
        line = f"{system} is {'better' if better > 0 else 'worse'} than {baseline} ({figures})"
        corrected = next((p for p in first["holm"].values() if p is not None), 0)  # of runs, if there are several
        line += ", though p after Holm's correction is above 0.05" * (corrected > 0.05)
    else:
        line = f"{system} and {baseline} cannot be told apart ({figures})"
        # sentences that do not vary, such as a single one, say nothing about others
        if first["detectable"] is not None:
            seen = rounded(first["detectable"], metric["digits"])
            line += f"; a true difference of {seen} would be found four times in five"
    for test in others:
        if _direction(test, metrics[test["metric"]]) not in (0, better):
            line += f"; but {_figures(test, metrics[test['metric']])}"
    return line + "; with one seed each, so other seeds may say otherwise" * (runs == [1, 1])


def _direction(test: dict, metric: dict) -> int:
    """1 if a system is better, -1 if it is worse, 0 if the interval includes 0 or the difference prints as 0."""
    (low, high), delta = test["interval"], rounded(test["delta"], metric["digits"])
    if low <= 0 <= high or not delta or test["detectable"] is None:
        return 0
    return 1 if (delta > 0) == metric["higher_is_better"] else -1


def _figures(test: dict, metric: dict) -> str:
    delta, low, high = (signed(value, metric["digits"]) for value in (test["delta"], *test["interval"]))
    return f"{delta} {metric['name']}, {low} to {high}"
