"""fairseq-syntax dictionary."""

import gzip
import subprocess
import sys
from collections import Counter

import pytest
from fairseq.data import Dictionary
from hypothesis import given
from hypothesis import strategies as st

from fairseq_syntax.cli.dictionary import main, open_dictionary
from fairseq_syntax.systems.parser.word_representation import WordRepresentation

TRAIN = "the cat sleeps\nthe dog\n\nThe dog sleeps <unk> sleeps\n"
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


def test_words_of_the_training_text_then_others(texts, capsys):
    assert run(texts, "--extra", str(texts / "valid.en")) == 0
    written = (texts / "new" / "dict.en.txt").read_text(encoding="utf-8")
    assert written == "sleeps 3\ndog 2\nthe 2\nThe 1\ncat 1\ncats 0\nhat 0\n"
    assert [path.name for path in (texts / "new").iterdir()] == ["dict.en.txt"]
    assert capsys.readouterr().err == (
        f"fairseq-syntax dictionary: {texts}/new/dict.en.txt: 5 words of the training text, 2 others with count 0\n"
    )


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


def test_another_text_at_the_end_changes_no_number(texts):
    (texts / "test.en").write_text("a hat\n", encoding="utf-8")
    train, valid, test = (str(texts / f"{name}.en") for name in ("train", "valid", "test"))
    before, after = open_dictionary([train], [valid]), open_dictionary([train], [valid, test])
    assert after.symbols == [*before.symbols, "a"]


def test_unseen_words_have_ngrams_in_the_model(texts):
    """The way from the text to the model, as fairseq goes it."""
    assert run(texts, "--extra", str(texts / "valid.en")) == 0
    dictionary = Dictionary.load(str(texts / "new" / "dict.en.txt"))
    module = WordRepresentation(
        *(dictionary.symbols, dictionary.count, range(dictionary.nspecial)),
        **{"pad": dictionary.pad(), "unk": dictionary.unk(), "size": 3, "minimum": 2},
    )
    assert module.row_symbols == ["<s>", "<pad>", "</s>", "<unk>", "sleeps", "dog", "the"]
    ids = dictionary.encode_line("the hat", add_if_not_exist=False).long().unsqueeze(0)
    assert module.rows(ids).tolist() == [[6, dictionary.unk(), dictionary.eos()]]
    # `at` of "cat" is too rare, of "hat" and "cat" nothing is known but what "the" has: the h
    means = module.ngram_means(ids)[0]
    assert means[0].abs().sum() > 0 and means[2].abs().sum() == 0
    known = [key for key in module.vocabulary.keys if key in ("2gram-he", "2gram-#BEGIN#h", "2gram-t#END#")]
    assert known == ["2gram-he"] and means[1].abs().sum() == 0
    cats = dictionary.index("cats")
    assert [module.vocabulary.keys[n - 1] for n in module.bag[cats].tolist() if n] == ["2gram-s#END#"]


def test_several_files_plain_and_gzipped(texts, capsys):
    more = texts / "more.en.gz"
    more.write_bytes(gzip.compress(b"dog dog\n"))
    options = ["--train", str(texts / "train.en"), str(more), "--extra", str(texts / "valid.en"), str(more)]
    assert main([*options, "--output", "-"]) == 0
    assert capsys.readouterr().out == "dog 4\nsleeps 3\nthe 2\nThe 1\ncat 1\ncats 0\nhat 0\n"


def test_an_existing_dictionary_is_replaced_only_on_demand(texts, capsys):
    assert run(texts) == 0
    path = texts / "new" / "dict.en.txt"
    path.write_text("kept", encoding="utf-8")
    capsys.readouterr()
    assert run(texts) == 1
    assert path.read_text(encoding="utf-8") == "kept"
    assert capsys.readouterr().err == (
        f"fairseq-syntax dictionary: {path}: exists already; give --overwrite to replace it\n"
    )
    assert run(texts, "--overwrite") == 0
    assert path.read_text(encoding="utf-8").startswith("sleeps 3\n")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"fine\n\xff\n", "{path}:2: not UTF-8 (invalid start byte); convert the file to UTF-8"),
        (b"\n \n", "{path}: no words; give the training text that will be binarized"),
        (None, "{path}: cannot be opened (No such file or directory); check the path and the permissions"),
    ],
)
def test_bad_texts(texts, capsys, content, message):
    path = texts / "train.en"
    path.unlink()
    if content is not None:
        path.write_bytes(content)
    assert run(texts) == 1
    assert capsys.readouterr().err == f"fairseq-syntax dictionary: {message.format(path=path)}\n"
    assert not (texts / "new").exists()


def test_it_is_a_program(texts):
    command = [sys.executable, "-m", "fairseq_syntax.cli.dictionary", "--train", str(texts / "train.en")]
    done = subprocess.run([*command, "--output", "-"], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0 and done.stdout.startswith("sleeps 3\n")
    assert subprocess.run(command, capture_output=True, timeout=120).returncode == 2
