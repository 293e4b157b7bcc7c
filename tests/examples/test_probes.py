"""Questions to the trained models of an experiment: asked once, recorded as `contrast` says."""

import json
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from contract.command_lines import parse

from fairseq_syntax import pretrained
from fairseq_syntax.evaluate.contrast import read_record
from fairseq_syntax.experiment.plan import read_plan
from fairseq_syntax.experiment.run import Run

FOLDER = Path(__file__).resolve().parents[2] / "examples" / "experiments"
TRAINED = "fairseq-train $OUT/data-bin"
TABLE = """
name = "tiny"
prepare = "nothing.sh"
hashed = []
seeds = [1]
[splits]
valid = { subset = "valid", reference = "corpus/valid.de" }
[families.transformer]
data = "data-bin"
max_updates = 10
train = ""
generate = ""
[systems]
pascal = { family = "transformer", options = "", trees = "gold" }
later = { family = "transformer", options = "" }
"""
RECORD = {
    **{"system": "pascal", "seed": 1, "family": "transformer", "trees": "gold", "stopped": "cap", "updates": 9},
    **{"minutes": {}, "sha256": {}, "scores": {}, "commit": "c", "checkpoint": {"chosen": "checkpoint_best"}},
    "commands": {"train": TRAINED, "generate": ""},
}
PROBES = """
[attachment]
pairs = "pairs/attachment"
trees = "test.en.conllu"
"""


@pytest.fixture
def probes(monkeypatch):
    monkeypatch.syspath_prepend(str(FOLDER))
    import probes

    return probes


@pytest.fixture
def folder(tmp_path) -> Path:
    """An experiment of which one system is trained: it is the model that comes along."""
    out, run = tmp_path / "out", tmp_path / "out" / "runs" / "pascal-1"
    for path, content in (
        (tmp_path / "tiny.toml", TABLE),
        (tmp_path / "probes" / "tiny.toml", PROBES),
        (run / "command.txt", TRAINED + "\n"),
        (tmp_path / "results" / "pascal-1.json", json.dumps(RECORD)),
    ):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content, encoding="utf8")
    shutil.copytree(pretrained.folder("agreement-pascal"), out / "data-bin")
    (run / "checkpoints").mkdir()
    (out / "data-bin" / "model.pt").rename(run / "checkpoints" / "checkpoint_best.pt")
    agreement, sizes = FOLDER.parent / "agreement", "--train 20 --valid 5 --test 40 --challenge 1 --seed 7"
    for script in (
        f"generate.py --output {out}/corpus {sizes}",
        f"pairs.py --output {out}/pairs --corpus {out}/corpus",
    ):
        subprocess.run([sys.executable, *script.split()], cwd=agreement, check=True, capture_output=True)
    return tmp_path


def test_each_is_asked_once_and_recorded(probes, folder, capsys):
    given = [folder / "tiny.toml", "--output", folder / "out", "--results", folder / "results", "--jobs", "1"]
    assert probes.main([*map(str, given)]) == 0
    said = capsys.readouterr().out
    assert "1 of 1: attachment pascal-1: done" in said and "1 left: their models have no record" in said
    path = folder / "results" / "attachment" / "pascal-1.json.gz"
    assert len(read_record(path).right) >= 5
    [record] = probes.read_probes(folder / "results")["attachment"]["pascal"].values()
    assert record["corpus"] == "tiny" and record["commit"] and record["versions"]["torch"]
    assert "$OUT" in record["commands"][0] and "test.en.conllu" in record["commands"][0]
    assert not [place for place in (folder, FOLDER.parents[1]) if str(place) in json.dumps(record)]
    written = path.stat().st_mtime_ns
    assert probes.main([*map(str, given)]) == 0
    assert " of " not in capsys.readouterr().out and path.stat().st_mtime_ns == written


def test_commands_of_the_tables_are_accepted(probes, tmp_path):
    """As if all were trained."""
    plan = read_plan(FOLDER / "deeper.toml")
    for probe in probes.probes_of(plan).values():
        for system in map(plan.systems.get, probe.systems or plan.systems):
            question = probes.Question(probe, Run(plan, system, 1, tmp_path, tmp_path))
            command = question.command(tmp_path / "checkpoint_best.pt", tmp_path / "answer.json")
            parse(shlex.split(question.run.relative(command)))
