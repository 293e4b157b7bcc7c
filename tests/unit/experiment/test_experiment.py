"""Experiments with prepared data: they resume, record once, outlive failures; a system is a line."""

import gzip
import json
import os
import re
import shlex
import signal
import subprocess
import sys
import time
import tomllib
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import programs
import pytest
import sacrebleu
from contract.command_lines import parse

from fairseq_syntax.experiment import Experiment, default_jobs, records
from fairseq_syntax.experiment import run as runs
from fairseq_syntax.experiment.budget import minutes_left, time_updates
from fairseq_syntax.experiment.plan import PlanError, TextSettings, read_plan
from fairseq_syntax.experiment.records import describe, environment, hashes, read_log
from fairseq_syntax.experiment.run import Interrupted, Run, RunError, hold_lock, read_records, run_logged
from fairseq_syntax.experiment.schedule import prepare_by_script, run_all
from fairseq_syntax.files import lock, staged
from fairseq_syntax.tools import experiment as verb

FOLDER = Path(__file__).resolve().parents[3] / "examples" / "experiments"
TABLES = sorted(FOLDER.glob("*.toml"))
SYSTEM = 'broken = { family = "recurrent", options = "--arch nmt_lstm_tiny --dropout two" }\n'

TINY = """
name = "tiny"
prepare = "nothing.sh"
hashed = ["corpus/*"]
seeds = [1]

[splits]
valid = { subset = "valid", reference = "corpus/valid.de" }
challenge.subset = "test"
challenge.reference = "corpus/challenge.de"
challenge.source = "corpus/challenge.en"

[families.recurrent]
baseline = "nmt_lstm"
data = "data-bin"
max_updates = UPDATES
patience = 50
train = "--optimizer adam --lr 1e-3 --criterion cross_entropy --batch-size 20"
generate = "--beam 1 --max-len-b 5 --batch-size 40"

[systems]
nmt_lstm = { family = "recurrent", options = "--arch nmt_lstm_tiny" }
"""


def arguments(table: Path, folder: Path, *options: str) -> list[str]:
    places = ["--output", str(folder / "out"), "--results", str(folder / "results")]
    return [str(table), *places, "--jobs", "1", "--trust", *options]


def command(table: Path, folder: Path, *options: str) -> list[str]:
    return [sys.executable, "-m", "fairseq_syntax", "experiment", *arguments(table, folder, *options)]


def experiment(table: Path, folder: Path, *options: str) -> subprocess.CompletedProcess:
    return subprocess.run(command(table, folder, *options), capture_output=True, text=True)


run = programs.runner(verb)


@pytest.fixture(scope="module")
def data(tmp_path_factory) -> Path:
    """The output folder of an experiment whose data is there."""
    folder = tmp_path_factory.mktemp("experiment") / "out"
    corpus = folder / "corpus"
    sizes = ["--train", "200", "--valid", "20", "--test", "20", "--challenge", "8"]
    generate = [sys.executable, str(FOLDER.parent / "agreement" / "generate.py"), "--output", str(corpus), *sizes]
    subprocess.run(generate, check=True, capture_output=True)
    prefixes = [f"--trainpref={corpus}/train", f"--validpref={corpus}/valid", f"--testpref={corpus}/challenge"]
    binarize = ["fairseq-preprocess", "-s", "en", "-t", "de", *prefixes, "--destdir", str(folder / "data-bin")]
    subprocess.run(binarize, check=True, capture_output=True)
    (folder / "prepared").touch()
    return folder.parent


def write(path: Path, updates: int, extra: str = "") -> Path:
    path.write_text(TINY.replace("UPDATES", str(updates)) + extra)
    return path


@pytest.mark.parametrize("table", TABLES, ids=lambda path: path.stem)
def test_what_the_tables_train_is_accepted(table, run, tmp_path):
    printed = run(*arguments(table, tmp_path, "--dry-run"))
    commands = [shlex.split(line) for line in printed.splitlines()]
    commands = [words for words in commands if words[words.index("--seed") + 1] == "1"]
    for words in commands:
        if not words[words.index("--arch") + 1].startswith("sdatt_transformer"):  # whose records are older than its end
            parse(words)
    systems = tomllib.loads(table.read_text(encoding="utf8"))["systems"]
    settings = {tuple(words[: words.index("--save-dir")]) for words in commands}  # which ends each, with its name
    assert len(settings) == len(commands) == len(systems)
    assert not (tmp_path / "out").exists()


def test_the_agreement_corpus_is_binarized_with_all_that_its_systems_translate(tmp_path):
    environment = os.environ | {"DRY_RUN": "1", "OUT": str(tmp_path)}
    script = FOLDER / "agreement.sh"
    printed = subprocess.run(["bash", script], env=environment, capture_output=True, text=True, check=True).stderr
    subsets = {}
    for line in printed.splitlines():
        if "--testpref" in line:
            words = shlex.split(line)
            tests = words[words.index("--testpref") + 1].split(",")
            names = {f"test{number or ''}" for number in range(len(tests))}
            subsets[Path(words[words.index("--destdir") + 1]).name] = names | {"valid"}
    table = tomllib.loads((FOLDER / "agreement.toml").read_text(encoding="utf8"))
    wanted = {split["subset"] for split in table["splits"].values()}
    for name, system in table["systems"].items():
        data = table["families"][system["family"]].get("data", "data-bin-{trees}")
        data = data.format(trees=system.get("trees", "gold"))
        assert wanted <= subsets[data], name


def test_every_published_architecture_is_in_the_table_of_the_agreement_corpus(repository):
    page = (repository / "docs" / "systems" / "index.md").read_text(encoding="utf8")
    rows = [line.split("|")[1] for line in page.splitlines() if line.startswith("| [`")]
    named = {name for row in rows for name in re.findall(r"`(\w+)`", row)}
    assert len(named) > 20
    published = {name for name in named if name.isidentifier() and ("_" in name or name in ("sdatt", "chen17"))}
    table = (FOLDER / "agreement.toml").read_text(encoding="utf8")
    sizes = {"lgp_medium", "lgp_large"}
    missing = {name for name in published - sizes if f"--arch {name}" not in table}
    assert not {name for name in missing if not name.startswith("fairseq")}, missing


@pytest.mark.slow
def test_killed_and_started_again_a_line_added_a_line_that_fails(data, tmp_path):
    table = write(tmp_path / "tiny.toml", 60)
    started = subprocess.Popen(command(table, data), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    checkpoint = data / "out" / "runs" / "nmt_lstm-1" / "checkpoints" / "checkpoint_last.pt"
    deadline = time.monotonic() + 120
    while not checkpoint.exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    os.kill(started.pid, signal.SIGKILL)
    started.communicate()
    assert not (data / "results").exists()
    time.sleep(0.5)
    log = checkpoint.parents[1] / "train.log"
    before = log.stat().st_size
    time.sleep(1)
    assert log.stat().st_size == before, "the training outlives the experiment"

    # it goes on; another system has joined by a line, and one that cannot be trained
    write(table, 60, 'copy = { family = "recurrent", options = "--arch nmt_lstm_tiny" }\n' + SYSTEM)
    done = experiment(table, data)
    assert done.returncode == 1
    assert done.stderr.count("experiment: broken-1: fairseq-train ended with 2") == 1, done.stderr
    text = log.read_text()
    assert text.count("begin training epoch 1\n") == 1 and "Loaded checkpoint" in text
    record = json.loads((data / "results" / "nmt_lstm-1.json").read_text())
    other = json.loads((data / "results" / "copy-1.json").read_text())
    # interrupted or not, the same numbers
    assert record["curve"] == other["curve"] and record["scores"] == other["scores"]
    assert (record["updates"], record["stopped"], record["trees"]) == (60, "cap", "none")
    assert len(record["curve"]) == record["epochs"] > 2
    assert record["checkpoint"] == {"chosen": "checkpoint_best"}
    assert str(data) not in json.dumps(record) and str(FOLDER.parents[1]) not in json.dumps(record)
    assert set(record["sha256"]) >= {"corpus/train.en", "corpus/train.en.conllu"}
    hypotheses = gzip.decompress((data / "results" / "nmt_lstm-1.challenge.txt.gz").read_bytes()).decode().split("\n")
    references = (data / "out" / "corpus" / "challenge.de").read_text().splitlines()
    bleu = sacrebleu.BLEU(tokenize="none").corpus_score(hypotheses[:-1], [references]).score
    assert record["scores"]["challenge"]["BLEU"]["score"] == pytest.approx(bleu)

    # what has a record is not run again
    written = {path: path.stat().st_mtime_ns for path in (data / "results").iterdir()}
    again = experiment(table, data, "--only", "nmt_lstm", "copy")
    assert again.returncode == 0 and "copy and nmt_lstm" in again.stdout, again.stderr
    assert written == {path: path.stat().st_mtime_ns for path in (data / "results").iterdir()}

    # other options of translation: records of the old ones are refused; what was trained is translated again
    text = table.read_text()
    table.write_text(text.replace("--max-len-b 5", "--max-len-b 2"))
    refused = experiment(table, data, "--only", "nmt_lstm", "copy")
    assert refused.returncode == 1 and "fairseq-generate had other options" in refused.stderr, refused.stderr
    for name in ("nmt_lstm", "copy"):
        (data / "results" / f"{name}-1.json").unlink()
    again = experiment(table, data, "--only", "nmt_lstm", "copy")
    assert again.returncode == 0, again.stderr
    assert log.read_text().count("begin training epoch 1\n") == 1
    shorter = gzip.decompress((data / "results" / "nmt_lstm-1.challenge.txt.gz").read_bytes()).decode().split("\n")
    assert max(len(line.split()) for line in shorter) < max(len(line.split()) for line in hypotheses)
    table.write_text(text)

    # other data are not mixed with what was begun
    for name in ("nmt_lstm", "copy"):
        (data / "results" / f"{name}-1.json").unlink()
    with open(data / "out" / "corpus" / "train.en", "a") as corpus:
        corpus.write("one more\n")
    changed = experiment(table, data, "--only", "copy")
    assert changed.returncode == 1 and "begun with other data (data.sha256)" in changed.stderr


def test_logs_are_read(tmp_path, monkeypatch):
    entries = [
        ("train", {"epoch": 1, "train_loss": "7", "train_train_wall": "50", "train_wall": "61"}),
        ("valid", {"epoch": 1, "valid_loss": "6.5", "valid_ppl": "90.5", "valid_num_updates": "10", "valid_wps": "3"}),
        ("train", {"epoch": 2, "train_loss": "5", "train_train_wall": "48", "train_wall": "125"}),
        ("valid", {"epoch": 2, "valid_loss": "4", "valid_ppl": "16", "valid_num_updates": "20"}),
    ]
    path = tmp_path / "train.log"
    lines = [f"2026-01-01 00:00:00 | INFO | {kind} | {json.dumps(entry)}\n" for kind, entry in entries]
    lines[:0] = ["+ fairseq-train data\n"]
    lines.insert(3, "+ fairseq-train data\n")  # resumed; its clock starts again
    path.write_text("".join(lines) + "a line of another kind\n", encoding="utf8")
    assert read_log(path) == {
        "epochs": 2,
        "updates": 20,
        "minutes": {"train": 3.1},
        "curve": [
            {"epoch": 1, "updates": 10, "loss": 6.5, "ppl": 90.5},
            {"epoch": 2, "updates": 20, "loss": 4, "ppl": 16},
        ],
    }


def test_records_name_what_speed_depends_on(monkeypatch):
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    described = describe()
    assert described["threads"] == 1 and environment()["OMP_NUM_THREADS"] == "1" and "gpu" not in described
    monkeypatch.setattr("torch.cuda.get_device_name", lambda: "Some H100")
    assert describe(device=())["gpu"] == "Some H100"


def test_commands_are_the_same_from_any_folder(tmp_path, monkeypatch):
    plan = read_plan(write(tmp_path / "tiny.toml", 3))

    def relative(checkout: str, out: str) -> dict[str, str]:
        monkeypatch.setattr(runs, "CHECKOUT", Path(checkout))
        monkeypatch.setattr(runs, "USER_DIR", Path(checkout, "fairseq_syntax"))
        return Run(plan, plan.systems["nmt_lstm"], 1, Path(out), tmp_path).commands()

    expected = relative("/checkout", "/OUT")
    assert expected["train"].startswith("fairseq-train $OUT/data-bin --user-dir ./fairseq_syntax --num-workers 0 ")
    assert relative("/my checkout", "/my out") == relative("/it's", "/it's/out") == expected


@pytest.mark.parametrize(
    ("raised", "reason"), [(ValueError("no text"), "no text"), (KeyError("loss"), "KeyError: 'loss'")]
)
def test_a_run_that_ends_unforeseen_has_failed(raised, reason, tmp_path, capsys):
    def finish():
        raise raised

    run = SimpleNamespace(name="pascal-1", finish=finish, record=tmp_path / "x", out=tmp_path, folder=tmp_path)
    assert run_all([run], jobs=1) == {"pascal-1": reason}
    assert f"\npascal-1: failed: {reason}\n" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('family = "recurrent", options', 'family = "recurent", options', "family recurent; choose from recurrent"),
        ("patience = 50", "patients = 50", "families.recurrent.patients = '50': Unexpected keyword argument"),
        ("max_updates = 3\n", "", "families.recurrent.max_updates: Field required"),
        ("max_updates = 3", "max_updates = 0", "families.recurrent.max_updates = '0': Input should be greater than 0"),
        ("valid = {", "dev = {", "splits.valid is missing"),
        (
            "[splits]",
            '[splits]\n"x/../y" = { subset = "a", reference = "b" }',
            "splits.x/../y.[key] = 'x/../y': String",
        ),
        ("nmt_lstm = {", '"../../pwn" = {', "systems.../../pwn.[key] = '../../pwn': String should match"),
        ("[families.recurrent]", '[families."../x"]', "families.../x.[key] = '../x': String should match"),
        ('name = "tiny"', 'name = "../tiny"', "name = '../tiny': String should match pattern"),
        ('"corpus/challenge.de"', '"../challenge.de"', "reference = '../challenge.de': leads out of the output folder"),
        ('data = "data-bin"', 'data = "/data-bin"', "data = '/data-bin': leads out of the output folder"),
        (
            "nmt_lstm = {",
            'nmt_lstm = { trees = "silver",',
            "trees = 'silver': Input should be 'gold', 'parser', 'random'",
        ),
        ("nmt_lstm = {", 'nmt_lstm = { control = "silver",', "control silver is a baseline, or not among the systems"),
        ("nmt_lstm = {", 'nmt_lstm = { control = "nmt_lstm",', "control nmt_lstm is a baseline"),
        ("[splits]", "[splits", "line 7"),
        ("seeds = [1]", "seeds = [1, true]", "seeds.1 = 'True': Input should be a valid integer"),
        ('hashed = ["corpus/*"]', 'hashed = "corpus/*"', "hashed = 'corpus/*': Input should be a valid array"),
        ("patience = 50", 'like = ["a"]', "families.recurrent: like ['a']; choose from recurrent"),
        ("[systems]", '[families.a]\nlike = "b"\n[families.b]\nlike = "a"\n[systems]', "families.a: like b; choose"),
        ("--batch-size 20", "--lr '1", ": No closing quotation"),
        ('baseline = "nmt_lstm"', 'baseline = "lstm"', "baseline lstm is not among the systems"),
    ],
)
def test_mistakes_in_a_table_are_named(old, new, said, tmp_path):
    table = write(tmp_path / "tiny.toml", 3)
    assert old in table.read_text()
    table.write_text(table.read_text().replace(old, new))
    with pytest.raises(PlanError) as refused:
        read_plan(table)
    assert str(refused.value).startswith(f"{table}: ") and said in str(refused.value)


def test_code_of_a_file_runs_only_if_it_is_trusted(tmp_path):
    experiment = Experiment(write(tmp_path / "tiny.toml", 3), tmp_path / "out", tmp_path / "results")
    for step in (experiment.prepare, experiment.run):
        with pytest.raises(PlanError, match=r"prepare = 'nothing\.sh' runs code; read it, and give --trust"):
            step()
    assert not (tmp_path / "out").exists()
    for options, code in (
        ("--lr 1e-3 --user-dir x", "--user-dir"),
        ("--adaptive-softmax-cutoff 'print(1)'", "t("),
        ("--arch x --adam-betas '(0.9, 0.98)' --eval-bleu-args '{\"beam\": 1}'", ""),
    ):
        families = {"recurrent": replace(experiment.plan.families["recurrent"], train=options)}
        said = replace(experiment.plan, prepare="", families=families).runs_code()
        assert said == (f"options with {code!r}" if code else "")
    for model, code in (("en_core_web_sm", ""), ("x/pipeline", "spacy:x/pipeline")):
        text = TextSettings(parser="spacy", parser_model=model)
        assert replace(experiment.plan, prepare="", text=text).runs_code() == code


def test_a_link_out_of_the_folder_is_refused(tmp_path):
    (tmp_path / "notes").mkdir()
    (tmp_path / "study").mkdir()
    table = write(tmp_path / "study" / "experiment.toml", 3)
    for name in ("report.html", "results/nmt_lstm-1.json", "runs"):
        link = tmp_path / "study" / name
        link.parent.mkdir(exist_ok=True)
        link.symlink_to(tmp_path / "notes")
        with pytest.raises(PlanError, match=f"{name}: is a link to .*notes, outside of"):
            Experiment(table.parent)
        link.unlink()
    (tmp_path / "study" / "results" / "own").symlink_to(table)
    Experiment(table.parent)


def test_only_what_is_named_is_left_and_other_names_are_refused(run, tmp_path):
    table = write(tmp_path / "tiny.toml", 3, 'other = { family = "recurrent", options = "", seeds = [7, 8] }\n')
    printed = run(*arguments(table, tmp_path, "--list", "--only", "other-8", "nmt_lstm"))
    assert printed.split() == ["nmt_lstm-1", "other-8"]
    run(*arguments(table, tmp_path, "--list", "--only", "other-1"), status=1)
    assert "--only other-1: choose from nmt_lstm, other, or one of their runs" in run.said


def test_an_interrupt_waits_for_nothing_and_starts_nothing(tmp_path):
    table, begun = write(tmp_path / "tiny.toml", 3), tmp_path / "begun"
    table.write_text(table.read_text().replace("seeds = [1]", "seeds = [1, 2, 3]"))
    (tmp_path / "out" / "corpus").mkdir(parents=True)
    (tmp_path / "out" / "corpus" / "train.en").touch()
    (tmp_path / "out" / "prepared").touch()
    (tmp_path / "out" / "seconds.json").write_text('{"nmt_lstm": [1, 1]}')
    sleeper = tmp_path / "bin" / "fairseq-train"
    sleeper.parent.mkdir()
    sleeper.write_text(f"#!/bin/sh\necho >>{begun}\nexec sleep 60\n")
    sleeper.chmod(0o755)
    started = subprocess.Popen(
        command(table, tmp_path),
        env={**os.environ, "PATH": f"{sleeper.parent}:{os.environ['PATH']}"},
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        # interrupts are ignored by whatever a script has started with `&`, these tests perhaps
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    deadline = time.monotonic() + 60
    while not (begun.exists() and begun.read_text()) and time.monotonic() < deadline:
        time.sleep(0.05)
    os.killpg(started.pid, signal.SIGINT)
    said = started.communicate(timeout=30)[1]
    # one line, at a terminal, too, where trainings are interrupted at the same time
    assert started.returncode == 130 and said.count("interrupted") == 1 and "fairseq-train" not in said
    assert said.endswith(f"experiment: interrupted; fairseq-syntax experiment {table} resumes it\n")
    assert begun.read_text() == "\n"


def write_record(run, **more) -> None:
    """As much of a record as is looked at."""
    bleu = {"BLEU": {"score": 1.0, "signature": "tok:none"}}
    scores = {"valid": bleu, "challenge": bleu}
    record = {"system": run.system.name, "seed": run.seed, "family": "f", "trees": "gold", "stopped": "cap"}
    record |= {"updates": 9, "minutes": {}, "commit": "c", "sha256": {}, "scores": scores}
    record |= {"commands": run.commands(), "checkpoint": {"chosen": "checkpoint_best"}}
    run.record.write_text(json.dumps(record | more))


def runs_of(table: Path, folder: Path) -> tuple:
    plan = read_plan(table)
    return plan, [Run(plan, *run, folder / "out", folder, ()) for run in plan.runs()]


def test_a_record_of_another_plan_is_refused_before_anything_starts(run, tmp_path):
    table, text = write(tmp_path / "tiny.toml", 3), TINY.replace("UPDATES", "3")
    _, [recorded] = runs_of(table, tmp_path / "results")
    (tmp_path / "results").mkdir()
    write_record(recorded)
    run(*arguments(table, tmp_path, "--dry-run"))
    bleu = {"BLEU": {"score": 1.0, "signature": "tok:none"}}
    for scores, now, said in (
        ({"valid": bleu}, text, r"has changed since \(challenge\); restore it, or remove the record"),
        ({"valid": bleu, "challenge": bleu, "test": bleu}, text, r"has changed since \(test\)"),
        ({"valid": bleu, "challenge": bleu}, f'tokenize = "zh"\n{text}', r"has changed since \(tok:none\)"),
        ({"valid": bleu, "challenge": bleu}, text.replace("--lr", "--momentum 1 --lr"), "fairseq-train had other opt"),
    ):
        write_record(recorded, scores=scores)
        table.write_text(now)
        run(*arguments(table, tmp_path), status=1)
        assert re.search(said, run.said)
    assert not (tmp_path / "out").exists()


def test_a_file_that_is_being_written_is_no_record(tmp_path, monkeypatch):
    plan, [run] = runs_of(write(tmp_path / "tiny.toml", 3), tmp_path)
    write_record(run, system="nmt_lstm", seed=1)
    with staged(run.record) as partial:
        partial.write_text('{"sys')
        assert len(read_records(plan, tmp_path)) == 1
        write_record(run)


def test_a_training_that_came_to_its_end_is_not_called_again(tmp_path, monkeypatch):
    """fairseq-train would make one more update, or wait for one more validation."""
    _, [run] = runs_of(write(tmp_path / "tiny.toml", 3), tmp_path)
    run.folder.mkdir(parents=True)
    log = run.folder / "train.log"
    ended = "2026-01-01 00:00:00 | INFO | fairseq_cli.train | done training in 1.0 seconds\n"
    for text, expected in [("", False), (ended, True), (ended + "+ fairseq-train data\n", False)]:
        log.write_text("+ fairseq-train data\n" + text)
        assert run.trained is expected


def test_hashed_files_that_are_not_there_are_named(tmp_path, monkeypatch):
    (tmp_path / "text" / "deep").mkdir(parents=True)
    (tmp_path / "text" / "a").touch()
    assert hashes(tmp_path, ("text/*",)).keys() == {"text/a"}
    with pytest.raises(PlanError, match=r"has no file txet/\*"):
        hashes(tmp_path, ("text/*", "txet/*"))


def test_records_of_changed_files_are_counted_and_a_copy_has_no_commit(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(FOLDER))
    from table import commits

    begun, ended = "a" * 40 + "-changed", "b" * 40
    assert commits([{"commit": ended, "commits": [begun, ended]}, {"commit": ended}]).endswith("(1 with changed files)")
    subprocess.run(["git", "init", "-q", tmp_path], check=True)  # of somebody else
    monkeypatch.setattr(records, "CHECKOUT", tmp_path)
    assert records.commit() == "unknown"


def test_after_an_error_what_was_started_is_ended_and_nothing_else_begins():
    began = time.monotonic()
    with pytest.raises(KeyError), runs.worker_pool(1) as pool:
        futures = [pool.submit(runs.call, ["sleep", "20"], None, None) for _ in range(2)]
        time.sleep(0.3)
        raise KeyError("x")
    assert isinstance(futures[0].exception(), Interrupted) and futures[1].cancelled()
    assert time.monotonic() - began < 10 and runs.call(["true"], None, None) == 0


def prepared(folder: Path, budget: str = "") -> Experiment:
    """An experiment whose data are there, and whose updates were timed."""
    (folder / "out").mkdir()
    (folder / "out" / "prepared").touch()
    (folder / "out" / "seconds.json").write_text('{"nmt_lstm": [60, 0]}')
    return Experiment(write(folder / "tiny.toml", 12), folder / "out", folder / "results", True, budget)


def test_a_budget_is_fitted_by_one_process_at_a_time(tmp_path, monkeypatch):
    def fit(*arguments) -> str:
        with open(tmp_path / "out" / "lock", "a") as file:
            lock(file, "held")

    monkeypatch.setattr("fairseq_syntax.experiment.fit_budget", fit)
    with pytest.raises(BlockingIOError, match="held"):
        prepared(tmp_path, "8h").run(jobs=1)


def test_records_of_different_data_are_not_put_together(tmp_path, monkeypatch):
    table = write(tmp_path / "tiny.toml", 3)
    table.write_text(table.read_text().replace("seeds = [1]", "seeds = [1, 2]"))
    plan, runs = runs_of(table, tmp_path)
    for run, digest in zip(runs, "ab", strict=True):
        write_record(run, sha256={"corpus/train.en": digest})
        if digest == "a":
            assert len(read_records(plan, tmp_path)) == 1
    with pytest.raises(
        PlanError, match=r"nmt_lstm-2\.json: trained on another corpus/train\.en than .*nmt_lstm-1\.json"
    ):
        read_records(plan, tmp_path)


def test_a_run_that_another_process_works_at_is_left_to_it(tmp_path, capsys):
    _, [run] = runs_of(write(tmp_path / "tiny.toml", 3), tmp_path)
    with hold_lock(run.out / "runs" / ".nmt_lstm-1.lock"):
        assert run_all([run], jobs=1) == {} and not run.folder.exists()
    assert "begun" not in capsys.readouterr().err


def test_a_script_of_preparation_starts_python_files_that_import_their_neighbours(tmp_path):
    plan, _ = runs_of(write(tmp_path / "tiny.toml", 3), tmp_path)
    (tmp_path / "neighbour.py").write_text("print('imported')\n")
    (tmp_path / "start.py").write_text("import neighbour\n")
    (tmp_path / plan.prepare).write_text(f"python '{tmp_path}/start.py'\n")
    with hold_lock(tmp_path / "lock") as number:
        prepare_by_script(plan, tmp_path, number)
    assert "imported" in (tmp_path / "prepare.log").read_text()


def test_a_command_that_fails_is_told_with_the_end_of_its_log(tmp_path):
    with pytest.raises(RunError, match=f"^sh ended with 3; {tmp_path}/log ends: odd$"):
        run_logged(["sh", "-c", "echo odd >&2; exit 3"], tmp_path / "log", tmp_path / "output")
    assert [path.name for path in tmp_path.iterdir() if "output" in path.name or "partial" in path.name] == []


def test_what_is_left_is_estimated_by_timed_updates(tmp_path, monkeypatch, capsys):
    _, [run] = runs_of(write(tmp_path / "tiny.toml", 12), tmp_path)
    run.folder.mkdir(parents=True)
    assert minutes_left([run]) is None
    trainer = tmp_path / "fairseq-train"
    line = 'train_inner | {"wps": "4", "wpb": "3"}'
    trainer.write_text(f"#!/bin/sh\necho '{line}'\necho '{line}'\n")
    trainer.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    for _ in range(2):
        time_updates([run], 1)
    assert capsys.readouterr().err == "timing 30 updates of nmt_lstm\n", "once"
    assert json.loads((tmp_path / "out" / "seconds.json").read_text())["nmt_lstm"][0] == 0.75
    (tmp_path / "out" / "corpus").mkdir()
    (tmp_path / "out" / "corpus" / "challenge.de").write_text("a\n" * 100)
    update = 60 / 1.05
    (tmp_path / "out" / "seconds.json").write_text(json.dumps({run.system.name: [update, 0]}))
    translating = update * 0.13 * 100 / 60
    assert minutes_left([run]) == pytest.approx(12 + translating)
    assert minutes_left([run], share=0.75) == pytest.approx(9 + translating)
    (run.folder / "train.log").write_text("+ fairseq-train x\n | done training in 1.0 seconds\n")
    assert minutes_left([run]) == pytest.approx(translating)
    write_record(run)
    assert minutes_left([run]) == 0


def test_one_training_has_the_gpu_for_itself(monkeypatch):
    # of 64 cores, those that this process may use
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: set(range(16)), raising=False)
    assert (default_jobs(gpu=False), default_jobs(gpu=True)) == (16, 1)
