"""What the records of all experiments say together: the tables and figures of docs/results.md."""

from collections.abc import Iterator
from pathlib import Path

from pictures import draw_intervals
from table import curves, interval, signed

from fairseq_syntax.evaluate.contrast import record_of
from fairseq_syntax.evaluate.curves import MEASURES, in_order
from fairseq_syntax.evaluate.probes import read_probes
from fairseq_syntax.evaluate.tables import TableFormat, format_table, mean_and_deviation
from fairseq_syntax.evaluate.tree_pairs import BOTH_TRANSLATIONS, tree_pairs_of
from fairseq_syntax.experiment.comparisons import load_comparison, path_of, rivals, tested
from fairseq_syntax.experiment.plan import Plan, PlanError, read_plan
from fairseq_syntax.experiment.run import read_records

OF_FIGURE = ("delta", "interval", "detectable", "seeds")
"""What a sentence can say of a comparison."""
GENERATED = "agreement"
"""The experiment whose text is generated, and has two trees of a sentence."""
# corpora of people's text, the longest sentences first -> training pairs
REAL = {
    "news": "German news, 35,000",
    "kyoto": "Kyoto (Japanese), 391,000",
    "swahili": "Swahili news, 31,000",
    "multi30k": "Multi30k (German), 29,000",
    "multi30k-low-resource": "Multi30k, part",
    "tanaka": "Tanaka (Japanese), 100,000",
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
                comparison = load_comparison(path_of(self.results / name, split, baseline))
                runs = {system["name"]: len(system["runs"]) for system in comparison["systems"]}
                for test in comparison["tests"]:
                    yield split, {**test, "seeds": runs[test["system"]], "buckets": comparison["buckets"]}

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
        "corpus (language), pairs",
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
            *(REAL[name], test["system"], trees, split, test["seeds"]),
            *(signed(test["delta"]), interval(test["interval"])),
            "–" if test["detectable"] is None else f"{test['detectable']:.1f}",
            paper or "–",
        ]
        for name, split, test, trees, paper in _rows(records)
    ]
    return format_table([*header, "the paper's Δ"], rows, TableFormat.markdown)


def draw_real_text(records: Records):
    """The same as a picture."""
    return draw_intervals(
        [
            (f"{REAL[name].split(',')[0]}, {test['system']}, {split}", test["delta"], test["interval"], test["seeds"])
            for name, split, test, _, _ in _rows(records)
        ]
    )


def uses_trees(records: Records) -> str:
    """Table: does it use the tree? Of systems that were trained with gold trees of the generated corpus."""
    plan, folder = records.plan(GENERATED), records.results / GENERATED
    probes = read_probes(folder)
    by_readings = {}
    for split, test in records.tests(GENERATED):
        kinds = [kind for kind in test["buckets"] if kind["by"].startswith("label:")]
        if split == "challenge" and kinds:
            groups = kinds[0]["groups"]
            by_readings[test["system"]] = [group["deltas"]["BLEU"][test["system"]] for group in groups]
    header = ["system", "seeds", "translates both trees, %", "prefers the tree's translation, %"]
    header += ["Δ BLEU, one reading", "several readings"]
    rows = []
    for name, of_seeds in probes["whatif"].items():
        both = mean_and_deviation(
            100 * tree_pairs_of(r).measures()[BOTH_TRANSLATIONS].mean() for r in of_seeds.values()
        )
        right = probes["attachment"].get(name, {}).values()
        prefers = mean_and_deviation(100 * record_of(r).right.mean() for r in right) if right else "–"
        deltas = [
            f"{signed(delta['mean'])} ({interval(delta['interval'])})" for delta in by_readings.get(name, ())
        ] or ["–", "–"]
        rows.append([plan.systems[name].name, len(of_seeds), both, prefers, *deltas])
    rows.sort(key=lambda row: -float(row[2].split()[0]))
    return format_table(header, rows, TableFormat.markdown)


def worse_trees(records: Records) -> str:
    """Table: what do worse trees cost? BLEU of the challenge set, of systems that were trained with gold trees."""
    plan = records.plan(GENERATED)
    runs = read_records(plan, records.results / GENERATED)
    found = curves(plan, runs)
    levels = in_order(level for points in found.values() for level in points)
    title = next(iter(MEASURES))
    rows = []
    for name, points in found.items():
        row = [mean_and_deviation(MEASURES[title](point) for point in points.get(each, ())) for each in levels]
        rows.append([name, *row])
    return f"{title} by UAS of the trees\n\n" + format_table(["system", *map(str, levels)], rows, TableFormat.markdown)


TABLES = {"real-text": real_text, "uses-trees": uses_trees, "worse-trees": worse_trees}
