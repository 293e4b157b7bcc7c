"""Tables of probes of trained models: minimal pairs, trees, translation without a parse.

A record is RESULTS/PROBE/SYSTEM-SEED.json.gz, written by examples/experiments/probes.py. It has the output of
`contrast`, `whatif --pairs` or `attachment`, or scores of translations without a parse, and the name of the system.
"""

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from .contrast import groups_of, mcnemar, record_of, wilson
from .schemas import PROBE, check_name, read_json
from .tables import mean_and_deviation
from .tree_pairs import BOTH_SCORES, BOTH_TRANSLATIONS, GIVEN, OTHER, SAME, tree_pairs_of

Answers = Mapping[str, Mapping[str, dict]]
"""Name of a system -> seed -> record."""


class Table(NamedTuple):
    """A table for `tables.format_table`, with a title."""

    title: str
    header: list[str]
    rows: list[list]


def read_probes(folder: str | Path) -> dict[str, dict[str, dict[str, dict]]]:
    """The records below a folder of results: name of a probe -> name of a system -> seed -> record, sorted.

    Raises ValueError: a file is not a record of examples/experiments.
    """
    probes: dict[str, dict[str, dict[str, dict]]] = {}
    for path in sorted(Path(folder).glob("*/*.json.gz")):
        record = read_json(path, PROBE, "leave it out, or ask the model again")
        check_name(path, record)
        try:
            _READERS[record["verb"]](record)
        except (ValueError, KeyError) as error:
            raise ValueError(f"{path}: not a record of examples/experiments ({error!r}); leave it out") from None
        probes.setdefault(path.parent.name, {}).setdefault(record["system"], {})[str(record["seed"])] = record
    return probes


def training_of(run: dict) -> dict:
    """A fingerprint of the training of a run, of what its record has of it."""
    known = {"command": run["commands"]["train"]} if "train" in run.get("commands", {}) else {}
    if "curve" in run:
        known["curve"] = hashlib.sha256(json.dumps(run["curve"], sort_keys=True).encode()).hexdigest()
    return known


def tables(answers: Answers, runs: Answers, baseline: str, most: int | None = None) -> Iterator[Table]:
    """The tables of a probe, with one row per system: means and standard deviations over seeds.

    Args:
        answers: records of the probe, at least one.
        runs: records of the translations by the same systems, from `results.read_results`.
        baseline: name of the system with which others are compared.
        most: largest number of tables by group, which also limits tables by relation to frequent ones; None for all.

    Raises ValueError: records are of different pairs or verbs, or of another training than `runs`.
    """
    every = [record for of_system in answers.values() for record in of_system.values()]
    for record in every:
        if any(record.get(key) != every[0].get(key) for key in ("verb", "digest", "measure")):
            first = every[0]
            raise ValueError(
                f"{record['system']}-{record['seed']} and {first['system']}-{first['seed']} are records of "
                "different data or settings; remove the older record and run the probe again"
            )
        run = runs.get(record["system"], {}).get(str(record["seed"]))
        then, now = record.get("training", {}), training_of(run) if run else {}
        if any(then[key] != now[key] for key in then.keys() & now.keys()):  # older records lack some keys
            raise ValueError(
                f"{record['system']}-{record['seed']} was trained again after the probe; remove the record and run "
                "the probe again"
            )
    yield from _TABLES[every[0]["verb"]](answers, runs, baseline, most)


def _contrast(answers: Answers, runs: Answers, baseline: str, most: int | None) -> Iterator[Table]:
    right = {name: {k: record_of(r).right for k, r in of.items()} for name, of in answers.items()}
    details = next(iter(next(iter(answers.values())).values()))["details"]
    base = right.get(baseline, {})
    header = ["system", "seeds", "pairs", "right, %", "95 % interval", f"p McNemar against {baseline}, by seed"]
    rows = []
    for name, of_seed in right.items():
        size = len(next(iter(of_seed.values())))
        low, high = wilson(np.mean([hits.sum() for hits in of_seed.values()]), size)
        tests = [f"{mcnemar(base[seed], hits).p:.2g}" for seed, hits in of_seed.items() if seed in base]
        tested = ", ".join(tests) if tests and name != baseline else "-"
        interval = f"{100 * low:.1f}–{100 * high:.1f}"
        rows.append([name, len(of_seed), size, _percent(of_seed.values()), interval, tested])
    yield Table("pairs whose correct translation has the higher score", header, rows)
    for group, members in _some(groups_of(details), most):
        title = f"right pairs in percent, by {group}"
        yield _by_group(title, members, {name: list(of_seed.values()) for name, of_seed in right.items()})


# column of a table -> a measure
_FOLLOWED = {
    "the tree's translation": GIVEN,
    "the other tree's": OTHER,
    BOTH_TRANSLATIONS: BOTH_TRANSLATIONS,
    "the same for both trees": SAME,
    BOTH_SCORES: BOTH_SCORES,
}


def _whatif(answers: Answers, runs: Answers, baseline: str, most: int | None) -> Iterator[Table]:
    measures = {name: [tree_pairs_of(r).measures() for r in of.values()] for name, of in answers.items()}
    details = next(iter(next(iter(answers.values())).values()))["details"]
    rows = []
    for name, of_seeds in measures.items():
        shares = [_percent(hits[measure] for hits in of_seeds) for measure in _FOLLOWED.values()]
        rows.append([name, len(of_seeds), len(of_seeds[0][SAME]), *shares])
    yield Table("pairs in percent", ["system", "seeds", "pairs", *_FOLLOWED], rows)
    for group, parts in _some(groups_of(details), most):
        for measure in (BOTH_TRANSLATIONS, BOTH_SCORES):
            hits = {name: [run[measure] for run in of_seeds] for name, of_seeds in measures.items()}
            yield _by_group(f"{measure} in percent, by {group}", parts, hits)


_SHARES = ("DA", "UA", "UAS")
_RELATIONS = 8  # number that fits on a page


def _right_heads(content: dict) -> dict[str, dict]:
    """Scores of the trees, of L and of R, from a record of `attachment`.

    Raises ValueError: they do not have the same relations.
    """
    scores = {name: content["scores"][name] for name in ("trees", "L", "R")}
    if any(of["relations"].keys() != scores["L"]["relations"].keys() for of in scores.values()):
        raise ValueError("scores of different relations")
    return scores


def _attachment(answers: Answers, runs: Answers, baseline: str, most: int | None) -> Iterator[Table]:
    every = {name: [_right_heads(record) for record in of.values()] for name, of in answers.items()}
    seeds: dict[str, int | str] = {name: len(of) for name, of in every.items()}
    trees = {name: [run["trees"] for run in of] for name, of in every.items()}
    sample = next(iter(every.values()))[0]
    for name in ("L", "R"):  # the same for every system
        trees[name], seeds[name] = [sample[name]], "-"
    rows = [
        [name, seeds[name], *(mean_and_deviation(run[key] for run in of) for key in _SHARES)]
        for name, of in trees.items()
    ]
    yield Table("right heads (DA, UAS) and arcs (UA), in percent", ["system", "seeds", *_SHARES], rows)
    relations = {name: of["words"] for name, of in sample["L"]["relations"].items()}
    relations = dict(list(relations.items())[: _RELATIONS if most else None])
    rows = [
        [name, seeds[name], *(mean_and_deviation(run["relations"][key]["DA"] for run in of) for key in relations)]
        for name, of in trees.items()
    ]
    yield Table(
        "DA by relation", ["system", "seeds", *(f"{name} ({words})" for name, words in relations.items())], rows
    )


BLEU = "BLEU"

# title -> score of a split, or None if it has no such score
_SCORES: dict[str, Callable[[dict], float | None]] = {
    BLEU: lambda scores: scores["BLEU"]["score"],
    "agreement, %": lambda scores: 100 * scores["agreement"]["overall"]["accuracy"] if "agreement" in scores else None,
}


def _unparsed(answers: Answers, runs: Answers, baseline: str, most: int | None) -> Iterator[Table]:
    every = [record for of_system in answers.values() for record in of_system.values()]
    splits = list(every[0]["scores"])
    for title, score in _SCORES.items():
        header, rows = ["system", "seeds"], [[name, len(of)] for name, of in answers.items()]
        for split in splits:
            pairs = [
                [(score(_scores(runs, name, k, split)), score(r["scores"][split])) for k, r in of.items()]
                for name, of in answers.items()
            ]
            if any(without is None for of in pairs for _, without in of):
                continue
            header += [f"{split}, with a parse", "without"]
            for row, of in zip(rows, pairs, strict=True):
                row += [mean_and_deviation(scores) for scores in zip(*of, strict=True)]
        if len(header) > 2:
            signatures = {of["scores"][split][BLEU].get("signature", "") for of in every for split in splits}
            yield Table(", ".join([title, *sorted(signatures)]) if title == BLEU else title, header, rows)


def _scores(runs: Answers, name: str, seed: str, split: str) -> dict:
    """The scores of a run on a split, translated with parses as in training."""
    try:
        return runs[name][seed]["scores"][split]
    except KeyError:
        raise ValueError(f"{name}-{seed} translated {split} without a parse, but has no record with parses") from None


_TABLES = {"contrast": _contrast, "whatif": _whatif, "attachment": _attachment, "unparsed": _unparsed}


# verb -> function that raises an error if a record is invalid
_READERS: dict[str, Callable[[dict], object]] = {
    "contrast": lambda content: record_of(content).right,
    "whatif": lambda content: tree_pairs_of(content).measures(),
    "attachment": _right_heads,
    "unparsed": lambda content: content["scores"],
}


def _some(groups: dict, most: int | None) -> Iterable[tuple[str, list]]:
    return list(groups.items())[:most]


def _by_group(title: str, groups: list[tuple[str, np.ndarray]], hits: Mapping[str, Sequence[np.ndarray]]) -> Table:
    """A table with one row per system and one column per group."""
    header = ["system", *(f"{label} ({len(members)})" for label, members in groups)]
    rows = [
        [name, *(_percent(run[members] for run in of_system) for _, members in groups)]
        for name, of_system in hits.items()
    ]
    return Table(title, header, rows)


def _percent(hits: Iterable[np.ndarray]) -> str:
    return mean_and_deviation(100 * float(of_run.mean()) for of_run in hits)
