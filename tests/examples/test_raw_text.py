"""examples/experiments/raw_text.py: from raw text to tokens and back."""

from pathlib import Path

import pytest

FOLDER = Path(__file__).resolve().parents[2] / "examples" / "experiments"


@pytest.fixture
def raw_text(monkeypatch):
    monkeypatch.syspath_prepend(str(FOLDER))
    import raw_text

    return raw_text


@pytest.mark.parametrize(
    ("language", "raw", "tokens"),
    [
        ("en", "It's 5\u00a0km, isn't\tit?", "It 's 5 km , is n't it ?"),
        ("de", "Er sagt: \u201eJa & nein\u201c, u.a. heute.\u200b", "Er sagt : \u201e Ja & nein \u201c , u.a. heute ."),
        ("sw", "Ng'ombe wake, (wawili).", "Ng ' ombe wake , ( wawili ) ."),
        ("ja", "十刹は禅林。", "十 刹 は 禅林 。"),
    ],
)
def test_text_in_tokens_and_again(raw_text, language, raw, tokens):
    assert [*raw_text.tokenized([raw, "", " "], language)] == [tokens, "", ""]
    if language in ("de", "ja"):
        assert raw_text.detokenized([tokens, ""], language) == [raw.replace("\u200b", ""), ""]
    assert raw_text.detokenized(["Ja &amp; nein ."], "de") == ["Ja &amp; nein."]


def test_empty_and_long_pairs_are_left_out(raw_text, tmp_path, capsys):
    source, target = tmp_path / "train.en", tmp_path / "train.de"
    source.write_text("a b\n\nc\nd e f\n")
    target.write_text("A\nB\n\nD\n")
    raw_text.clean(str(tmp_path / "train"), "en", "de", longest=2)
    assert (source.read_text(), target.read_text()) == ("a b\n", "A\n")
    assert "1 of 4 pairs kept" in capsys.readouterr().err
    target.write_text("A\nB\n")
    with pytest.raises(ValueError):
        raw_text.clean(str(tmp_path / "train"), "en", "de", longest=2)


def test_trees_get_the_case_of_the_text(raw_text, tmp_path):
    tree = "# text = X\n1\tthe\t_\tDET\t_\t_\t2\tdet\t_\t_\n2\tcat\t_\tNOUN\t_\t_\t0\troot\t_\t_\n\n"
    (tmp_path / "trees").write_text(tree, encoding="utf8")
    (tmp_path / "text").write_text("The CAT\n", encoding="utf8")
    raw_text.recase(tmp_path / "trees", tmp_path / "text", str(tmp_path / "cased"))
    assert (tmp_path / "cased").read_text(encoding="utf8") == tree.replace("the", "The").replace("cat", "CAT")
    (tmp_path / "text").write_text("The dog\n", encoding="utf8")
    with pytest.raises(ValueError, match=r"trees:1: not the tree of 'The dog'"):
        raw_text.recase(tmp_path / "trees", tmp_path / "text", str(tmp_path / "cased"))
    given = [str(tmp_path / name) for name in ("words", "again", "raw")]
    raw_text.unpack(tmp_path / "trees", *given)
    assert [Path(path).read_text(encoding="utf8") for path in given] == ["the cat\n", tree, "X\n"]
