"""Questions to the trained models of an experiment: asked once, recorded as the verbs say, refused where impossible."""

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

FOLDER = Path(__file__).resolve().parents[2] / "examples" / "experiments"
TRAINED = "fairseq-train $OUT/data-bin"
TABLE = """
name = "tiny"
prepare = "nothing.sh"
hashed = []
seeds = [1]

[splits]
valid = { subset = "valid", reference = "corpus/valid.de" }
challenge = { subset = "test", reference = "corpus/challenge.de" }

[families.transformer]
data = "data-bin"
max_updates = 10
train = ""
generate = "--beam 2 --max-len-b 30 --max-tokens 2000 --source-lang en --target-lang de"

[systems]
pascal = { family = "transformer", options = "", trees = "gold" }
later = { family = "transformer", options = "" }
"""
PROBES = """
[attachment]
verb = "contrast"
pairs = "$OUT/pairs/attachment"
trees = "test.en.conllu"
[whatif]
verb = "contrast"
pairs = "$OUT/pairs/attachment"
options = "--both-trees --beam 2 --max-len-b 30"
[unparsed]
verb = "unparsed"
inputs = { challenge = "corpus/challenge.en" }
systems = ["pascal"]
[elsewhere]
verb = "contrast"
pairs = "$FOLDER_OF_PAIRS/any"
[treebank]
verb = "attachment"
gold = "$TREEBANK"
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """An experiment of which one system is trained: it is the model that comes along."""
    folder = tmp_path_factory.mktemp("probes")
    (folder / "probes").mkdir()
    (folder / "tiny.toml").write_text(TABLE, encoding="utf8")
    (folder / "probes" / "tiny.toml").write_text(PROBES, encoding="utf8")
    model, run = pretrained.folder("agreement-pascal"), folder / "out" / "runs" / "pascal-1"
    shutil.copytree(model, folder / "out" / "data-bin")
    (run / "checkpoints").mkdir(parents=True)
    (folder / "out" / "data-bin" / "model.pt").rename(run / "checkpoints" / "checkpoint_best.pt")
    (run / "command.txt").write_text(TRAINED + "\n", encoding="utf8")
    (folder / "results").mkdir()
    scores = {
        "challenge": {"BLEU": {"score": 95.0, "signature": "tok:none"}, "agreement": {"overall": {"accuracy": 1.0}}}
    }
    record = {"system": "pascal", "seed": 1, "commit": "c", "commands": {"train": TRAINED}, "scores": scores}
    record |= {"family": "f", "trees": "gold", "stopped": "cap", "updates": 9, "minutes": {}, "sha256": {}}
    record["commands"]["generate"] = ""
    record["checkpoint"] = {"chosen": "checkpoint_best"}
    (folder / "results" / "pascal-1.json").write_text(json.dumps(record), encoding="utf8")
    sizes = ["--train", "20", "--valid", "5", "--test", "40", "--challenge", "1", "--seed", "7"]
    generate = [sys.executable, FOLDER.parent / "agreement" / "generate.py", "--output", folder / "out" / "corpus"]
    subprocess.run([*generate, *sizes], check=True, capture_output=True)
    pairs = [sys.executable, FOLDER.parent / "agreement" / "pairs.py", "--output", folder / "out" / "pairs"]
    subprocess.run([*pairs, "--corpus", folder / "out" / "corpus"], check=True, capture_output=True)
    return folder


@pytest.fixture
def ask(monkeypatch, capsys):
    """Function: folder of an experiment, options, environment -> exit status, stdout, stderr."""
    monkeypatch.syspath_prepend(str(FOLDER))
    import probes

    def call(folder: Path, *options: str, **environment: str) -> tuple[int, str, str]:
        for name, value in environment.items():
            monkeypatch.setenv(name, value)
        given = [folder / "tiny.toml", "--output", folder / "out", "--results", folder / "results", "--jobs", "1"]
        return probes.main([*map(str, given), *options]), *capsys.readouterr()

    return call


def test_each_is_asked_once_and_recorded(ask, folder):
    known = ("--probes", "attachment", "whatif", "unparsed")
    status, printed, said = ask(folder, *known)
    assert status == 0, said
    assert "3 of 3: " in printed and "2 left: their models have no record or no checkpoint here" in printed
    from probes import read_probes

    found = read_probes(folder / "results")
    assert set(found) == {"attachment", "whatif", "unparsed"} and all(set(of) == {"pascal"} for of in found.values())
    for name, of_system in found.items():
        record = of_system["pascal"]["1"]
        assert record["corpus"] == "tiny" and record["commit"] and record["versions"]["torch"]
        assert str(folder) not in json.dumps(record) and "$OUT" in record["commands"][0], name
        assert str(FOLDER.parents[1]) not in json.dumps(record)

    # minimal pairs: a record of contrast, which contrast itself reads
    record = read_record(folder / "results" / "attachment" / "pascal-1.json.gz")
    assert len(record.right) >= 5
    # it has the tree that the pair is about, so that is what the rest of the record must agree with
    followed = found["whatif"]["pascal"]["1"]
    higher = [scores[0][0] > scores[0][1] for scores in followed["scores"]]
    assert higher == record.right.tolist() and followed["digest"] == record.digest

    without = found["unparsed"]["pascal"]["1"]["scores"]["challenge"]
    assert 0 < without["BLEU"]["score"] < 95

    written = {path: path.stat().st_mtime_ns for path in (folder / "results").rglob("*.gz")}
    status, printed, _ = ask(folder)
    assert status == 0 and " of " not in printed
    assert "probes.elsewhere: left out: " in printed and "$FOLDER_OF_PAIRS is not set" in printed
    assert written == {path: path.stat().st_mtime_ns for path in (folder / "results").rglob("*.gz")}


@pytest.mark.parametrize("table", sorted(FOLDER.glob("*.toml")), ids=lambda path: path.stem)
def test_what_the_tables_ask_is_accepted(table, tmp_path, monkeypatch):
    """Every command of every probe, as if all were trained."""
    monkeypatch.syspath_prepend(str(FOLDER))
    from probes import Question, probes_of

    from fairseq_syntax.experiment.plan import read_plan
    from fairseq_syntax.experiment.run import Run

    board, commands, asked = read_plan(table), [], set()
    monkeypatch.setenv("LINGEVAL", "/home/me/pairs")
    monkeypatch.setenv("STANZA_PARSER", "/home/me/parser.pt")
    monkeypatch.setenv("UD_EN", "/home/me/en.conllu")
    monkeypatch.setenv("UD_DE", "/home/me/de.conllu")
    known = probes_of(board)
    for probe in known.values():
        for system in board.systems.values():
            question = Question(probe, Run(board, system, 1, tmp_path, tmp_path))
            if question.applies:
                asked.add((probe.name, system.name))
                for command, _ in question.commands(tmp_path / "checkpoint_best.pt", tmp_path / "answer.json"):
                    commands.append(question.relative(command))
    probes = known.values()
    assert asked == {(probe.name, name) for probe in probes for name in probe.systems or board.systems}
    assert len(commands) >= len(asked)
    assert not [said for said in commands if "/home/me" in said]
    for said in commands:
        parse(shlex.split(said))
