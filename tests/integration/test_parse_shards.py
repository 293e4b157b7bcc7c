"""Shards of a text, parsed by ssh or in a Slurm array, merged: what one run makes of the whole."""

import gzip
import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from contract.command_lines import REPOSITORY

from fairseq_syntax.tools import parse

SCRIPT = REPOSITORY / "examples" / "distributed" / "parse.sh"
TEXT = "the dogs see the bird .\nthe cat sleeps .\n\nthe dogs near the cat see the bird .\nthe cat helps .\n"
OPTIONS = ("--parser", "checkpoint", "--parser-model", "agreement-parser", "--parser-device", "cpu")
# runs the command on this machine; one host cannot be reached
SSH = '#!/usr/bin/env bash\n[[ "$1" != gone ]] || exit 255\nexec bash -c "$2"\n'


@pytest.fixture
def script(tmp_path, monkeypatch):
    """Function: arguments and variables -> the ended process, in a folder with a text."""
    monkeypatch.chdir(tmp_path)
    Path("text.en").write_text(TEXT, encoding="utf8")
    Path("bin").mkdir()
    Path("bin/ssh").write_text(SSH, encoding="utf8")
    Path("bin/ssh").chmod(0o755)
    path = os.pathsep.join([str(tmp_path / "bin"), str(Path(sys.executable).parent), os.environ["PATH"]])

    def run(*arguments, **variables):
        environment = {**os.environ, "PATH": path, "PYTHONPATH": str(REPOSITORY), **variables}
        return subprocess.run(["bash", SCRIPT, *arguments], env=environment, capture_output=True, text=True)

    return run


def whole():
    assert parse.main(["--input", "text.en", "--output", "whole.conllu", *OPTIONS]) == 0
    return Path("whole.conllu").read_bytes()


def test_by_ssh(script):
    arguments = ("text.en", "trees.conllu.gz", *OPTIONS)

    def left():
        return script(*arguments, HOSTS="one two", DRY_RUN="1").stdout.count("--shard\\ ")

    assert left() == 2
    failed = script(*arguments, HOSTS="one gone")
    assert failed.returncode == 2 and "failed on gone; the same command parses what is missing" in failed.stderr
    assert left() == 1
    # the part that there is belongs to this text, not to another one, which has as many lines
    Path("text.en").write_text(TEXT.replace("the cat sleeps", "the bird sleeps"), encoding="utf8")
    assert left() == 2
    Path("text.en").write_text(TEXT, encoding="utf8")
    done = script(*arguments, HOSTS="one two")
    assert done.returncode == 0, done.stderr
    assert gzip.decompress(Path("trees.conllu.gz").read_bytes()) == whole()
    assert [path.name for path in Path().glob("trees.*")] == ["trees.conllu.gz"]


def test_as_a_slurm_array(script):
    """The commands of its tasks are run here."""
    arguments = ("text.en", "trees.conllu.gz")
    Path("text.en").write_text(Path("text.en").read_text().removesuffix("\n"))  # the last line counts, ended or not
    again = {"SLURM_ARRAY_TASK_COUNT": "1", "SHARDS": "2"}  # a task by itself
    for number, more in (("1", {}), ("0", again)):
        task = {"SLURM_ARRAY_TASK_ID": number, "SLURM_ARRAY_TASK_COUNT": "2"} | more
        program, verb, *given = shlex.split(script(*arguments, *OPTIONS, **task, DRY_RUN="1").stdout)
        assert (program, verb, parse.main(given)) == ("fairseq-syntax", "parse", 0)
    wrong = script("--merge", *arguments, SHARDS="3")
    assert wrong.returncode == 2 and "-3.0.conllu.gz: missing; parse shard 0 again" in wrong.stderr
    [part] = Path().glob("trees.*-2.1.conllu.gz")
    parsed = part.read_bytes()
    part.write_bytes(gzip.compress(gzip.decompress(parsed).partition(b"\n\n")[2]))  # a tree less
    short = script("--merge", *arguments, SHARDS="2")
    assert short.returncode == 2 and "the parts have 4 trees, text.en has 5 lines" in short.stderr
    part.write_bytes(parsed)
    assert script("--merge", *arguments, SHARDS="2").returncode == 0
    assert gzip.decompress(Path("trees.conllu.gz").read_bytes()) == whole()
