"""fairseq-syntax: the program and its verbs."""

import argparse
import subprocess
import sys
from pathlib import Path

import pytest
from sacrebleu.metrics.bleu import BLEU

from fairseq_syntax import __version__
from fairseq_syntax.cli import program
from fairseq_syntax.decoding.length_prior import Smoothing, Unseen
from fairseq_syntax.inspection.attention import Kind
from fairseq_syntax.inspection.induction import Evidence
from fairseq_syntax.systems.latent_tree.characters import Dedup


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
        (["tree", "data"], "there is no verb 'tree'; did you mean trees?"),
        (["zzz"], "there is no verb 'zzz'; fairseq-syntax --help lists them"),
        ([], "the following arguments are required: VERB"),
        (["--path"], "unrecognized arguments: --path"),
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


HEAVY = """
import sys
from fairseq_syntax.cli import program
try:
    program.main(sys.argv[1:])
except SystemExit:
    pass
heavy = {"torch", "fairseq", "numpy", "scipy", "matplotlib", "sacrebleu", "stanza", "omegaconf"}
print("heavy:", *sorted(heavy & {name.split(".")[0] for name in sys.modules}))
"""


@pytest.mark.parametrize(
    "arguments", ["--help", "--version", "dir", *(f"{verb} --help" for verb in program.VERBS if verb != "preprocess")]
)
def test_help_loads_nothing_heavy(arguments, repository):
    """All but that of preprocess, whose options are those of fairseq-preprocess."""
    command = [sys.executable, "-c", HEAVY, *arguments.split()]
    done = subprocess.run(command, cwd=repository, capture_output=True, text=True, timeout=60)
    assert done.stdout.splitlines()[-1] == "heavy:", done.stderr


def test_completion_knows_the_verbs_and_their_options(capsys):
    pytest.importorskip("shtab")
    assert program.main(["--completion", "bash"]) == 0
    script = capsys.readouterr().out
    assert f"=({' '.join(program.VERBS)})" in script.replace("'", "") and "--smoothing" in script
    done = subprocess.run(["bash", "-n"], input=script, text=True, capture_output=True)
    assert done.returncode == 0, done.stderr


def parsers(parser):
    """A parser and those of its commands."""
    yield parser
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for command in action.choices.values():
                yield from parsers(command)


def test_an_option_is_called_the_same_in_every_verb():
    """One name, one place in the program's code, and for those that every verb may have one kind of value."""
    found = {}
    for verb in program.VERBS:
        if verb == "preprocess":
            continue
        for parser in parsers(program.load(verb).build_parser()):
            for action in parser._actions:
                for name in action.option_strings:
                    found.setdefault(name, {}).setdefault(action.dest, set()).add(verb)
    assert [name for name, dests in found.items() if len(dests) > 1] == []
    gone = ("ids", "sentences", "plot", "pictures", "edges", "inputs", "draws")
    assert not found.keys() & {f"--{name}" for name in gone}
    assert set(found["--draw"]["draw"]) == {"trees", "attention", "gates", "graph", "constituents", "compare"}
    assert set(found["--from"]["first"]) == {"average"} and "--evidence" in found


def test_choices_are_those_of_the_code():
    """Options name them themselves, as importing them would take seconds."""
    options = {
        (verb, name): action.choices
        for verb in ("trees", "characters", "length-prior", "attention", "compare", "average")
        for action in program.load(verb).build_parser()._actions
        for name in action.option_strings
    }
    expected = {
        ("trees", "--evidence"): Evidence,
        ("characters", "--dedup"): Dedup,
        ("length-prior", "--smoothing"): Smoothing,
        ("length-prior", "--unseen"): Unseen,
        ("attention", "--kind"): Kind,
        ("compare", "--tokenize"): sorted(BLEU.TOKENIZERS),
        ("average", "--tokenize"): sorted(BLEU.TOKENIZERS),
    }
    assert {key: list(options[key]) for key in expected} == {key: [*map(str, found)] for key, found in expected.items()}
