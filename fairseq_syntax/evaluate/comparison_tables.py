"""Tables of what `comparison.compare` has found."""

import html
import math
from collections.abc import Iterable
from decimal import Decimal

from .tables import TableFormat, format_table

_BESIDE = 3  # systems whose scores and differences fit side by side
_HEADERS = {"randomization": "p AR", "bootstrap": "p bootstrap", "sign": "p sign"}


def tables(found: dict, form: str) -> list[str]:
    """All tables of a comparison, and what is to be said of its buckets.

    Args:
        found: see `comparison.compare`.
        form: a `TableFormat`.
    """
    parts = []
    for metric in found["metrics"]:
        parts.append(_scores(found, metric, form))
        parts += [_tests(found, metric, baseline, form) for baseline in found["baselines"][1:]]
    for buckets in found["buckets"]:
        parts.append(bucket_table(found, buckets, form))
        parts += [_note(note, form) for note in notes(buckets)]
    return [*parts, _settings(found, form)]


def _note(text: str, form: str) -> str:
    """A line below a table."""
    if form == TableFormat.html:
        return f"<p>{html.escape(text)}</p>"
    return f"% {text}" if form == TableFormat.latex else text


def notes(buckets: dict) -> list[str]:
    """What a reader of buckets has to know: which were put together, which sentences are in none."""
    title, minimum, said = buckets["title"], buckets["minimum"], []
    for group in buckets["groups"]:
        if group["merged"]:
            parts = ", ".join(f"{part['label']} ({part['size']})" for part in group["merged"])
            said.append(
                f"{title} {group['label']}: {parts}, put together since some have fewer than {minimum} sentences"
            )
    if buckets["groups"][0]["size"] < minimum:
        said.append(f"{title}: fewer than {minimum} sentences in all, which say little")
    if buckets["left_out"]:
        said.append(f"{title}: not known of {buckets['left_out']} sentences, which are left out")
    return said


def _rounded(value: float | None, digits: int) -> Decimal | float:
    """With so many digits after the point; None becomes NaN, a dash in tables."""
    # without + 0, -0.001 becomes -0.00
    return math.nan if value is None else Decimal(f"{value:.{digits}f}") + 0


def _p(value: float | None) -> Decimal | float:
    return math.nan if value is None else Decimal(f"{value:.2g}")


def _interval(ends: Iterable[float], digits: int) -> str:
    low, high = (_rounded(end, digits) for end in ends)
    return f"[{low}, {high}]"


def _several(found: dict) -> tuple[bool, bool]:
    """Whether a system has several runs, and whether several systems stand beside a baseline."""
    return any(len(system["runs"]) > 1 for system in found["systems"]), len(found["systems"]) > 2


def _test_header(found: dict) -> list[str]:
    runs, several = _several(found)
    tests = _tests_of(found)
    columns = [name for test in tests for name in (_HEADERS[test], "Holm")[: 1 + several]]
    counts = ["better", "worse"] if "sign" in tests else []
    return ["delta", "its interval", *counts, *columns, *(["p seeds"] if runs else [])]


def _tests_of(found: dict) -> list[str]:
    """Names of the tests that were made."""
    return list(found["tests"][0]["p"]) if found["tests"] else []


def _test_cells(found: dict, metric: dict, baseline: str, system: str) -> list:
    """Those of `_test_header`; dashes of the baseline itself."""
    keys = {"metric": metric["name"], "baseline": baseline, "system": system}
    test = next((test for test in found["tests"] if keys.items() <= test.items()), None)
    if test is None:
        return [math.nan] * len(_test_header(found))
    runs, several = _several(found)
    columns = [_p(p) for name in _tests_of(found) for p in (test["p"][name], test["holm"][name])[: 1 + several]]
    delta = _rounded(test["delta"], metric["digits"])
    counted = ("better", "worse") if "sign" in test["p"] else ()
    counts = (math.nan if test[key] is None else test[key] for key in counted)
    seeds = [_p(test["p_seeds"])] if runs else []
    return [delta, _interval(test["interval"], metric["digits"]), *counts, *columns, *seeds]


def _scores(found: dict, metric: dict, form: str) -> str:
    """Of every system the score, and how it differs from the first baseline."""
    runs, name, digits = _several(found)[0], metric["name"], metric["digits"]
    header = [name, *(["seeds", "mean", "SD", "min", "max"] if runs else ["score"]), "95 % interval"]
    ratio = name == "BLEU"
    rows = []
    for system in found["systems"]:
        summary = system["scores"][name]
        row = [system["name"]] + ([len(system["runs"])] if runs else [])
        row += [_rounded(summary[key], digits) for key in ("mean", "sd", "minimum", "maximum")[: 4 if runs else 1]]
        row.append(_interval(summary["interval"], digits))
        row += [_rounded(system["length_ratio"], 3)] if ratio else []
        rows.append(row + _test_cells(found, metric, found["baselines"][0], system["name"]))
    return format_table([*header, *(["length"] if ratio else []), *_test_header(found)], rows, form)


def _tests(found: dict, metric: dict, baseline: str, form: str) -> str:
    rows = [
        [system["name"], *_test_cells(found, metric, baseline, system["name"])]
        for system in found["systems"]
        if system["name"] != baseline
    ]
    return format_table([f"{metric['name']} against {baseline}", *_test_header(found)], rows, form)


def bucket_table(found: dict, buckets: dict, form: str) -> str:
    """The first metric by bucket, with intervals, and differences from the first baseline.

    A row a bucket; with more systems than fit on a page, a column a bucket.
    """
    metric, baseline = found["metrics"][0], found["baselines"][0]
    names = [system["name"] for system in found["systems"]]
    others = [name for name in names if name != baseline]
    header = [buckets["title"], "sentences", *names, *(f"delta {name}" for name in others)]
    rows = []
    for group in buckets["groups"]:
        scores = [group["scores"][metric["name"]][name] for name in names]
        deltas = [group["deltas"][metric["name"]][name] for name in others]
        cells = [(score["mean"], score["interval"]) for score in scores]
        cells += [(delta["mean"], delta["interval"]) for delta in deltas]
        digits = metric["digits"]
        rows.append(
            [
                *(group["label"], group["size"]),
                *(f"{_rounded(mean, digits)} {_interval(ends, digits)}" for mean, ends in cells),
            ]
        )
    if len(names) > _BESIDE:
        first, *others = zip(header, *rows, strict=True)
        return format_table(first, others, form)
    return format_table(header, rows, form)


def _settings(found: dict, form: str) -> str:
    """What is needed to compute the numbers again."""
    chance = found["chance"]
    rows = [
        ["sentences", str(found["sentences"])],
        *([metric["name"], metric["signature"]] for metric in found["metrics"]),
        ["AR", f"trials:{chance['trials']}|seed:{chance['seed']}"],
        ["bootstrap, intervals", f"resamples:{chance['resamples']}|seed:{chance['seed']}"],
    ]
    return format_table(["setting", "value"], rows, form)
