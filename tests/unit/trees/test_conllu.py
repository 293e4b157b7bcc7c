"""CoNLL-U: what is legal is read as the format says, all else is an error that names the line."""

import gzip
import os
import random
import re
import shlex
import tomllib
from dataclasses import replace
from functools import cache
from pathlib import Path

import conllu
import pytest
from hypothesis import given
from oracles import forests as oracle
from strategies import sentences

from fairseq_syntax.trees.conllu import (
    ROOT,
    UNPARSED,
    Sentence,
    TreeFormatError,
    find_cycle,
    format_sentence,
    parse_block,
    read_blocks,
    read_conllu,
)

UD_FILES = ["de_gsd.dev", "de_gsd.test", "en_ewt.dev", "en_ewt.test", "en_ewt.train"]


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


@pytest.fixture
def read(write):
    """The sentences in a text."""
    return lambda content, name="trees.conllu": list(read_conllu(write(content, name)))


def heads_of(sentences_read):
    return [sentence.heads for sentence in sentences_read]


# ------------------------------------------------------------------------------ real treebanks


@cache
def ud_sentences(path):
    return list(read_conllu(path))


@pytest.fixture(params=UD_FILES)
def ud_file(request, real_data):
    return real_data / "ud" / f"{request.param}.conllu.gz"


def test_equals_the_conllu_library_on_universal_dependencies(ud_file):
    ours = ud_sentences(ud_file)
    with gzip.open(ud_file, "rt", encoding="utf8") as lines:
        for sentence, theirs in zip(ours, conllu.parse_incr(lines), strict=True):
            words = [token for token in theirs if isinstance(token["id"], int)]
            assert sentence.forms == [token["form"] for token in words]
            assert sentence.heads == [token["head"] - 1 for token in words]
            assert sentence.deprels == [token["deprel"] for token in words]
            assert sentence.upos == [token["upos"] for token in words]
            assert sentence.ranges == [
                (token["id"][0] - 1, token["id"][2] - 1, token["form"])
                for token in theirs
                if isinstance(token["id"], tuple) and token["id"][1] == "-"
            ]
            assert [c for c in sentence.comments if c.startswith("# sent_id")] == [
                f"# sent_id = {theirs.metadata['sent_id']}"
            ]
    assert len(ours) > 700


def test_round_trip_of_universal_dependencies(ud_file):
    for sentence in ud_sentences(ud_file):
        ((start, block),) = read_blocks(format_sentence(sentence).splitlines(keepends=True), "text")
        assert parse_block(block, "text", start) == replace(sentence, line=1)


def test_sentences_know_the_line_they_start_at(ud_file):
    with gzip.open(ud_file, "rt", encoding="utf8", newline="\n") as file:
        lines = [line.rstrip("\n") for line in file]
    starts = [number for number, line in enumerate(lines, 1) if line and (number == 1 or not lines[number - 2])]
    assert [sentence.line for sentence in ud_sentences(ud_file)] == starts


def test_collapsed_ranges_of_universal_dependencies_spell_the_text(ud_file):
    ranges = 0
    for sentence in ud_sentences(ud_file):
        surface = sentence.collapse_ranges()
        (text,) = (c.removeprefix("# text =") for c in sentence.comments if c.startswith("# text ="))
        assert "".join(surface.forms).replace(" ", "") == "".join(text.split())
        assert surface.ranges == []
        assert len(surface) == len(sentence) - sum(last - first for first, last, _ in sentence.ranges)
        assert oracle.is_forest(surface.heads)
        assert surface.heads.count(ROOT) == sentence.heads.count(ROOT) == 1
        assert len(surface.deprels) == len(surface.upos) == len(surface.heads)
        ranges += len(sentence.ranges)
    assert ranges > 100


# --------------------------------------------------------------------------------- legal files


def test_neighbouring_ranges_and_one_word_ranges(read):
    text = range_row("1-2") + row(1) + row(2, 1) + range_row("3-3", "z") + row(3, 1)
    (sentence,) = read(text)
    assert sentence.ranges == [(0, 1, "xy"), (2, 2, "z")]


def test_empty_nodes_are_skipped(read):
    empty = "{}\tghost" + "\t_" * 8 + "\n"
    text = empty.format("0.1") + "".join(
        row(i, i - 1) + (empty.format("8.1") + empty.format("8.2") if i == 8 else "") for i in range(1, 11)
    )
    (sentence,) = read(text)
    assert sentence.forms == ["w"] * 10
    assert sentence.heads == list(range(-1, 9))


def test_empty_node_beside_a_range(read):
    ghost = "1.1\tghost" + "\t_" * 8 + "\n"
    for middle in (ghost + range_row("2-3"), range_row("2-3") + ghost):
        (sentence,) = read(row(1) + middle + row(2, 1) + row(3, 1))
        assert (sentence.forms, sentence.ranges) == (["w"] * 3, [(1, 2, "xy")])


def test_unparsed_sentence(read):
    (sentence,) = read(row(1, "_") + row(2, "_"))
    assert sentence.heads == [UNPARSED, UNPARSED]
    assert not sentence.is_parsed
    assert read(GOOD)[0].is_parsed


def test_crlf(read):
    assert read((GOOD * 2).replace("\n", "\r\n")) == read(GOOD * 2)
    assert read(GOOD.replace("\n", "\r\n"))[0].comments == ["# text = x y"]


@pytest.mark.parametrize("end", ["", "\n", "\n\n", "\n\n\n\n", "\n \t \n"])
def test_end_of_file(read, end):
    assert heads_of(read(GOOD + row(1).rstrip("\n") + end)) == [[1, ROOT], [ROOT]]


def test_byte_order_mark(read):
    assert read(b"\xef\xbb\xbf" + GOOD.encode()) == read(GOOD)
    assert read(gzip.compress(b"\xef\xbb\xbf" + GOOD.encode()), "x.conllu.gz") == read(GOOD)


@pytest.mark.parametrize("blank", ["\n", " \n", "\n\n\n", " \n\t\n  \n", "\r\n\r\n", "\u3000\n"])
def test_blank_lines_between_sentences(read, blank):
    first = row(1, 0, "a")
    found = read(blank + first + blank + row(1, 2) + row(2, 0) + blank)
    assert heads_of(found) == [[ROOT], [1, ROOT]]
    lines = blank.count("\n")
    assert [sentence.line for sentence in found] == [lines + 1, 2 * lines + 2]


def test_comments_alone_are_the_empty_sentence(read):
    found = read("# a\n# b\n\n" + GOOD + "# text =\n")
    assert [len(sentence) for sentence in found] == [0, 2, 0]
    assert found[0].comments == ["# a", "# b"]
    assert found[0].is_parsed
    assert found[0].collapse_ranges() == found[0]


@pytest.mark.parametrize("text", ["", "\n", "\n \n\r\n"])
def test_file_without_sentences(read, text):
    assert read(text) == []


def test_gzip(read):
    assert read(gzip.compress((GOOD * 3).encode()), "trees.conllu.gz") == read(GOOD * 3)


def test_gzip_of_several_members(read):
    members = gzip.compress(GOOD.encode()) + gzip.compress(GOOD.encode())
    assert read(members, "trees.conllu.gz") == read(GOOD * 2)


@pytest.mark.parametrize("form", ["\x85", "a\u2028b", "\u2029", "\xa0", "a b", "\x0c", "#", "_", "a\rb"])
def test_only_line_feeds_end_a_line(read, form):
    assert [s.forms for s in read(row(1, 0, form) + row(2, 1))] == [[form, "w"]]


def test_word_that_is_an_underscore_is_no_missing_head(read):
    assert read(row(1, 0, "_"))[0].is_parsed


def test_files_are_read_one_sentence_at_a_time(write):
    found = read_conllu(write(GOOD + row(1, 7)))
    assert next(found).heads == [1, ROOT]
    with pytest.raises(TreeFormatError):
        next(found)


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


@pytest.mark.parametrize("name", BROKEN)
@pytest.mark.parametrize(("before", "name_of_file"), [(0, "x.conllu"), (500, "x.conllu.gz")])
def test_broken_file(write, name, before, name_of_file):
    text, line, message = BROKEN[name]
    good = GOOD.encode() * before
    content = good + (text if isinstance(text, bytes) else "".join(rows(text)).encode())
    path = write(gzip.compress(content) if name_of_file.endswith(".gz") else content, name_of_file)
    with pytest.raises(TreeFormatError) as error:
        list(read_conllu(path))
    assert str(error.value).startswith(f"{path}:{good.count(bytes([10])) + line}: ")
    assert message in str(error.value) and "\n" not in str(error.value)


def test_line_of_a_bad_byte_far_into_a_file(write):
    lines = (GOOD * 5000).encode().split(b"\n")
    for bad in (1, 2, 777, 6666, 19_998):
        content = list(lines)
        content[bad - 1] += b"\xff"
        path = write(b"\n".join(content))
        with pytest.raises(TreeFormatError) as error:
            list(read_conllu(path))
        assert str(error.value).startswith(f"{path}:{bad}: not UTF-8")


def noise(lines=3000):
    """Trees that hardly compress, so that a cut or a flipped bit falls on data."""
    generator = random.Random(0)
    return "".join(row(1, 0, str(generator.random())) + "\n" for _ in range(lines)).encode()


def test_truncated_gzip(write):
    content = noise()
    packed = gzip.compress(content)
    for keep in (5, 15, len(packed) // 3, len(packed) - 12, len(packed) - 1):
        path = write(packed[:keep], "trees.conllu.gz")
        found = []
        with pytest.raises(TreeFormatError, match="truncated or not gzip") as error:
            for sentence in read_conllu(path):
                found.append(sentence)
        line = int(str(error.value).removeprefix(f"{path}:").split(":")[0])
        # What could be unpacked was read: the error stands at the line after the last one.
        assert line - 1 in (2 * len(found), 2 * len(found) + 1)
        assert [sentence.line for sentence in found] == list(range(1, 2 * len(found), 2))


def test_damaged_gzip(write):
    packed = gzip.compress(noise())
    generator = random.Random(1)
    messages = []
    for _ in range(60):
        place = generator.randrange(10, len(packed))
        damaged = packed[:place] + bytes([packed[place] ^ 0xFF]) + packed[place + 1 :]
        path = write(damaged, "trees.conllu.gz")
        with pytest.raises(TreeFormatError) as error:  # never zlib.error
            list(read_conllu(path))
        assert str(error.value).startswith(f"{path}:")
        messages.append(str(error.value))
    assert any("Error -3" in message for message in messages)  # zlib's own was among them


def test_text_named_gz(write):
    path = write(GOOD, "trees.conllu.gz")
    with pytest.raises(TreeFormatError, match="truncated or not gzip") as error:
        list(read_conllu(path))
    assert str(error.value).startswith(f"{path}:1: ")


@pytest.mark.parametrize("name", ["missing.conllu", "no/folder.conllu.gz", "folder", "folder.gz", "unreadable"])
def test_files_that_cannot_be_opened(tmp_path, name):
    for folder in ("folder", "folder.gz"):
        (tmp_path / folder).mkdir()
    (tmp_path / "unreadable").touch(0)
    reason = {"m": "No such file", "n": "No such file", "f": "Is a directory", "u": "Permission denied"}[name[0]]
    if name == "unreadable" and os.geteuid() == 0:
        pytest.skip("root may read every file")
    with pytest.raises(TreeFormatError) as error:
        list(read_conllu(tmp_path / name))
    assert str(error.value).startswith(f"{tmp_path / name}: cannot be opened ({reason}")


def test_errors_are_value_errors_without_a_cause(read):
    with pytest.raises(ValueError) as error:
        read(row(1, "x"))
    assert error.value.__cause__ is None
    assert error.value.__suppress_context__ or error.value.__context__ is None


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


def test_find_cycle_is_linear_on_a_long_chain():
    chain = list(range(-1, 99_999))
    assert find_cycle(chain) is None
    assert find_cycle([99_999, *chain[1:]]) is not None


# --------------------------------------------------------------------------- collapsing ranges


def test_collapse_never_makes_a_cycle():
    # a -> x -> b with "ab" one token: taking a's head would give ab -> x -> ab.
    sentence = Sentence(["a", "b", "x"], [2, ROOT, 1], ["p", "q", "r"], ["P", "Q", "R"], [(0, 1, "ab")])
    surface = sentence.collapse_ranges()
    assert (surface.heads, surface.deprels, surface.upos) == ([ROOT, 0], ["q", "r"], ["Q", "R"])


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
