"""fairseq-syntax: the program and its verbs."""

import os
import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from sacrebleu.metrics.bleu import BLEU

from fairseq_syntax import __version__
from fairseq_syntax.cli import program
from fairseq_syntax.evaluate.buckets import KINDS
from fairseq_syntax.evaluate.metrics import METRICS
from fairseq_syntax.tools.compare import _KINDS
from fairseq_syntax.tools.latent_trees import EVIDENCE
from fairseq_syntax.trees.characters import Dedup


def test_help_lists_the_verbs_in_groups(capsys):
    with pytest.raises(SystemExit) as end:
        program.main(["--help"])
    assert end.value.code == 0
    text = capsys.readouterr().out
    for group, verbs in program.GROUPS.items():
        listed = text.split(f"\n{group}:\n")[1]
        assert [line.split()[0] for line in listed.splitlines()[: len(verbs)]] == list(verbs)
    assert max(map(len, text.splitlines())) <= 120


WRONG = tomllib.loads(Path(__file__).with_name("usage.toml").read_text(encoding="utf-8"))


@pytest.mark.parametrize(
    ("verb", "line", "message"), [(verb, *row) for verb, rows in WRONG.items() for row in rows.items()]
)
def test_wrong_usage_of_a_verb(verb, line, message, capsys, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "bin").mkdir()
    for name in ("a.en", "a.de", "a.en.conllu"):  # missing files are told first
        (tmp_path / name).touch()
    with pytest.raises(SystemExit) as end:
        (program.verb_module(verb).main if verb in program.VERBS else program.main)(line.split())
    assert end.value.code == 2
    said = capsys.readouterr().err
    assert message in said.splitlines()[-1] and f"fairseq-syntax {verb}".strip() in said and "Traceback" not in said
    assert len(list(tmp_path.iterdir())) == 4


def test_it_starts_as_a_module(repository):
    def run(*arguments):
        command = [sys.executable, "-m", "fairseq_syntax", *arguments]
        return subprocess.run(command, cwd=repository, capture_output=True, text=True, timeout=60)

    assert run("--version").stdout == f"fairseq-syntax {__version__}\n"
    done = run("characters", "--input", "nowhere")
    assert done.returncode == 1 and done.stderr.count("\n") == 1


HEAVY = """
import contextlib, io, sys
from fairseq_syntax.cli import program
from fairseq_syntax.trees.conllu import read_conllu
heavy = {"torch", "fairseq", "numpy", "scipy", "matplotlib", "sacrebleu", "stanza", "spacy", "omegaconf"}
for line in sys.argv[1:]:
    with contextlib.redirect_stdout(out := io.StringIO()), contextlib.suppress(SystemExit):
        program.main(line.split())
    assert out.getvalue(), line
    assert not (found := heavy & {name.split(".")[0] for name in sys.modules}), (line, found)
"""


def test_help_loads_nothing_heavy(repository):
    """All but that of preprocess, whose options are those of fairseq-preprocess."""
    lines = ["--help", "--version", "dir", *(f"{verb} --help" for verb in program.VERBS if verb != "preprocess")]
    done = subprocess.run([sys.executable, "-c", HEAVY, *lines], cwd=repository, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(("script", "verb"), [("linearize", "linearize"), ("parse", "parse")])
def test_scripts_of_a_checkout_leave_modules_of_their_names_importable(script, verb, repository, tmp_path):
    (tmp_path / f"{script}.py").touch()
    (tmp_path / "sitecustomize.py").write_text(
        f"import atexit, importlib.util\natexit.register(lambda: print(importlib.util.find_spec('{script}').origin))\n"
    )
    command = [sys.executable, repository / "preprocess" / f"{script}.py", "--help"]
    environment = os.environ | {"PYTHONPATH": str(tmp_path)}
    done = subprocess.run(command, cwd="/", env=environment, capture_output=True, text=True)
    assert done.returncode == 0 and f"usage: fairseq-syntax {verb}" in done.stdout, done.stderr
    assert done.stdout.splitlines()[-1] == str(tmp_path / f"{script}.py")


def test_completion_knows_the_verbs_and_their_options(capsys, monkeypatch):
    pytest.importorskip("shtab")
    assert program.main(["--completion", "bash"]) == 0
    script = capsys.readouterr().out
    assert f"=({' '.join(program.VERBS)})" in script.replace("'", "") and "--collapse-ranges" in script
    monkeypatch.setitem(sys.modules, "shtab", None)
    assert program.main(["--completion", "bash"]) == 1
    said = "fairseq-syntax --completion: needs shtab, which is not installed; pip install shtab\n"
    assert capsys.readouterr().err == said


@pytest.mark.parametrize("verb", program.VERBS)
def test_examples_in_the_help_are_accepted(verb):
    text = re.sub(r"\\\n\s+", "", program.verb_module(verb).main.documentation).replace("$i", "0")
    examples = re.findall(r"^ +(?:.* \| )?fairseq-syntax ([a-z-]+)([^<&\n]*)", text, re.MULTILINE)
    assert verb in dict(examples) or verb == "dir"
    for name, options in examples:
        program.verb_module(name).main.build_parser().parse_args(shlex.split(options))


def test_choices_are_those_of_the_code():
    """Options name them themselves, as importing them would take seconds."""
    options = {
        (verb, name): action.choices
        for verb in ("look", "characters", "compare")
        for action in program.verb_module(verb).main.build_parser()._actions
        for name in action.option_strings
    }
    expected = {
        ("look", "--evidence"): EVIDENCE,
        ("characters", "--dedup"): Dedup,
        ("compare", "--tokenize"): sorted(BLEU.TOKENIZERS),
        ("compare", "--metrics"): METRICS,
    }
    assert {key: list(options[key]) for key in expected} == {key: [*map(str, found)] for key, found in expected.items()}
    assert {*_KINDS} == {*KINDS, "label:FILE"}
