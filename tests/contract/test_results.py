"""Tables and figures of README and docs/ are those of the records."""

import gzip
import hashlib
import json
import re
import statistics
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from contract.command_lines import REPOSITORY
from sacrebleu.metrics import BLEU

from fairseq_syntax.experiment.plan import read_plan
from fairseq_syntax.experiment.run import Run

EXPERIMENTS = REPOSITORY / "examples" / "experiments"
RESULTS = REPOSITORY / "docs" / "results"
SCORES = {"valid": 90.0, "test": 80.0}
RECORD = {
    **{"corpus": "toy", "system": "a", "family": "f", "seed": 1, "trees": "none", "updates": 100, "curve": []},
    **{"minutes": {"train": 1.0}, "stopped": "itself", "commit": "0123456789abcdef", "sha256": {}},
    "checkpoint": {"chosen": "checkpoint_best"},
    "scores": {split: {"BLEU": {"score": score, "signature": "tok:none"}} for split, score in SCORES.items()},
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


def recorded(table: Path, seed: int = 1, score: float = 80.0) -> Path:
    """A record of a run of a table, beside it."""
    board = read_plan(table)
    run = Run(board, board.systems["a"], seed, Path("/out"), table.with_suffix(""))
    record = json.loads(json.dumps({**RECORD, "seed": seed}).replace("80.0", str(score)))
    run.record.write_text(json.dumps({**record, "commands": run.commands()}), encoding="utf8")
    return run.record


def test_tables_and_figures_are_those_of_the_records(results):
    assert results.main(["--check"]) == 0, "run: python examples/experiments/results.py"
    pages = [page.read_text(encoding="utf8") for page in (REPOSITORY / "docs").rglob("*.md")]
    shown = {match[3] for text in pages for match in results._BLOCK.finditer(text)}
    languages = {path.name for path in RESULTS.glob("libreoffice-*")}
    assert shown == languages | {results.read_plan(path).name for path in EXPERIMENTS.glob("*.toml")}


def test_sentences_on_depth_have_the_figures_of_its_table():
    """Differences of the share of exact translations, and of BLEU, with their intervals."""
    docs, one = REPOSITORY / "docs", r"([-+]\d+\.\d+)"
    cells = re.findall(rf"{one} (?:\(|\| ){one} to {one}", (docs / "records" / "deeper.md").read_text(encoding="utf8"))
    known = {tuple(f"{float(value):+.1f}" for value in cell) for cell in cells}
    for page, start, end in (("docs/results.md", "## Deeper", "\n## "), ("README.md", "**Deeper", "\n\n")):
        text = (REPOSITORY / page).read_text(encoding="utf8").partition(start)[2].partition(end)[0]
        said = re.findall(rf"([-+]?\d+\.\d)[^()]*\({one} to {one}", text)
        assert said and {(f"{float(value):+.1f}", *ends) for value, *ends in said} <= known, page


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
    record = recorded(tmp_path / "toy.toml")
    one = results.renewed(PAGE, tmp_path, tmp_path)
    assert "1 of 2 runs so far" in one and "0123456789" in one and "| a | none | – | 1 | 100 | 90.0 | 80.0 |" in one
    assert results.renewed(one, tmp_path, tmp_path) == one
    recorded(tmp_path / "toy.toml", 2, 82.0)
    two = results.renewed(one, tmp_path, tmp_path)
    assert "All runs" in two and "81.0 ± 1.4" in two
    text = record.read_text(encoding="utf8")
    for verb, now, then in (("train", "--max-update 100", "--max-update 99"), ("generate", "--beam 1", "--beam 2")):
        assert now in text
        record.write_text(text.replace(now, then), encoding="utf8")
        said = rf"a-1\.json: .*toy\.toml has changed since \(fairseq-{verb} had other options: "
        with pytest.raises(results.PlanError, match=said):
            results.renewed(two, tmp_path, tmp_path)
    record.rename(record.with_name("a-3.json"))
    with pytest.raises(results.PlanError, match=r"a-3\.json: .*toy\.toml has no such run"):
        results.renewed(two, tmp_path, tmp_path)


def test_means_over_languages(results, tmp_path):
    """The table and its intervals, counted by hand; the language whose order of words differs most comes first."""
    runs = {"xx": {"transformer": [10, 12], "pascal": [13, 13], "pascal-linear": [12, 16]}, "yy": {"transformer": [20]}}
    runs["yy"] |= {"pascal": [20, 22], "pascal-linear": [21, 21]}
    (tmp_path / "order.json").write_text(json.dumps({"yy": {"tau": 0.9}, "xx": {"tau": 0.4}, "zz": {"tau": 0.1}}))
    for language, systems in runs.items():
        path = results.path_of(tmp_path / f"libreoffice-{language}", "test", "transformer")
        path.parent.mkdir(parents=True)
        means = {name: statistics.fmean(scores) for name, scores in systems.items()}
        deltas = {name: mean - means["transformer"] for name, mean in means.items() if name != "transformer"}
        tests = [{"system": name, "delta": delta, "interval": [delta - 1, delta + 1]} for name, delta in deltas.items()]
        scores = [
            {"runs": values, "mean": means[name], "sd": statistics.stdev(values) if len(values) > 1 else None}
            | {"without_brevity_penalty": means[name] + (name == "pascal"), "length_ratio": 0.9}
            for name, values in systems.items()
        ]
        named = [{"name": name, "scores": {"BLEU": score}} for name, score in zip(systems, scores, strict=True)]
        path.write_text(json.dumps({"tests": tests, "systems": named}))
    table = results.languages.tables(tmp_path)
    assert table.index("| xx |") < table.index("| yy |") and "zz" not in table
    assert "| xx | 0.40 | pascal | 2 | 13.0 | +2.00 | +1.00 to +3.00 | +3.00 | 0.900 |" in table
    # variances 2, 0, 8; none of one run, 2, 0: five degrees of freedom, t = 2.5706
    deviation = (12 / 5) ** 0.5
    assert f"of seeds is {deviation:.2f} BLEU, with 5 degrees of freedom" in table
    width = 2.5706 * deviation * (1 / 2 + 1 / 2 + 1 / 2 + 1) ** 0.5 / 2
    assert f"| pascal less transformer | 2 | +1.50 | {1.5 - width:+.2f} to {1.5 + width:+.2f} |" in table
    assert "| pascal less pascal-linear | 2 | -0.50 | " in table


def test_comparisons_name_no_folder_of_a_machine():
    paths = sorted(RESULTS.glob("*/comparisons/*.json"))
    assert paths
    for path in paths:
        systems = json.loads(path.read_text(encoding="utf8"))["systems"]
        assert all((path.parents[1] / file).is_file() for system in systems for file in system["files"]), path
        assert not [file for system in systems for file in system["files"] if "/" in file], path


# the text of `deeper` takes long to make: tests/examples/test_deeper.py
RECORDED = sorted({path.parent.name for path in RESULTS.glob("*/*.txt.gz")} - {"deeper"})


@pytest.fixture
def references(request, tmp_path) -> Callable[[str], list[Path]]:
    """Function: experiment -> files among which are its references; generated text is made anew."""

    def find(name: str) -> list[Path]:
        if name == "agreement":
            script = REPOSITORY / "examples" / "agreement" / "generate.py"
            command = [sys.executable, script, "--output", tmp_path / "corpus", "--train", "0", "--seed", "1"]
            subprocess.run(command, check=True, capture_output=True)
            return [*(tmp_path / "corpus").iterdir()]
        data = request.getfixturevalue("real_data")
        if name == "news":
            from raw_text import unpack

            unpack(data / "ud" / "de_pud.conllu.gz", words=None, trees=None, raw=str(tmp_path / "pud.de"))
        return [*(data / name.split("-")[0]).iterdir(), *tmp_path.glob("pud.de")]

    return find


@pytest.mark.parametrize("name", RECORDED)
def test_bleu_comes_out_again_from_the_translations(results, references, name):
    """Of every tenth record; references are known by their hashes."""
    folder = RESULTS / name
    board = results.plan_of(name)
    splits, tokenize = board.splits, board.tokenize
    files = references(name)
    contents = [gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes() for path in files]
    by_hash = {hashlib.sha256(content).hexdigest(): content for content in contents}
    for path in sorted(folder.glob("*.json"))[::10]:
        record = json.loads(path.read_text(encoding="utf8"))
        for split in record["scores"].keys() - {"valid"}:
            packed, wanted = folder / f"{path.stem}.{split}.txt.gz", record["sha256"][splits[split].reference]
            assert wanted in by_hash, f"{path.name}: no file here is its reference of {split}"
            reference = by_hash[wanted].decode().removesuffix("\n").split("\n")
            hypotheses = gzip.open(packed, "rt", encoding="utf8").read().removesuffix("\n").split("\n")
            found = BLEU(tokenize=tokenize, force=True).corpus_score(hypotheses, [reference])
            assert found.score == pytest.approx(record["scores"][split]["BLEU"]["score"]), packed.name
