"""fairseq-syntax: the program and its verbs."""

import subprocess
import sys
from pathlib import Path

import pytest

from fairseq_syntax import __version__
from fairseq_syntax.cli import program


@pytest.mark.parametrize("verb", program.VERBS)
def test_every_verb_has_a_module(verb):
    assert callable(program.load(verb).main)


def test_help_lists_the_verbs_in_groups(capsys):
    with pytest.raises(SystemExit) as end:
        program.main(["--help"])
    assert end.value.code == 0
    text = capsys.readouterr().out
    for group, verbs in program.GROUPS.items():
        listed = text.split(f"\n{group}:\n")[1]
        assert [line.split()[0] for line in listed.splitlines()[: len(verbs)]] == list(verbs)
    assert max(map(len, text.splitlines())) <= 120


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["pars"], "there is no verb 'pars'; did you mean parse?"),
        (["atachment", "--help"], "there is no verb 'atachment'; did you mean attachment?"),
        (["tra", "data"], "there is no verb 'tra'; did you mean trees?"),
        (["zzz"], "there is no verb 'zzz'; fairseq-syntax --help lists them"),
        ([], "the following arguments are required: VERB"),
        (["--path"], "the following arguments are required: VERB"),
    ],
)
def test_no_verb_is_one_message(arguments, message, capsys):
    with pytest.raises(SystemExit) as end:
        program.main(arguments)
    assert end.value.code == 2
    assert capsys.readouterr().err.splitlines()[1:] == [f"fairseq-syntax: error: {message}"]


@pytest.mark.parametrize("start", [["fairseq-syntax"], [sys.executable, "-m", "fairseq_syntax"]])
def test_both_ways_to_start_it(start, repository):
    def run(*arguments):
        return subprocess.run([*start, *arguments], cwd=repository, capture_output=True, text=True, timeout=60)

    assert run("--version").stdout == f"fairseq-syntax {__version__}\n"
    assert Path(run("dir").stdout.strip()) == Path(program.__file__).resolve().parent.parent
    done = run("check", "nowhere")
    assert done.returncode == 1 and done.stderr.count("\n") == 1
