"""The recipe of a text: pieces of raw lines, lines of pieces, and its file."""

import gzip
import json
import unicodedata
from dataclasses import replace
from itertools import islice

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairseq_syntax.data.text.languages import language_of
from fairseq_syntax.data.text.recipe import RECIPE, Recipe, Side, read_recipe
from fairseq_syntax.data.text.tokenizers import FORMS, form_of, normalize
from fairseq_syntax.files import checksum
from fairseq_syntax.preparation.text import _learn_merges, _learn_pieces
from fairseq_syntax.trees.subwords import join_subwords, without_joiners

TRAINING = ["the old dog sees a cat", "the cats see the older dogs", "a dog , the dogs , the doggies"] * 5
LEARN = {"subword_nmt": (_learn_merges, 30), "sentencepiece": (_learn_pieces, 300)}


@pytest.fixture(scope="module")
def sides(tmp_path_factory) -> dict[str, Side]:
    """Name of a segmentation -> a side of whole words, which it cuts."""
    folder = tmp_path_factory.mktemp("codes")
    found = {"none": Side("en", "none")}
    for name, (learn, size) in LEARN.items():
        learn(TRAINING, folder / name, size)
        found[name] = Side("en", "none", False, name, name, checksum(folder / name), folder=folder)
    return found


ODD = st.text(st.sampled_from("adog'’.,-1 猫éก😀@\u2581\u00a0<0x>\u0301\u200d\u200c\ufe0f\uffed\uffee&;/|#ﬁ\u1161"))


@pytest.mark.parametrize("name", ["none", *LEARN])
@pytest.mark.parametrize("tokenizer", ["words", "none"])
@given(line=st.text() | ODD)
def test_odd_strings_come_back(sides, name, tokenizer, line):
    """To the line, and to the words that a tree stands over."""
    side = replace(sides[name], tokenizer=tokenizer)
    [words] = side.words([line])
    pieces = side.encode(line)
    assert side.decode(pieces) == unicodedata.normalize(side.form, normalize(line)) and words == side.join(pieces)
    assert join_subwords(pieces.split(), side.subwords)[0] == without_joiners(words)


LANGUAGES = "yor hau ibo fon ewe bbj amh kin lug bam swa pcm tur jpn zho deu".split()


@pytest.mark.full
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("language", LANGUAGES)
def test_a_thousand_lines_of_a_language_come_back(real_data, tmp_path, language, form):
    """As they were written, in either normal form of Unicode, through the subwords that the language has by default."""
    with gzip.open(real_data / "languages" / f"{language}.gz", "rt", encoding="utf-8") as file:
        lines = [unicodedata.normalize(form, normalize(line, None)) for line in islice(file, 1000)]
    name, size = ("subword_nmt", 200) if language_of(language).spaced else ("sentencepiece", 2000)
    side = Side(language, "words" if name == "subword_nmt" else "none", form=form)
    (_learn_merges if name == "subword_nmt" else _learn_pieces)(map(" ".join, side.words(lines)), tmp_path / name, size)
    side = replace(side, subwords=name, codes=name, sha256=checksum(tmp_path / name), folder=tmp_path)
    assert len(lines) > 490 and form_of(lines) in (form, "NFC")
    assert [side.decode(side.encode(line)) for line in lines] == lines


@pytest.mark.parametrize("name", LEARN)
def test_words_are_cut(sides, name):
    pieces = sides[name].encode("the dog meows 猫")
    assert len(pieces.split()) > 4
    # a translation may end inside a word
    cut = pieces.split()[:-1]
    assert sides[name].join(" ".join(cut))[:2] == ["the", "dog"]


def test_settings(sides):
    side = replace(sides["subword_nmt"], tokenizer="moses", lowercase=True)
    assert side.words(["The DOG's, a cat."]) == [["the", "dog", "'s", ",", "a", "cat", "."]]
    assert side.words(["The DOG 's"], tokenized=True) == [["the", "dog", "'s"]]
    assert side.decode(side.encode("The DOG's, a cat.")) == "the dog's, a cat."


def test_file(sides, tmp_path, monkeypatch):
    # which are no matter to a recipe
    monkeypatch.chdir(tmp_path)
    for name in ("en", "en_core_web_sm"):
        (tmp_path / name).mkdir()
    recipe = Recipe(sides["subword_nmt"], sides["sentencepiece"], {"spacy": {"parser_model": "en_core_web_sm"}})
    recipe = replace(recipe, source=replace(recipe.source, tokenizer="spacy:en"))
    recipe.write(tmp_path)
    found = read_recipe(tmp_path)
    assert found == recipe and found.digest == recipe.digest
    assert found.source.encode("the dogs") == recipe.source.encode("the dogs")
    assert found.target.encode("the dogs") == recipe.target.encode("the dogs")
    assert read_recipe(tmp_path / "none") is None
    # trees of another parser are over the same pieces; other settings make other pieces
    assert replace(recipe, parser={}).digest == recipe.digest
    for other in (replace(recipe.source, lowercase=True), replace(recipe.source, sha256="0"), sides["none"]):
        assert replace(recipe, source=other).digest != recipe.digest


def test_the_other_direction(sides):
    """A tokeniser, a case and codes belong to a language; a parser with a model, and the shares, to the source."""
    recipe = Recipe(
        sides["subword_nmt"], Side("de"), {"spacy": {"parser_model": "en_core_web_sm"}}, {"single characters": 0.1}
    )
    assert recipe.between("en", "de") is recipe
    assert recipe.between("de", "en") == Recipe(Side("de"), sides["subword_nmt"])
    assert replace(recipe, parser={"none": {}}).between("de", "en").parser == {"none": {}}
    for others in (("en", "fr"), ("de", None)):
        with pytest.raises(ValueError, match=r"text\.json: is of en-de; use data of .*-"):
            recipe.between(*others)


@pytest.mark.parametrize("content", ["", "x\n", "#version: x\n", "\0"])
@pytest.mark.parametrize("subwords", ["subword_nmt", "sentencepiece"])
def test_codes_that_are_none_are_named(tmp_path, capfd, subwords, content):
    path = tmp_path / "codes"
    path.write_text(content)
    side = Side("en", subwords=subwords, codes="codes", sha256=checksum(path), folder=tmp_path)
    with pytest.raises(ValueError, match=rf"codes: not codes of {subwords}; run preprocess again"):
        side.encode("the cat")
    assert "".join(capfd.readouterr()) == ""


def test_other_codes_are_refused(sides, tmp_path):
    Recipe(sides["subword_nmt"], sides["none"]).write(tmp_path)
    with open(tmp_path / "subword_nmt", "a", encoding="utf-8") as file:
        file.write("c a\n")
    with pytest.raises(ValueError, match=r"subword_nmt: missing, or not the file that text\.json names"):
        read_recipe(tmp_path).source.encode("the cat")


@pytest.mark.parametrize(
    "change",
    [
        {"version": 1},
        {"source": {"language": "en"}},
        {"parser": {"spacy": {"parser_model": "./pipeline"}}},
        {"parser": {"stanza": {"parser_dir": "somewhere"}}},
        {"parser": {"stanza": {"nosuch": "x"}}},
        {"source.tokenizer": "spacy:./pipeline"},
        {"source.tokenizer": "spacy", "source.language": "served/evil"},
        {"source.codes": "../codes"},
        {"source.subwords": "bytes"},
        {"source.lowercase": "no"},
        {"target.form": "NFKC"},
    ],
)
def test_damaged_recipes(sides, tmp_path, change):
    """Among them, what would run code from a folder, or read a file somewhere else."""
    Recipe(sides["subword_nmt"], sides["none"]).write(tmp_path)
    content = json.loads((tmp_path / RECIPE).read_text())
    for key, value in change.items():
        part, _, name = key.partition(".")
        if name:
            content[part][name] = value
        else:
            content[part] = value
    (tmp_path / RECIPE).write_text(json.dumps(content))
    with pytest.raises(ValueError, match=r"text\.json: not a recipe "):
        read_recipe(tmp_path)
