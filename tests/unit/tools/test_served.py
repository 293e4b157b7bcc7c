"""An exported model, by another translator: lines that it cannot read are left out."""

import json
import sys
from types import SimpleNamespace

from fairseq_syntax.data.text.recipe import Recipe, Side
from fairseq_syntax.tools import export
from fairseq_syntax.tools.translate import translate


def test_too_long_for_an_exported_model(tmp_path, monkeypatch, caplog):
    (tmp_path / "config.json").write_text(json.dumps({"max_positions": (6, 9)}))
    Recipe(Side("en", "moses", True), Side("de", "moses", True)).write(tmp_path)
    monkeypatch.setitem(sys.modules, "ctranslate2", SimpleNamespace(Translator=lambda *paths, **options: None))
    served = export.Served(tmp_path)
    assert served.encode(["The dog"]) == [["the", "dog", "</s>"]]
    search = {"beam": 1, "max_len_a": 1, "max_len_b": 9}
    calls = []
    found = [SimpleNamespace(hypotheses=[["ein", "Hund"]])]
    served.translator = SimpleNamespace(translate_batch=lambda sources, **how: calls.append((sources, how)) or found)
    assert list(translate(served, ["a b c d e", "", "\u200b\u00ad \ufeff"], **search)) == ["ein Hund", "", ""]
    assert calls[0][0] == [list("abcde")] and calls[0][1]["max_decoding_length"] == 8
    assert list(translate(served, ["a b c d e f", "b"], **search)) == [None, "ein Hund"]
    served.recipe = None
    assert served.encode(["a </s>"]) == [["a", "<unk>", "</s>"]], "as in the hub"
    assert "the text:1: 6 tokens, but the model reads at most 5; not translated: split the line" in caplog.text
