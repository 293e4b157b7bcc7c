"""Options of the search that stand beside a checkpoint."""

import pytest

from fairseq_syntax.decoding.search import FILE, read_search, write_search


def test_numbers_and_switches_that_are_not_fairseqs_defaults_are_kept(tmp_path):
    assert read_search(tmp_path) == {}
    write_search(tmp_path, "--beam 5 --max-len-a 1.5 --max-len-b 10 --lenpen 0.6 --max-tokens 4096 --remove-bpe")
    assert read_search(tmp_path) == {"max_len_a": 1.5, "max_len_b": 10, "lenpen": 0.6}
    write_search(tmp_path, {"beam": 3, "unnormalized": True, "nbest": 1})
    assert read_search(tmp_path) == {"beam": 3, "unnormalized": True}


@pytest.mark.parametrize("text", ['{"beam"', "[5]", '{"beam": "5"}', '{"beams": 5}', '{"lm_path": "x"}', "[" * 10**5])
def test_a_file_that_holds_something_else_is_named(text, tmp_path):
    (tmp_path / FILE).write_text(text)
    with pytest.raises(ValueError, match=rf"{FILE}: has no options of a search"):
        read_search(tmp_path)
