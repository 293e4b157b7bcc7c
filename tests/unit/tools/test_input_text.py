"""What programs read from stdin, and write to stdout, in locales that are not UTF-8."""

import gzip
import io
import sys

import pytest

from fairseq_syntax.files import written
from fairseq_syntax.tools.verb import Verb, input_lines
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


@pytest.mark.parametrize(
    ("data", "said"),
    [
        *(
            (
                f"# sent_id = 1\n{line}\n".encode(),
                r":2: CoNLL-U \(.*\) where text is expected; give a sentence per line",
            )
            for line in ("1-2\tim" + "\t_" * 8, "1\tHund" + "\t_" * 8, "# global.columns = ID FORM")
        ),
        (b"a\n\xe4\n", ":2: not UTF-8"),
        (gzip.compress(TEXT.encode(), mtime=0), r": is gzipped; unpack it \(zcat\), or name a file"),
    ],
)
def test_what_is_no_text_is_named(pipe, tmp_path, data, said):
    pipe(data)
    (tmp_path / "text").write_bytes(data)
    for name in ("-", str(tmp_path / "text")):
        with pytest.raises(TreeFormatError, match="(stdin|/text)" + said):
            list(input_lines(name))


@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
def test_lines_of_stdin_are_those_of_a_file(pipe, tmp_path, mark):
    path = tmp_path / "text"
    path.write_bytes(mark + TEXT.encode())
    assert list(input_lines(str(path))) == LINES
    pipe(path.read_bytes())
    assert list(input_lines("-")) == LINES


def test_stdout_is_utf_8(monkeypatch):
    out = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(out, encoding="latin-1"))

    def run(args):
        print("猫")
        with written("-") as file:
            file.write("ä ▁\n")

    assert Verb("verb: it writes.", lambda parser: None, run, quiet=False)([]) == 0
    assert out.getvalue().decode() == "猫\nä ▁\n"
