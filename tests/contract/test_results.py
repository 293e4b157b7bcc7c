"""Tables and figures of README and docs/ are those of the records."""

import gzip
import hashlib
import json
import re
import shutil
import statistics
import subprocess
import sys
from collections.abc import Iterable
from itertools import product
from pathlib import Path
from types import SimpleNamespace

import pytest
from contract.command_lines import REPOSITORY
from sacrebleu.metrics import BLEU
from sacrebleu.metrics.bleu import BLEUScore

from fairseq_syntax.evaluate.tree_pairs import BOTH_TRANSLATIONS, tree_pairs_of

EXPERIMENTS = REPOSITORY / "examples" / "experiments"
RESULTS = REPOSITORY / "docs" / "results"
RECORD = {
    "corpus": "toy",
    "system": "a",
    "family": "f",
    "seed": 1,
    "trees": "none",
    "updates": 100,
    "minutes": {"train": 1.0},
    "curve": [],
    "stopped": "itself",
    "commit": "0123456789abcdef",
    "checkpoint": {"chosen": "checkpoint_best"},
    "sha256": {},
    "scores": {
        split: {"BLEU": {"score": score, "signature": "tok:none"}} for split, score in (("valid", 90.0), ("test", 80.0))
    },
}
BOARD = """name = "toy"
prepare = "nothing.sh"
hashed = []
seeds = [1, 2]
[splits]
valid = { subset = "valid", reference = "valid.de" }
test = { subset = "test", reference = "test.de" }
[families.f]
data = "data"
max_updates = 100
train = ""
generate = "--beam 1"
[systems]
a = { family = "f", options = "" }
"""
PAGE = "Before.\n<!-- records: toy -->\nold\n<!-- end of records -->\nAfter.\n"


@pytest.fixture
def results(monkeypatch):
    monkeypatch.syspath_prepend(str(EXPERIMENTS))
    import results

    return results


def recorded(table: Path, folder: Path, system: str = "a", seed: int = 1, score: float = 80.0, **more) -> Path:
    """A record of a run of a table, after the fixture above."""
    from fairseq_syntax.experiment.plan import read_plan
    from fairseq_syntax.experiment.run import Run

    board = read_plan(table)
    run = Run(board, board.systems[system], seed, Path("/out"), folder)
    record = json.loads(json.dumps({**RECORD, "system": system, "seed": seed, **more}).replace("80.0", str(score)))
    record["commands"] = run.commands()
    run.record.write_text(json.dumps(record), encoding="utf8")
    return run.record


def test_tables_and_figures_are_those_of_the_records(results):
    assert results.main(["--check"]) == 0, "run: python examples/experiments/results.py"
    pages = [page.read_text(encoding="utf8") for page in (REPOSITORY / "docs").rglob("*.md")]
    shown = {match[2] for text in pages for match in results._BLOCK.finditer(text)}
    assert shown == {results.read_plan(path).name for path in EXPERIMENTS.glob("*.toml")}


def test_cells_of_a_list_of_systems_are_filled(results, tmp_path):
    board = results.read_plan(EXPERIMENTS / "agreement.toml")
    for seed, score in ((1, 80.0), (2, 82.0)):
        challenge = {**RECORD["scores"]["test"], "agreement": {"overall": {"accuracy": 0.9}}}
        scores = {"scores": {**RECORD["scores"], "challenge": challenge}}
        recorded(EXPERIMENTS / "agreement.toml", tmp_path, "pascal", seed, score, **scores)
    row = "| <!-- BLEU of pascal, sa_nmt --> 3 | <!-- agreement of pascal --> |\n"
    expected = "| <!-- BLEU of pascal, sa_nmt --> 81.0 ± 1.4 (2), – | <!-- agreement of pascal --> 90.0 ± 0.0 (2) |\n"
    assert results.with_figures(row, board, tmp_path) == expected
    path = tmp_path / "pascal-2.json"
    path.write_text(path.read_text(encoding="utf8").replace('"itself"', '"cap"'), encoding="utf8")
    assert "81.0 ± 1.4 (2, 1 unfinished), –" in results.with_figures(row, board, tmp_path)


def test_a_figure_in_a_sentence_is_that_of_its_record(results, tmp_path):
    comparison = json.loads((RESULTS / "kyoto" / "comparisons" / "test.transformer.json").read_text(encoding="utf8"))
    [test] = [test for test in comparison["tests"] if test["system"] == "pascal"]
    cell = "It gains <!-- kyoto pascal test delta -->{}<!-- --> BLEU (<!-- kyoto pascal test interval -->{}<!-- -->)."
    low, high = test["interval"]
    expected = cell.format(f"{test['delta']:+.1f}", f"{low:+.2f} to {high:+.2f}")
    assert results.renewed(cell.format("x", "y"), EXPERIMENTS, RESULTS) == expected
    with pytest.raises(results.PlanError, match="kyoto: pascla was not compared on test"):
        results.renewed("<!-- kyoto pascla test delta -->x<!-- -->", EXPERIMENTS, RESULTS)
    (tmp_path / "parents.json").write_text('{"pascal": {"1": {"weight": 21.4}}}', encoding="utf8")
    cell = "It gives <!-- parents pascal 1 weight -->{}<!-- --> %."
    assert results.renewed(cell.format("x"), EXPERIMENTS, tmp_path) == cell.format("21.4")


def test_readme_says_of_the_demo_what_the_table_has():
    page = (REPOSITORY / "docs" / "records" / "quick-start.md").read_text(encoding="utf8")
    readme = " ".join((REPOSITORY / "README.md").read_text(encoding="utf8").split())
    rows = re.findall(r"^\| (\d) \| (\w+) \| ([\d.]+) \| ([\d.]+)% \|", page, re.MULTILINE)
    assert len(rows) == 6
    for system in ("transformer_tiny", "pascal_transformer_tiny"):
        for column in (2, 3):
            values = [float(row[column]) for row in rows if row[1] == system]
            assert f"{statistics.mean(values):.1f} ± {statistics.stdev(values):.1f}" in readme


def test_a_changed_record_shows(results, tmp_path):
    (tmp_path / "toy.toml").write_text(BOARD, encoding="utf8")
    (tmp_path / "toy").mkdir()
    empty = results.renewed(PAGE, tmp_path, tmp_path)
    assert "No run of 2 has a record yet." in empty and "old" not in empty
    assert empty.startswith("Before.\n<!-- records: toy -->\n") and empty.endswith("<!-- end of records -->\nAfter.\n")
    record = recorded(tmp_path / "toy.toml", tmp_path / "toy")
    one = results.renewed(PAGE, tmp_path, tmp_path)
    assert "1 of 2 runs so far" in one and "0123456789" in one and "| a | none | – | 1 | 100 | 90.0 | 80.0 |" in one
    assert results.renewed(one, tmp_path, tmp_path) == one
    recorded(tmp_path / "toy.toml", tmp_path / "toy", "a", 2, 82.0)
    two = results.renewed(one, tmp_path, tmp_path)
    assert "All runs" in two and "81.0 ± 1.4" in two
    text = record.read_text(encoding="utf8")
    for verb, now, then in (("train", "--max-update 100", "--max-update 99"), ("generate", "--beam 1", "--beam 2")):
        assert now in text
        record.write_text(text.replace(now, then), encoding="utf8")
        said = rf"a-1\.json: fairseq-{verb} had other options than .*toy\.toml has;"
        with pytest.raises(results.PlanError, match=said):
            results.renewed(two, tmp_path, tmp_path)
    record.rename(record.with_name("a-3.json"))
    with pytest.raises(results.PlanError, match=r"a-3\.json: .*toy\.toml has no such run"):
        results.renewed(two, tmp_path, tmp_path)


def test_depths_are_tables(results, tmp_path, monkeypatch):
    """Whole sentences and verbs, over two seeds: of five sentences, four nest, three of them deep."""
    kinds = [("none", "0"), ("phrases", "3"), ("phrases", "5"), ("nested", "4"), ("flat", "flat")]
    gold = [SimpleNamespace(heads=[1, -1]) for _ in kinds]
    monkeypatch.setattr(results.deeper, "_corpus", lambda: (kinds, list("vwxyz"), gold))
    plan = results.read_plan(EXPERIMENTS / "deeper.toml")
    scores = {"agreement": {"overall": {"accuracy": 1.0}}, **RECORD["scores"]["test"]}
    scores = {"scores": {**RECORD["scores"], "challenge": scores, "parsed": scores}}
    outputs = {"transformer": ("vwxyz", "v----"), "dasa": ("vwxyz", "-wx--")}
    for name, seed in product(outputs, (1, 2)):
        recorded(EXPERIMENTS / "deeper.toml", tmp_path, name, seed, **scores)
        for split, lines in (("challenge", outputs[name][seed - 1]), ("parsed", "v----")):
            packed = gzip.compress("".join(f"{line}\n" for line in lines).encode())
            (tmp_path / f"{name}-{seed}.{split}.txt.gz").write_bytes(packed)
    tables = results.deeper.by_depth(plan, tmp_path)
    assert "| system | trees | seeds | 0 to 2 | 3 | 4 | 5 | 3 to 5 | flat | phrases | nested |" in tables
    assert f"| transformer | – | 2 | 100.0 ± 0.0 | {'50.0 ± 70.7 | ' * 7}– | – |" in tables
    assert "| dasa | gold | 2 | 50.0 ± 70.7 | 100.0 ± 0.0 | 50.0 ± 70.7 | 100.0 ± 0.0 | 83.3 ± 23.6 |" in tables
    assert re.search(r"\| dasa \| gold .* \| \+33\.3 \(-.* to \+.*\) \| – \|", tables)
    assert "| dasa | parser | 2 | 100.0 ± 0.0 | 0.0 ± 0.0 |" in tables
    trees = "".join(
        f"1\ta\t_\tX\t_\t_\t{a}\tx\t_\t_\n2\tb\t_\tX\t_\t_\t{b}\tx\t_\t_\n\n" for a, b in [(2, 0)] * 4 + [(0, 1)]
    )
    (tmp_path / results.deeper.PARSES).write_bytes(gzip.compress(trees.encode()))
    parsed = results.deeper.of_parser(tmp_path)
    assert "| phrases | – | 100.0, 100 | – |" in parsed and "| flat | – | – | – | – | – | 0.0, 0 |" in parsed


def test_comparisons_name_no_folder_of_a_machine():
    paths = sorted(RESULTS.glob("*/comparisons/*.json"))
    assert paths
    for path in paths:
        systems = json.loads(path.read_text(encoding="utf8"))["systems"]
        assert all((path.parents[1] / file).is_file() for system in systems for file in system["files"]), path
        assert not [file for system in systems for file in system["files"] if "/" in file], path


def test_comparisons_are_tables_and_go_with_their_records(results, tmp_path):
    board = BOARD.replace("[families.f]", '[families.f]\nbaseline = "a"').replace(
        "[systems]",
        '[systems]\nb = { family = "f", options = "", paper = "+0.9 (C)", control = "c" }\n'
        'c = { family = "g", options = "" }',
    )
    board = board.replace("[systems]", '[families.g]\nmax_updates = 100\ntrain = ""\ngenerate = ""\n[systems]')
    board = board.replace('"test.de"', '"test.de", source = "test.en", labels = "kinds.txt"')
    (tmp_path / "toy.toml").write_text(board, encoding="utf8")
    (tmp_path / "toy" / "comparisons").mkdir(parents=True)
    systems = {"a": {1: 80.0, 2: 82.0}, "b": {1: 81.0, 2: 81.96}}
    for name, scores in systems.items():
        for seed, score in scores.items():
            recorded(tmp_path / "toy.toml", tmp_path / "toy", name, seed, score)
    with pytest.raises(results.PlanError, match=r"test\.a\.json: missing; run .*compared\.py .*toy\.toml "):
        results.renewed(PAGE, tmp_path, tmp_path)
    bucket = {
        "label": "1-10",
        "size": 7,
        "scores": {
            "BLEU": {
                "a": {"mean": 80, "sd": 1.4, "runs": [79, 81], "interval": [78, 82]},
                "b": {"mean": 79, "sd": None, "runs": [79], "interval": [78, 80]},
            }
        },
        "deltas": {"BLEU": {"b": {"mean": -1.0, "interval": [-2.0, -0.04]}}},
    }
    other = {**bucket, "label": "many", "size": 5}

    kinds = (("length", "source words"), ("label:kinds.txt", "kinds"))

    def compared(baseline, systems, *tests, buckets=()):
        """What compare says; tests: (system, delta, p, Holm, p of all runs), whose Holm's is twice as large."""
        return {
            "format": 3,
            "chance": {"trials": 10000},
            "systems": [
                {"name": name, "runs": [*map(str, scores)], "scores": {"BLEU": {"runs": [*scores.values()]}}}
                for name, scores in systems.items()
            ],
            "baselines": [baseline],
            "tests": [
                {"system": name, "baseline": baseline, "delta": delta, "interval": [-0.5, 2.5], "detectable": 2.1}
                | {"p": {"randomization": p, "runs": runs}}
                | {"holm": {"randomization": holm, "runs": runs and 2 * runs}}
                for name, delta, p, holm, runs in tests
            ],
            "buckets": [
                {"by": by, "title": title, "groups": [group]}
                for (by, title), group in zip(kinds, buckets, strict=False)
            ],
        }

    def write(comparison):
        path = tmp_path / "toy" / "comparisons" / f"test.{comparison['baselines'][0]}.json"
        path.write_text(json.dumps(comparison), encoding="utf8")

    comparison = compared("a", systems, ("b", 0.48, 0.1234, 0.25, 0.423), buckets=[bucket, other])
    for change in ({"format": 1}, {"buckets": comparison["buckets"][:1]}):  # of another form, or without a breakdown
        write(comparison | change)
        with pytest.raises(results.PlanError, match="older than the records"):
            results.renewed(PAGE, tmp_path, tmp_path)
    write(comparison)
    text = results.renewed(PAGE, tmp_path, tmp_path)
    assert "test: BLEU against a (80.0, 82.0)" in text
    assert "| b | 81.0, 82.0 | +0.5 | -0.50 to +2.50 | 2.1 | 0.42 | 0.85 | 0.12 | 0.25 | +0.9 (C) |" in text
    assert "by source words and by kinds (sentences)\n\n| system | 1-10 (7) | many (5) |" in text
    assert "| a | 80.0 ± 1.4 | 80.0 ± 1.4 |\n| b | -1.0 (-2.00 to -0.04) | " in text and "random" not in text

    # the control, which is of no family that has a baseline
    recorded(tmp_path / "toy.toml", tmp_path / "toy", "c", 2, 70.0)
    with pytest.raises(results.PlanError, match=r"test\.c\.json: missing"):
        results.renewed(PAGE, tmp_path, tmp_path)
    write(compared("c", {"c": {2: 70.0}, "b": systems["b"]}, ("b", 11.96, 1 / 10001, 1 / 10001, None)))
    text = results.renewed(PAGE, tmp_path, tmp_path)
    assert "test: BLEU against controls" in text
    assert "| b | c | 81.0, 82.0 | +12.0 | -0.50 to +2.50 | 2.1 | - | - | < 0.0001 | < 0.0001 |" in text

    comparison["systems"][1]["scores"]["BLEU"]["runs"] = [81.0, 81.5]
    write(comparison)
    with pytest.raises(results.PlanError, match=r"test\.a\.json: older than the records"):
        results.renewed(PAGE, tmp_path, tmp_path)


def test_differences_are_a_picture(results):
    """The mean with its interval and each seed, less the mean of the baseline; a panel for each kind of sentence."""
    from pictures import draw_differences

    runs = {"transformer": [79.0, 81.0], "pascal-random": [83.0, 84.0, 78.5], "new": [80.5]}
    scores = {name: {"runs": of_system, "mean": sum(of_system) / len(of_system)} for name, of_system in runs.items()}
    found = {"pascal-random": (1.75, [-2.5, 6.0]), "new": (0.5, [0.0, 1.0])}
    deltas = {"BLEU": {name: {"mean": mean, "interval": ends} for name, (mean, ends) in found.items()}}
    kinds = [{"label": label, "size": 9, "scores": {"BLEU": scores}, "deltas": deltas} for label in ("one", "several")]
    comparison = {
        "systems": [{"name": name, "scores": {"BLEU": of_system}} for name, of_system in scores.items()],
        "tests": [{"system": name, "delta": mean, "interval": ends} for name, (mean, ends) in found.items()],
        "buckets": [{"by": "length"}, {"by": "label:kinds.txt", "title": "kinds", "groups": kinds}],
    }
    figure = draw_differences({"test": [comparison]}, dict.fromkeys(runs, "random"))
    titles = [f"test set\nkinds: {kind['label']}, 9 sentences" for kind in kinds]
    assert [axis.get_title() for axis in figure.axes] == titles
    for axis in figure.axes:
        lines = {kind: [line for line in axis.lines if line.get_marker() == kind] for kind in ("|", "o", "None")}
        assert [list(line.get_xdata()) for line in lines["|"]] == [
            [-1.0, 1.0],  # the baseline's seeds
            [-2.5, 6.0],  # the ends of an interval, then the seeds
            [3.0, 4.0, -1.5],
            [0.0, 1.0],
        ]
        assert [list(line.get_xdata()) for line in lines["o"]] == [[1.75], [0.5]]
        assert [list(line.get_xdata()) for line in lines["None"]] == [[-2.5, 6.0], [0.0, 1.0], [0, 0]]


def recomputed(results, folder: Path, files: Iterable[Path], step: int = 1) -> dict[str, BLEUScore]:
    """BLEU of the translations in a folder of records, RUN.SPLIT -> score, each the one that its record has.

    Args:
        results: the module.
        folder: of docs/results.
        files: among them the references, known by their hashes in the records.
        step: 1 for all records, 4 for every fourth.
    """
    board = results.read_plan(EXPERIMENTS / f"{folder.name}.toml")
    splits, tokenize = board.splits, board.tokenize
    contents = [gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes() for path in files]
    by_hash = {hashlib.sha256(content).hexdigest(): content for content in contents}
    scores = {}
    for path in sorted(folder.glob("*.json"))[::step]:
        record = json.loads(path.read_text(encoding="utf8"))
        for split in record["scores"].keys() - {"valid"}:
            packed, wanted = folder / f"{path.stem}.{split}.txt.gz", record["sha256"][splits[split].reference]
            assert wanted in by_hash, f"{path.name}: no file here is its reference of {split}"
            reference = by_hash[wanted].decode().removesuffix("\n").split("\n")
            hypotheses = gzip.open(packed, "rt", encoding="utf8").read().removesuffix("\n").split("\n")
            found = BLEU(tokenize=tokenize, force=True).corpus_score(hypotheses, [reference])
            assert found.score == pytest.approx(record["scores"][split]["BLEU"]["score"]), packed.name
            scores[f"{path.stem}.{split}"] = found
    return scores


GENERATED = {"agreement": [], "deeper": ["--deeper", "--challenge", "40"]}
RECORDED = sorted({path.parent.name for path in RESULTS.glob("*/*.txt.gz")})


@pytest.mark.parametrize("name", sorted(GENERATED.keys() & set(RECORDED)))
def test_bleu_comes_out_again_from_the_translations(results, tmp_path, name):
    """On generated text, which is made anew here."""
    corpus = tmp_path / "corpus"
    script = REPOSITORY / "examples" / "agreement" / "generate.py"
    command = [sys.executable, script, "--output", corpus, "--train", "0", "--seed", "1", *GENERATED[name]]
    subprocess.run(command, check=True, capture_output=True)
    assert recomputed(results, RESULTS / name, corpus.iterdir(), 4)
    # and agreement of records that have none yet
    import compared

    for file in (RESULTS / name).glob("transformer-1.*"):
        shutil.copy(file, tmp_path)
    path = tmp_path / "transformer-1.json"
    record = json.loads(path.read_text())
    bare = {split: {"BLEU": scores["BLEU"]} for split, scores in record["scores"].items()}
    path.write_text(json.dumps(record | {"scores": bare}))
    compared.main(EXPERIMENTS / f"{name}.toml", tmp_path, tmp_path)
    again = json.loads(path.read_text())["scores"]
    assert (
        again["challenge"]["agreement"] == record["scores"]["challenge"]["agreement"]
        and "agreement" not in again["test"]
    )


@pytest.mark.parametrize("corpus", sorted(set(RECORDED) - GENERATED.keys()))
def test_bleu_of_real_corpora_comes_out_again(results, real_data, tmp_path, corpus):
    from raw_text import unpack

    files = [*(real_data / corpus.split("-")[0]).iterdir()]
    if corpus == "news":
        unpack(real_data / "ud" / "de_pud.conllu.gz", words=None, trees=None, raw=str(tmp_path / "pud.de"))
        files.append(tmp_path / "pud.de")
    scores = recomputed(results, RESULTS / corpus, files)
    assert scores
    if corpus == "kyoto":  # what is said of short outputs
        of = [scores[f"{system}-1.test"] for system in ("transformer", "pascal", "pascal-linear")]
        page = prose("docs", "records", "kyoto.md")
        short = [100 * (1 - score.sys_len / score.ref_len) for score in of]
        assert f"too short, by {min(short):.0f} to {max(short):.0f} %" in page
        without = "the Transformer has {:.1f} BLEU, PASCAL {:.1f}, and PASCAL with linear trees {:.1f}"
        assert without.format(*(score.score / score.bp for score in of)) in page


def prose(*parts: str) -> str:
    """A page in one line. What is said of records in prose, no marker writes."""
    return " ".join(REPOSITORY.joinpath(*parts).read_text(encoding="utf8").split())


def score(corpus: str, run: str, split: str = "valid", metric: str = "BLEU") -> float:
    record = json.loads((RESULTS / corpus / f"{run}.json").read_text(encoding="utf8"))
    return record["scores"][split][metric]["score"]


def test_what_is_said_of_seeds_of_pascal_is_in_the_records():
    """Shares of pairs, and validation BLEU of the bundled model and of its seed."""
    paths = [RESULTS / "agreement" / "whatif" / f"pascal-{seed}.json.gz" for seed in (1, 2, 3)]
    of_seeds = [json.loads(gzip.decompress(path.read_bytes())) for path in paths]
    shares = [100 * tree_pairs_of(record).measures()[BOTH_TRANSLATIONS].mean() for record in of_seeds]
    said = "{:.0f}, {:.0f} and {:.0f} %".format(*shares)
    notebook = prose("examples", "notebook.ipynb").replace('\\n", "', " ")
    page = prose("docs", "systems", "pascal.md")
    assert said in page and said in notebook
    best, *others = (f"{score('agreement', f'pascal-{seed}'):.1f}" for seed in (3, 1, 2))
    assert f"({best}, the others {others[0]} and {others[1]})" in page
    assert f"reaches {score('', 'bundled-pascal'):.1f} (" in page


def test_what_is_said_of_planted_heads_and_of_serving_is_in_the_records():
    def accuracies(system: str) -> str:
        records = (
            json.loads(path.read_text(encoding="utf8")) for path in (RESULTS / "agreement").glob(f"{system}-?.json")
        )
        return " to ".join(sorted({f"{record['curve'][-1]['uas']:.0f}" for record in records}))

    page = prose("docs", "systems", "planted.md")
    assert f"the planted head finds {accuracies('planted')} % of" in page
    assert f"which has parameters of its own, finds {accuracies('lisa')} %" in page
    kept = json.loads((RESULTS / "speed.json").read_text(encoding="utf8"))
    one, many, parsed = (one for part in kept.values() for one in part["measured"] if one["part"] == "serving")
    seconds = [1e-3 * measured["of_peer"] for measured in (many, parsed)]
    page = prose("docs", "serving.md")
    for said in (
        f"in {seconds[0] / many['ratios']['ctranslate2, float32']:.1f} seconds, and fairseq takes {seconds[0]:.1f}.",
        f"CTranslate2 is {one['ratios']['ctranslate2, float32']:.0f} times as fast",
        f"PASCAL takes {seconds[1]:.1f} seconds in fairseq, "
        f"after {seconds[1] / parsed['ratios']['parsing, spacy (en_core_web_sm)']:.1f} seconds for its parser",
    ):
        assert said in page


def test_what_is_said_of_settings_is_in_the_records():
    runs = [f"transformer-{name}-1" for name in ("3000", "3000-merges-4000", "10000", "10000-merges-4000")]
    low, high, low_10, high_10 = (score("sizes", run) for run in runs)
    less = score("sizes", "transformer-3000-dropout-4-1")
    page = prose("docs", "records", "sizes.md")
    assert f"by {high - low:.1f} and {high_10 - low_10:.1f} BLEU on the validation set" in page
    chrf = [score("sizes", run, metric="chrF") for run in runs]
    assert "from {:.0f} to {:.0f} and from {:.0f} to {:.0f}".format(*chrf) in page
    assert f"loses {high - less:.1f} BLEU" in page
    page = prose("docs", "corpus.md")
    short = [score("multi30k-low-resource", f"transformer-{pairs}-1", "test_2016_flickr") for pairs in (1000, 10000)]
    for said in (
        f"reach only {high:.1f} BLEU",
        f"{high_10:.1f} BLEU, and {low_10:.1f} with 2,000 merges",
        f"short sentences: {short[0]:.0f} BLEU",
        f"short sentences, {short[1]:.0f} |",
    ):
        assert said in page


def test_what_is_said_of_news_and_of_swahili_is_in_the_records():
    def curve(corpus: str, run: str) -> list[dict]:
        return json.loads((RESULTS / corpus / f"{run}.json").read_text(encoding="utf8"))["curve"]

    def rise(corpus: str, run: str) -> float:
        before, last = curve(corpus, run)[-2:]
        return last["bleu"] - before["bleu"]

    page, last = prose("docs", "records", "news.md"), curve("news", "transformer-1")[-3:]
    values = [point["bleu"] for point in last] + [point["updates"] for point in last]
    assert "it was {:.1f}, {:.1f} and {:.1f} after {:,}, {:,} and {:,} updates".format(*values) in page
    trees, linear = rise("news", "pascal-1"), rise("news", "pascal-linear-1")
    assert f"by {trees:.1f} with spaCy's trees and by {linear:.1f} with linear ones" in page
    parsed, gold = (
        gzip.open(RESULTS / "news" / f"pascal-1.{split}.txt.gz", "rt", encoding="utf8").read().splitlines()
        for split in ("pud", "pud-gold")
    )
    changed = sum(one != other for one, other in zip(parsed, gold, strict=True))
    assert f"PASCAL changes {changed} of {len(parsed):,} translations" in page
    assert (
        "reaches {1:.1f} BLEU instead of {0:.1f}".format(*(score("news", "pascal-1", x) for x in ("pud", "pud-gold")))
        in page
    )
    page, swahili = prose("docs", "records", "swahili.md"), ("transformer-1", "pascal-1")
    assert (
        "rises by {:.1f} and {:.1f} in the last 950 updates".format(*(rise("swahili", run) for run in swahili)) in page
    )
    base, *seeds = (score("swahili", run, "test") for run in (*swahili, "pascal-2"))
    assert f"first seed gains {seeds[0] - base:.1f} BLEU" in page and f"its second loses {base - seeds[1]:.1f}" in page
