"""fairseq-syntax parse: one tree a line, whatever happens in between."""

import gzip
import io
import os
import subprocess
import sys
import threading
from pathlib import Path
from types import SimpleNamespace

import pytest

from fairseq_syntax import files
from fairseq_syntax.data.parsers import ParserOptions, stanza
from fairseq_syntax.data.parsers.conllu import ConlluParser
from fairseq_syntax.preparation.parsing import parser_settings, shard_bounds
from fairseq_syntax.tools.parse import main
from fairseq_syntax.trees.conllu import Sentence, TreeFormatError, format_sentence, read_conllu

TEXT = "a cat sleeps .\n\nthe dog\nx\n  \na b c d  e \nlast one !\n"
WORDS = [line.split() for line in TEXT.split("\n")[:-1]]


def chain(words):
    """The tree of the parser below: every word hangs on the one before."""
    return Sentence(words, list(range(-1, len(words) - 1)), ["dep"] * len(words), ["X"] * len(words))


def expected(sentences):
    return "".join(format_sentence(chain(words)) for words in sentences)


class ChainParser:
    """Parses at once; fails in the call number `fail_at`."""

    fail_at, calls, arguments = None, 0, None
    error: BaseException = TreeFormatError("the parser failed")

    def __init__(self, *arguments):
        type(self).arguments = arguments

    def parse(self, sentences):
        type(self).calls += 1
        if self.calls == self.fail_at:
            raise self.error
        return [chain(words) for words in sentences]


@pytest.fixture(autouse=True)
def fake(monkeypatch):
    """A parser that needs no models, in the place of Stanza."""
    kind = type("Fake", (ChainParser,), {})
    monkeypatch.setattr(stanza, "StanzaParser", kind)
    return kind


@pytest.fixture
def text(tmp_path):
    path = tmp_path / "text.en"
    path.write_text(TEXT, encoding="utf-8", newline="\n")
    return path


def run(source, target, *options):
    return main(["--input", str(source), "--output", str(target), *map(str, options)])


def failed(capsys, *arguments):
    assert run(*arguments) == 1
    message = capsys.readouterr().err.splitlines()[-1]  # a progress bar may stand before
    assert message.startswith("fairseq-syntax parse: ")
    return message


# --- what comes out ---------------------------------------------------------------------------


@pytest.mark.parametrize("chunk", [1, 3, 1000])
def test_one_tree_a_line(fake, text, tmp_path, chunk):
    """Plain or packed."""
    text.write_bytes(b"\xef\xbb\xbf" + text.read_bytes().replace(b"\n", b"\r\n"))
    packed, target = tmp_path / "text.gz", tmp_path / "new" / "trees.conllu"
    packed.write_bytes(gzip.compress(text.read_bytes()))
    assert run(text, target, "--chunk", chunk) == 0
    assert target.read_text(encoding="utf-8") == expected(WORDS) and os.listdir(target.parent) == ["trees.conllu"]
    assert fake.calls == -(-len(WORDS) // chunk)
    assert run(packed, tmp_path / "trees.gz", "--chunk", chunk) == 0
    assert gzip.decompress((tmp_path / "trees.gz").read_bytes()) == target.read_bytes()


@pytest.mark.parametrize("space", ["\u00a0", "\u2028", "\t", "\x1f"])
def test_spaces_at_which_programs_do_not_agree_are_refused(text, tmp_path, capsys, space):
    """The command of the message makes a text that is taken."""
    text.write_text(f"the dog\nthe{space}cat\n", encoding="utf-8", newline="")
    message = failed(capsys, text, tmp_path / "out")
    assert f"{text}:2: contains U+{ord(space):04X}, a space to fairseq" in message
    command = message.partition("make it one: ")[2].replace("OLD", f"'{text}'").replace("NEW", f"'{tmp_path / 'new'}'")
    subprocess.run(command, shell=True, check=True)
    assert (tmp_path / "new").read_text() == "the dog\nthe cat\n"


@pytest.mark.parametrize("count", [3, 11])
def test_shards_are_the_whole(text, tmp_path, count):
    whole = b""
    for index in range(count):
        target = tmp_path / f"{index}.gz"
        assert run(text, target, "--shard", f"{index}/{count}", "--chunk", 2) == 0
        whole += target.read_bytes()
    assert gzip.decompress(whole).decode("utf-8") == expected(WORDS)  # as `cat` joins them
    sizes = [end - start for start, end in (shard_bounds(100, index, count) for index in range(count))]
    assert max(sizes) - min(sizes) == 1


@pytest.mark.parametrize(
    ("line", "kind", "said"),
    [
        ("▁un do ▁it", "none", "1 of 2 lines have subwords (@@ or ▁), which are parsed as words; give --subword-type"),
        ("undo it &apos;s", "none", "1 of 2 lines have words such as &apos;"),
        ("un@@ do it", "subword_nmt", None),
        ("▁un do ▁it", "sentencepiece", None),
    ],
)
def test_subwords_are_joined_or_told_of(tmp_path, capsys, line, kind, said):
    (tmp_path / "text").write_text(f"{line}\na b\n", encoding="utf-8")
    assert run(tmp_path / "text", tmp_path / "out", "--subword-type", kind) == 0
    error = capsys.readouterr().err
    if said:
        assert f"text: {said}" in error
    else:
        assert "warning" not in error and next(read_conllu(tmp_path / "out")).forms == ["undo", "it"]


def test_stdin_and_stdout_and_a_pipe_that_is_read_once(text, tmp_path, monkeypatch, capfdbinary):
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(text.read_bytes())))
    monkeypatch.setattr(sys, "stdout", open(os.dup(1), "w"))
    assert main(["--shard", "1/2"]) == 0
    start, end = shard_bounds(len(WORDS), 1, 2)
    assert capfdbinary.readouterr().out.decode("utf-8") == expected(WORDS[start:end])
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    threading.Thread(target=lambda: pipe.write_bytes(text.read_bytes()), daemon=True).start()
    assert run(pipe, tmp_path / "out") == 0
    assert (tmp_path / "out").read_text(encoding="utf-8") == expected(WORDS)


def test_options_reach_the_parser(fake, text, tmp_path):
    run(text, tmp_path / "o", "--parser-language", "de", "--parser-dir", "m", "--parser-device", "cuda:1")
    assert fake.arguments == ("de", "m", None, None, "cuda:1")
    run(text, tmp_path / "p", "--parser-tagger", "t", "--parser-model", "p")
    assert fake.arguments == ("en", None, "t", "p", None)


def test_a_long_sentence_is_refused_before_work_begins(fake, text, tmp_path, capsys):
    text.write_text(TEXT + "w " * 4097 + "\n", encoding="utf-8")
    assert f"{text}:8: 4097 words; a sentence has at most 4096: " in failed(capsys, text, tmp_path / "out")
    assert fake.calls == 0 and not (tmp_path / "out.chunks").exists()
    assert run(text, tmp_path / "out", "--max-words", 4097) == 0
    # pieces are no words
    text.write_text("w@@ " * 4097 + "w\n", encoding="utf-8")
    assert run(text, tmp_path / "pieces", "--subword-type", "subword_nmt") == 0


# --- stopping and resuming --------------------------------------------------------------------


def begun(fake, text, target, chunk, calls):
    """Leave a folder of `calls` chunks."""
    fake.calls, fake.fail_at = 0, calls + 1
    assert run(text, target, "--chunk", chunk) == 1
    fake.calls, fake.fail_at = 0, None
    return Path(f"{target}.chunks")


@pytest.mark.parametrize("calls", range(4))
def test_resumes_after_any_chunk(fake, text, tmp_path, calls):
    target = tmp_path / "out.gz"
    folder = begun(fake, text, target, 2, calls)
    assert len(list(folder.glob("[0-9]*.conllu"))) == calls and not target.exists()
    (folder / ".0.partial.conllu").write_text("half a tree, of a process that was killed")
    assert run(text, target, "--chunk", 2) == 0
    assert gzip.decompress(target.read_bytes()).decode("utf-8") == expected(WORDS)
    assert fake.calls == 4 - calls and not folder.exists()


def test_equal_sentences_have_their_own_trees_in_shards_and_resumed(text, tmp_path, monkeypatch):
    text.write_text("a b\n" * 4)
    trees = [Sentence(["a", "b"], heads, ["dep"] * 2, ["X"] * 2) for heads in ([-1, 0], [-1, 0], [1, -1], [1, -1])]
    whole = "".join(map(format_sentence, trees))
    (tmp_path / "gold").write_text(whole)
    options = ["--parser", "conllu", "--parser-model", tmp_path / "gold", "--chunk", 1]
    for shard in "01":
        assert run(text, tmp_path / shard, "--shard", f"{shard}/2", *options) == 0
    assert "".join((tmp_path / shard).read_text() for shard in "01") == whole
    target = tmp_path / "resumed"

    def dies(parser, words, tree=ConlluParser._tree):
        if len(os.listdir(f"{target}.chunks")) > 3:  # settings, lock and two trees
            raise TreeFormatError("killed")
        return tree(parser, words)

    with monkeypatch.context() as patched:
        patched.setattr(ConlluParser, "_tree", dies)
        assert run(text, target, *options) == 1 and not target.exists()
    assert run(text, target, *options) == 0 and target.read_text() == whole


@pytest.mark.parametrize(
    ("changed", "options"),
    [(TEXT.replace("dog", "cow"), []), (TEXT, ["--subword-type", "subword_nmt"]), (TEXT, ["--shard", "0/2"])],
)
def test_other_input_and_other_settings_are_noticed(fake, text, tmp_path, capsys, changed, options):
    folder = begun(fake, text, tmp_path / "out", 2, 2)
    text.write_text(changed, encoding="utf-8")
    message = failed(capsys, text, tmp_path / "out", "--chunk", 2, *options)
    assert f"{folder}: was begun with another text or other settings" in message
    assert len(list(folder.glob("[0-9]*.conllu"))) == 2 and not (tmp_path / "out").exists()


def test_settings_may_change_before_the_first_tree(fake, text, tmp_path):
    """A model file that did not load must not be in the way of the right one; files count by their content."""
    begun(fake, text, tmp_path / "out", 2, 0)
    assert run(text, tmp_path / "out", "--parser-language", "de") == 0
    settings = []
    for content in ("one", "two"):
        (tmp_path / "model.pt").write_text(content)
        settings.append(parser_settings("checkpoint", ParserOptions(parser_model=str(tmp_path / "model.pt"))))
    assert settings[0] != settings[1]


def test_two_processes_do_not_write_one_file(text, tmp_path, capsys):
    folder = tmp_path / "out.chunks"
    folder.mkdir()
    with files.locked(folder, "x"):
        assert "another process" in failed(capsys, text, tmp_path / "out")
    assert run(text, tmp_path / "out") == 0


def test_interrupt(fake, text, tmp_path, capsys):
    fake.fail_at, fake.error = 2, KeyboardInterrupt()
    assert run(text, tmp_path / "out", "--chunk", 2) == 130
    said = f"2 of {len(WORDS)} sentences are kept in {tmp_path / 'out.chunks'}; run the same command again"
    assert said in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_closed_stdout_is_no_traceback(tmp_path):
    """As `fairseq-syntax parse | head -1`."""
    (tmp_path / "blank").write_text("\n" * 200_000)  # needs no model
    blank = [sys.executable, "-m", "fairseq_syntax", "parse", "--input", tmp_path / "blank"]
    process = subprocess.Popen(blank, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    process.stdout.readline()
    process.stdout.close()
    errors = process.stderr.read().decode()
    assert process.wait(60) == 1
    assert "Traceback" not in errors and "Exception" not in errors
