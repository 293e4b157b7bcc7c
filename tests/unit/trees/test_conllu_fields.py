"""Fields of CoNLL-U that are too strange or too long: one short message each, whatever they cost others to make."""

import gzip
import random
import sys
import tracemalloc

import pytest

from fairseq_syntax.data.binarize import Options, convert
from fairseq_syntax.systems.parser.treebank import read_treebank
from fairseq_syntax.trees import conllu
from fairseq_syntax.trees.alignment import pair_examples
from fairseq_syntax.trees.conllu import MAX_LINE, Sentence, TreeFormatError, read_blocks, read_conllu

# every character that str.splitlines cuts at, and other whitespace
CUTS = [chr(i) for i in range(sys.maxunicode) if not 0xD800 <= i < 0xE000 and len(f"a{chr(i)}b".split()) > 1]
ENDS = [c for c in CUTS if len(f"a{c}b".splitlines()) > 1]


def row(word_id, head=0, form="w", upos="X", deprel="dep", xpos="_"):
    return f"{word_id}\t{form}\t_\t{upos}\t{xpos}\t_\t{head}\t{deprel}\t_\t_\n"


def refused(path, text, read=read_conllu):
    """The one message about a file: short, and it names file and line; returns what comes behind them."""
    path.write_bytes(text.encode())
    with pytest.raises(TreeFormatError) as error:
        list(read(path))
    message = str(error.value)
    place, _, said = message.partition(": ")
    assert place.startswith(f"{path}:") and place.removeprefix(f"{path}:").isdecimal(), message
    assert len(said) < 400 and "\n" not in said and "\r" not in said
    return int(place.removeprefix(f"{path}:")), said


def test_the_characters_that_cut_lines():
    assert set("\r\v\f\x1c\x1d\x1e\x85\u2028\u2029") <= set(ENDS) and set(ENDS) < set(CUTS)


@pytest.mark.parametrize("column", ["upos", "deprel"])
@pytest.mark.parametrize("character", [c for c in CUTS if c not in "\n\t"], ids=ascii)
def test_whitespace_in_a_tag(tmp_path, column, character):
    for tag in (f"NO{character}UN", f"{character}NOUN", f"NOUN{character}", character, f"NOUN 7{character}X"):
        text = row(1) + row(2, 1, **{column: tag}) + row(3, 1, **{column: tag})
        line, said = refused(tmp_path / "x.conllu", text)
        assert line == 2 and said.startswith(f"{column.upper()} is {tag!r}; ")


@pytest.mark.parametrize("column", ["upos", "deprel"])
def test_empty_tag(tmp_path, column):
    line, said = refused(tmp_path / "x.conllu", row(1) + row(2, 1, **{column: ""}))
    assert line == 2 and said.startswith(f"{column.upper()} is ''; it must not be empty (`_` means unknown)")


@pytest.mark.parametrize("tag", ["", "N\rN", "N N"])
def test_language_specific_tags_of_a_treebank(tmp_path, tag):
    def read(path):
        return read_treebank(path, pos_column="xpos")

    text = "# c\n" + row(1) + "1.1" + "\t_" * 9 + "\n" + row(2, 1, xpos=tag)
    line, said = refused(tmp_path / "x.conllu", text, read)
    assert line == 4 and said.startswith(f"XPOS is {tag!r}; ")
    (sentence,) = read_conllu(tmp_path / "x.conllu")  # who does not read the column does not care
    assert sentence.forms == ["w", "w"]


def test_whitespace_in_a_word_is_kept(tmp_path):
    (tmp_path / "x").write_text(row(1, 0, "10 000") + row(2, 1, "a\u2028b"), encoding="utf-8")
    assert [tree.forms for tree in read_conllu(tmp_path / "x")] == [["10 000", "a\u2028b"]]


def test_empty_surface_form_of_a_range(tmp_path):
    assert refused(tmp_path / "x", "1-2\t" + "\t_" * 8 + "\n" + row(1) + row(2, 1)) == (1, "the word (FORM) is empty")


MANY = "9" * 5000  # more digits than Python's int() converts
NUMBERS = {
    "head": (row(1) + row(2, MANY), 2, "head '999"),
    "head below 0": (row(1) + row(2, "-" + MANY), 2, "head '-999"),
    "head of ten digits": (row(1) + row(2, "1" * 10), 2, "is not a number from 0 to 2"),
    "head with zeros": (row(1) + row(2, "0" * 5000 + "1"), 2, "is not a number"),
    "head 01": (row(1) + row(2, "01"), 2, "head '01' of word 'w' is not a number"),
    "head -0": (row(1) + row(2, "-0"), 2, "head '-0' of word 'w' is not a number"),
    "last of a range": (f"1-{MANY}\tx" + "\t_" * 8 + "\n" + row(1), 1, "range 1-999"),
    "first of a range": (f"{MANY}-{MANY}\tx" + "\t_" * 8 + "\n" + row(1), 1, "range 999"),
    "range in other digits": ("1-\u0662\tx" + "\t_" * 8 + "\n" + row(1) + row(2, 1), 1, "id '1-\u0662'"),
    "empty node": (row(1) + f"{MANY}.1" + "\t_" * 9 + "\n", 2, "id '999"),
    "empty node 1.0": (row(1) + "1.0" + "\t_" * 9 + "\n", 2, "id '1.0'"),
    "empty node in other digits": ("\u0660.1" + "\t_" * 9 + "\n" + row(1), 1, "id '\u0660.1'"),
    "id": (row(MANY), 1, "id '999"),
}


@pytest.mark.parametrize("name", NUMBERS)
def test_numbers_that_are_none(tmp_path, name):
    text, line, said = NUMBERS[name]
    found, message = refused(tmp_path / "x.conllu", text)
    assert found == line and said in message
    # --allow-broken takes the sentence as having no parse
    (tmp_path / "text").write_text("w\n")
    (example,) = pair_examples(tmp_path / "text", tmp_path / "x.conllu")
    _, _, counts, (broken,) = convert([example], "text", str(tmp_path / "x.conllu"), Options("none", allow_broken=100))
    assert (counts.broken, counts.unparsed) == (1, 1) and message in broken


def test_an_empty_node_with_many_digits_is_one(tmp_path):
    (tmp_path / "x").write_text(row(1) + f"1.{MANY}" + "\t_" * 9 + "\n" + row(2, 1))
    assert [tree.heads for tree in read_conllu(tmp_path / "x")] == [[-1, 0]]


BIG = "x" * 2**20
HUGE = {
    "columns": (BIG + "\n", 1),
    "id": (row(BIG), 1),
    "head": (row(1, BIG), 1),
    "number": (row(1, "1" * 2**20), 1),
    "word of a bad head": (row(1, 7, BIG), 1),
    "tag": (row(1, upos=f"{BIG} {BIG}"), 1),
    "label": (row(1, deprel=f"{BIG} {BIG}"), 1),
    "words of a cycle": ("".join(row(i, i % 3000 + 1, BIG[:900]) for i in range(1, 3001)), 1),
    "range": (f"2-{'1' * 2**20}\tx" + "\t_" * 8 + "\n", 1),
}


@pytest.mark.parametrize("name", HUGE)
def test_fields_are_quoted_in_short(tmp_path, name):
    text, line = HUGE[name]
    assert refused(tmp_path / "x.conllu", text)[0] == line


def test_a_short_field_is_quoted_whole(tmp_path):
    assert "head 'xyz' of word 'w' is" in refused(tmp_path / "x.conllu", row(1, "xyz"))[1]


def bomb(path, begin, part, count):
    with gzip.open(path, "wb", compresslevel=1) as file:
        file.write(begin)
        for _ in range(count):
            file.write(part)


@pytest.mark.parametrize(
    ("begin", "part", "message"),
    [
        (b"# c\n1\t", b"a" * 2**20, f":2: a line of more than {MAX_LINE} characters"),
        (b"\n", b"1\tw\n" * 2**18, ":2: the sentence has not ended by line"),
        (b"\n", (b"# " + b"c" * 1000 + b"\n") * 2**10, ":2: the sentence has not ended by line"),
    ],
    ids=["one line", "one sentence", "comments"],
)
def test_gzip_bomb(tmp_path, begin, part, message):
    path = tmp_path / "bomb.conllu.gz"
    bomb(path, begin, part, 64)
    assert path.stat().st_size < 2**20
    tracemalloc.start()
    try:
        with pytest.raises(TreeFormatError, match=message):
            list(read_conllu(path))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 6 * MAX_LINE


def test_a_line_may_be_as_long_as_that(monkeypatch, tmp_path):
    monkeypatch.setattr(conllu, "MAX_LINE", len(row(1)) + 100)
    (tmp_path / "x").write_text(row(1) + "\n" + "# " + "c" * len(row(1)) + "\n\n" + row(1), newline="\n")
    assert len(list(read_conllu(tmp_path / "x"))) == 3
    assert len(list(read_blocks([row(1), "\n", row(1)], "list"))) == 2


def test_a_long_sentence_with_ranges():
    words = 20_000
    heads = list(range(-1, words - 1))
    ranges = [(i, i + 1, "ab") for i in range(0, words, 2)]
    tags = ["_"] * words
    surface = Sentence(["a"] * words, heads, tags, tags, ranges).collapse_ranges()
    assert surface.heads == list(range(-1, words // 2 - 1))


def test_random_fields_end_in_a_short_message_or_a_tree(tmp_path):
    rng = random.Random(3)
    path = tmp_path / "x.conllu"
    pieces = ["1", "0", "-", ".", "_", "\r", "\x85", " ", "9" * 5000, "x" * 10**4, "\u0661"]
    kinds = set()
    for _ in range(300):
        columns = row(1).rstrip("\n").split("\t")
        columns[rng.choice([0, 1, 3, 6, 7])] = "".join(rng.choices(pieces, k=rng.randint(0, 3)))
        path.write_text("\t".join(columns) + "\n", encoding="utf-8", newline="\n")
        try:
            kinds.add(len(list(read_conllu(path))))
        except TreeFormatError as error:
            assert len(str(error)) - len(str(path)) < 400
            kinds.add(type(error))
    assert kinds == {1, TreeFormatError}


@pytest.mark.parametrize("block", ["0.1" + "\t_" * 9, "# c", "# c\n0.1" + "\t_" * 9])
def test_a_sentence_without_words_goes_with_an_empty_line(tmp_path, block):
    (tmp_path / "x").write_text(f"{block}\n\n{row(1)}\n{block}\n")
    (tmp_path / "text").write_text("\nw\n\n")
    examples = list(pair_examples(tmp_path / "text", tmp_path / "x"))
    assert [(example.text, example.tree[-1].split("\t")[0][0]) for example in examples] == [
        ("\n", block[block.rfind("\n") + 1]),
        ("w\n", "1"),
        ("\n", block[block.rfind("\n") + 1]),
    ]
