"""What a comparison of systems says, in sentences."""

from .significance import unequal_spread
from .tables import rounded, signed

FEW = 50
"""Sentences below which a comparison says little."""
LEAST, LENGTHS, REPEATED = 2, (0.8, 1.25), 0.05
"""BLEU, ratio of lengths, and share of lines with a phrase over and over, beyond which systems do not translate."""


def verdicts(comparison: dict) -> list[str]:
    """A sentence about each system and its baseline, made of all that is known of them.

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
        faults = [f"{system['name']}: {fault}" for system in pair if (fault := _fault(system))]
        if faults:
            who = "these models do not translate yet" if len(faults) == 2 else "one of them does not translate yet"
            lines.append(f"{name} and {baseline}: {who}; nothing is compared ({'; '.join(faults)})")
        else:
            few = f"; {comparison['sentences']} sentences are too few to conclude much"
            lines.append(_verdict(comparison, pair, tests) + few * (comparison["sentences"] < FEW))
    return lines


def translating(comparison: dict) -> dict:
    """The comparison without the tests of systems that do not translate yet, or whose baseline does not."""
    whole = {system["name"] for system in comparison["systems"] if not _fault(system)}
    return comparison | {"tests": [test for test in comparison["tests"] if {test["system"], test["baseline"]} <= whole]}


def _fault(system: dict) -> str:
    """The first reason why a system does not translate, or nothing."""
    bleu, (short, long) = system["scores"].get("BLEU"), LENGTHS
    if bleu and bleu["mean"] < LEAST:
        return f"{bleu['mean']:.2f} BLEU"
    if bleu and not short <= bleu["length_ratio"] <= long:
        return f"{bleu['length_ratio']:.2f} times the words of the references"
    return f"{system['repeated']:.0%} of the lines repeat themselves" if system["repeated"] > REPEATED else ""


def _verdict(comparison: dict, pair: tuple[dict, dict], tests: list[dict]) -> str:
    metrics = {metric["name"]: metric for metric in comparison["metrics"]}
    (first, *others), (baseline, system) = tests, (each["name"] for each in pair)
    metric, runs = metrics[first["metric"]], [each["scores"][first["metric"]]["runs"] for each in pair]
    better = _direction(first, metric)
    against = [test for test in others if _direction(test, metrics[test["metric"]]) not in (0, better)]
    figures = _figures(first, metric)
    alone = len(runs[0]) == len(runs[1]) == 1
    if better and against:
        more = "; ".join(_figures(test, metrics[test["metric"]]) for test in against)
        line = f"{_listed(first, *against)} disagree about {system} and {baseline} ({figures}; {more})"
    elif better:
        holm = first["holm"]["randomization" if alone else "runs"]
        line = f"{system} is {'better' if better > 0 else 'worse'} than {baseline} ({figures})"
        line += ", though not after Holm's correction" * ((holm or 0) > 0.05)
        silent = [test for test in others if not _direction(test, metrics[test["metric"]])]
        line += f"; {_listed(*silent)} cannot tell them apart" if silent else ""
    else:
        line = f"{system} and {baseline} cannot be told apart ({figures})"
        for test in against:
            said = "better" if _direction(test, metrics[test["metric"]]) > 0 else "worse"
            line += f"; {system} is {said} in {_figures(test, metrics[test['metric']])}"
        # sentences that do not vary, such as a single one, say nothing about others
        if first["detectable"] is not None:
            seen = rounded(first["detectable"], metric["digits"])
            line += f"; a true difference of {seen} would be found four times in five"
    return line + (_of_length(first, pair, metric) if better else "") + _of_seeds(pair, runs, metric)


def _direction(test: dict, metric: dict) -> int:
    """1 if a system is better, -1 if it is worse, 0 if the interval includes 0 or the difference prints as 0."""
    (low, high), delta = test["interval"], rounded(test["delta"], metric["digits"])
    if low <= 0 <= high or not delta or test["detectable"] is None:
        return 0
    return 1 if (delta > 0) == metric["higher_is_better"] else -1


def _figures(test: dict, metric: dict) -> str:
    delta, low, high = (signed(value, metric["digits"]) for value in (test["delta"], *test["interval"]))
    return f"{delta} {metric['name']}, {low} to {high}"


def _listed(*tests: dict) -> str:
    return " and ".join(test["metric"] for test in tests)


def _of_length(test: dict, pair: tuple[dict, dict], metric: dict) -> str:
    """The difference without brevity penalty, if it has another sign."""
    scores = [each["scores"][test["metric"]] for each in pair]
    if scores[0].get("without_brevity_penalty") is None:
        return ""
    bare = scores[1]["without_brevity_penalty"] - scores[0]["without_brevity_penalty"]
    opposite = rounded(bare, metric["digits"]) * rounded(test["delta"], metric["digits"]) < 0
    return f"; without brevity penalty, {signed(bare, metric['digits'])} BLEU" * opposite


def _of_seeds(pair: tuple[dict, dict], runs: list[list[float]], metric: dict) -> str:
    """What the numbers of seeds and their spreads leave open."""
    if len(runs[0]) == len(runs[1]) == 1:
        return "; with one seed each, so other seeds may say otherwise"
    if unequal_spread(*runs):
        name = metric["name"]
        sds = " and ".join(f"{rounded(each['scores'][name]['sd'], metric['digits'])}" for each in pair)
        return f"; their seeds vary unequally (SD {sds}), so the interval may be too narrow"
    alone = next((each["name"] for each, of in zip(pair, runs, strict=True) if len(of) == 1), "")
    return f"; {alone} has one seed, assumed to vary as those of the other do" if alone else ""
