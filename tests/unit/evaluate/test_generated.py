"""Outputs of fairseq-generate are read whatever their order; what is wrong is named with file and line."""

import random

import pytest

from fairseq_syntax.evaluate.corpus import check_same_references, check_same_sentences, read_output, texts

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


def plain(entries):
    return {sentence: entry.text for sentence, entry in entries.items()}


def test_lines(write):
    output = read_output(write(GENERATED))
    assert plain(output.sources) == {2: "ein Hund", 0: "ja", 1: ""}
    assert plain(output.references) == {2: "a dog", 0: "yes", 1: "nothing"}
    assert plain(output.hypotheses) == {2: "A hound", 0: "Yes", 1: ""}
    assert output.hypotheses[0].line == 10 and output.hypotheses[0].score == -1.25
    assert texts(output.hypotheses, [0, 1, 2], "x", "hypothesis") == ["Yes", "", "A hound"]


def test_order_does_not_matter(write):
    lines = GENERATED.splitlines()
    random.Random(0).shuffle(lines)
    found, expected = read_output(write("\n".join(lines), "shuffled")), read_output(write(GENERATED))
    for kind in ("sources", "references", "hypotheses"):
        assert plain(getattr(found, kind)) == plain(getattr(expected, kind))


def test_line_ends(write):
    expected = read_output(write(GENERATED))
    assert read_output(write(GENERATED.replace("\n", "\r\n"))) == expected
    assert read_output(write(b"\xef\xbb\xbf" + GENERATED.encode().rstrip())) == expected
    assert plain(read_output(write(b"\xef\xbb\xbfja\n")).hypotheses) == {0: "ja"}
    # these end no line
    odd = read_output(write("H-0\t-1\ta\u2028b\x85c\x0bd\n"))
    assert plain(odd.hypotheses) == {0: "a\u2028b\x85c\x0bd"}


def test_hypotheses_without_d_lines(write):
    output = read_output(write("".join(line for line in GENERATED.splitlines(True) if not line.startswith("D-"))))
    assert plain(output.hypotheses) == {2: "a hound", 0: "yes", 1: ""}


@pytest.mark.parametrize("reverse", [False, True])
def test_best_of_several(write, reverse):
    lines = ["D-0\t-2.5\tworst", "D-0\t-0.1\tbest", "D-0\t-1e0\tsecond"]
    assert plain(read_output(write("\n".join(lines[:: -1 if reverse else 1]))).hypotheses) == {0: "best"}


def test_plain_text(write):
    output = read_output(write("a dog\n\n T-1000 \r\nS-1\n", "a.txt"))
    assert plain(output.hypotheses) == {0: "a dog", 1: "", 2: "T-1000", 3: "S-1"}
    assert [entry.line for entry in output.hypotheses.values()] == [1, 2, 3, 4]
    assert output.sources == output.references == {}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "out.generated: is empty"),
        ("S-4\tx\nT-4\ty\n", "out.generated:1: sentence 4 has a S- line, but no H- or D- line"),
        ("H-4\t-1\tx\nD-5\t-1\tx\n", "out.generated:1: sentence 4 has a H- line, but no D- line"),
        ("S-4\tx\nH-4\t-1\ty\nS-4\tx\n", "out.generated:3: a second S- line of sentence 4, the first is line 1"),
        (
            "D-4\t-1\tx\nD-4\t-2\ty\nD-5\t-1\tx\nD-4\t-1\tz\n",
            "out.generated:4: a second D- line of sentence 4, the first is line 1; give the output of one run",
        ),
        ("H-4\tnan\ta\nH-4\t-1\tb\n", "out.generated:1: H-4 must be followed by a score, not 'nan'"),
        (b"H-4\t-1\tx\nD-4\t-1\t\xff\n", "out.generated:2: not UTF-8"),
    ],
)
def test_wrong_files(write, text, message):
    with pytest.raises(ValueError) as caught:
        read_output(write(text))
    assert message in str(caught.value)


def test_the_same_sentences(write):
    first = read_output(write(GENERATED, "a"))
    check_same_sentences(first, first)
    other = read_output(write("D-1\t0\tx\nD-7\t0\ty\n", "b"))
    with pytest.raises(ValueError, match=r"b: no translation of sentence 0, 2, which .*a:10 has"):
        check_same_sentences(first, other)
    more = read_output(write(GENERATED + "".join(f"D-{i}\t0\ty\n" for i in range(3, 9)), "c"))
    with pytest.raises(ValueError, match=r"a: no translation of sentence 3, 4, 5 and 3 more, which .*c:17 has"):
        check_same_sentences(first, more)


def test_the_same_references(write):
    first = read_output(write(GENERATED, "a"))
    check_same_references(first, read_output(write(GENERATED.replace("a dog", "A <<unk>>").replace("yes", "Yes"), "b")))
    with pytest.raises(ValueError, match=r"b:3: the reference of sentence 2 is 'a do@@ g', but in .*a:3 it is 'a dog'"):
        check_same_references(first, read_output(write(GENERATED.replace("a dog", "a do@@ g"), "b")))


def test_texts_are_complete():
    entries = {}
    with pytest.raises(ValueError, match="ref: no reference of sentence 0, 1; it has 0 for 2 sentences"):
        texts(entries, [0, 1], "ref", "reference")
    assert texts(entries, [], "ref", "reference") == []


def test_too_many_texts(write):
    entries = read_output(write("a\nb\nc\n", "ref")).hypotheses
    with pytest.raises(ValueError, match="ref:3: a reference of sentence 2, which has no translation; it has 3 for 2"):
        texts(entries, [0, 1], "ref", "reference")
