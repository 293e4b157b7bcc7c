"""Names of files, and standard streams, as they seldom are: closed, empty, long, with control letters."""

import io
import logging
import os
import stat
import subprocess
import sys

import pytest

from fairseq_syntax import pretrained
from fairseq_syntax.cli.program import main as program
from fairseq_syntax.evaluate.corpus import read_corpus
from fairseq_syntax.evaluate.tables import TableFormat, format_table
from fairseq_syntax.tools import characters
from fairseq_syntax.tools.verb import Verb
from fairseq_syntax.trees.text import visible

LONG = "x" * 247 + ".txt"  # a name has at most 255 bytes


@pytest.fixture
def text(tmp_path):
    (tmp_path / "text").write_text("ab c\n", encoding="utf-8")
    return tmp_path / "text"


@pytest.mark.parametrize(
    ("line", "status", "out", "said"),
    [
        ("characters --input {text} <&-", 0, "a b ▁ c\n", ""),
        ("characters --input {text} >&-", 1, "", "characters: stdout: is closed\n"),
        ("characters --input {text} >/dev/full", 1, "", "characters: stdout: No space left on device\n"),
        ("characters --input {text} --output {text}.out 2>&- <&-", 0, "", ""),
        ("characters --output {text}.out <&-", 1, "", "characters: stdin: is closed\n"),
    ],
)
def test_streams_that_are_closed(text, line, status, out, said):
    """A closed input is not an empty one, and a file does not get the number of a closed stream."""
    command = f"'{sys.executable}' -m fairseq_syntax {line.format(text=text)}"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, encoding="utf-8")
    assert (done.returncode, done.stdout, done.stderr.removeprefix("fairseq-syntax ")) == (status, out, said)
    written = text.with_name("text.out")
    assert written.read_text(encoding="utf-8") == "a b ▁ c\n" if "2>&- <&-" in line else not written.exists()


@pytest.mark.parametrize(("name", "said"), [("", "empty name"), (".", "is a folder"), ("folder", "is a folder")])
def test_outputs_that_are_no_files(text, tmp_path, monkeypatch, capsys, name, said):
    (tmp_path / "folder").mkdir()
    monkeypatch.chdir(tmp_path)
    assert characters.main(["--input", str(text), "--output", name, "--overwrite"]) == 1
    assert said in capsys.readouterr().err and sorted(os.listdir(tmp_path)) == ["folder", "text"]


@pytest.mark.parametrize("verb", ["characters", "parse --parser none"])
def test_an_input_is_not_overwritten(text, tmp_path, capsys, verb):
    """Under another spelling of its name either."""
    (tmp_path / "link").symlink_to(tmp_path)
    given = f"{verb} --input {tmp_path / 'link' / text.name} --output {text} --overwrite"
    assert program(given.split()) == 1
    assert "is the input; give the output another name" in capsys.readouterr().err
    assert text.read_text() == "ab c\n"


def test_long_names_and_the_mode_of_a_file_that_is_replaced(text, tmp_path):
    output = tmp_path / LONG
    output.touch(mode=0o600)
    assert characters.main(["--input", str(text), "--output", str(output), "--overwrite"]) == 0
    assert stat.S_IMODE(output.stat().st_mode) == 0o600 and output.read_text(encoding="utf-8") == "a b ▁ c\n"
    assert sorted(os.listdir(tmp_path)) == ["text", LONG]


def test_control_characters_are_escaped(tmp_path, capsys):
    assert visible("a\x1b[2J\u202eb\tc\nd") == "a\\x1b[2J\\u202eb\\tc\nd"
    missing = tmp_path / "a\x1b[2J\u202eb"
    assert characters.main(["--input", str(missing)]) == 1
    said = capsys.readouterr().err
    assert "a\\x1b[2J\\u202eb: " in said and said.count("\n") == 1 and said.isascii()


@pytest.mark.parametrize("terminal", [True, False])
def test_no_text_moves_the_cursor(terminal, monkeypatch):
    """Output is left as it is in a file or a pipe. Warnings, and bars but for their returns, are made visible."""
    streams = io.StringIO(), io.StringIO()
    for name, stream in zip(("stdout", "stderr"), streams, strict=True):
        stream.isatty = lambda: terminal
        monkeypatch.setattr(sys, name, stream)

    def run(args):
        print("text\x1b[2J\tx\u202e")
        logging.getLogger("a").warning("name\x1b]0;x\a")
        sys.stderr.write("\rbar \x9b1A\r")

    assert Verb("fairseq-syntax x: y.", lambda parser: None, run)([]) == 0
    assert streams[0].getvalue() == ("text\\x1b[2J\tx\\u202e\n" if terminal else "text\x1b[2J\tx\u202e\n")
    assert streams[1].getvalue() == "fairseq-syntax x: name\\x1b]0;x\\x07\n\rbar \\x9b1A\r"


@pytest.mark.parametrize("form", TableFormat)
def test_names_do_not_break_tables(form):
    plain = format_table(["system", "BLEU"], [["a", 1.0]], form)
    odd = format_table(["system", "BLEU"], [["a\n\t\r\u2028<script>|&", 1.0]], form)
    assert len(odd.splitlines()) == len(plain.splitlines())
    separator = {"tsv": "\t", "markdown": " |", "latex": " & ", "html": "<td"}.get(form, "\n")
    assert odd.count(separator) == plain.count(separator)
    assert ("<script>" in odd) == (form in ("text", "tsv"))


def test_a_damaged_list_of_models_is_named(tmp_path, monkeypatch):
    (tmp_path / "models.json").write_text("{")
    monkeypatch.setattr(pretrained, "MANIFEST", tmp_path / "models.json")
    monkeypatch.setattr(pretrained, "_manifest", pretrained._manifest.__wrapped__)
    with pytest.raises(ValueError, match=r"models\.json: missing or damaged; install fairseq-syntax again"):
        pretrained.names()


def test_a_word_of_a_million_characters(text):
    """Pieces of words are looked for token by token: a pattern would try every place in it, and read to its end."""
    text.write_text("x" * 1_000_000 + " y\n")
    corpus = read_corpus({"a": {"1": str(text)}}, [str(text)], None, None)
    assert len(corpus.systems[0].hypotheses[0][0]) == 1_000_002
