"""Control tokens, which are no words, stay whole in whatever prepares text; an exported model knows them."""

import json
import sys
from types import SimpleNamespace

import pytest

from fairseq_syntax.data.text.recipe import Recipe, Side
from fairseq_syntax.tools import export
from fairseq_syntax.tools.latent_trees import Cutter
from fairseq_syntax.tools.models import Loaded
from fairseq_syntax.tools.translate import translate

RECIPE = Recipe(Side("en", "moses", True), Side("de", "moses", True))
LINE, PIECES = "<BT> The dog <BT>", "<BT> the dog < bt >"


@pytest.fixture
def loaded():
    task = SimpleNamespace(
        text=RECIPE,
        control_tokens=("<BT>",),
        cfg=SimpleNamespace(data=None, source_lang="en", target_lang="de"),
        target_dictionary=(),
        max_positions=lambda: (1024, 1024),
    )
    return Loaded(task, SimpleNamespace(max_positions=lambda: (6, 9)), "transformer", "x.pt", "cpu")


def test_of_the_source(loaded):
    assert loaded.pieces(LINE) == PIECES
    assert loaded.pieces(LINE, target=True) == "< bt > the dog < bt >"
    words, source = Cutter(loaded, "none").of_line(LINE, "x")
    assert words == source.pieces == PIECES.split() and source.words == 6
    assert source.word_of_token == list(range(6))


@pytest.fixture
def served(loaded, tmp_path, monkeypatch):
    """What is exported, by another translator."""

    config = {"control_tokens": ["<BT>"], "max_positions": loaded.max_positions}
    (tmp_path / "config.json").write_text(json.dumps(config))
    RECIPE.write(tmp_path)
    monkeypatch.setitem(sys.modules, "ctranslate2", SimpleNamespace(Translator=lambda *paths, **options: None))
    return export.Served(tmp_path)


def test_of_an_exported_model(served):
    assert served.encode([LINE]) == [[*PIECES.split(), "</s>"]]


def test_too_long_for_an_exported_model(served, caplog):
    search = {"beam": 1, "max_len_a": 1, "max_len_b": 9}
    calls = []
    found = [SimpleNamespace(hypotheses=[["ein", "Hund"]])]
    served.translator = SimpleNamespace(translate_batch=lambda sources, **how: calls.append((sources, how)) or found)
    assert list(translate(served, ["a b c d e", "", "\u200b\u00ad \ufeff"], **search)) == ["ein Hund", "", ""]
    assert calls[0][0] == [list("abcde")] and calls[0][1]["max_decoding_length"] == 8
    assert list(translate(served, ["a b c d e f", "b"], **search)) == [None, "ein Hund"]
    assert "the text:1: 6 tokens, but the model reads at most 5; not translated: split the line" in caplog.text
