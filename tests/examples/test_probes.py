"""Questions to the trained models of an experiment: asked once, recorded as the verbs say, refused where impossible."""

import gzip
import json
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from contract.command_lines import parse

from fairseq_syntax import pretrained
from fairseq_syntax.evaluate.contrast import read_record, wilson
from fairseq_syntax.evaluate.probes import read_probes, tables, training_of
from fairseq_syntax.evaluate.treebank import Treebank
from fairseq_syntax.trees.conllu import read_conllu

FOLDER = Path(__file__).resolve().parents[2] / "examples" / "experiments"
TRAINED = "fairseq-train $OUT/data-bin"
TABLE = """
name = "tiny"
prepare = "nothing.sh"
hashed = []
seeds = [1]

[splits]
valid = { subset = "valid", reference = "corpus/valid.de" }
challenge = { subset = "test", reference = "corpus/challenge.de", challenge = "corpus/challenge.tsv" }

[probes.attachment]
verb = "contrast"
pairs = "$OUT/pairs/attachment"
trees = "test.en.conllu"
[probes.whatif]
verb = "whatif"
pairs = "$OUT/pairs/attachment"
options = "--beam 2 --max-len-b 30"
[probes.unparsed]
verb = "unparsed"
inputs = { challenge = "corpus/challenge.en" }
systems = ["pascal"]
[probes.elsewhere]
verb = "contrast"
pairs = "$FOLDER_OF_PAIRS/any"
[probes.treebank]
verb = "attachment"
gold = "$TREEBANK"

[families.transformer]
data = "data-bin"
max_updates = 10
train = ""
generate = "--beam 2 --max-len-b 30 --max-tokens 2000 --source-lang en --target-lang de"

[systems]
pascal = { family = "transformer", options = "", trees = "gold" }
later = { family = "transformer", options = "" }
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """An experiment of which one system is trained: it is the model that comes along."""
    folder = tmp_path_factory.mktemp("probes")
    (folder / "tiny.toml").write_text(TABLE, encoding="utf8")
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
    found = read_probes(folder / "results")
    assert set(found) == {"attachment", "whatif", "unparsed"} and all(set(of) == {"pascal"} for of in found.values())
    for name, of_system in found.items():
        record = of_system["pascal"]["1"]
        assert record["corpus"] == "tiny" and record["commit"] and record["versions"]["torch"]
        assert str(folder) not in json.dumps(record) and "$OUT" in record["commands"][0], name
        assert str(FOLDER.parents[1]) not in json.dumps(record)

    # minimal pairs: a record of contrast, which contrast itself reads
    record = read_record(folder / "results" / "attachment" / "pascal-1.json.gz")
    [shown, by_kind, _] = tables(found["attachment"], {}, "pascal")
    low, high = wilson(record.right.sum(), len(record.right))
    percent = f"{100 * record.right.mean():.1f}"
    assert shown.rows == [["pascal", 1, len(record.right), percent, f"{100 * low:.1f}–{100 * high:.1f}", "-"]]
    assert by_kind.title.endswith("by attachment") and len(record.right) >= 5
    # it has the tree that the pair is about, so that is what the rest of the record must agree with
    followed = found["whatif"]["pascal"]["1"]
    higher = [scores[0][0] > scores[0][1] for scores in followed["scores"]]
    assert higher == record.right.tolist() and followed["digest"] == record.digest

    without = found["unparsed"]["pascal"]["1"]["scores"]["challenge"]
    assert 0 < without["BLEU"]["score"] < 95 and without["agreement"]["overall"]["n"] == 5
    [bleu, agreement] = tables(found["unparsed"], {"pascal": {"1": _run(folder)}}, "pascal")
    assert bleu.title == f"BLEU, {without['BLEU']['signature']}"
    assert bleu.rows == [["pascal", 1, "95.0", f"{without['BLEU']['score']:.1f}"]]
    assert agreement.rows[0][:3] == ["pascal", 1, "100.0"]

    written = {path: path.stat().st_mtime_ns for path in (folder / "results").rglob("*.gz")}
    status, printed, _ = ask(folder)
    assert status == 0 and " of " not in printed
    assert "probes.elsewhere: left out: " in printed and "$FOLDER_OF_PAIRS is not set" in printed
    assert written == {path: path.stat().st_mtime_ns for path in (folder / "results").rglob("*.gz")}


def test_a_checkpoint_that_goes_away_is_one_failure(ask, folder, monkeypatch):
    begun = folder / "out" / "runs" / "pascal-1" / "command.txt"
    monkeypatch.setattr("probes.check_files", lambda probe, out: begun.unlink())
    status, _, said = ask(folder, "--probes", "elsewhere", FOLDER_OF_PAIRS=str(folder))
    begun.write_text(f"{TRAINED}\n", encoding="utf8")
    assert status == 1
    assert "probes: elsewhere pascal-1: " in said and "its checkpoint was removed after the start" in said


def _run(folder: Path) -> dict:
    return json.loads((folder / "results" / "pascal-1.json").read_text(encoding="utf8"))


def test_what_cannot_be_asked_is_said(ask, folder, tmp_path):
    def refusal(*options, **environment):
        status, _, said = ask(folder, "--probes", *options, **environment)
        assert status == 1 and "Traceback" not in said
        return said

    assert "$FOLDER_OF_PAIRS is not set" in refusal("elsewhere")
    said = refusal("elsewhere", FOLDER_OF_PAIRS=str(tmp_path))
    assert f"{tmp_path}/any is not there; give the right place of $FOLDER_OF_PAIRS/any" in said
    said = refusal("treebank", TREEBANK=str(tmp_path / "gold.conllu"))
    assert f"{tmp_path}/gold.conllu is not there; give the right place of $TREEBANK" in said
    pairs, answers = folder / "out" / "pairs", folder / "results" / "attachment"
    answers.mkdir(exist_ok=True)
    pairs.rename(tmp_path / "away")
    answers.rename(tmp_path / "answers")
    said = refusal("attachment")
    assert f"{pairs}/attachment is not there; remove {folder}/out/prepared and run the experiment" in said
    (tmp_path / "away").rename(pairs)
    (tmp_path / "answers").rename(answers)
    assert "--probes elsehwere: choose from attachment" in refusal("elsehwere")
    begun = folder / "out" / "runs" / "pascal-1" / "command.txt"
    begun.write_text(f"{TRAINED} --lr 1\n", encoding="utf8")
    said = refusal("elsewhere")
    begun.write_text(f"{TRAINED}\n", encoding="utf8")
    assert "not the training of" in said


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('verb = "whatif"', 'verb = "what"', "probes.whatif: verb = 'what'; choose from contrast, whatif, attachment"),
        ('gold = "$TREEBANK"', "", "probes.treebank: gold is missing; attachment needs it"),
        ('systems = ["pascal"]', 'systems = ["pascla"]', "systems: pascla; choose from pascal, later"),
        ("inputs = { challenge", "inputs = { tset", "inputs: tset; choose from valid, challenge"),
        ('options = "--beam', "options = \"'--beam", "probes.whatif: options: No closing quotation"),
    ],
)
def test_mistakes_in_a_table_are_named(ask, tmp_path, old, new, said):
    assert old in TABLE
    (tmp_path / "tiny.toml").write_text(TABLE.replace(old, new), encoding="utf8")
    status, _, error = ask(tmp_path)
    assert status == 1 and said in error


@pytest.mark.parametrize("table", sorted(FOLDER.glob("*.toml")), ids=lambda path: path.stem)
def test_what_the_tables_ask_is_accepted(table, tmp_path, monkeypatch):
    """Every command of every probe, as if all were trained."""
    monkeypatch.syspath_prepend(str(FOLDER))
    from probes import Question

    from fairseq_syntax.experiment.plan import read_plan
    from fairseq_syntax.experiment.run import Run

    board, commands, asked = read_plan(table), [], set()
    monkeypatch.setenv("LINGEVAL", "/home/me/pairs")
    monkeypatch.setenv("STANZA_PARSER", "/home/me/parser.pt")
    monkeypatch.setenv("UD_EN", "/home/me/en.conllu")
    monkeypatch.setenv("UD_DE", "/home/me/de.conllu")
    for probe in board.probes.values():
        for system in board.systems.values():
            question = Question(probe, Run(board, system, 1, tmp_path, tmp_path))
            if question.applies:
                asked.add((probe.name, system.name))
                for command, _ in question.commands(tmp_path / "checkpoint_best.pt", tmp_path / "answer.json"):
                    commands.append(question.relative(command))
    probes = board.probes.values()
    assert asked == {(probe.name, name) for probe in probes for name in probe.systems or board.systems}
    assert len(commands) >= len(asked)
    assert not [said for said in commands if "/home/me" in said]
    for said in commands:
        parse(shlex.split(said))


TREEBANK = """\
1\tdogs\t_\tNOUN\t_\t_\t2\tnsubj\t_\t_
2\tbark\t_\tVERB\t_\t_\t0\troot\t_\t_
3\tloudly\t_\tADV\t_\t_\t2\tadvmod\t_\t_

"""


def test_trees_beside_a_treebank(tmp_path):
    """What attachment writes of two runs, as a table: their mean, and the chains once."""
    gold = tmp_path / "gold.conllu"
    gold.write_text(TREEBANK, encoding="utf8")
    treebank = Treebank(list(read_conllu(gold)))
    for seed, heads in {1: [1, -1, 1], 2: [1, 2, -1]}.items():
        found = json.loads(treebank.record([heads], "mst scores"))
        content = {"system": "sa", "seed": seed, "commit": "c", "training": {}, "verb": "attachment", **found}
        path = tmp_path / "results" / "treebank" / f"sa-{seed}.json.gz"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(gzip.compress(json.dumps(content).encode()))
    shares, relations = tables(read_probes(tmp_path / "results")["treebank"], {}, "transformer")
    assert shares.header == ["system", "seeds", "DA", "UA", "UAS"]
    # the second run's tree is L: the subject has its head, and bark - loudly is the right arc the wrong way
    assert shares.rows == [
        ["sa", 2, "66.7 ± 47.1", "83.3 ± 23.6", "66.7 ± 47.1"],
        ["L", "-", "33.3", "66.7", "33.3"],
        ["R", "-", "33.3", "66.7", "33.3"],
    ]
    assert relations.header[2:] == ["advmod (1)", "nsubj (1)", "root (1)"]
    assert [row[2:] for row in relations.rows[1:]] == [["0.0", "100.0", "0.0"], ["100.0", "0.0", "0.0"]]


def test_answers_of_different_questions_are_not_put_together(tmp_path):
    def record(system: str, **changed) -> dict:
        content = {
            "system": system,
            "seed": 1,
            "commit": "c",
            "training": {},
            "verb": "contrast",
            "format": 1,
            "name": system,
            "digest": "d",
        }
        content |= {"measure": "sum", "correct": [-1.0, -2.0], "incorrect": [-2.0, -1.0], "details": {}} | changed
        path = tmp_path / "results" / "probe" / f"{system}-1.json.gz"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(gzip.compress(json.dumps(content).encode()))
        return content

    record("a")
    record("b", correct=[-3.0, -0.5])
    [table] = tables(read_probes(tmp_path / "results")["probe"], {}, "a")
    assert [row[:2] + row[3:4] for row in table.rows] == [["a", 1, "50.0"], ["b", 1, "50.0"]]
    # each has one alone: nothing says that they differ
    assert table.rows[0][-1] == "-" and table.rows[1][-1] == "1"
    run = {"commit": "c", "commands": {"train": "t"}, "curve": [{"loss": 2.0}]}
    record("a", training=training_of(run))
    for changed in ({"commands": {"train": "u"}}, {"curve": [{"loss": 3.0}]}):
        with pytest.raises(ValueError, match="a-1 was trained again after the probe"):
            list(tables(read_probes(tmp_path / "results")["probe"], {"a": {"1": run | changed}}, "a"))
    # translated again at another commit, or an early record, which says less
    translated = {"a": {"1": run | {"commit": "d"}}}
    assert list(tables(read_probes(tmp_path / "results")["probe"], translated, "a"))
    record("a", training={"commit": "c", "command": "t"})
    assert list(tables(read_probes(tmp_path / "results")["probe"], translated, "a"))
    for changed in ({"measure": "mean"}, {"digest": "e"}):
        record("b", **changed)
        with pytest.raises(ValueError, match="b-1 and a-1 are records of different"):
            list(tables(read_probes(tmp_path / "results")["probe"], {}, "a"))
