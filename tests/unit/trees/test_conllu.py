"""CoNLL-U: what is legal is read as the format says, all else is an error that names the line."""

import gzip
import os
import random
from dataclasses import replace
from functools import cache

import conllu
import pytest
from hypothesis import given
from oracles import forests as oracle
from strategies import forests, sentences

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

UD_FILES = [
    "de_gsd.dev",
    "de_gsd.test",
    "en_ewt.dev",
    "en_ewt.test",
    "en_ewt.train",
]


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


def test_reads_words_heads_labels_and_tags(read):
    text = "# sent_id = 1\n" + row(1, 2, "dogs", "NOUN", "nsubj") + row(2, 0, "bark", "VERB", "root")
    assert read(text + "\n") == [
        Sentence(
            forms=["dogs", "bark"],
            heads=[1, ROOT],
            deprels=["nsubj", "root"],
            upos=["NOUN", "VERB"],
            comments=["# sent_id = 1"],
            line=1,
        )
    ]


def test_multi_word_ranges_are_kept_and_no_words(read):
    (sentence,) = read(row(1, 0, "a") + range_row("2-3", "im") + row(2, 1, "in") + row(3, 2, "dem") + "\n")
    assert sentence.forms == ["a", "in", "dem"]
    assert sentence.heads == [ROOT, 0, 1]
    assert sentence.ranges == [(1, 2, "im")]


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


def test_ten_words_and_more(read):
    (sentence,) = read("".join(row(i, 12 if i < 12 else 0) for i in range(1, 13)))
    assert sentence.heads == [11] * 11 + [ROOT]


def test_several_roots(read):
    assert heads_of(read(row(1) + row(2) + row(3, 2))) == [[ROOT, ROOT, 1]]


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

COLUMNS = "\t_" * 8

BROKEN = {
    # name: (text, line of the error, what the message says)
    "nine columns": (row(1) + f"2\tx{COLUMNS[2:]}\n", 2, "9 columns"),
    "eleven columns": (f"1\tx{COLUMNS}\t_\n", 1, "11 columns"),
    "spaces": (row(1).replace("\t", " "), 1, "tabs, not spaces"),
    "range of nine columns": (f"1-2\tx{COLUMNS[2:]}\n" + row(1) + row(2), 1, "9 columns"),
    "plain text": (row(1) + "A man sleeps .\n", 2, "tabs, not spaces"),
    "first id is 0": (row(0), 1, "id '0' where 1 was expected"),
    "first id is 2": ("# c\n" + row(2), 2, "id '2' where 1 was expected"),
    "gap of ids": (row(1) + row(2, 1) + row(4, 1), 3, "id '4' where 3 was expected"),
    "repeated id": (row(1) + row(1), 2, "id '1' where 2 was expected"),
    "no empty line": (row(1) + row(2, 1) + row(1), 3, "id '1' where 3 was expected"),
    "id with a zero": (row("01"), 1, "id '01'"),
    "id is a word": (row("x"), 1, "id 'x'"),
    "empty id": (row(""), 1, "id ''"),
    "misplaced empty node": (row(1) + row("2.1", "_") + row(2), 2, "id '2.1' where 2 was expected"),
    "empty word": (row(1) + row(2, 1, ""), 2, "FORM"),
    "head is a word": (row(1) + row(2, "x", "dog"), 2, "head 'x' of word 'dog' is not a number"),
    "head is empty": (row(1, ""), 1, "head '' of word 'w' is not a number"),
    "head is a fraction": (row(1) + row(2, "1.0"), 2, "head '1.0' of word 'w' is not a number"),
    "head with a grouping mark": (
        row(1, 0) + row(2, "1_0") + "".join(row(i, 1) for i in range(3, 12)),
        2,
        "head '1_0' of word 'w' is not a number",
    ),
    "head with a sign": (row(1) + row(2, "+1"), 2, "head '+1' of word 'w' is not a number"),
    "head with a space": (row(1) + row(2, " 1"), 2, "head ' 1' of word 'w' is not a number"),
    "head of other digits": (row(1) + row(2, "\u0661"), 2, "is not a number"),
    "some heads missing": (
        row(1) + row(2, "_", "dog") + row(3, "_"),
        2,
        "head '_' of word 'dog' is not a number",
    ),
    "first head missing": (row(1, "_", "dog") + row(2, 0), 1, "head '_' of word 'dog'"),
    "head beyond the end": (row(1) + row(2, 3, "dog"), 2, "head 3 of word 'dog' is out of range"),
    "negative head": (row(1) + row(2, -1, "dog"), 2, "head -1 of word 'dog' is out of range"),
    "self-loop": (row(1) + row(2, 2, "dog"), 2, "cycle (2 'dog' <- 2 'dog')"),
    "only a self-loop": (row(1, 1, "dog"), 1, "cycle (1 'dog' <- 1 'dog')"),
    "cycle of 2": (row(1, 2, "a") + row(2, 1, "b") + row(3, 0), 1, "cycle"),
    "cycle of 2 later": (row(1) + row(2, 3, "a") + row(3, 2, "b"), 2, "(2 'a' <- 3 'b' <- 2 'a')"),
    "cycle of 3": (
        row(1, 2, "a") + row(2, 0, "b") + row(3, 5, "c") + row(4, 3, "d") + row(5, 4, "e"),
        3,
        "(3 'c' <- 5 'e' <- 4 'd' <- 3 'c')",
    ),
    "cycle behind a range and a comment": (
        row(1) + "# c\n" + range_row("2-3") + row(2, 3) + row(3, 2),
        4,
        "cycle",
    ),
    "overlapping ranges": (
        range_row("1-2") + row(1) + range_row("2-3") + row(2, 1) + row(3, 1),
        3,
        "range 2-3 where word 2 was expected",
    ),
    "nested ranges": (
        range_row("1-3") + range_row("1-2") + row(1) + row(2, 1) + row(3, 1),
        2,
        "range 1-2",
    ),
    "late range": (row(1) + row(2, 1) + range_row("1-2"), 3, "range 1-2"),
    "early range": (row(1) + range_row("3-4") + row(2), 2, "range 3-4 where word 2"),
    "backward range": (row(1) + range_row("2-1") + row(2), 2, "range 2-1"),
    "range beyond the end": ("# c\n" + row(1) + range_row("2-4") + row(2, 1), 3, "ends at word 4"),
    "range at the end": (row(1) + range_row("2-3"), 2, "ends at word 3"),
    "range one beyond the end": (row(1) + range_row("2-3") + row(2), 2, "ends at word 3"),
    "not UTF-8": (GOOD.encode() * 3 + row(1, 0, "caf\xe9").encode("latin-1"), 13, "not UTF-8"),
    "cut in a character": (row(1).encode() + "2\tcaf\xe9".encode()[:-1], 2, "not UTF-8"),
    "UTF-16": (GOOD.encode("utf-16"), 1, "not UTF-8"),
}


@pytest.mark.parametrize("name", BROKEN)
@pytest.mark.parametrize("before", [b"", GOOD.encode(), GOOD.encode() * 500], ids=[0, 1, 500])
@pytest.mark.parametrize("zipped", [False, True], ids=["plain", "gzip"])
def test_broken_file(write, name, before, zipped):
    text, line, message = BROKEN[name]
    content = before + (text.encode() if isinstance(text, str) else text)
    if zipped:
        path = write(gzip.compress(content), "trees.conllu.gz")
    else:
        path = write(content)
    with pytest.raises(TreeFormatError) as error:
        list(read_conllu(path))
    assert str(error.value).startswith(f"{path}:{before.count(bytes([10])) + line}: ")
    assert message in str(error.value)
    assert "\n" not in str(error.value)


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
        with pytest.raises(TreeFormatError, match="cut off or not gzip") as error:
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
    with pytest.raises(TreeFormatError, match="cut off or not gzip") as error:
        list(read_conllu(path))
    assert str(error.value).startswith(f"{path}:1: ")


@pytest.mark.parametrize("name", ["missing.conllu", "missing.conllu.gz", "no/folder.conllu"])
def test_missing_file(tmp_path, name):
    with pytest.raises(TreeFormatError) as error:
        list(read_conllu(tmp_path / name))
    assert str(error.value).startswith(f"{tmp_path / name}: cannot be opened (No such file")


@pytest.mark.parametrize("name", ["folder", "folder.gz"])
def test_directory(tmp_path, name):
    (tmp_path / name).mkdir()
    with pytest.raises(TreeFormatError) as error:
        list(read_conllu(tmp_path / name))
    assert str(error.value).startswith(f"{tmp_path / name}: cannot be opened (Is a directory)")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read every file")
def test_unreadable_file(write):
    path = write(GOOD)
    path.chmod(0)
    with pytest.raises(TreeFormatError, match="cannot be opened"):
        list(read_conllu(path))


def test_errors_are_value_errors_without_a_cause(read):
    with pytest.raises(ValueError) as error:
        read(row(1, "x"))
    assert error.value.__cause__ is None
    assert error.value.__suppress_context__ or error.value.__context__ is None


# --------------------------------------------------------------------------------- round trips


@given(sentences())
def test_round_trip(sentence):
    text = format_sentence(sentence)
    assert text.endswith("\n\n")
    ((start, block),) = read_blocks(text.split("\n"), "text")
    assert parse_block(block, "text", start) == replace(sentence, line=1)


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


def test_collapse_takes_the_head_label_and_tag_of_the_range():
    # Er geht im Park: "im" hangs where "in" does.
    sentence = Sentence(
        forms=["er", "geht", "in", "dem", "Park"],
        heads=[1, ROOT, 4, 4, 1],
        deprels=["nsubj", "root", "case", "det", "obl"],
        upos=["PRON", "VERB", "ADP", "DET", "NOUN"],
        ranges=[(2, 3, "im")],
        comments=["# c"],
        line=7,
    )
    assert sentence.collapse_ranges() == Sentence(
        forms=["er", "geht", "im", "Park"],
        heads=[1, ROOT, 3, 1],
        deprels=["nsubj", "root", "case", "obl"],
        upos=["PRON", "VERB", "ADP", "NOUN"],
        comments=["# c"],
        line=7,
    )


def test_collapse_where_one_word_of_the_range_governs_the_other():
    # "dámelo" = dá + me + lo: the verb is the root, its clitics hang inside the range.
    sentence = Sentence(["dá", "me", "lo", "ya"], [-1, 0, 0, 0], list("abcd"), list("ABCD"), [(0, 2, "dámelo")])
    surface = sentence.collapse_ranges()
    assert (surface.forms, surface.heads) == (["dámelo", "ya"], [ROOT, 0])
    assert (surface.deprels, surface.upos) == (["a", "d"], ["A", "D"])


def test_collapse_never_makes_a_cycle():
    # a -> x -> b with "ab" one token: taking a's head would give ab -> x -> ab.
    sentence = Sentence(["a", "b", "x"], [2, ROOT, 1], ["p", "q", "r"], ["P", "Q", "R"], [(0, 1, "ab")])
    surface = sentence.collapse_ranges()
    assert (surface.heads, surface.deprels, surface.upos) == ([ROOT, 0], ["q", "r"], ["Q", "R"])


def test_collapse_of_unparsed_words():
    sentence = Sentence(["in", "dem", "x"], [UNPARSED] * 3, ["_"] * 3, ["_"] * 3, [(0, 1, "im")])
    surface = sentence.collapse_ranges()
    assert (surface.forms, surface.heads) == (["im", "x"], [UNPARSED] * 2)


def test_collapse_without_ranges_changes_nothing():
    sentence = Sentence(["a", "b"], [ROOT, 0], ["p", "q"], ["P", "Q"], [], ["# c"], 3)
    assert sentence.collapse_ranges() == sentence


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


@given(forests(max_words=10))
def test_collapsing_ranges_of_one_word_is_the_identity(heads):
    columns = [str(i) for i in range(len(heads))]
    ranges = [(i, i, columns[i]) for i in range(len(heads))]
    sentence = Sentence(columns, heads, columns, columns, ranges)
    assert sentence.collapse_ranges() == replace(sentence, ranges=[])
