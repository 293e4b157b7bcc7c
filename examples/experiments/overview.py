"""What the records of all experiments say together: the tables and figures of docs/results.md."""

import json
from collections.abc import Iterator
from pathlib import Path

import deeper
from compared import path_of
from pictures import Row, draw_forest, named, set_named
from probes import read_probes
from table import interval, mean_and_deviation, signed

from fairseq_syntax.evaluate.tables import TableFormat, format_table
from fairseq_syntax.experiment.answer import rivals, tested
from fairseq_syntax.experiment.plan import Plan, PlanError, read_plan
from fairseq_syntax.experiment.run import read_records

OF_FIGURE = ("delta", "interval", "detectable", "seeds")
"""What a sentence can say of a comparison."""
GENERATED = "agreement"
"""The experiment whose text is generated, and has two trees of a sentence."""
# corpora of people's text, the longest sentences first -> name, training pairs, words a sentence
REAL = {
    "news": ("News (English-German)", "35,000", 21),
    "kyoto": ("Kyoto (English-Japanese)", "391,000", 22),
    "swahili": ("News (English-Swahili)", "31,000", 18),
    "multi30k": ("Multi30k (English-German)", "29,000", 12),
    "multi30k-low-resource": ("Multi30k, part", "1,000 or 10,000", 12),
    "tanaka": ("Tanaka (English-Japanese)", "50,000", 8),
}
_LEFT_OUT = ("pud", "pud-gold")  # the same models, asked about trees of other kinds


class Records:
    """Plans, records and comparisons, by the name of an experiment.

    Args:
        boards: folder with the files of experiments.
        results: folder with a folder of records for each.
    """

    def __init__(self, boards: Path, results: Path):
        self.boards, self.results = boards, results

    def plan(self, name: str) -> Plan:
        """The plan of an experiment. Raises PlanError: there is none."""
        return read_plan(self.boards / f"{name}.toml")

    def tests(self, name: str) -> Iterator[tuple[str, dict]]:
        """Pairs of a split and what was tested on it, of each system beside its family's baseline."""
        plan = self.plan(name)
        records = read_records(plan, self.results / name)
        for baseline in rivals(plan, records):
            for split, _ in tested(plan):
                path = path_of(self.results / name, split, baseline)
                comparison = json.loads(path.read_text(encoding="utf8"))
                runs = {system["name"]: len(system["runs"]) for system in comparison["systems"]}
                for test in comparison["tests"]:
                    seeds = {"seeds": runs[test["system"]], "baseline_seeds": runs[test["baseline"]]}
                    yield split, {**test, **seeds, "buckets": comparison["buckets"]}

    def test(self, name: str, system: str, split: str) -> dict:
        """One of them. Raises PlanError: there is no such comparison."""
        for of_split, test in self.tests(name):
            if (of_split, test["system"]) == (split, system):
                return test
        raise PlanError(f"{name}: {system} was not compared on {split}")


def figure(records: Records, name: str, system: str, split: str, what: str) -> str:
    """One `OF_FIGURE` of a comparison with the family's baseline. Raises PlanError: there is no such comparison."""
    test = records.test(name, system, split)
    shown = signed(test["delta"]), interval(test["interval"]), f"{test['detectable']:.1f}", str(test["seeds"])
    return dict(zip(OF_FIGURE, shown, strict=True))[what]


def _rows(records: Records) -> Iterator[tuple[str, str, dict, str, str]]:
    """Corpus, split, test, kind of trees, the paper's difference; of all systems that read trees of real text."""
    for name in REAL:
        plan = records.plan(name)
        for split, test in records.tests(name):
            system = plan.systems[test["system"]]
            if system.trees in ("parser", "linear") and split not in _LEFT_OUT:
                yield name, split, test, system.trees, system.paper


def real_text(records: Records) -> str:
    """Table: does it help on real text with a real parser?"""
    header = [
        "corpus, pairs",
        "system",
        "trees",
        "test set",
        "seeds",
        "Δ BLEU",
        "95 % interval",
        "detectable",
    ]
    rows = [
        [
            *(", ".join(REAL[name][:2]), test["system"], trees, split, test["seeds"]),
            *(signed(test["delta"]), interval(test["interval"])),
            "–" if test["detectable"] is None else f"{test['detectable']:.1f}",
            paper or "–",
        ]
        for name, split, test, trees, paper in _rows(records)
    ]
    return format_table([*header, "the paper's Δ"], rows, TableFormat.markdown)


def draw_real_text(records: Records):
    """The same as a picture: a row a system, and a mark a test set."""
    groups: dict[str, dict] = {}
    for name, split, test, trees, _ in _rows(records):
        group = groups.setdefault((name, named(test["baseline"].partition("-")[0])), {})
        group.setdefault((test["system"], trees, test["seeds"], test["baseline_seeds"]), {})[split] = test
    drawn, said = {}, {}
    for (name, baseline), systems in groups.items():
        (corpus, pairs, words), splits = REAL[name], list(next(iter(systems.values())))
        sets = [f"\N{EM SPACE}{mark} {set_named(split)}" for mark, split in zip("●■", splits, strict=False)]
        heading = f"{corpus}, against {baseline}"
        said[heading] = [(f"{pairs} pairs of {words} words" + "".join(sets) * (len(sets) > 1), ())]
        drawn[heading] = [
            Row(named(system), *others, [[(test["delta"], test["interval"], ()) for test in tests.values()]])
            for (system, *others), tests in systems.items()
        ]
    return draw_forest(drawn, [""], said, "BLEU minus the mean of the baseline's seeds, with 95 % intervals")


# page, paper, parse to train / to translate, name in speed.json, on Multi30k, with gold trees
_SYSTEMS = [
    ("pascal", "Bugliarello & Okazaki 2020", "yes / yes", "pascal_transformer", "pascal", "pascal"),
    ("lisa", "Strubell et al. 2018", "yes / no", "lisa_transformer", "lisa", "lisa"),
    ("planted", "ours, after Yoshida et al. 2024", "yes / no", "planted_transformer", "planted", ""),
    ("tags", "Sennrich & Haddow 2016", "yes / yes", "tag_transformer", "tag", "tag"),
    ("multitask", "Currey & Heafield 2019", "yes / no", "", "multitask", ""),
    ("distance-transformers", "ours, after Chi et al. 2026", "yes / yes", *["dasa_transformer"] * 3),
    ("sdatt", "Chen et al. 2018", "yes / yes", "sdatt", "sdatt", "sdatt"),
    ("sdatt", "Chen et al. 2017", "yes / yes", "chen17", "chen17", "chen17"),
    ("sa-nmt", "Tran & Bisk 2018", "no / no", "sa_nmt_shared", "sa_nmt_shared", ""),
]
_COMMON = ("multi30k", "test_2017_flickr")
"""The experiment and set that most systems were tried on."""


def _speeds(results: Path) -> dict[str, float]:
    """Name of a model -> speed of a training step against its peer."""
    kept = json.loads((results / "speed.json").read_text(encoding="utf-8"))
    measured = [one for part in kept.values() for one in part["measured"]]
    steps = [one for one in measured if one["title"].startswith("training step, ") and "characters" not in one["title"]]
    return {name: ratio for one in reversed(steps) for name, ratio in one["ratios"].items()}


def systems(records: Records) -> str:
    """Table: the systems, what they need, what they cost and gain."""
    speeds, both = _speeds(records.results), read_probes(records.results / GENERATED)["whatif"]
    papers = records.plan(_COMMON[0]).systems
    tests = {test["system"]: test for split, test in records.tests(_COMMON[0]) if split == _COMMON[1]}
    rows = []
    for page, paper, parse, timed, tried, asked in _SYSTEMS:
        test = tests.get(tried)
        gain = f"{signed(test['delta'])} ({test['seeds']}; {test['detectable']:.1f})" if test else "–"
        speed = f"{speeds[timed]:.2f}x" if timed in speeds else "–"
        follows = _both_translations(both[asked]) if asked else "–"
        published = (papers[tried].paper or "–") if tried in papers else "–"
        rows.append([f"[{named(tried)}](docs/systems/{page}.md)", paper, parse, speed, gain, follows, published])
    header = ["system", "paper", "parse to train / to translate", "speed", "Δ BLEU, Multi30k 2017 (seeds; detectable)"]
    return format_table([*header, "both trees, %", "the paper's Δ"], rows, TableFormat.markdown)


def _both_translations(of_seeds: dict[str, dict]) -> str:
    pairs = (list(zip(r["references"], r["translations"], strict=True)) for r in of_seeds.values())
    return mean_and_deviation(100 * sum(refs == hyps for refs, hyps in some) / len(some) for some in pairs)


def by_depth(records: Records) -> str:
    """Tables: what is right of sentences that nest deeper than any in training, and of the parser's trees of them."""
    folder, parts = records.results / deeper.NAME, []
    if any(folder.glob("*.json")):
        parts = [
            "![Whole sentences and verbs by depth](../deeper.svg)",
            deeper.by_depth(records.plan(deeper.NAME), folder),
        ]
    return "\n\n".join([*parts, deeper.of_parser(folder)])


TABLES = {"systems": systems, "real-text": real_text, "by-depth": by_depth}
