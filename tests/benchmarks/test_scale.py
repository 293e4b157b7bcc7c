"""benchmarks/scale.py: its corpora, its figures, and the table of docs/speed.md."""

import importlib.util
import json
import sys
from pathlib import Path

import pytest

from fairseq_syntax.trees.alignment import pair_examples
from fairseq_syntax.trees.conllu import read_conllu
from fairseq_syntax.trees.subwords import join_subwords

REPOSITORY = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def scale():
    folder = REPOSITORY / "benchmarks"
    spec = importlib.util.spec_from_file_location("scale", folder / "scale.py")
    module = importlib.util.module_from_spec(spec)
    sys.path.insert(0, str(folder))
    spec.loader.exec_module(module)
    sys.path.remove(str(folder))
    return module


def test_corpora_have_trees_and_subwords(scale, tmp_path):
    scale.make_corpus(tmp_path, 1100)
    texts = {name: (tmp_path / name).read_text().splitlines() for name in ("train.en", "train.de", "train.words")}
    trees = list(read_conllu(tmp_path / "train.en.conllu"))
    assert [len(lines) for lines in (trees, *texts.values())] == [1100] * 4
    assert [" ".join(tree.forms) for tree in trees] == texts["train.words"]
    assert {len(tree.forms) for tree in trees} == {scale.WORDS}
    assert all(tree.heads.count(-1) == 1 for tree in trees)
    joined = [join_subwords(line.split(), "subword_nmt")[0] for line in texts["train.en"]]
    assert [" ".join(words) for words in joined] == texts["train.words"]
    assert sum(line.count("@@") for line in texts["train.en"]) > 1000
    assert len({word for line in texts["train.words"] for word in line.split()}) > 5000
    assert len(list(pair_examples(tmp_path / "train.en", tmp_path / "train.en.conllu"))) == 1100


def test_what_a_command_costs_is_that_of_its_process(scale):
    work = "import time; x = bytearray(2**27); x[::4096] = bytes([1]) * 2**15\nwhile time.process_time() < 0.3: pass"
    small, large = (scale.measured([sys.executable, "-c", code]) for code in ("pass", f"{work}\ntime.sleep(0.3)"))
    assert large["cpu_seconds"] >= 0.3 > small["cpu_seconds"] and large["wall_seconds"] > 0.6
    assert large["memory_mib"] > 128 > small["memory_mib"] and large["with_files_mib"] >= large["memory_mib"]
    with pytest.raises(SystemExit, match="ZeroDivisionError"):
        scale.measured([sys.executable, "-c", "1 / 0"])


def test_the_table_goes_on_along_the_last_two_figures(scale, monkeypatch):
    monkeypatch.setattr(scale, "WMT16", 1000)
    runs = {
        str(pairs): {
            "steps": {"check": {"cpu_seconds": seconds, "memory_mib": 200}},
            "bytes": {"text": 10**6 * pairs},
            "made": [f"made {min(pairs, 100)}"],
        }
        for pairs, seconds in ((10, 30.0), (100, 20.0), (200, 40.0))
    }
    rows = scale.table({"runs": runs}).splitlines()
    assert rows[0] == "made 10; made 100."
    assert "| `fairseq-syntax preprocess --check`: CPU | 30 s | 20 s | 40 s | 3.3 min |" in rows
    assert "| `fairseq-syntax preprocess --check`: memory | 210 MB | 210 MB | 210 MB | 210 MB |" in rows
    assert "| on disk: text, both languages | 10 MB | 100 MB | 200 MB | 1 GB |" in rows


@pytest.mark.slow
def test_a_run(scale, tmp_path, capsys):
    kept = tmp_path / "scale.json"
    scale.main(["40", "--json", str(kept)])
    (run,) = json.loads(kept.read_text())["runs"].values()
    assert run["steps"].keys() == scale.STEPS.keys() and run["bytes"].keys() == scale.FILES.keys()
    assert run["bytes"]["data"] > run["bytes"]["distances"] > 40 * 26 * 25 // 2
    assert "| on disk: data directory |" in capsys.readouterr().out
