"""fairseq-syntax characters."""

import gzip

import pytest

from fairseq_syntax.tools.characters import main

TEXT = "Eine  Gruppe\r\n\n a▁b \n"
CHARACTERS = "E i n e ▁ G r u p p e\n\na _ b\n"


@pytest.fixture
def text(tmp_path):
    path = tmp_path / "text"
    path.write_text(TEXT, encoding="utf-8", newline="")
    return path


def test_files_plain_and_packed(text, tmp_path):
    packed = tmp_path / "more.gz"
    packed.write_bytes(gzip.compress(b"noch eins"))
    output = tmp_path / "new" / "characters"
    assert main(["--input", str(text), str(packed), "--output", str(output)]) == 0
    assert output.read_text(encoding="utf-8") == CHARACTERS + "n o c h ▁ e i n s\n"
    again = tmp_path / "again.gz"
    assert main(["--input", str(output), "--restore", "--output", str(again)]) == 0
    assert gzip.decompress(again.read_bytes()).decode() == "Eine Gruppe\n\na_b\nnoch eins\n"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["again.gz", "more.gz", "new", "text"]


def test_repeated_pairs_of_words(tmp_path, capsys):
    (tmp_path / "repeated").write_text("a ▁ b ▁ a ▁ b ▁ c ▁ a ▁ b\n")
    assert main(["--input", str(tmp_path / "repeated"), "--restore", "--dedup", "adjacent"]) == 0
    assert capsys.readouterr().out == "a b c a b\n"
