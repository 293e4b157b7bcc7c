"""The recipe of a text: pieces of raw lines, lines of pieces, and its file."""

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fairseq_syntax.data.splits import check_directories
from fairseq_syntax.data.text.recipe import FILE, Recipe, Side, read_recipe
from fairseq_syntax.data.text.tokenizers import normalize
from fairseq_syntax.files import checksum
from fairseq_syntax.tools.raw_text import _learn_merges, _learn_pieces
from fairseq_syntax.trees.subwords import join_subwords

TRAINING = ["the old dog sees a cat", "the cats see the older dogs", "a dog , the dogs , the doggies"] * 5
LEARN = {"subword_nmt": (_learn_merges, 30), "sentencepiece": (_learn_pieces, 300)}


@pytest.fixture(scope="module")
def sides(tmp_path_factory) -> dict[str, Side]:
    """Name of a segmentation -> a side of whole words, which it cuts."""
    folder = tmp_path_factory.mktemp("codes")
    found = {"none": Side("en", "none")}
    for name, (learn, size) in LEARN.items():
        learn(TRAINING, folder / name, size)
        found[name] = Side("en", "none", False, name, name, checksum(folder / name), folder)
    return found


NAMES = ["none", *LEARN]


@pytest.mark.parametrize("name", NAMES)
@given(line=st.text(st.sampled_from("adog 猫é@\u2581\u00a0<0x>")))
def test_pieces_are_put_together_again(sides, name, line):
    """To the words of the line, which is what a tree stands over; marks of pieces in the text are no marks."""
    side = sides[name]
    [words] = side.words([line])
    pieces = side.encode(line)
    assert side.decode(pieces) == " ".join(words) == " ".join(side.join(pieces))
    assert join_subwords(pieces.split(), name)[0] == words
    plain = normalize(line).replace("\u2581", "_") if name == "sentencepiece" else normalize(line)
    assert "".join(words) == plain.replace(" ", "")


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
    recipe = Recipe(sides["subword_nmt"], Side("de"), {"spacy": {"parser_model": "en_core_web_sm"}}, {"escapes": 0.1})
    assert recipe.between("en", "de") is recipe
    assert recipe.between("de", "en") == Recipe(Side("de"), sides["subword_nmt"])
    assert replace(recipe, parser={"none": {}}).between("de", "en").parser == {"none": {}}
    for others in (("en", "fr"), ("de", None)):
        with pytest.raises(ValueError, match=r"text\.json: is of en-de; use data of .*-"):
            recipe.between(*others)


def test_other_codes_are_refused(sides, tmp_path):
    Recipe(sides["subword_nmt"], sides["none"]).write(tmp_path)
    with open(tmp_path / "subword_nmt", "a", encoding="utf-8") as file:
        file.write("c a\n")
    with pytest.raises(ValueError, match=r"subword_nmt: missing, or not the file that text\.json names"):
        read_recipe(tmp_path).source.encode("the cat")


def test_data_that_are_trained_together_have_one_recipe(tmp_path):
    """In either direction; data of which nothing is known are accepted."""
    recipe = Recipe(Side("en"), Side("de"), {"none": {}})
    given = {"first": recipe, "plain": None, "turned": recipe.between("de", "en"), "upper": recipe}
    given["lower"] = replace(recipe, source=Side("en", lowercase=True))
    for name, each in given.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / "dict.en.txt").write_text("a 1\n")
        if each:
            each.write(tmp_path / name)
    check_directories(":".join(str(tmp_path / name) for name in ("plain", "first", "turned", "upper")))
    with pytest.raises(ValueError, match=r"lower/text\.json: differs from .*first/text\.json, so that"):
        check_directories(":".join(str(tmp_path / name) for name in ("plain", "first", "lower")))


@pytest.mark.parametrize(
    "change",
    [
        {"version": 2},
        {"source": {"language": "en"}},
        {"parser": {"spacy": {"parser_model": "./pipeline"}}},
        {"parser": {"stanza": {"parser_dir": "somewhere"}}},
        {"parser": {"stanza": {"nosuch": "x"}}},
        {"source.tokenizer": "spacy:./pipeline"},
        {"source.codes": "../codes"},
        {"source.subwords": "bytes"},
        {"source.lowercase": "no"},
    ],
)
def test_damaged_recipes(sides, tmp_path, change):
    """Among them, what would run code from a folder, or read a file somewhere else."""
    Recipe(sides["subword_nmt"], sides["none"]).write(tmp_path)
    content = json.loads((tmp_path / FILE).read_text())
    for key, value in change.items():
        part, _, name = key.partition(".")
        if name:
            content[part][name] = value
        else:
            content[part] = value
    (tmp_path / FILE).write_text(json.dumps(content))
    with pytest.raises(ValueError, match=r"text\.json: not a recipe "):
        read_recipe(tmp_path)
