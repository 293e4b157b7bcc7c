"""fairseq-syntax parse: one tree a line, whatever happens in between."""

import gzip
import io
import os
import signal
import subprocess
import sys
import threading
import time
from itertools import islice
from pathlib import Path
from types import SimpleNamespace

import pytest

from fairseq_syntax import files
from fairseq_syntax.data.parsers import stanza
from fairseq_syntax.preparation.parsing import shard_bounds
from fairseq_syntax.tools import parse
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

    fail_at = None
    error = TreeFormatError("the parser failed")
    arguments = None
    calls = 0

    def __init__(self, *arguments):
        type(self).arguments = arguments

    def parse(self, sentences):
        type(self).calls += 1
        if self.calls == self.fail_at:
            raise self.error
        return [chain(words) for words in sentences]


@pytest.fixture
def fake(monkeypatch):
    """Put a parser that needs no models in the place of Stanza."""
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
    target = tmp_path / "new" / "trees.conllu"
    assert run(text, target, "--chunk", chunk) == 0
    assert target.read_text(encoding="utf-8") == expected(WORDS)
    assert [tree.forms for tree in read_conllu(target)] == WORDS
    assert os.listdir(target.parent) == ["trees.conllu"]
    assert fake.calls == -(-len(WORDS) // chunk)


@pytest.mark.parametrize(
    "change",
    [lambda data: data.replace(b"\n", b"\r\n"), lambda data: data.rstrip(b"\n"), lambda data: b"\xef\xbb\xbf" + data],
)
def test_line_ends_and_byte_order_mark(fake, text, tmp_path, change):
    text.write_bytes(change(text.read_bytes()))
    assert run(text, tmp_path / "out") == 0
    assert (tmp_path / "out").read_text(encoding="utf-8") == expected(WORDS)


@pytest.mark.parametrize("space", ["\u00a0", "\u2028", "\t", "\x1f"])
def test_spaces_at_which_programs_do_not_agree_are_refused(fake, text, tmp_path, capsys, space):
    """The command of the message makes a text that is taken."""
    text.write_text(f"the dog\nthe{space}cat\n", encoding="utf-8", newline="")
    message = failed(capsys, text, tmp_path / "out")
    assert f"{text}:2: contains U+{ord(space):04X}, a space to fairseq" in message
    command = message.partition("make it one: ")[2].replace("OLD", f"'{text}'").replace("NEW", f"'{tmp_path / 'new'}'")
    subprocess.run(command, shell=True, check=True)
    assert run(tmp_path / "new", tmp_path / "out") == 0
    assert [tree.forms for tree in read_conllu(tmp_path / "out")] == [["the", "dog"], ["the", "cat"]]


def test_gzip_in_and_out(fake, text, tmp_path):
    packed = tmp_path / "text.gz"
    packed.write_bytes(gzip.compress(text.read_bytes()))
    assert run(packed, tmp_path / "a.conllu.gz") == 0
    content = (tmp_path / "a.conllu.gz").read_bytes()
    assert gzip.decompress(content).decode("utf-8") == expected(WORDS)
    assert run(text, tmp_path / "b.conllu.gz", "--chunk", 2) == 0
    assert (tmp_path / "b.conllu.gz").read_bytes() == content
    assert content[4:8] == b"\0" * 4  # no time of writing, or the bytes differ a second later


@pytest.mark.parametrize("count", [3, 11])
def test_shards_are_the_whole(fake, text, tmp_path, count):
    whole = b""
    for index in range(count):
        target = tmp_path / f"{index}.gz"
        assert run(text, target, "--shard", f"{index}/{count}", "--chunk", 2) == 0
        whole += target.read_bytes()
    assert gzip.decompress(whole).decode("utf-8") == expected(WORDS)  # as `cat` joins them
    sizes = [end - start for start, end in (shard_bounds(100, index, count) for index in range(count))]
    assert max(sizes) - min(sizes) == 1


@pytest.mark.parametrize("kind, line", [("subword_nmt", "un@@ do it"), ("sentencepiece", "\u2581un do \u2581it")])
def test_subwords_are_joined(fake, tmp_path, kind, line):
    (tmp_path / "text").write_text(line + "\n", encoding="utf-8")
    assert run(tmp_path / "text", tmp_path / "out", "--subword-type", kind) == 0
    assert [tree.forms for tree in read_conllu(tmp_path / "out")] == [["undo", "it"]]


@pytest.mark.parametrize(
    ("line", "options", "said"),
    [
        ("▁the ▁pre train", (), "1 of 2 lines have subwords (@@ or ▁), which are parsed as words; give --subword"),
        ("the pre@@ train ed", ("--subword-type", "subword_nmt"), None),
        ("it &apos;s", (), "1 of 2 lines have words such as &apos;"),
    ],
)
def test_subwords_and_escapes_are_counted(fake, tmp_path, capsys, line, options, said):
    (tmp_path / "text").write_text(f"{line}\na b\n", encoding="utf-8")
    run(tmp_path / "text", tmp_path / "out", *options)
    error = capsys.readouterr().err
    assert "warning" not in error if said is None else f"text: {said}" in error


def test_stdin_and_stdout(fake, text, monkeypatch, capfdbinary):
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(text.read_bytes())))
    monkeypatch.setattr(sys, "stdout", open(os.dup(1), "w"))
    assert main(["--shard", "1/2"]) == 0
    start, end = shard_bounds(len(WORDS), 1, 2)
    assert capfdbinary.readouterr().out.decode("utf-8") == expected(WORDS[start:end])


def test_named_pipe_is_read_once(fake, text, tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=lambda: pipe.write_bytes(text.read_bytes()), daemon=True)
    writer.start()
    assert run(pipe, tmp_path / "out") == 0
    writer.join(5)
    assert (tmp_path / "out").read_text(encoding="utf-8") == expected(WORDS)


def test_options_reach_the_parser(fake, text, tmp_path):
    run(text, tmp_path / "o", "--parser-language", "de", "--parser-dir", "m", "--parser-device", "cuda:1")
    assert fake.arguments == ("de", "m", None, None, "cuda:1")
    run(text, tmp_path / "p", "--parser-tagger", "t", "--parser-model", "p")
    assert fake.arguments == ("en", None, "t", "p", None)


def test_a_long_sentence_is_refused_before_work_begins(fake, text, tmp_path, capsys):
    text.write_text(TEXT + "w " * 4097 + "\n", encoding="utf-8")
    message = failed(capsys, text, tmp_path / "out")
    assert f"{text}:8: 4097 words; a sentence has at most 4096: split it, or give --max-words 4097" in message
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


def test_another_parser_in_a_file_of_the_same_name_and_size_is_noticed(fake, text, tmp_path, monkeypatch, capsys):
    model = tmp_path / "model.pt"
    monkeypatch.setattr(parse, "load_parser", fake)
    fake.fail_at = 2
    arguments = [text, tmp_path / "out", "--chunk", 2, "--parser", "checkpoint", "--parser-model", model]
    for content in ("one", "two"):
        model.write_text(content)
        message = failed(capsys, *arguments)
    assert "was begun with another text or other settings" in message


def test_settings_may_change_before_the_first_tree(fake, text, tmp_path):
    """A model file that did not load must not be in the way of the right one."""
    begun(fake, text, tmp_path / "out", 2, 0)
    assert run(text, tmp_path / "out", "--parser-language", "de") == 0
    assert (tmp_path / "out").read_text(encoding="utf-8") == expected(WORDS)


def test_two_processes_do_not_write_one_file(fake, text, tmp_path, capsys):
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


# --- what is wrong ----------------------------------------------------------------------------


def test_text_that_ends_inside_a_word(fake, text, tmp_path, capsys):
    text.write_bytes(b"fine\nhalf@@\n")
    assert "text.en:2: the text ends inside" in failed(capsys, text, tmp_path / "out", "--subword-type", "subword_nmt")
    assert not (tmp_path / "out").exists()


# --- with Stanza, in processes of their own ---------------------------------------------------


def command(*arguments):
    return [sys.executable, "-m", "fairseq_syntax", "parse", *map(str, arguments)]


def test_killed_run_resumes_to_the_same_trees(real_data, tmp_path):
    text, target = tmp_path / "text.en", tmp_path / "out.conllu"
    with open(real_data / "multi30k" / "test_2016_flickr.en", encoding="utf-8") as lines:
        text.write_text("".join(islice(lines, 300)), encoding="utf-8")
    models, folder = real_data / "stanza_en", Path(f"{target}.chunks")
    options = ["--parser-tagger", models / "tagger.pt", "--parser-model", models / "parser.pt"]
    options += ["--parser-device", "cpu", "--chunk", 5]
    process = subprocess.Popen(command("--input", text, "--output", target, *options), stderr=subprocess.PIPE)
    deadline = time.monotonic() + 120
    while len(list(folder.glob("[0-9]*.conllu"))) < 2:
        assert process.poll() is None and time.monotonic() < deadline, process.stderr.read()
        time.sleep(0.002)
    process.kill()
    process.communicate(timeout=60)
    assert not target.exists(), "the run was over before it was stopped"
    assert process.returncode == -signal.SIGKILL
    assert run(text, target, *options) == 0
    assert run(text, tmp_path / "whole.conllu", *options) == 0
    assert target.read_bytes() == (tmp_path / "whole.conllu").read_bytes()


def test_closed_stdout_is_no_traceback(text, tmp_path):
    """As `fairseq-syntax parse | head -1`."""
    (tmp_path / "blank").write_text("\n" * 200_000)  # needs no model
    blank = command("--input", tmp_path / "blank")
    process = subprocess.Popen(blank, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    process.stdout.readline()
    process.stdout.close()
    errors = process.stderr.read().decode()
    assert process.wait(60) == 1
    assert "Traceback" not in errors and "Exception" not in errors
