"""Raw text that is not raw, or not parallel."""

import pytest

from fairseq_syntax.data.text.recipe import Side
from fairseq_syntax.tools.raw_text import RawText
from fairseq_syntax.trees.conllu import read_conllu

PLAIN = [f"This is line {i}, isn't it?" for i in range(50)]
OTHER = [f"Das ist Zeile {i}, nicht wahr?" for i in range(50)]


def prepare(folder, source, target, **settings):
    for language, lines in (("en", source), ("de", target)):
        (folder / f"train.{language}").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    sides = (
        Side("en", settings.pop("tokenizer", "moses"), False, subwords := settings.pop("subwords", "subword_nmt")),
        Side("de", "moses", False, subwords),
    )
    raw = RawText({"train": str(folder / "train")}, *sides, size=20, parser="none", **settings)
    return raw.prepare(folder / "text")


def test_plain_text(tmp_path, capsys):
    recipe = prepare(tmp_path, PLAIN, OTHER)
    assert "warning" not in capsys.readouterr().err
    trees = list(read_conllu(tmp_path / "text" / "train.en.conllu.gz"))
    assert trees[3].forms == "This is line 3 , isn 't it ?".split() and not trees[3].is_parsed
    assert recipe.parser == {"none": {}} and recipe.shares["escapes"] == 0


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
        (lambda line: f"<BT> {line}", "50 of 50 lines begin with <BT>; if it is not a word, give --control-tokens"),
        (lambda line: OTHER[PLAIN.index(line)], "train.de: 50 of 50 lines are the same as in "),
    ],
)
def test_what_is_wrong_with_it_is_counted(tmp_path, capsys, change, said):
    prepare(tmp_path, [change(line) for line in PLAIN], OTHER)
    error = capsys.readouterr().err
    assert said in error and error.count("warning") == 1


def test_text_in_tokens_and_with_tags(tmp_path, capsys):
    lines = [f"<BT> {line[:-1]} ?" for line in PLAIN]
    prepare(tmp_path, lines, OTHER, tokenizer="none", control_tokens=("<BT>",))
    assert "warning" not in capsys.readouterr().err
    pieces = (tmp_path / "text" / "train.en").read_text(encoding="utf-8").splitlines()
    tree = next(read_conllu(tmp_path / "text" / "train.en.conllu.gz"))
    assert pieces[3].split()[0] == "<BT>" and "<BT>" not in tree.forms


@pytest.mark.parametrize("name", ["train.de", "train.en.conllu.gz", "words/train.en"])
def test_files_of_others_are_not_taken_for_pieces(tmp_path, name):
    (tmp_path / "text" / name).parent.mkdir(parents=True)
    (tmp_path / "text" / name).write_text("mine\n")
    with pytest.raises(FileExistsError, match=r"--raw .*text: .* is there, which this command did not write; name"):
        prepare(tmp_path, PLAIN, OTHER)
    assert [path.name for path in (tmp_path / "text").iterdir()] == [name.partition("/")[0]]


def test_the_folder_of_the_text_itself_is_refused(tmp_path):
    (tmp_path / "text").symlink_to(tmp_path)
    with pytest.raises(FileExistsError, match="name another folder"):
        prepare(tmp_path, PLAIN, OTHER)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["text", "train.de", "train.en"]


@pytest.mark.parametrize("joined", [False, True])
@pytest.mark.parametrize("subwords", ["subword_nmt", "sentencepiece"])
def test_subwords_that_cannot_be_learned(tmp_path, subwords, joined):
    with pytest.raises(ValueError, match=r"train\.en.*: has no words to learn subwords of; give text, or "):
        prepare(tmp_path, ["", " "], ["", ""], subwords=subwords, joined=joined)


def test_fewer_pieces_than_characters(tmp_path):
    with pytest.raises(
        ValueError, match=r"train\.en: give another --subword-size than 20 \(Vocabulary size is smaller"
    ):
        prepare(tmp_path, PLAIN, OTHER, subwords="sentencepiece")
