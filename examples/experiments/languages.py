"""The experiment of libreoffice.toml for other languages, and tables by language."""

import json
from dataclasses import replace
from pathlib import Path
from statistics import mean
from tempfile import TemporaryDirectory

from compared import path_of
from scipy.stats import t
from table import interval, signed

from fairseq_syntax.evaluate.tables import TableFormat, format_table
from fairseq_syntax.experiment.plan import Plan, read_plan

FILE = Path(__file__).with_name("libreoffice.toml")
NAME = "libreoffice-"
# what `experiment` writes where no spaces separate words, and sides have no subwords in common
_JAPANESE = {'"13a"': '"ja-mecab"', "joined = true": "joined = false"}
_JAPANESE |= {"--share-all-embeddings": "--share-decoder-input-output-embed"}


def plan_of(name: str) -> Plan:
    """The experiment of a language, or of its search, such as tr-merges-2000."""
    language, _, merges = name.partition("-merges-")
    text = FILE.read_text(encoding="utf8").replace(f"{NAME}tr", NAME + name).replace('"tr"', f'"{language}"')
    for old, new in (_JAPANESE if language == "ja" else {}).items():
        text = text.replace(old, new)
    with TemporaryDirectory() as folder:
        path = Path(folder, FILE.name)
        path.write_text(text.replace("size = 4000", f"size = {merges or 4000}"), encoding="utf8")
        plan = read_plan(path)
    systems = {key: value for key, value in plan.systems.items() if name == "tr" or not value.seeds}
    searched = {"seeds": (1,), "systems": {"transformer": systems["transformer"]}} if merges else {"systems": systems}
    return replace(plan, path=FILE, **searched)


def tables(results: Path) -> str:
    """Scores by language, and means; intervals of the means are about other seeds, whose variance is pooled."""
    order = json.loads((results / "order.json").read_text(encoding="utf8"))
    rows: list[list] = []
    variances: list[float] = []
    deltas: dict[str, list[tuple[float, float]]] = {}
    for language in sorted(order, key=lambda name: order[name]["tau"]):
        path = path_of(results / f"{NAME}{language}", "test", "transformer")
        if not path.exists():
            continue
        found = json.loads(path.read_text(encoding="utf8"))
        scores = {one["name"]: one["scores"]["BLEU"] for one in found["systems"] if "dropout" not in one["name"]}
        tests = {test["system"]: test for test in found["tests"] if test["system"] in scores}
        for name, score in scores.items():
            cells = ["–"] * 3
            if name in tests:
                bare = score["without_brevity_penalty"] - scores["transformer"]["without_brevity_penalty"]
                cells = [signed(tests[name]["delta"], 2), interval(tests[name]["interval"]), signed(bare, 2)]
            row = [language, f"{order[language]['tau']:.2f}", name, len(score["runs"]), score["mean"], *cells]
            rows.append([*row, f"{score['length_ratio']:.3f}"])
            variances += [score["sd"] ** 2 for _ in score["runs"][1:]]
        for pair in [*((name, "transformer") for name in tests), ("pascal", "pascal-linear")]:
            if pair[0] in scores and pair[1] in scores:
                one, other = (scores[name] for name in pair)
                share = 1 / len(one["runs"]) + 1 / len(other["runs"])
                deltas.setdefault(" less ".join(pair), []).append((one["mean"] - other["mean"], share))
    header = ["target", "τ", "system", "seeds", "BLEU", "Δ", "95 % interval", "Δ, no BP", "length"]
    parts = [format_table(header, rows, TableFormat.markdown)]
    if degrees := len(variances):
        means, deviation = [], mean(variances) ** 0.5
        for name, pairs in deltas.items():
            values, shares = zip(*pairs, strict=True)
            center, width = mean(values), t.ppf(0.975, degrees) * deviation * sum(shares) ** 0.5 / len(pairs)
            means.append([name, len(pairs), signed(center, 2), interval([center - width, center + width])])
        said = f"Means. The pooled standard deviation of seeds is {deviation:.2f} BLEU, with {degrees} degrees"
        header = ["", "languages", "Δ", "95 % interval, other seeds"]
        parts += [f"{said} of freedom.", format_table(header, means, TableFormat.markdown)]
    return "\n\n".join(parts)
