"""Raw text that is not raw, or not parallel."""

import unicodedata

import pytest

from fairseq_syntax.data.parsers import ParserOptions
from fairseq_syntax.data.text.recipe import Side, read_recipe
from fairseq_syntax.preparation.text import TextPreparation
from fairseq_syntax.tools import preprocess
from fairseq_syntax.trees.conllu import Sentence, format_sentence, read_conllu

PLAIN = [f"This is line {i}, isn't it?" for i in range(50)]
OTHER = [f"Das ist Zeile {i}, nicht wahr?" for i in range(50)]


def prepare(folder, source, target, **settings):
    for language, lines in (("en", source), ("de", target)):
        (folder / f"train.{language}").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    sides = (
        Side("en", settings.pop("tokenizer", "words"), False, subwords := settings.pop("subwords", "subword_nmt")),
        Side("de", settings.pop("target_tokenizer", "words"), False, subwords),
    )
    settings = {"size": 20, "parser": "none", **settings}
    splits = {name: str(folder / name) for name in settings.pop("splits", ["train"])}
    return TextPreparation(splits, *sides, **settings).prepare(folder / "text")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda line: line.replace("'", "&apos;"), "train.en: 50 of 50 lines have &apos;; write them as the character"),
        (
            lambda line: line.replace("line", "li@@ ne"),
            "50 of 50 lines are already cut into subwords; give the text as it was",
        ),
        (
            lambda line: line.replace("?", " ?"),
            "50 of 50 lines end in a separate token (?); for tokenised text, give the",
        ),
        (lambda line: OTHER[PLAIN.index(line)], "train.de: 50 of 50 lines are the same as in "),
    ],
)
def test_what_is_wrong_with_it_is_counted(tmp_path, capsys, change, said):
    prepare(tmp_path, [change(line) for line in PLAIN], OTHER)
    error = capsys.readouterr().err
    assert said in error and error.count("warning") == 1


def test_text_in_tokens(tmp_path, capsys):
    recipe = prepare(tmp_path, [f"{line[:-1]} ?" for line in PLAIN], OTHER, tokenizer="none")
    assert "warning" not in capsys.readouterr().err
    tree = list(read_conllu(tmp_path / "text" / "train.en.conllu.gz"))[3]
    assert tree.forms == "This is line 3, isn't it ?".split() and not tree.is_parsed
    assert recipe.parser == {"none": {}} and 0 < recipe.shares["single characters"] < 1


def test_a_set_that_is_added_gets_its_own_trees(tmp_path):
    """Of sentences that are equal, from a file, whose words have no joiners."""
    text, settings = (
        ["One two."] * 4,
        {"parser": "conllu", "options": ParserOptions(parser_model=tmp_path / "all.conllu")},
    )
    trees = [Sentence(["One", "two", "."], heads, ["dep"] * 3, ["X"] * 3) for heads in ([-1, 0, 0], [1, -1, 1])]
    (tmp_path / "all.conllu").write_text("".join(map(format_sentence, [trees[0]] * 4 + [trees[1]] * 4)))
    for language in ("en", "de"):
        (tmp_path / f"test.{language}").write_text("".join(f"{line}\n" for line in text))
    for _ in range(2):
        prepare(tmp_path, text, OTHER[:4], subwords="none", **settings)
        settings["splits"] = ("train", "test")
    found = [list(read_conllu(tmp_path / "text" / f"{name}.en.conllu.gz")) for name in ("train", "test")]
    assert [[tree.heads for tree in split] for split in found] == [[trees[0].heads] * 4, [trees[1].heads] * 4]


@pytest.mark.parametrize("name", ["train.de", "train.en.conllu.gz", "words/train.en"])
def test_files_of_others_are_not_taken_for_pieces(tmp_path, name):
    (tmp_path / "text" / name).parent.mkdir(parents=True)
    (tmp_path / "text" / name).write_text("mine\n")
    with pytest.raises(FileExistsError, match=r"--raw .*text: holds what this command did not write; name"):
        prepare(tmp_path, PLAIN, OTHER)
    assert (tmp_path / "text" / name).read_text() == "mine\n"


@pytest.mark.parametrize(
    ("source", "subwords", "said"),
    [
        (["", " "], "subword_nmt", r"train\.en.*: has no words to learn subwords of; give text, or "),
        (["", " "], "sentencepiece", r"train\.en.*: has no words to learn subwords of; give text, or "),
        (PLAIN, "sentencepiece", r"train\.en: give another --subword-size than 20 \(Vocabulary size is smaller"),
        # subword-nmt writes codes then that it cannot read
        (["ab"], "subword_nmt", r"train\.en: no two characters stand together twice, .*--subword-type none"),
    ],
)
def test_subwords_that_cannot_be_learned(tmp_path, source, subwords, said):
    with pytest.raises(ValueError, match=said):
        prepare(tmp_path, source, OTHER[: len(source)], subwords=subwords)
    assert not (tmp_path / "text" / "codes.en").exists()


YORUBA = ["Ọ̀pọ̀ farapa, lẹ́yìn náà.", "bala'in yunwa, b’ububanyi n’amahanga", "“Stop!” she said. “No.”"] * 17


@pytest.mark.parametrize("form", ["NFC", "NFD"])
def test_the_target_comes_back(tmp_path, capsys, form):
    text = [unicodedata.normalize(form, line) for line in YORUBA]
    recipe = prepare(tmp_path, PLAIN, text[:50])
    said = "train.de: 100 % of 50 lines come back whole from pieces; a perfect translation has 100.0 BLEU (tok:13a)"
    assert said in capsys.readouterr().err
    pieces = (tmp_path / "text" / "train.de").read_text(encoding="utf-8").splitlines()
    assert recipe.target.form == form and [recipe.target.decode(line) for line in pieces] == text[:50]


def test_a_target_that_would_not_come_back_is_refused(tmp_path):
    """Before the source is parsed."""
    with pytest.raises(
        ValueError, match=r"train\.de: 0 % of 50 .* has \d\d\.\d BLEU .*: --target-tokenizer moses makes '“Stop! ” she"
    ):
        prepare(tmp_path, PLAIN, YORUBA[:50], target_tokenizer="moses")
    assert not (tmp_path / "text" / "train.en.conllu.gz").exists()


@pytest.mark.parametrize(
    "text, character",
    [
        (["O\u0323\u0300"] * 20 + ["\u1ecc\u0300 o"] * 30, "O\u0323\u0300"),
        (["\u0958 \u0959"] * 50, "\u0958"),  # for which NFC has two characters
    ],
)
def test_a_target_in_no_normal_form_is_refused(tmp_path, text, character):
    with pytest.raises(ValueError) as error:
        prepare(tmp_path, PLAIN, text)
    assert f": {character} ({character!a}) is not in NFC; write the text in it: uconv -x any-NFC" in str(error.value)


def test_a_language_is_the_same_by_all_its_codes(tmp_path, capsys):
    """And one without spaces between words is cut by sentencepiece, spaces and all."""
    chinese = [f"第{i}行，不是吗？ café au lait {i * 7:,}.50" for i in range(50)]
    made = {}
    for code in ("zh", "zh_CN", "zho_Hans"):
        for language, lines in (("en", PLAIN), (code, chinese)):
            (tmp_path / f"train.{language}").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        folder = tmp_path / code
        options = ["--source-lang", "en", "--target-lang", code, "--trainpref", str(tmp_path / "train")]
        options += ["--raw", str(folder), "--destdir", str(folder / "bin"), "--subword-size", "400", "--parser", "none"]
        assert preprocess.main(options) == 0
        assert "a perfect translation has 100.0 BLEU (tok:zh)" in capsys.readouterr().err
        made[code], recipe = (folder / f"train.{code}").read_text(encoding="utf-8"), read_recipe(folder / "bin")
        assert [recipe.target.decode(line) for line in made[code].splitlines()] == chinese
        assert (recipe.source.subwords, recipe.target.subwords) == ("subword_nmt", "sentencepiece")
    assert made["zh"] == made["zh_CN"] == made["zho_Hans"]
