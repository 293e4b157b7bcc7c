"""CoNLL-U: what is legal is read as the format says, all else is an error that names the line."""

import gzip
import random
import re
import shlex
import tomllib
from dataclasses import replace
from pathlib import Path

import mutations
import pytest
from hypothesis import given
from odd_treebanks import EMPTY_NODES, ODD, RANGES
from oracles import conllu_format as strict
from oracles import forests as oracle
from strategies import sentences

from fairseq_syntax.trees import conllu as reader
from fairseq_syntax.trees.alignment import pair_examples
from fairseq_syntax.trees.conllu import (
    ROOT,
    UNPARSED,
    Sentence,
    TreeFormatError,
    find_cycle,
    format_sentence,
    read_blocks,
    read_conllu,
)


def row(word_id, head="0", form="w", upos="X", deprel="dep"):
    return f"{word_id}\t{form}\t_\t{upos}\t_\t_\t{head}\t{deprel}\t_\t_\n"


def range_row(word_ids, form="xy"):
    return f"{word_ids}\t{form}" + "\t_" * 8 + "\n"


GOOD = "# text = x y\n" + row(1, 2, "x") + row(2, 0, "y") + "\n"


@pytest.fixture
def write(tmp_path):
    """Puts text or bytes into a file and returns its path."""

    def put(content, name="trees.conllu"):
        path = tmp_path / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    return put


# --------------------------------------------------------------------------------- legal files


def told_by(tree):
    """The same of a tree of the strict reader, which keeps what is written."""
    heads = [UNPARSED if head == "_" else int(head) - 1 for head in tree.heads]
    ranges = [(first - 1, last - 1, form) for first, last, form in tree.ranges]
    return Sentence(tree.forms, heads, tree.deprels, tree.upos, ranges, tree.comments, tree.line)


@pytest.mark.parametrize("name", ["de_gsd.test", "en_ewt.dev"])
def test_equals_the_strict_reader_on_universal_dependencies(real_data, name):
    path = real_data / "ud" / f"{name}.conllu.gz"
    assert list(read_conllu(path)) == [told_by(tree) for tree in strict.read(path.read_bytes(), True)]


def test_equals_the_strict_reader(write):
    """Of files that are right, odd, and wrong in one place or a few: ends of lines, blank ones, fields of all sorts."""
    files = [mutations.file(seed) for seed in range(5, 3000, 10)] + [(text.encode(), False) for text in ODD.values()]
    read = 0
    for data, packed in files:
        path = write(data, "x.conllu.gz" if packed else "x.conllu")
        try:
            expected = strict.read(data, packed)
        except strict.Invalid:
            refused(path)
        else:
            assert list(read_conllu(path)) == [told_by(tree) for tree in expected]
            read += 1
    assert 100 < read < len(files) - 100


def test_gzip_of_several_members(write):
    members = gzip.compress(GOOD.encode()) + gzip.compress(GOOD.encode())
    assert list(read_conllu(write(members, "x.conllu.gz"))) == list(read_conllu(write(GOOD * 2)))


def test_files_are_read_one_sentence_at_a_time(write):
    found = read_conllu(write(GOOD + row(1, 7)))
    assert next(found).heads == [1, ROOT]
    with pytest.raises(TreeFormatError):
        next(found)


def test_columns_of_conllu_plus(write):
    """In another order, one more and some less; two files, one behind the other."""
    ten = "ID FORM LEMMA UPOS XPOS FEATS HEAD DEPREL DEPS MISC".split()
    names = "DEPREL ID HEAD PARSEME:MWE FORM UPOS".split()
    plain, plus = RANGES + EMPTY_NODES, f"# global.columns = {' '.join(names)}\n"
    for line in plain.splitlines():
        cells = {**dict(zip(ten, line.split("\t"), strict=False)), "PARSEME:MWE": "*"}
        plus += "\t".join(cells[name] for name in names if line) + "\n"
    expected = list(read_conllu(write(plain * 2)))
    found = list(read_conllu(write(plus * 2, "trees.conllup")))
    assert [replace(tree, line=0) for tree in found] == [replace(tree, line=0) for tree in expected]
    assert [tree.line for tree in found[:3]] == [tree.line + 1 for tree in expected[:3]]


# ------------------------------------------------------------------------------- illegal files


def rows(text):
    """Lines of broken_files.toml."""
    for part in text.split(" / "):
        if part.startswith("= "):
            yield part[2:] + "\n"
        else:
            yield range_row(part) if re.fullmatch(r"\d+-\d+", part) else row(*shlex.split(part))


BROKEN = {
    **tomllib.loads(Path(__file__).with_name("broken_files.toml").read_text(encoding="utf-8")),
    "not UTF-8": (GOOD.encode() * 3 + row(1, 0, "caf\xe9").encode("latin-1"), 13, "not UTF-8"),
    "cut in a character": (row(1).encode() + "2\tcaf\xe9".encode()[:-1], 2, "not UTF-8"),
    "UTF-16": (GOOD.encode("utf-16"), 1, "not UTF-8"),
}


def refused(path, read=read_conllu):
    """The one message about a file: short, and it names file and line; returns the line and what comes behind it."""
    with pytest.raises(TreeFormatError) as error:
        list(read(path))
    message = str(error.value)
    place, _, said = message.partition(": ")
    assert place.startswith(f"{path}:") and place.removeprefix(f"{path}:").isdecimal(), message
    assert len(said) < 400 and "\n" not in said and "\r" not in said
    return int(place.removeprefix(f"{path}:")), said


def content_of(broken):
    return broken if isinstance(broken, bytes) else "".join(rows(broken)).encode()


@pytest.mark.parametrize("name", BROKEN)
def test_broken_file(write, name):
    broken, line, message = BROKEN[name]
    found, said = refused(write(content_of(broken)))
    assert found == line and message in said


@pytest.mark.parametrize("name", ["not UTF-8", "cycle of 3"])
@pytest.mark.parametrize("packed", [False, True])
def test_line_of_an_error_far_into_a_file(write, name, packed):
    broken, line, message = BROKEN[name]
    content = GOOD.encode() * 3000 + content_of(broken)
    path = write(gzip.compress(content), "x.conllu.gz") if packed else write(content)
    found, said = refused(path)
    assert found == 4 * 3000 + line and message in said


def noise():
    """Trees that hardly compress, so that a cut or a flipped bit falls on data."""
    generator = random.Random(0)
    return "".join(row(1, 0, str(generator.random())) + "\n" for _ in range(600)).encode()


def test_gzip_that_is_cut_or_none(write):
    """What could be unpacked is read, and the error stands at the line after it."""
    packed = gzip.compress(noise())
    for content in (GOOD.encode(), packed[:5], packed[: len(packed) // 2], packed[:-1]):
        path, found = write(content, "trees.conllu.gz"), []
        with pytest.raises(TreeFormatError, match="truncated or not gzip") as error:
            for sentence in read_conllu(path):
                found.append(sentence.line)
        line = int(str(error.value).removeprefix(f"{path}:").split(":")[0])
        assert line - 1 in (2 * len(found), 2 * len(found) + 1)
        assert found == list(range(1, 2 * len(found), 2))


@pytest.mark.parametrize(("name", "reason"), [("no/missing.gz", "No such file"), ("folder", "Is a directory")])
def test_files_that_cannot_be_opened(tmp_path, name, reason):
    (tmp_path / "folder").mkdir()
    with pytest.raises(TreeFormatError) as error:
        list(read_conllu(tmp_path / name))
    assert str(error.value).startswith(f"{tmp_path / name}: cannot be opened ({reason}")


@pytest.mark.parametrize(("line", "last"), [("1\tw\n", 17), ("# " + "c" * 100 + "\n", 8)])
def test_a_sentence_that_does_not_end(write, monkeypatch, line, last):
    """Short lines take memory, too."""
    monkeypatch.setattr(reader, "MAX_LINE", 1000)
    assert refused(write("\n" + line * 1000)) == (
        2, f"the sentence has not ended by line {last}; put an empty line after each"
    )  # fmt: skip


def test_a_line_may_be_as_long_as_that(monkeypatch, write):
    monkeypatch.setattr(reader, "MAX_LINE", len(row(1)) + 100)
    assert len(list(read_conllu(write(row(1) + "\n" + "# " + "c" * len(row(1)) + "\n\n" + row(1))))) == 3
    assert len(list(read_blocks([row(1), "\n", row(1)], "list"))) == 2


@pytest.mark.parametrize("block", ["0.1" + "\t_" * 9, "# c", "# c\n0.1" + "\t_" * 9])
def test_a_sentence_without_words_goes_with_an_empty_line(write, block):
    path, text = write(f"{block}\n\n{row(1)}\n{block}\n"), write("\nw\n\n", "text")
    examples = list(pair_examples(text, path))
    assert [example.text for example in examples] == ["\n", "w\n", "\n"]
    assert [example.tree for example in examples] == [block.split("\n"), [row(1).rstrip("\n")], block.split("\n")]


# --------------------------------------------------------------------------------- round trips


def test_round_trip_through_a_file(write):
    @given(sentences(), sentences())
    def check(first, second):
        empty = Sentence([], [], [], [])
        text = "".join(format_sentence(sentence) for sentence in (first, empty, second))
        found = list(read_conllu(write(text)))
        assert [replace(sentence, line=0) for sentence in found] == [
            first,
            replace(empty, comments=["# text ="]),
            second,
        ]
        assert "".join(map(format_sentence, found)) == text

    check()


def test_format_is_ten_columns():
    sentence = Sentence(["in", "dem"], [1, ROOT], ["a", "b"], ["X", "Y"], [(0, 1, "im")], ["# c"])
    assert format_sentence(sentence) == (
        "# c\n1-2\tim\t_\t_\t_\t_\t_\t_\t_\t_\n1\tin\t_\tX\t_\t_\t2\ta\t_\t_\n2\tdem\t_\tY\t_\t_\t0\tb\t_\t_\n\n"
    )


# -------------------------------------------------------------------------------------- cycles


def test_find_cycle_in_all_small_graphs():
    def functions(size):
        if not size:
            return [[]]
        return [[*rest, head] for rest in functions(size - 1) for head in range(-1, words)]

    for words in range(5):
        for heads in functions(words):
            cycle = find_cycle(heads)
            assert (cycle is None) == oracle.is_forest(heads)
            if cycle is not None:
                assert len(set(cycle)) == len(cycle)
                assert [heads[word] for word in cycle] == [*cycle[1:], cycle[0]]


# --------------------------------------------------------------------------- collapsing ranges


@given(sentences())
def test_collapsed_forest(sentence):
    surface = sentence.collapse_ranges()
    spans, word = [], 0
    covered = {first: last for first, last, _ in sentence.ranges}
    while word < len(sentence):
        last = covered.get(word, word)
        spans.append(range(word, last + 1))
        word = last + 1
    names = {first: form for first, _, form in sentence.ranges}
    assert surface.forms == [names.get(span[0], sentence.forms[span[0]]) for span in spans]
    if not sentence.is_parsed:
        assert surface.heads == [UNPARSED] * len(spans)
        return
    assert oracle.is_forest(surface.heads)
    for node, span in enumerate(spans):
        # Head, label and tag are those of one word of the node: the first of the shallowest.
        depths = [len(oracle.ancestors(sentence.heads, member)) for member in span]
        top = span[depths.index(min(depths))]
        assert surface.deprels[node] == sentence.deprels[top]
        assert surface.upos[node] == sentence.upos[top]
        if sentence.heads[top] < 0:
            assert surface.heads[node] == ROOT
        else:
            assert sentence.heads[top] in spans[surface.heads[node]]
