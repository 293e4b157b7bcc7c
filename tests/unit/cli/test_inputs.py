"""What programs read from stdin, and write to stdout, in locales that are not UTF-8."""

import io
import sys

import pytest

from fairseq_syntax.cli.inputs import input_lines
from fairseq_syntax.cli.outputs import written
from fairseq_syntax.trees.conllu import TreeFormatError

TEXT = "Grün ▁\r\n\n\u2028 a\rb\nEnde"
LINES = ["Grün ▁", "", "\u2028 a\rb", "Ende"]


@pytest.fixture(params=["latin-1", "ascii", "utf-8"])
def pipe(request, monkeypatch):
    """Function: bytes -> they are on stdin, under an encoding."""

    def call(data):
        # as Python opens them: ends of lines are translated, and in the C locale everything can be decoded
        stream = io.TextIOWrapper(io.BytesIO(data), encoding=request.param, errors="surrogateescape")
        monkeypatch.setattr(sys, "stdin", stream)

    return call


@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
def test_lines_of_stdin_are_those_of_a_file(pipe, tmp_path, mark):
    path = tmp_path / "text"
    path.write_bytes(mark + TEXT.encode())
    assert list(input_lines(str(path))) == LINES
    pipe(path.read_bytes())
    assert list(input_lines("-")) == LINES


def test_what_is_not_utf_8_is_named(pipe):
    pipe(b"a\n\xe4\n")
    with pytest.raises(TreeFormatError, match="stdin:2: not UTF-8"):
        list(input_lines("-"))


def test_stdout_is_utf_8(monkeypatch):
    out = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(out, encoding="latin-1"))
    with written("-") as file:
        file.write("ä ▁\n")
    assert out.getvalue().decode() == "ä ▁\n"
