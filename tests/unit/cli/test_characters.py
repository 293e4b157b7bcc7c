"""fairseq-syntax characters."""

import gzip
import io
import sys

import pytest

from fairseq_syntax.cli.characters import main

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


def pipe(monkeypatch, capsys, data: bytes, *options):
    """(status, stdout, stderr) with some bytes on stdin."""
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data), encoding="ascii"))
    status = main(list(options))
    return (status, *capsys.readouterr())


def test_standard_streams(monkeypatch, capsys):
    assert pipe(monkeypatch, capsys, TEXT.encode()) == (0, CHARACTERS, "")
    assert pipe(monkeypatch, capsys, CHARACTERS.encode(), "--restore") == (0, "Eine Gruppe\n\na_b\n", "")


@pytest.mark.parametrize(
    ("rule", "expected"), [("none", "a b a b c a b"), ("adjacent", "a b c a b"), ("seen", "a b c")]
)
def test_repeated_pairs_of_words(monkeypatch, capsys, rule, expected):
    characters = "a ▁ b ▁ a ▁ b ▁ c ▁ a ▁ b\n".encode()
    status, out, _ = pipe(monkeypatch, capsys, characters, "--restore", "--dedup", rule)
    assert (status, out) == (0, f"{expected}\n")


def test_existing_output_is_kept(text, tmp_path, capsys):
    output = tmp_path / "characters"
    output.write_text("mine")
    assert main(["--input", str(text), "--output", str(output)]) == 1
    assert "characters: exists already; give --overwrite" in capsys.readouterr().err
    assert output.read_text() == "mine"
    assert main(["--input", str(text), "--output", str(output), "--overwrite"]) == 0
    assert output.read_text(encoding="utf-8") == CHARACTERS


def test_text_that_cannot_be_read_leaves_nothing_behind(text, tmp_path, capsys, monkeypatch):
    bad = tmp_path / "bad"
    bad.write_bytes(b"x\n\xff\n")
    output = tmp_path / "characters"
    assert main(["--input", str(text), str(bad), "--output", str(output)]) == 1
    assert "bad:2: not UTF-8" in capsys.readouterr().err
    assert main(["--input", str(tmp_path / "nowhere"), "--output", str(output)]) == 1
    assert "nowhere: cannot be opened" in capsys.readouterr().err
    (tmp_path / "cut.gz").write_bytes(gzip.compress(TEXT.encode() * 99)[:-20])
    assert main(["--input", str(tmp_path / "cut.gz"), "--output", str(output)]) == 1
    assert "cut.gz:" in capsys.readouterr().err
    assert not output.exists() and not list(tmp_path.glob("*.tmp"))
    status, _, err = pipe(monkeypatch, capsys, b"x\n\xff\n")
    assert status == 1 and "stdin:2: not UTF-8" in err


def test_wrong_usage(capsys):
    with pytest.raises(SystemExit) as caught:
        main(["--dedup", "adjacent"])
    assert caught.value.code == 2 and "--restore" in capsys.readouterr().err


def test_real_captions(real_data, tmp_path):
    source = real_data / "multi30k" / "train.de.gz"
    assert main(["--input", str(source), "--output", str(tmp_path / "characters")]) == 0
    assert main(["--input", str(tmp_path / "characters"), "--restore", "--output", str(tmp_path / "text")]) == 0
    with gzip.open(source, "rt", encoding="utf-8", newline="\n") as lines:
        expected = [" ".join(line.split()) for line in lines]
    assert (tmp_path / "text").read_text(encoding="utf-8").split("\n") == [*expected, ""]
