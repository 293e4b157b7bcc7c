"""Tables of deeper.toml by depth: whole sentences and verbs that are right, and the parser's trees."""

import csv
import gzip
import subprocess
import sys
from functools import cache
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from probes import probes_of, read_probes
from table import interval, mean_and_deviation, signed

from fairseq_syntax.evaluate.significance import effect, resampled
from fairseq_syntax.evaluate.tables import TableFormat, format_table
from fairseq_syntax.experiment.plan import CHECKOUT, Plan
from fairseq_syntax.experiment.run import read_records
from fairseq_syntax.pictures.figures import plt
from fairseq_syntax.trees.conllu import Sentence, read_conllu

NAME = "deeper"
_PARSED = "agreement-parsed"
_DRAWN = ("transformer", "dasa", "dasa-linear", "pascal", "planted", "planted-linear")
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


def _exact(plan: Plan, folder: Path) -> dict[tuple[str, str], np.ndarray]:
    """(system, split) -> whether each translation is the reference: (runs, sentences)."""
    references = _corpus()[1]
    hits: dict[tuple[str, str], list] = {}
    for record in read_records(plan, folder):
        name = record["system"]
        for split in ("challenge", "parsed")[: 1 + (name in probes_of(plan)[_PARSED].systems)]:
            packed = (folder / f"{name}-{record['seed']}.{split}.txt.gz").read_bytes()
            lines = gzip.decompress(packed).decode().splitlines()
            hits.setdefault((name, split), []).append([x == y for x, y in zip(lines, references, strict=True)])
    return {key: np.array(of_runs) for key, of_runs in hits.items()}


def _verbs(plan: Plan, folder: Path) -> dict[tuple[str, str], np.ndarray]:
    """The same of verbs, by forced decoding."""
    probes = read_probes(folder)
    return {
        (name, split): np.array([np.greater(one["correct"], one["incorrect"]) for one in of_seeds.values()])
        for probe, split in (("agreement", "challenge"), (_PARSED, "parsed"))
        for name, of_seeds in probes.get(probe, {}).items()
    }


FIGURES = {"exact: translations that are the reference": _exact, "verbs: the right number preferred": _verbs}


def _difference(baseline: np.ndarray, system: np.ndarray) -> str:
    """In points, with its interval over seeds and sentences."""
    both = baseline[..., None], system[..., None]

    def share(sums: np.ndarray) -> np.ndarray:
        return 100 * sums[..., 0] / baseline.shape[1]

    found = effect(tuple(share(hits.sum(axis=1)) for hits in both), tuple(resampled(hits, share) for hits in both))
    return f"{signed(found.delta)} ({interval(found.interval)})"


def _by_depth(plan: Plan, folder: Path) -> str:
    """Both figures: shares in percent by depth and, at depths 3 to 5, by relative clauses; differences there."""
    kinds = _corpus()[0]
    members = {title: np.array([depth in depths for _, depth in kinds]) for title, depths in _COLUMNS.items()}
    deep, nested = members["3 to 5"], np.array([tree.deprels.count("acl:relcl") > 1 for tree in _corpus()[2]])
    members |= {"≤ 1 clause": deep & ~nested, "≥ 2 clauses": deep & nested}
    parts = []
    for title, measure in FIGURES.items():
        found, rows = measure(plan, folder), []
        for name, split in product(plan.systems, ("challenge", "parsed")):
            if (name, split) in found:
                system, hits = plan.systems[name], found[name, split]
                row = [name, "parser" if split == "parsed" else system.trees or "–", len(hits)]
                row += [mean_and_deviation(100 * hits[:, columns].mean(axis=1)) for columns in members.values()]
                others = [plan.families[system.family].baseline] * 3 + [system.control]
                for other, columns in zip(others, ("≤ 1 clause", "≥ 2 clauses", "3 to 5", "3 to 5"), strict=True):
                    one, own = found.get((other, "challenge")) if other != name else None, members[columns]
                    row.append("–" if one is None else _difference(one[:, own], hits[:, own]))
                rows.append(row)
        of_baseline = [f"{columns}, Δ to the baseline" for columns in ("≤ 1 clause", "≥ 2 clauses", "3 to 5")]
        header = ["system", "trees", "seeds", *members, *of_baseline, "3 to 5, Δ to the control"]
        parts.append(f"{title}, in percent\n\n{format_table(header, rows, TableFormat.markdown)}")
    return "\n\n".join(parts)


@plt.style.context("tableau-colorblind10")
def draw(plan: Plan, folder: Path):
    """Both figures by depth, of some systems: means over seeds, from the lowest to the highest."""
    kinds = _corpus()[0]
    depths = sorted({depth for _, depth in kinds} - {"flat"})
    figure, axes = plt.subplots(1, 2, figsize=(8.5, 3.4), layout="constrained")
    for axis, (title, measure) in zip(axes, FIGURES.items(), strict=True):
        found = measure(plan, folder)
        for i, name in enumerate(name for name in _DRAWN if (name, "challenge") in found):
            hits = found[name, "challenge"]
            by_depth = [100 * hits[:, [d == depth for _, d in kinds]].mean(axis=1) for depth in depths]
            means, color = [values.mean() for values in by_depth], f"C{i}"
            axis.plot(depths, means, color=color, marker="os^vDP"[i], markersize=4, linewidth=1, label=name)
            low, high = zip(*((values.min(), values.max()) for values in by_depth), strict=True)
            axis.fill_between(depths, low, high, color=color, alpha=0.12, linewidth=0)
        axis.set(ylabel=title.partition(":")[0] + ", %", xlabel="depth (training: 0 to 2)")
    axes[0].legend()
    return figure


def _of_parser(folder: Path) -> str:
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
    table = format_table(header, list(rows.values()), TableFormat.markdown)
    return f"The parser: UAS, and whole trees that are right, in percent\n\n{table}"


def tables(plan: Plan, folder: Path) -> str:
    """All of them, and the picture."""
    picture = "![Whole sentences and verbs by depth](../deeper.svg)"
    return "\n\n".join([picture, _by_depth(plan, folder), _of_parser(folder)])
