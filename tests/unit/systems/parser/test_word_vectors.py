"""Files of vectors: what is read, what is passed over, what is refused; and tables that start from them."""

import gzip

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from fairseq_syntax.systems.parser.word_representation import WordRepresentation
from fairseq_syntax.systems.parser.word_vectors import fill_rows, load_vectors, read_vectors

SPECIALS = ["<s>", "<pad>", "</s>", "<unk>"]
PAD, UNK = 1, 3
NUMBERS = st.floats(-1e6, 1e6, width=32)
# anything but line ends, and blanks at the start, which would look like an empty first field
TOKENS = st.text(st.characters(exclude_characters=" \n\r", exclude_categories=["Cs"]), min_size=1, max_size=6)


@pytest.fixture
def file(tmp_path):
    """Function: text or bytes -> path of a file that has it."""

    def write(content, name="vectors.txt"):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode("utf-8"))
        return str(path)

    return write


def as_lists(vectors):
    return {token: vector.tolist() for token, vector in vectors.items()}


@pytest.mark.parametrize(
    ("content", "wanted", "expected"),
    [
        ("a 1 2\nb 3 4\nc 5 6\n", {"c", "a", "x"}, {"a": [1, 2], "c": [5, 6]}),
        ("a 1 2\nNew York 3 4\n. . . 5 6\n", None, {"a": [1, 2], "New York": [3, 4], ". . .": [5, 6]}),
        ("a 1 2\na 3 4\n", None, {"a": [1, 2]}),
        # charNgram2vec cuts characters in two
        (b"2gram-\xe3\x81 1 2\n2gram-ab 3 4\n", {"2gram-ab"}, {"2gram-ab": [3, 4]}),
        (gzip.compress(b"a 1 2\r\n\r\nb 3 4"), None, {"a": [1, 2], "b": [3, 4]}),
    ],
    ids=["only wanted", "tokens with blanks", "the first of two", "no UTF-8", "gzip and other line ends"],
)
def test_what_is_read(file, content, wanted, expected):
    path = file(content, "v.gz" if content[:2] == b"\x1f\x8b" else "v.txt")
    assert as_lists(read_vectors(path, 2, wanted)) == expected


@given(st.dictionaries(TOKENS, st.lists(NUMBERS, min_size=3, max_size=3), max_size=5), st.booleans(), st.booleans())
def test_what_is_written_is_read(tmp_path_factory, entries, header, trailing_blank):
    path = tmp_path_factory.mktemp("vectors") / "v.txt"
    lines = [f"{len(entries)} 3"] if header else []
    lines += [" ".join([token, *(repr(number) for number in vector)]) for token, vector in entries.items()]
    end = " \n" if trailing_blank else "\n"  # word2vec leaves a blank
    path.write_bytes("".join(line + end for line in lines).encode("utf-8"))
    found = read_vectors(str(path), 3)
    assert all(vector.dtype == np.float32 for vector in found.values())
    assert as_lists(found) == entries


@pytest.mark.parametrize("wanted", [None, {"a", "short", "none", "infinite", "letters", "b"}])
def test_wrong_lines_are_passed_over_and_reported(file, caplog, wanted):
    path = file("a 1 2\nshort 1\nnone\ninfinite 1 nan\nletters 1 x\nb 3 4\n")
    assert as_lists(read_vectors(path, 2, wanted)) == {"a": [1, 2], "b": [3, 4]}
    assert f"{path}: 4 lines do not end in 2 numbers, the first of them line 2" in caplog.text


@pytest.mark.parametrize(
    ("content", "line", "found"),
    [("a 1 2 3\n", 1, 3), ("a 1\n", 1, 1), ("5 3\na 1 2 3\n", 1, 3), ("1 2\na 1 2 3\n", 2, 3)],
)
def test_vectors_of_another_size_are_refused(file, content, line, found):
    path = file(content)
    with pytest.raises(ValueError) as caught:
        read_vectors(path, 2)
    assert str(caught.value) == (
        f"{path}:{line}: vectors of {found} numbers, but the table has 2 columns; give a file of vectors of size 2, or "
        f"make the model's word and n-gram vectors {found} wide"
    )


@pytest.mark.parametrize(
    ("content", "line", "said"),
    [
        ("\nA text of no vectors .\n", 2, "'A text of no vectors .'"),
        ("2 2\nword\n", 2, "'word'"),
        (b"2 2\n\xff\x00" + 60 * b"\xe3", 2, repr("?\x00" + 38 * "?" + "…")),
    ],
)
def test_files_of_no_vectors_are_refused(file, content, line, said):
    path = file(content)
    with pytest.raises(ValueError) as caught:
        read_vectors(path, 2)
    assert str(caught.value) == (
        f"{path}:{line}: {said} is not a line of a file of vectors (a word, then 2 numbers, separated by single "
        "blanks); give another file"
    )


def test_a_missing_file(tmp_path):
    with pytest.raises(FileNotFoundError, match="absent"):
        read_vectors(str(tmp_path / "absent"), 2)


@given(st.lists(st.one_of(st.none(), TOKENS), max_size=6), st.lists(TOKENS, max_size=6), st.booleans())
def test_rows_with_a_vector_are_filled(strings, others, tensors):
    names = [string for string in strings if string][::2] + others
    vectors = {name: np.arange(2, dtype=np.float32) + 3 * number for number, name in enumerate(names)}
    table = nn.Embedding(len(strings), 2).double()
    before = table.weight.tolist()
    hits = fill_rows(
        table.weight, strings, {k: torch.from_numpy(v) for k, v in vectors.items()} if tensors else vectors
    )
    expected = [vectors[s].tolist() if s in vectors else row for s, row in zip(strings, before, strict=True)]
    assert table.weight.tolist() == expected
    assert hits == sum(s in vectors for s in strings)
    assert table.weight.requires_grad and table.weight.is_leaf


def test_the_hit_rate_is_logged(caplog):
    with caplog.at_level("INFO"):
        fill_rows(torch.zeros(4, 1), [None, "a", "b", "c"], {"b": np.ones(1)}, "v.txt")
    assert "v.txt: 1 of 3 rows have a vector (33.3 %)" in caplog.text


def test_tables_and_vectors_must_fit():
    with pytest.raises(ValueError, match="2 strings for a table of 3 rows; give one for each"):
        fill_rows(torch.zeros(3, 2), ["a", "b"], {})
    with pytest.raises(ValueError, match="the vector of 'b' has 3 numbers, but the table has 2 columns; give"):
        fill_rows(torch.zeros(2, 2), ["a", "b"], {"a": np.ones(2), "b": np.ones(3)})


def representation(**options):
    words = ["The", "cat", *(f"word{n}" for n in range(300))]
    return WordRepresentation(
        SPECIALS + words, [1] * 4 + [2] * len(words), range(4), pad=PAD, unk=UNK, size=50, minimum=2, **options
    )


def line_of(token, value):
    return " ".join([token, *[str(value)] * 50]) + "\n"


def test_a_representation_starts_from_files(file):
    module = representation(lowercase=True)
    # padding stays 0 whatever the file says
    words = file(line_of("the", 2) + line_of("The", 3) + line_of("<pad>", 4) + line_of("</s>", 5), "words")
    ngrams = file(line_of("1gram-c", 6) + line_of("3gram-cat", 7), "ngrams")
    load_vectors(module, words, ngrams)
    filled = {"the": 2.0, "</s>": 5.0, "<pad>": 0.0}
    for row, string in enumerate(module.row_symbols):
        weight = module.words.weight[row].detach()
        if string in filled:
            assert (weight == filled[string]).all()
        else:
            assert 0 < weight.abs().max() <= 1 / 50
    cat = module.vocabulary.index("3gram-cat")
    others = [number for number in range(1, len(module.vocabulary) + 1) if number != cat]
    assert (module.ngrams.weight[cat] == 7).all() and (module.ngrams.weight[0] == 0).all()
    rest = module.ngrams.weight[others].detach()
    assert 0.9 / 50 < rest.abs().max() <= 1 / 50


def test_a_table_without_a_file_stays(file):
    module = representation()
    before = {name: value.clone() for name, value in module.state_dict().items()}
    load_vectors(module, None, file(line_of("3gram-cat", 7)))
    assert torch.equal(module.words.weight, before["words.weight"])
    assert not torch.equal(module.ngrams.weight, before["ngrams.weight"])
    load_vectors(module)
    assert torch.equal(module.words.weight, before["words.weight"])


def test_files_that_are_not_there_are_named_with_their_option(file, tmp_path):
    for path in (str(tmp_path / "absent"), str(tmp_path), file("")):
        with pytest.raises(ValueError, match=r"--lgp-word-vectors .*: no such file of vectors, or it is empty"):
            load_vectors(representation(), path)
