"""Tables of deeper.toml by depth: whole sentences and verbs that are right, and the parser's trees."""

import csv
import gzip
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from probes import read_probes
from table import interval, signed

from fairseq_syntax.evaluate.contrast import record_of
from fairseq_syntax.evaluate.significance import effect, resampled
from fairseq_syntax.evaluate.tables import TableFormat, format_table, mean_and_deviation
from fairseq_syntax.experiment.plan import CHECKOUT, Plan
from fairseq_syntax.experiment.run import read_records
from fairseq_syntax.trees import read_conllu
from fairseq_syntax.trees.conllu import Sentence

NAME = "deeper"
_CHALLENGE = 40  # sentences of each construction and depth, as in deeper.sh
_DEEP = ("3", "4", "5")
_COLUMNS = {"0 to 2": ("0", "1", "2"), **{depth: (depth,) for depth in _DEEP}, "3 to 5": _DEEP, "flat": ("flat",)}
PARSES = "parser.challenge.en.conllu.gz"
"""The parser's trees of the challenge set, among the records."""


@cache
def _corpus() -> tuple[list[tuple[str, str]], list[str], list[Sentence]]:
    """Constructions with depths, references and gold trees of the challenge set, which is made anew."""
    with TemporaryDirectory() as folder:
        script = CHECKOUT / "examples" / "agreement" / "generate.py"
        sizes = [word for name in ("train", "valid", "test") for word in (f"--{name}", "0")]
        command = [sys.executable, script, "--output", folder, "--deeper", *sizes, "--challenge", str(_CHALLENGE)]
        subprocess.run(command, check=True, capture_output=True)
        with open(Path(folder, "challenge.tsv"), encoding="utf-8", newline="") as file:
            kinds = [row["construction"].rsplit("-", 1) for row in csv.DictReader(file, delimiter="\t")]
        references = Path(folder, "challenge.de").read_text(encoding="utf-8").splitlines()
        trees = list(read_conllu(Path(folder, "challenge.en.conllu")))
    return [(kind, "flat" if kind == "flat" else depth) for kind, depth in kinds], references, trees


def _exact(plan: Plan, folder: Path) -> Iterator[tuple[str, str, np.ndarray]]:
    """System, split, and whether each translation is the reference: (runs, sentences)."""
    references = _corpus()[1]
    hits: dict[tuple[str, str], list] = {}
    for record in read_records(plan, folder):
        system = plan.systems[record["system"]]
        for split in ("challenge", "parsed")[: 1 + (system.trees == "gold")]:
            path = folder / f"{system.name}-{record['seed']}.{split}.txt.gz"
            lines = gzip.decompress(path.read_bytes()).decode().splitlines()
            own = [line == reference for line, reference in zip(lines, references, strict=True)]
            hits.setdefault((system.name, split), []).append(own)
    for (name, split), of_runs in hits.items():
        yield name, split, np.array(of_runs)


def _verbs(plan: Plan, folder: Path) -> Iterator[tuple[str, str, np.ndarray]]:
    """The same of verbs, by forced decoding."""
    probes = read_probes(folder)
    for probe, split in (("agreement", "challenge"), ("agreement-parsed", "parsed")):
        for name, of_seeds in probes.get(probe, {}).items():
            yield name, split, np.array([record_of(record).right for record in of_seeds.values()])


def _difference(baseline: np.ndarray, system: np.ndarray) -> str:
    """In points, with its interval over seeds and sentences."""
    both = baseline[..., None], system[..., None]

    def share(sums: np.ndarray) -> np.ndarray:
        return 100 * sums[..., 0] / baseline.shape[1]

    found = effect(tuple(share(hits.sum(axis=1)) for hits in both), tuple(resampled(hits, share) for hits in both))
    return f"{signed(found.delta)} ({interval(found.interval)})"


def by_depth(plan: Plan, folder: Path) -> str:
    """Both figures: shares in percent by depth, and differences at depths 3 to 5."""
    kinds = _corpus()[0]
    members = {title: np.array([depth in depths for _, depth in kinds]) for title, depths in _COLUMNS.items()}
    members |= {
        kind: np.array([k == kind and d in _DEEP for k, d in kinds])
        for kind in dict(kinds)
        if kind not in ("none", "flat")
    }
    parts = []
    for title, measure in (
        ("exact: translations that are the reference", _exact),
        ("verbs: the right number preferred", _verbs),
    ):
        found = {(name, split): hits for name, split, hits in measure(plan, folder)}
        rows = []
        for name, system in plan.systems.items():
            for split in ("challenge", "parsed"):
                if (name, split) not in found or (split == "parsed" and system.trees != "gold"):
                    continue
                hits, deep = found[name, split], members["3 to 5"]
                others = (plan.families[system.family].baseline, system.control)
                against = [found.get((other, "challenge")) if other != name else None for other in others]
                row = [name, "parser" if split == "parsed" else system.trees or "–", len(hits)]
                row += [mean_and_deviation(100 * hits[:, columns].mean(axis=1)) for columns in members.values()]
                row += ["–" if one is None else _difference(one[:, deep], hits[:, deep]) for one in against]
                rows.append(row)
        header = ["system", "trees", "seeds", *members, "3 to 5, Δ to the baseline", "Δ to the control"]
        parts.append(f"{title}, in percent\n\n{format_table(header, rows, TableFormat.markdown)}")
    return "\n\n".join(parts)


def of_parser(folder: Path) -> str:
    """How good the parser's trees are: words with the right head, and whole trees, in percent, by depth."""
    kinds, _, gold = _corpus()
    parsed = list(read_conllu(folder / PARSES))
    right = [np.equal(one.heads, other.heads) for one, other in zip(gold, parsed, strict=True)]
    rows: dict[str, list] = {kind: [kind] for kind in dict(kinds)}
    for kind, depths in product(rows, _COLUMNS.values()):
        own = [words for words, (k, depth) in zip(right, kinds, strict=True) if k == kind and depth in depths]
        whole = [words.all() for words in own]
        rows[kind].append(f"{100 * np.concatenate(own).mean():.1f}, {100 * np.mean(whole):.0f}" if own else "–")
    header = ["construction", *_COLUMNS]
    return f"UAS, and whole trees in percent\n\n{format_table(header, list(rows.values()), TableFormat.markdown)}"
