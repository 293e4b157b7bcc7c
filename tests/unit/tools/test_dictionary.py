"""fairseq-syntax dictionary."""

import gzip
from collections import Counter

import pytest
from fairseq.data import Dictionary
from hypothesis import given
from hypothesis import strategies as st

from fairseq_syntax.tools.dictionary import main

TRAIN = "the cat sleeps\nthe dog\n\nThe dog sleeps sleeps\n"
EXTRA = "the  hat\tcats\n"
# letters, specials, and spaces of all kinds, at which fairseq splits
TEXTS = st.text(st.sampled_from("abc é字#<>\t\n\u3000\u00a0\u2028\x85"), max_size=40)


@pytest.fixture
def texts(tmp_path):
    (tmp_path / "train.en").write_text(TRAIN, encoding="utf-8")
    (tmp_path / "valid.en").write_text(EXTRA, encoding="utf-8")
    return tmp_path


def run(folder, *options):
    return main(["--train", str(folder / "train.en"), "--output", str(folder / "new" / "dict.en.txt"), *options])


def test_symbols_of_fairseq_are_refused(texts, capsys):
    (texts / "valid.en").write_text("a\n<s> b\n")
    assert run(texts, "--extra", str(texts / "valid.en")) == 1
    assert f"{texts}/valid.en:2: the word <s> is a symbol of fairseq's dictionaries" in capsys.readouterr().err


@pytest.mark.parametrize("end, unpack", [("", ""), (".gz", "gunzip {}.gz; ")])
def test_a_byte_order_mark_is_refused_as_in_preprocessing(texts, capsys, end, unpack):
    plain = texts / "marked.en"
    with (gzip.open if end else open)(f"{plain}{end}", "wb") as file:
        file.write(b"\xef\xbb\xbfthe cat\n")
    assert run(texts, "--extra", f"{plain}{end}") == 1
    said = capsys.readouterr().err
    assert f"{plain}{end}: begins with a byte order mark" in said
    assert said.endswith(f"remove it: {unpack.format(plain)}sed -i '1s/^\\xEF\\xBB\\xBF//' {plain}\n")


@given(st.lists(TEXTS, min_size=1, max_size=3), st.lists(TEXTS, max_size=3))
def test_the_dictionary_equals_counting(tmp_path_factory, train, extra):
    folder = tmp_path_factory.mktemp("texts")
    paths = {}
    for kind, texts in (("train", train), ("extra", extra)):
        paths[kind] = [folder / f"{kind}{number}" for number in range(len(texts))]
        for path, text in zip(paths[kind], texts, strict=True):
            path.write_bytes(text.encode("utf-8"))
    counts = Counter(" ".join(train).split())
    output = folder / "dict.txt"
    options = ["--extra", *map(str, paths["extra"])] if extra else []
    status = main(["--train", *map(str, paths["train"]), *options, "--output", str(output)])
    if not counts:
        assert status == 1 and not output.exists()
        return
    assert status == 0
    loaded = Dictionary.load(str(output))
    expected = sorted(counts, key=lambda word: (-counts[word], word))
    for text in extra:
        expected += sorted(set(text.split()) - set(expected))
    words = loaded.symbols[loaded.nspecial :]
    assert words == expected
    assert loaded.count[loaded.nspecial :] == [counts[word] for word in words]


def test_several_files_plain_and_gzipped(texts, capsys):
    more = texts / "more.en.gz"
    more.write_bytes(gzip.compress(b"dog dog\n"))
    options = ["--train", str(texts / "train.en"), str(more), "--extra", str(texts / "valid.en"), str(more)]
    assert main([*options, "--output", "-"]) == 0
    assert capsys.readouterr().out == "dog 4\nsleeps 3\nthe 2\nThe 1\ncat 1\ncats 0\nhat 0\n"
