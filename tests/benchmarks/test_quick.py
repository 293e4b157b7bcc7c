"""`make bench BENCH=--quick` to its end, what each part gives, and how ratios are kept."""

import importlib
import json
import math
import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).resolve().parents[2] / "benchmarks"
# what each part prints; of models, the systems that it must name
PARTS = {
    "models": ["training step, 4 sentences", "generation, beam 4", "pascal_transformer", "1.000 x transformer"],
    "recurrent": ["== recurrent models", "sa_nmt_shared", "1.000 x lstm"],
    "attention": ["== recurrent models, states of 32", "global_att", "dasa_transformer"],
    "marginals": ["marginals of 2 sentences", "head_marginals, float32"],
    "blackout": ["output layer of 100 words", "blackout, by a sentence"],
    "latent-trees": ["greedy translation", "peak memory", "latent_tree_rnng"],
    "memory": ["peak memory", "pascal_transformer", "1.000 x transformer"],
    "serving": ["ctranslate2, int8", "batches of 32", "parsing, spacy"],
    "waits": ["`transformer_tiny`", "64 sentences"],
    "changes": ["latent_tree_rnng: translate", "1.000 x before", "how far it is", "0e+00"],
}


@pytest.fixture(scope="module")
def benchmarks():
    """Function: name -> module of the folder, which is no package; other modules of these names are put back."""
    names = [path.stem for path in FOLDER.glob("*.py")]
    others = {name: sys.modules.pop(name) for name in names if name in sys.modules}
    sys.path.insert(0, str(FOLDER))
    yield importlib.import_module
    sys.path.remove(str(FOLDER))
    for name in names:
        sys.modules.pop(name, None)
    sys.modules.update(others)


def figures(kept):
    """Part -> what was measured; only parts that came to their end."""
    parts = json.loads(kept.read_text()) if kept.exists() else {}
    return {name: part["measured"] for name, part in parts.items()}


def assert_ratios(measured):
    """Of something, and all of them numbers; how fast does not matter."""
    ratios = [ratio for one in measured for ratio in one.get("ratios", {}).values()]
    assert ratios and all(0 < ratio < math.inf for ratio in ratios)


# the other ones measure models in the same way, or start programs; see below
PARTS_HERE = ("models", "marginals", "blackout", "serving")


@pytest.mark.parametrize("part", [*PARTS_HERE, pytest.param("changes", marks=pytest.mark.slow)])
def test_a_part(benchmarks, capsys, monkeypatch, tmp_path, part):
    run, kept = benchmarks("run"), tmp_path / "kept.json"
    assert list(run.PARTS) == list(PARTS)
    # changes are those of a checkout against itself
    before = ["--before", str(FOLDER.parent)] if part == "changes" else []
    if not before:
        monkeypatch.setattr(run, "PARTS", {part: run.PARTS[part]})
    run.main(["--quick", "--json", str(kept), *before])
    output, measured = capsys.readouterr().out, figures(kept)
    assert list(measured) == [part]
    assert_ratios(measured[part])
    assert all(said in output for said in PARTS[part]), output


def test_ratios_are_kept(benchmarks, monkeypatch, tmp_path):
    run, timing, speed = benchmarks("run"), benchmarks("timing"), {"peer": 2.0, "ours": 1.0, "new": 1.0}

    def measure(quick):
        timing.section("sizes")
        timing.report("a step", speed, "peer")
        timing.report_table("errors", ["size", "1"], [["ours", "0"]])

    monkeypatch.setattr(run, "PARTS", {"models": measure})
    old = tmp_path / "old.json"
    old.write_text('{"memory": {"measured": []}}')
    kept = str(old)
    run.main(["--json", kept])
    parts = json.loads(old.read_text())
    assert parts.keys() == {"models"}, "parts that are not known are left out"
    assert parts["models"]["measured"][0]["ratios"] == {"ours": 2.0, "new": 2.0}
    page = timing.markdown({"models": {**parts["models"], "date": "D", "commit": "C", "machine": "M"}})
    assert page.startswith("### Models\n\nD, commit C, M.\n\n| sizes, against `peer` | `ours` | `new` |\n")
    assert "| a step (2,000 ms) | 2.00x | 2.00x |" in page
    assert page.endswith("\n\nerrors\n\n| size | 1 |\n| --- | ---: |\n| ours | 0 |")


@pytest.mark.slow
def test_figures_of_a_gpu(tmp_path):
    done = subprocess.run(
        [sys.executable, FOLDER / "gpu.py", "--quick", "--json", tmp_path / "gpu.json"], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    kept = json.loads((tmp_path / "gpu.json").read_text())
    assert {"date", "commit", "machine"} < kept.keys()
    for group in kept["measured"]:
        assert len(group["ms"]) > 1 and all(value > 0 for value in group["ms"].values()), group["title"]
        assert group["title"] in done.stdout
