"""Outputs of fairseq-generate are read whatever their order; what is wrong is named with file and line."""

import random

import pytest

from fairseq_syntax.evaluate.corpus import read_output, texts

GENERATED = """\
2024-01-01 | INFO | fairseq_cli.generate | loading
S-2\tein Hund
T-2\ta dog
H-2\t-0.5\ta hound
D-2\t-0.5\tA hound
P-2\t-0.1 -0.2 -0.3
S-0\tja
T-0\tyes
H-0\t-1.25\tyes
D-0\t-1.25\tYes
P-0\t-0.1 -0.2
S-1\t
T-1\tnothing
H-1\t-3\t
D-1\t-3\t
Generate test with beam=5: BLEU4 = 30.27
"""


@pytest.fixture
def write(tmp_path):
    def call(text, name="out.generated"):
        path = tmp_path / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path

    return call


def test_lines_in_any_order(write):
    lines = GENERATED.splitlines()
    for name in ("as printed", "shuffled"):
        output = read_output(write("\n".join(lines), name))
        assert output.sources == {2: "ein Hund", 0: "ja", 1: ""}
        assert output.references == {2: "a dog", 0: "yes", 1: "nothing"}
        assert output.hypotheses == {2: "A hound", 0: "Yes", 1: ""}
        random.Random(0).shuffle(lines)


def test_line_ends(write):
    expected = read_output(write(GENERATED))
    assert read_output(write(GENERATED.replace("\n", "\r\n"))) == expected
    assert read_output(write(b"\xef\xbb\xbf" + GENERATED.encode().rstrip())) == expected
    assert read_output(write(b"\xef\xbb\xbfja\n")).hypotheses == {0: "ja"}
    # these end no line
    odd = read_output(write("H-0\t-1\ta\u2028b\x85c\x0bd\n"))
    assert odd.hypotheses == {0: "a\u2028b\x85c\x0bd"}


def test_hypotheses_without_d_lines(write):
    output = read_output(write("".join(line for line in GENERATED.splitlines(True) if not line.startswith("D-"))))
    assert output.hypotheses == {2: "a hound", 0: "yes", 1: ""}


@pytest.mark.parametrize("reverse", [False, True])
def test_best_of_several(write, reverse):
    lines = ["D-0\t-2.5\tworst", "D-0\t-0.1\tbest", "D-0\t-1e0\tsecond"]
    assert read_output(write("\n".join(lines[:: -1 if reverse else 1]))).hypotheses == {0: "best"}


def test_plain_text(write):
    output = read_output(write("a dog\n\n T-1000 \r\nS-1\n", "a.txt"))
    assert output.hypotheses == {0: "a dog", 1: "", 2: "T-1000", 3: "S-1"}
    assert output.sources == output.references == {}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "out.generated: is empty"),
        ("S-4\tx\nT-4\ty\n", "out.generated: sentence 4 has a S- line, but no H- line; is the output complete?"),
        ("H-4\t-1\tx\nD-5\t-1\tx\n", "out.generated: sentence 4 has a H- line, but no D- line"),
        ("S-4\tx\nH-4\t-1\ty\nS-4\tx\n", "out.generated:3: a second S- line of sentence 4; give the output of one"),
        ("D-4\t-1\tx\nD-5\t-1\tx\nD-4\t-1\tz\n", "out.generated:3: a second D- line of sentence 4;"),
        ("H-4\tx\ta\nH-4\t-1\tb\n", "out.generated:1: H-4 has no score, but 'x'"),
        (b"H-4\t-1\tx\nD-4\t-1\t\xff\n", "out.generated:2: not UTF-8"),
    ],
)
def test_wrong_files(write, text, message):
    with pytest.raises(ValueError) as caught:
        read_output(write(text))
    assert message in str(caught.value)


def test_texts_are_complete():
    lines = {0: "a", 1: "b"}
    assert texts(lines, [1, 0], "ref", "reference") == ["b", "a"]
    with pytest.raises(ValueError, match="ref: no reference of sentence 2; it has 2 for 3 sentences; give files"):
        texts(lines, [0, 1, 2], "ref", "reference")
    with pytest.raises(ValueError, match="ref: a reference too many, of sentence 1; it has 2 for 1 sentences"):
        texts(lines, [0], "ref", "reference")
