"""Bad input of every kind ends in one clear message, and docs/troubleshooting.md has it.

Every case below provokes its message through the real program or API. The table of the documentation and the cases
must name the same texts.
"""

import argparse
import fcntl
import gzip
import importlib
import json
import logging
import os
import re
import shutil
import sys
import tomllib
from argparse import Namespace
from pathlib import Path
from types import SimpleNamespace

import latent_trees
import numpy as np
import pytest
import torch
import treebanks
from corpora import Item, random_items, write_split
from fairseq import options, tasks
from fairseq.dataclass.utils import convert_namespace_to_omegaconf
from fairseq.distributed import ModuleProxyWrapper
from fairseq.file_io import PathManager
from fairseq.optim import build_optimizer
from fairseq.optim.fp16_optimizer import FP16Optimizer
from fairseq.optim.lr_scheduler import build_lr_scheduler
from integration import commands
from torch.nn.parallel import DistributedDataParallel

from fairseq_syntax import compat
from fairseq_syntax.cli import constituents, parse, preprocess
from fairseq_syntax.data import binarize
from fairseq_syntax.data.length_table import length_table_path, write_length_table
from fairseq_syntax.data.live import LiveSyntax
from fairseq_syntax.data.parsers import ParserOptions, load_parser
from fairseq_syntax.data.parsers.stanza import StanzaParser
from fairseq_syntax.evaluate.contrast import Record
from fairseq_syntax.pictures import figures
from fairseq_syntax.pictures.attention_maps import draw_attention
from fairseq_syntax.pictures.dependency_trees import draw_tree
from fairseq_syntax.systems.latent_tree.legality import legality
from fairseq_syntax.systems.latent_tree.reinforce import ReinforceTreeCriterion
from fairseq_syntax.systems.latent_tree.reinforce_options import ReinforceTreeConfig
from fairseq_syntax.systems.latent_tree.task import TreeTranslationConfig, TreeTranslationTask
from fairseq_syntax.systems.latent_tree.transitions import Limits
from fairseq_syntax.systems.parser.task import DependencyParsingTask
from fairseq_syntax.trees import conllu
from fairseq_syntax.trees import text as text_files
from fairseq_syntax.trees.conllu import UNPARSED, Sentence

REPOSITORY = Path(__file__).resolve().parents[2]
CASES = {}


def case(fragment, *details):
    """Register a case: a function that provokes a message with this text, and with these details.

    The message is what it returns, or that of the error it ends with.
    """

    def register(function):
        assert fragment not in CASES, fragment
        CASES[fragment] = (function, details)
        return function

    return register


def matches(fragment, message):
    return re.search(".*".join(re.escape(part) for part in fragment.split("…")), message, re.DOTALL)


@pytest.fixture(scope="session")
def made(tmp_path_factory):
    """text/ and bin/ that are right."""
    folder = tmp_path_factory.mktemp("good")
    for seed, (name, count) in enumerate((("train", 12), ("valid", 4), ("test", 3))):
        write_split(folder / "text" / name, random_items(count, seed))
    World(folder, None).preprocess()
    return folder


class World:
    """A copy of good data to be spoilt, and ways to run the programs on it."""

    def __init__(self, folder, capsys):
        self.folder, self.text, self.bin = folder, folder / "text", folder / "bin"
        self.capsys = capsys

    def arguments(self, *extra, splits=("train", "valid", "test"), destdir="bin"):
        prefixes = [part for s in splits for part in (f"--{s}pref", f"{self.text}/{s}")]
        return ["-s", "en", "-t", "de", *prefixes, "--destdir", f"{self.folder}/{destdir}", *map(str, extra)]

    def preprocess(self, *extra, **kwargs):
        preprocess.main(self.arguments(*extra, **kwargs))

    def contents(self):
        """Every file, and what it holds."""
        return {path: path.read_bytes() for path in self.folder.rglob("*") if path.is_file()}

    def refused(self, *extra, status=1, destdir="new", **kwargs):
        """What fairseq-syntax preprocess says when it refuses: one line, no traceback, nothing written or changed."""
        before = self.contents()
        with pytest.raises(SystemExit) as caught:
            self.preprocess(*extra, destdir=destdir, **kwargs)
        assert caught.value.code == status
        error = self.capsys.readouterr().err
        assert "Traceback" not in error
        assert self.contents() == before
        said = [line for line in error.splitlines() if line.startswith("fairseq-syntax preprocess: ")]
        assert len(said) == 1
        return said[0]

    def spoil(self, old, new, name="test.en.conllu", count=1):
        """Replace text of a file, of which there must be some."""
        path = self.text / name
        content = path.read_text(encoding="utf-8")
        assert old in content
        path.write_text(content.replace(old, new, count), encoding="utf-8")

    def tree(self, rows):
        """Make the test set one sentence with these rows, and a text of two words."""
        (self.text / "test.en").write_text("a b\n")
        (self.text / "test.de").write_text("x\n")
        (self.text / "test.en.conllu").write_text("".join(f"{row}\n" for row in rows) + "\n")

    def set_up(self, *extra, data=None, arch="pascal_transformer_tiny"):
        """Task and model as fairseq-train makes them."""
        argv = [str(data or self.bin), "--task", "syntax_translation", "-s", "en", "-t", "de", "--arch", arch]
        parser = options.get_training_parser(default_task="syntax_translation")
        config = convert_namespace_to_omegaconf(options.parse_args_and_arch(parser, [*argv, *map(str, extra)]))
        self.config = config
        self.task = tasks.setup_task(config.task)
        self.model = self.task.build_model(config.model)
        self.criterion = self.task.build_criterion(config.criterion)
        return self.task

    def checkpoint(self, arch):
        """A checkpoint of one update on the good data, made once a session."""
        folder = self.models / arch
        if not folder.exists():
            commands.train(self.bin, folder, arch, "--max-update", 1)
        return folder / "checkpoint_last.pt"

    def program(self, name, *arguments, arch="sa_nmt_shared_tiny", path=None, data=None, model=True, status=1):
        """What a program that looks inside a model says when it refuses: one line, nothing written."""
        main = importlib.import_module(f"fairseq_syntax.cli.{name}").main
        given = [data or self.bin, "--path", path or self.checkpoint(arch), "--cpu"] if model else []
        before = sorted(os.listdir(self.folder))
        self.capsys.readouterr()
        try:
            code = main([*map(str, given), *map(str, arguments)])
        except SystemExit as stopped:
            code = stopped.code
        error = self.capsys.readouterr().err
        assert code == status, error
        assert "Traceback" not in error
        assert sorted(os.listdir(self.folder)) == before
        said = re.findall(rf"fairseq-syntax[ -]{name}: (.*)", error)
        assert len(said) == 1, error
        return said[0]

    def check(self, data=None):
        """What fairseq-syntax check says of the data."""
        return self.program("check", data or self.bin, model=False)

    def error(self, *extra, load=None, **kwargs):
        """The error of setting up a training, or of loading a split."""
        with pytest.raises((ValueError, OSError)) as caught:
            self.set_up(*extra, **kwargs)
            assert load, "no error"
            self.task.load_dataset(load)
        return str(caught.value)


def row(number, form, head, columns=10, tab="\t"):
    return tab.join([str(number), form, "_", "X", "_", "_", str(head), "dep", "_", "_", "_"][:columns])


# --- trees and text ---------------------------------------------------------------------------------------------


@case("columns (…); CoNLL-U has 10", "test.en.conllu:2: 9 columns", "2\\tb")
def _(world):
    world.tree([row(1, "a", 0), row(2, "b", 1, columns=9)])
    return world.refused()


@case("separate the columns by tabs, not spaces", "test.en.conllu:1: 1 columns")
def _(world):
    world.tree([row(1, "a", 0, tab="    "), row(2, "b", 1, tab="    ")])
    return world.refused()


@case("where … was expected; words are numbered 1, 2, 3", "test.en.conllu:2: id '1' where 2")
def _(world):
    world.tree([row(1, "a", 0), row(1, "b", 0)])
    return world.refused()


@case("no parse; … ends after … sentences", "test.en:4: no parse", "test.en.conllu ends after 3 sentences")
def _(world):
    for lang in ("en", "de"):
        with open(world.text / f"test.{lang}", "a") as file:
            file.write("more\n")
    return world.refused()


@case("but … has … lines; parse this very text", "test.en.conllu:", "tree 4, but", "test.en has 3 lines")
def _(world):
    with open(world.text / "test.en.conllu", "a") as file:
        file.write(row(1, "a", 0) + "\n\n")
    return world.refused()


@case(
    "lines, but … has …; a translation must stand on the line of its source", "test.en: 3 lines, but", "test.de has 4"
)
def _(world):
    with open(world.text / "test.de", "a") as file:
        file.write("more\n")
    return world.refused()


@case("the text ends inside a word", "test.en:2: ", "('cut@@'); was the line cut off?")
def _(world):
    lines = (world.text / "test.en").read_text().splitlines()
    lines[1] += " cut@@"
    (world.text / "test.en").write_text("\n".join(lines) + "\n")
    return world.refused()


@case("spans several words; train sentencepiece with --split_by_whitespace=true", "test.en:1: the piece '▁a▁b'")
def _(world):
    world.tree([row(1, "a", 0), row(2, "b", 1)])
    (world.text / "test.en").write_text("▁a▁b\n", encoding="utf-8")
    return world.refused(
        "--subword-type", "sentencepiece", "--syntax-dicts", world.bin, *world.dicts(), splits=["test"]
    )


def dicts(world):
    return ["--srcdict", world.bin / "dict.en.txt", "--tgtdict", world.bin / "dict.de.txt"]


World.dicts = dicts


@case(
    "is not empty (`_` stands for unknown) and holds no space or line end",
    "test.en.conllu:2: UPOS is 'NO\\rUN'; ",
)
def _(world):
    world.tree([row(1, "a", 0), row(2, "b", 1).replace("X", "NO\rUN")])
    return world.refused()


@case("a line of more than … characters", "test.en.conllu:2: a line of more than 500 ")
def _(world):
    world.monkeypatch.setattr(text_files, "MAX_LINE", 500)
    world.tree([row(1, "a", 0), row(2, "b" * 500, 1)])
    return world.refused("--syntax-dicts", world.bin, *world.dicts(), splits=["test"])


@case("the sentence has not ended by line", "test.en.conllu:1: ", "line 9; put an empty line after each")
def _(world):
    world.monkeypatch.setattr(conllu, "MAX_LINE", 700)
    world.tree([row(i, "a", 0) for i in range(1, 10)])
    return world.refused("--syntax-dicts", world.bin, *world.dicts(), splits=["test"])


@case(
    "words; a sentence has at most …: split it, or give",
    "test.en:2: 5 words; a sentence has at most 4: split it, or give --max-words 5",
)
def _(world):
    write = [Item([["a"]] * 4, [-1, 0, 0, 0]), Item([["a", "b"]] * 5, [-1, 0, 0, 0, 0])]
    write_split(world.text / "test", write)
    return world.refused("--max-words", 4, *world.dicts(), splits=["test"])


@case("not UTF-8", "train.en:5: not UTF-8", "convert the file")
def _(world):
    lines = (world.text / "train.en").read_bytes().splitlines()
    lines[4] = "Stra\xdfe".encode("latin1")
    (world.text / "train.en").write_bytes(b"\n".join(lines) + b"\n")
    return world.refused()


def test_trees_that_are_not_utf8(world):
    (world.text / "test.en.conllu").write_bytes(row(1, "a", 0).encode() + b"\n\xdf\n\n")
    assert "test.en.conllu:2: not UTF-8" in world.refused()


def test_text_that_is_not_utf8_is_found_by_the_reader_of_trees_too(world):
    path = world.text / "test.en"
    path.write_bytes(b"a\nb\n\xdf\n")
    write = [Item([["a"]], [-1]), Item([["b"]], [-1]), Item([["c"]], [-1])]
    (world.text / "test.en.conllu").write_text("".join(item.tree() + "\n" for item in write))
    with pytest.raises(ValueError, match=r"test\.en:3: not UTF-8"):
        list(binarize.pair_examples(path, world.text / "test.en.conllu"))


@case("the file is cut off or not gzip", "test.en.conllu.gz:")
def _(world):
    path = world.text / "test.en.conllu"
    packed = gzip.compress(path.read_bytes())
    path.unlink()
    Path(f"{path}.gz").write_bytes(packed[: len(packed) - 12])
    return world.refused()


def test_trees_that_only_are_called_gz(world):
    path = world.text / "test.en.conllu"
    os.rename(path, f"{path}.gz")
    assert "test.en.conllu.gz:1: cannot be read on" in world.refused()


@case("tokens; a sentence has at most … split it", "test.en:1: 40000 tokens; a sentence has at most 32766")
def _(world):
    (world.text / "test.en").write_text("a " * 40000 + "\n")
    (world.text / "test.de").write_text("x\n")
    (world.text / "test.en.conllu").write_text(row(1, "a", 0) + "\n\n")
    return world.refused("--max-words", 50000)


# --- data directories -------------------------------------------------------------------------------------------


@case("is not binarized there; leave --only-syntax out", "split 'test' is not binarized there")
def _(world):
    for path in world.bin.glob("test.*"):
        path.unlink()
    return world.refused("--only-syntax", destdir="bin", splits=["test"])


@case("in the binarized data; give the text that was binarized", "test.en:1: 2 tokens, but")
def _(world):
    lines = (world.text / "test.en").read_text().splitlines()
    assert len(lines[0].split()) != 2
    items = [Item([["a"], ["b"]], [-1, 0])] * 3
    write_split(world.text / "test", items)
    return world.refused("--only-syntax", "--overwrite", destdir="bin", splits=["test"])


def test_fewer_lines_than_were_binarized(world):
    write_split(world.text / "test", random_items(2, 2))
    error = world.refused("--only-syntax", "--overwrite", destdir="bin", splits=["test"])
    assert "test.en: 2 lines, but the binarized data has 3 sentences; give the text that was binarized" in error


@case("the other splits have --subword-type", "the other splits have --subword-type subword_nmt, not none")
def _(world):
    words = [Item([["a"], ["b"]], [-1, 0])]
    write_split(world.text / "test", words)
    world.preprocess("--overwrite", *world.dicts(), splits=["test"])
    return world.refused("--only-syntax", "--overwrite", "--subword-type", "none", destdir="bin", splits=["test"])


@case("other splits of … use other dictionaries")
def _(world):
    shutil.copytree(world.bin, world.folder / "other")
    (world.folder / "other" / "dict.en.upos.txt").write_text("Z 1\n")
    extra = ["--only-syntax", "--overwrite", "--syntax-dicts", world.folder / "other"]
    return world.refused(*extra, destdir="bin", splits=["test"])


@case("tokens but its tree …; the text was changed after the trees were added", "split 'test': sentence 0 has")
def _(world):
    write_split(world.text / "test", random_items(3, 77))
    world.preprocess(*world.dicts(), "--syntax-dicts", world.bin, splits=["test"], destdir="changed")
    for end in ("en.bin", "en.idx", "de.bin", "de.idx"):
        shutil.copy(world.folder / "changed" / f"test.en-de.{end}", world.bin / f"test.en-de.{end}")
    return world.error(load="test")


@case("the arrays hold different numbers of sentences", "'words': 3", "'heads': 4")
def _(world):
    for end in ("bin", "idx"):
        shutil.copy(world.bin / f"valid.en-de.en.heads.{end}", world.bin / f"test.en-de.en.heads.{end}")
    return world.error(load="test")


@case("bytes where the index promises", "test.en-de.en.heads.bin: 4 bytes")
def _(world):
    os.truncate(world.bin / "test.en-de.en.heads.bin", 4)
    return world.error(load="test")


@case("damaged, or no index of fairseq's mmap format", "test.en-de.de.idx: ")
def _(world):
    (world.bin / "test.en-de.de.idx").write_bytes(b"MMIDIDX")
    return world.error(load="test")


@case("not found, though … lists it", "test.en-de.de.", "syntax-en-de.json")
def _(world):
    for end in ("bin", "idx"):
        (world.bin / f"test.en-de.de.{end}").unlink()
    return world.error(load="test", arch="transformer_tiny")


@case("a token beyond the … of dict.", "test.en-de.de.bin: damaged, or of another dictionary")
def _(world):
    path = world.bin / "test.en-de.de.bin"
    path.write_bytes(b"\xff" * path.stat().st_size)
    return world.error(load="test", arch="transformer_tiny")


@case(": damaged: ", "test.en-de.en.heads.bin: damaged: a head that is none of its words in sentence 0")
def _(world):
    path = world.bin / "test.en-de.en.heads.bin"
    path.write_bytes(b"\x40" * path.stat().st_size)
    return world.error(load="test")


@case("promises … in split …, but there are", "syntax-en-de.json: promises 99 words in split 'test'")
def _(world):
    path = world.bin / "syntax-en-de.json"
    content = json.loads(path.read_text())
    content["splits"]["test"]["words"] = 99
    path.write_text(json.dumps(content))
    return world.error(load="test")


@case("half replaced, because fairseq-syntax preprocess was killed or is still running", "/bin: ")
def _(world):
    (world.folder / ".bin.partial").mkdir()
    (world.folder / ".bin.partial" / "publishing.json").write_text('{"manifest": "syntax-en-de.json", "stale": []}')
    (world.bin / "syntax-en-de.json").unlink()
    return world.error(arch="transformer_tiny")


@case("damaged, so what a killed run began cannot be finished", "/.bin.partial/publishing.json: ", "--overwrite")
def _(world):
    (world.folder / ".bin.partial").mkdir()
    (world.folder / ".bin.partial" / "publishing.json").touch()
    return world.refused(destdir="bin")


@case("changed since it was written; copy it again", "test.en-de.en.deprels.bin: ")
def _(world):
    path = world.bin / "test.en-de.en.deprels.bin"
    path.write_bytes(b"\x04\0" * (path.stat().st_size // 2))
    return world.check()


@case("not in the manifest; run", "test1.en-de.en.words.bin: ")
def _(world):
    shutil.copy(world.bin / "test.en-de.en.words.bin", world.bin / "test1.en-de.en.words.bin")
    return world.check()


@case("a sentence does not end with </s>", "test.en-de.de.bin: damaged, or of another dictionary")
def _(world):
    path = world.bin / "test.en-de.de.bin"
    path.write_bytes(b"\x05\0" * (path.stat().st_size // 2))
    return world.check()


@case("differs from …, by which the model reads its tags", "--syntax-dicts")
def _(world):
    shutil.copytree(world.bin, world.folder / "b")
    (world.folder / "b" / "dict.en.deprel.txt").write_text("z 1\n")
    world.set_up(arch="tag_transformer_tiny", data=f"{world.bin}:{world.folder}/b")
    world.task.load_dataset("train", epoch=2)


def newer(world):
    path = world.bin / "syntax-en-de.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "format_version": 2}))


@case(
    "but this fairseq-syntax reads up to", "syntax-en-de.json: format version 2", "reads up to 1; update fairseq-syntax"
)
def _(world):
    newer(world)
    return world.error(load="test")


def test_newer_data_is_not_added_to(world):
    newer(world)
    assert "format version 2" in world.refused("--only-syntax", "--overwrite", destdir="bin", splits=["test"])


@case("not a manifest", "syntax-en-de.json: ")
def _(world):
    path = world.bin / "syntax-en-de.json"
    path.write_text(path.read_text()[:40])
    return world.error(load="test")


@case("no data directory is given")
def _(world):
    config = SimpleNamespace(_name="syntax_translation", data=None)
    tasks.TASK_REGISTRY["syntax_translation"].setup_task(config)


# --- models and options -----------------------------------------------------------------------------------------


@case("needs the parents of the source tokens", "pascal_transformer", "use --task syntax_translation")
def _(world):
    world.set_up()
    tokens = torch.tensor([[5, 2]])
    world.model(src_tokens=tokens, src_lengths=torch.tensor([2]), prev_output_tokens=tokens)


@case("another fairseq-syntax preprocess is writing it", ".new.partial")
def _(world):
    staging = world.folder / ".new.partial"
    staging.mkdir()
    descriptor = os.open(staging, os.O_RDONLY)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    try:
        return world.refused()
    finally:
        os.close(descriptor)
        staging.rmdir()


def parsed(*heads):
    """What is said of a sentence of which a parser makes this tree."""
    parser = SimpleNamespace(
        parse=lambda texts: [Sentence(words, list(heads), ["_"] * 2, ["_"] * 2) for words in texts]
    )
    LiveSyntax(parser, "none")(["a b"])


@case("the tree that was given has no heads", "input 'a b'", "--parser-unparsed accept")
def _(world):
    return parsed(UNPARSED, UNPARSED)


@case("that were given are no tree; correct it", "input 'a b': the heads [1, 0] that")
def _(world):
    return parsed(1, 0)


@case(
    "have no parse, and the model refuses them",
    "/bin: 1 of 1 sentences of split 'test' have no parse",
    "fairseq-syntax parse",
    "--sdatt-missing global",
)
def _(world):
    world.tree([row(1, "a", "_"), row(2, "b", "_")])
    world.preprocess("--overwrite", "--allow-unparsed")
    return world.error("--sdatt-missing", "error", arch="sdatt_tiny", load="test")


@case("--sdatt-position-lr: does not work with --fp16 or --bf16", "--memory-efficient-fp16")
def _(world):
    task = world.set_up("--sdatt-position-lr", 0.1, arch="sdatt_tiny")
    task.optimizer_step(FP16Optimizer.__new__(FP16Optimizer), world.model, update_num=0)


@case("has no trees; use --task syntax_translation, or none", "LisaTransformerModel: the task TranslationTask")
def _(world):
    # the stock class; under its name fairseq finds ours
    from fairseq.tasks.translation import TranslationConfig, TranslationTask

    from fairseq_syntax.systems.lisa.model import LisaTransformerModel

    task = TranslationTask(TranslationConfig(), None, None)
    LisaTransformerModel.build_model(argparse.Namespace(), task)


@case(
    "the model has no parsing head; use --arch lisa_transformer", "--criterion label_smoothed_cross_entropy_with_heads"
)
def _(world):
    world.set_up("--criterion", "label_smoothed_cross_entropy_with_heads")
    world.task.load_dataset("test")
    dataset = world.task.dataset("test")
    world.criterion(world.model, dataset.collater([dataset[0]]))


@case("--parser …: needs --parser-model", "--parser conllu: ")
def _(world):
    world.set_up("--parser", "conllu")
    world.task.get_interactive_tokens_and_lengths(["a b"], lambda line: line)


def parser_error(name, **options):
    """The error of loading a parser."""
    load_parser(name, ParserOptions(**options))


@case("no such parser; choose from", "--parser nothing: ", "conllu, none, spacy, stanza")
def _(world):
    return parser_error("nothing")


@case("is not read by --parser", "--parser-tagger ", "conllu")
def _(world):
    return parser_error("conllu", parser_model="x", parser_tagger="x")


@case("are both files of Stanza's: give both, or neither", "--parser-tagger and --parser-model ")
def _(world):
    return parser_error("stanza", parser_tagger="x")


@case("spacy cannot be imported", "pip install")
def _(world):
    world.monkeypatch.setitem(sys.modules, "spacy", None)
    return parser_error("spacy", parser_model="x")


@case("cannot load it on device …; give the folder of a pipeline", "--parser-model none: spaCy ")
def _(world):
    pytest.importorskip("spacy")
    return parser_error("spacy", parser_model="none")


@case("this pipeline has no dependency parser", "--parser-model ")
def _(world):
    pytest.importorskip("spacy").blank("en").to_disk(world.folder / "blank")
    return parser_error("spacy", parser_model=str(world.folder / "blank"))


@case("no tree for the sentence", "test.en.conllu: ", "'not there'", "fairseq-syntax parse")
def _(world):
    world.set_up("--parser", "conllu", "--parser-model", world.text / "test.en.conllu")
    world.task.get_interactive_tokens_and_lengths(["no@@ t there"], lambda line: line)


@case("a sentence with unknown words has no tree, because only its token ids were given")
def _(world):
    world.set_up("--parser", "conllu", "--parser-model", world.text / "test.en.conllu")
    sample = {"net_input": {"src_tokens": torch.tensor([[3, 2]]), "src_lengths": torch.tensor([2])}}
    world.task.inference_step(None, [world.model], sample)


@case("the ensemble mixes models with syntax and fairseq's own", "--path: ", "--pascal-heads 0")
def _(world):
    task = world.set_up()
    ours = world.model
    world.set_up(arch="transformer_tiny")
    task.build_generator([ours, world.model], SimpleNamespace())


@case("stanza cannot be imported", "pip install")
def _(world):
    world.monkeypatch.setitem(sys.modules, "stanza", None)
    StanzaParser("en").parse([["a"]])


@case(
    "could not download what is missing; where there is a network run",
    "has no parser for language 'en': looked in",
    "or give model files with --parser-tagger and --parser-model. It says ConnectionError: no network",
)
def _(world):
    stanza = pytest.importorskip("stanza")

    def fail(**_):
        raise ConnectionError("no network")

    world.monkeypatch.setattr(stanza, "Pipeline", fail)
    world.set_up().live(["a b"])


@case("no such file; give the .pt file of", "/none.pt: ", "tagger")
def _(world):
    StanzaParser("en", None, f"{world.folder}/none.pt", f"{world.folder}/none.pt").parse([["a"]])


# --- recurrent models -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "given, message",
    [
        (["--epoch-parts", 0], "--epoch-parts 0: must be at least 1"),
        (["--decoder-hidden-size", 0], "--decoder-hidden-size 0: must be at least 1"),
        (["--dropout", 30], "--dropout 30.0: must be at least 0 and less than 1"),
        (["--dropout", "nan"], "--dropout nan: must be at least 0 and less than 1 and finite"),
    ],
)
def test_numbers_out_of_range(given, message, world):
    assert world.error(*given, arch="nmt_lstm_tiny") == message


def test_parameters_start_in_a_range(world):
    assert world.error("--init-range", 0, arch="nmt_lstm_tiny") == "--init-range 0.0: must be greater than 0"


@case(
    "--share-all-embeddings: --encoder-embed-dim … and --decoder-embed-dim …",
    "--encoder-embed-dim 32 and --decoder-embed-dim 64 must be equal",
)
def _(world):
    world.preprocess("--overwrite", "--joined-dictionary")
    return world.error("--share-all-embeddings", "--encoder-embed-dim", 32, arch="nmt_lstm_tiny")


@case("--share-all-embeddings: give --encoder-embed-path only")
def _(world):
    world.preprocess("--overwrite", "--joined-dictionary")
    return world.error("--share-all-embeddings", "--decoder-embed-path", "x.vec", arch="nmt_lstm_tiny")


@case("…: choose from", "--sa-root-scores sideways: choose from query, diagonal")
def _(world):
    """On the command line argparse says it; a hydra configuration may hold anything."""
    task = world.set_up(arch="sa_nmt_shared_tiny")
    world.config.model.sa_root_scores = "sideways"
    task.build_model(world.config.model)


# --- looking inside models --------------------------------------------------------------------------------------


def treebank(world):
    """The trees of the test set, which fit the words of the text."""
    return world.text / "test.en.conllu"


@pytest.mark.parametrize("program", ["trees", "attachment", "grammar"])
@pytest.mark.parametrize("arch", ["pascal_transformer_tiny", "transformer_tiny"])
def test_transformers_have_no_latent_trees(world, program, arch):
    argument = ("--subset", "test") if program == "trees" else ("--gold", treebank(world))
    assert f"the architecture {arch} has no latent trees" in world.program(program, *argument, arch=arch)


@case("NaN or infinite, so there is nothing to draw", "the attention weights: ")
def _(world):
    draw_attention(np.full((1, 2, 2), np.nan), ["a", "b"], None, "title")


@case("no installed font has …, boxes stand for them; install a font", "(U+12000)", "Debian: fonts-noto-core")
def _(world):
    messages = []
    handler = logging.Handler()
    handler.emit = lambda record: messages.append(record.getMessage())
    figures.logger.addHandler(handler)
    figures.save_figure(draw_tree(["\U00012000"], [-1]), world.folder / "tree.svg")
    figures.logger.removeHandler(handler)
    (message,) = messages
    return message


@case("that nobody has registered; give its --user-dir", "other.pt: of a model 'no_such_model'")
def _(world):
    state = torch.load(world.checkpoint("sa_nmt_shared_tiny"), weights_only=True)
    state["cfg"]["model"] = {"_name": "no_such_model"}
    torch.save(state, world.folder / "other.pt")
    return world.program("trees", "--subset", "test", path=world.folder / "other.pt")


@case("parameters are not those of a model of its options", "edited.pt: ", "Missing key(s)", "another version")
def _(world):
    state = torch.load(world.checkpoint("nmt_lstm_tiny"), weights_only=True)
    del state["model"]["encoder.embed_tokens.weight"]
    torch.save(state, world.folder / "edited.pt")
    commands.run("fairseq-generate", world.bin, "--path", world.folder / "edited.pt")


@case("does not fit the dictionaries in …; give the data directory that the model was trained on", "checkpoint_last.pt")
def _(world):
    path = world.checkpoint("sa_nmt_shared_tiny")
    for name in ("train", "valid", "test"):
        write_split(world.text / name, [Item([["only"], ["these"]], [-1, 0])] * 9)
    world.preprocess("--overwrite")
    return world.program("trees", "--subset", "test", path=path)


@case("no split tells the languages of the model; give the data it was trained on", "/empty: ")
def _(world):
    path = world.checkpoint("sa_nmt_shared_tiny")
    state = torch.load(path, weights_only=False)
    state["cfg"]["task"]["source_lang"] = state["cfg"]["task"]["target_lang"] = None
    torch.save(state, world.folder / "no-languages.pt")
    (world.folder / "empty").mkdir()
    for name in ("dict.en.txt", "dict.de.txt"):
        shutil.copy(world.bin / name, world.folder / "empty")
    return world.program(
        "trees", "--subset", "test", path=world.folder / "no-languages.pt", data=world.folder / "empty"
    )


def test_a_grammar_needs_trees(world):
    world.tree([row(1, "a", "_"), row(2, "b", "_")])
    message = world.program("grammar", "--gold", treebank(world), model=False)
    assert message.endswith("test.en.conllu: no sentence with a tree; give a treebank")


def other_trees(world, *words):
    path = world.folder / "predicted.conllu"
    path.write_text("".join(row(i, word, i - 1) + "\n" for i, word in enumerate(words, 1)) + "\n")
    return path


@case("parse the words of the treebank", "predicted.conllu:1: the words are 'a B2', but at ", "test.en.conllu:1 'a b'")
def _(world):
    world.tree([row(1, "a", 0), row(2, "b", 1)])
    predicted = other_trees(world, "a", "B2")
    return world.program("attachment", "--gold", treebank(world), "--predicted", predicted, model=False)


@case("sentences, but … has …; parse this very text", "predicted.conllu: 1 sentences, but ", "test.en.conllu has 3;")
def _(world):
    predicted = other_trees(world, "a")
    return world.program("grammar", "--gold", treebank(world), "--predicted", predicted, model=False)


@pytest.mark.parametrize("program", ["attachment", "grammar"])
def test_gold_that_is_no_conllu(world, program):
    for model in (True, False):
        message = world.program(program, "--gold", world.text / "test.en", model=model)
        assert re.search(r"test\.en:1: 1 columns \(.*\); CoNLL-U has 10", message)


@pytest.mark.parametrize("program", ["attachment", "grammar"])
def test_gold_that_is_not_there(world, program):
    assert "none.conllu" in world.program(program, "--gold", world.folder / "none.conllu", model=False)


@case("tokens and the end of the sentence, but the model reads", "long:1: 1024 tokens", "1024; cut the sentence")
def _(world):
    (world.text / "long").write_text("a " * 1024 + "\n")
    return world.program("trees", "--input", world.text / "long")


def filled(world, value):
    """A checkpoint of which all parameters are `value`."""
    state = torch.load(world.checkpoint("sa_nmt_shared_tiny"), weights_only=False)
    for parameter in state["model"].values():
        parameter.fill_(value)
    torch.save(state, world.folder / "filled.pt")
    return world.folder / "filled.pt"


@case("holds NaN or infinite numbers, so the training has failed", "filled.pt: ")
def _(world):
    return world.program("trees", "--subset", "test", path=filled(world, float("nan")))


@case("no tree can be made of the scores for", "filled.pt: ")
def _(world):
    return world.program("trees", "--subset", "test", path=filled(world, 3e38))


def test_tags_of_other_words(world):
    path = world.folder / "tags.conllu"
    path.write_text((row(1, "nothing", 0) + "\n\n") * 3)
    message = world.program("gates", "--target-conllu", path)
    assert (
        matches("tag the target side of this very split", message)
        and "tags.conllu:1: the words are 'nothing'" in message
    )


@case("has no target side; preprocess it with both languages", "--subset test: ")
def _(world):
    data = world.folder / "source-only"
    data.mkdir()
    for name in ("dict.en.txt", "dict.de.txt", "test.en-de.en.bin", "test.en-de.en.idx"):
        shutil.copy(world.bin / name, data)
    return world.program("gates", "--output", world.folder / "gates.tsv", data=data)


def against(world, name, *names):
    given = [world.text / "valid.de"] * 2
    options = ["--names", *names, "--against", name, "--reference", given[0]]
    return world.program("compare", *given, *options, model=False)


@case("no system has this name; give one of", "--against c: ")
def _(world):
    return against(world, "c", "a", "b")


@case("several systems have this name; give one of", "--against a: ")
def _(world):
    return against(world, "a", "a", "a")


@case("not what --bpe … reads", "codes: ", "--bpe sentencepiece", "; give the file of the training")
def _(world):
    path = world.folder / "codes"
    path.write_bytes(b"\xff")
    options = ["attachment", "--gold", treebank(world), "--bpe"]
    assert f"{path}: not what --bpe subword_nmt reads" in world.program(*options, "subword_nmt", "--bpe-codes", path)
    return world.program(*options, "sentencepiece", "--sentencepiece-model", path)


# what --rnng-tree-output writes of "ab" and its translation "c"
GOOD_TREES = """\
TS-0\t(X (X a b ) )
TT-0\t(X (X c ) )
TA-0\t{"source_spans": [[0, 2], [0, 2]], "target_spans": [[0, 1]], "attention": [[0.5, 0.5]]}
"""


def constituents_refused(world, command, *arguments, trees=GOOD_TREES):
    """What fairseq-syntax constituents says of a file of trees."""
    (world.folder / "trees.txt").write_text(trees)
    with pytest.raises(SystemExit) as stopped:
        sys.exit(constituents.main([command, str(world.folder / "trees.txt"), *map(str, arguments)]))
    assert stopped.value.code in (1, 2)
    return world.capsys.readouterr().err.strip().splitlines()[-1]


@case("no tree (a line such as TS-0)", "trees.txt: ")
def _(world):
    return constituents_refused(world, "stats", trees="H-0\t-0.5\ta b\n")


@case("is the file complete?", "trees.txt:1: sentence 0 has a TS- line, but no TT- line")
def _(world):
    return constituents_refused(world, "stats", trees=GOOD_TREES.splitlines()[0] + "\n")


# --- the cases and the documentation ----------------------------------------------------------------------------


@pytest.fixture(scope="session")
def models(tmp_path_factory):
    """Where `World.checkpoint` leaves models for the next case."""
    return tmp_path_factory.mktemp("models")


@pytest.fixture
def world(made, models, tmp_path, capsys, caplog, monkeypatch):
    shutil.copytree(made, tmp_path, dirs_exist_ok=True)
    capsys.readouterr()
    world = World(tmp_path, capsys)
    world.caplog, world.monkeypatch, world.models = caplog, monkeypatch, models
    return world


def parser(world, *extra):
    """Treebank and checkpoint of a parser of one update."""
    folder = treebanks.make(world.text / "treebank")
    run = world.text / "parser"
    few = ["--cpu", "--num-workers", 0, "--max-update", 1, "--no-epoch-checkpoints", "--disable-validation"]
    commands.run("fairseq-train", folder, *treebanks.TRAINING, *few, "--save-dir", run, *extra)
    return folder, run / "checkpoint_last.pt"


@case("are treebanks; give --input FILE.conllu", "--subset ")
def _(world):
    folder, path = parser(world)
    options = ["--subset", "valid", "--draw", world.folder / "graph.svg"]
    return world.program("graph", *options, data=folder, path=path)


@case("learns no heads of words; only latent does", "uni/checkpoint_last.pt: --lgp-graph uni ")
def _(world):
    commands.train(world.bin, world.models / "uni", "lgp_tiny", "--max-update", 1, "--lgp-graph", "uni")
    return world.program("trees", "--subset", "test", path=world.models / "uni" / "checkpoint_last.pt")


@case("written without a parse, which needs …", "text:2: 40 words, but the parser reads 39; ", "--allow-unparsed")
def _(world):
    _, path = parser(world, "--max-source-positions", 40)
    text = world.text / "text"
    text.write_text("x\n" + "x " * 40 + "\n")
    world.capsys.readouterr()
    arguments = ["--input", text, "--output", world.folder / "out", "--parser", "checkpoint"]
    arguments += ["--parser-model", path, "--parser-device", "cpu"]
    assert parse.main([str(argument) for argument in arguments]) == 0
    (said,) = [line for line in world.capsys.readouterr().err.splitlines() if "fairseq-syntax parse" in line]
    return said


def parser_refused(world, *options):
    """The error of training a parser with other options."""
    parser(world, *options)


def trees_refused(world, *options):
    """What training with latent constituents ends with, of words."""
    commands.train(world.bin, world.folder / "trees", "latent_tree_rnng_tiny", "--max-update", "1", *options)


@case("learns latent trees; use --arch latent_tree_rnng", "--criterion reinforce_tree: ")
def _(world):
    criterion = ReinforceTreeCriterion(latent_trees.Task(), ReinforceTreeConfig(seed=1))
    criterion(torch.nn.Linear(1, 1), latent_trees.pairs(latent_trees.Task(), ["a"], ["b"]))


def tree_search_refused(broken=lambda model: None, **options):
    """What translation with latent constituents ends with."""
    task, model = latent_trees.build()
    broken(model)
    task = TreeTranslationTask(
        TreeTranslationConfig(source_lang="a", target_lang="b"), task.source_dictionary, task.target_dictionary
    )
    count = options.pop("models", 1)
    generator = task.build_generator([model], Namespace(**options))
    generator.generate([model] * count, latent_trees.sample(task, "abc"))


@case("not available with --task tree_translation; leave it out", "--sampling: ")
def _(world):
    return tree_search_refused(sampling=True)


@case("grammars build different trees, so only one can translate", "2 models: ", "fairseq-syntax average")
def _(world):
    return tree_search_refused(models=2)


@case(
    "the policy gave a probability that is not a number",
    "source side: the policy",
    "at step 0; norms",
    "policy.bias nan",
)
def _(world):
    return tree_search_refused(lambda model: model.encoder.policy.bias.data.fill_(float("nan")))


@case("at least 1, and more than 0, are needed", "--beam 0 --temperature 1: ")
def _(world):
    return tree_search_refused(beam=0)


@case("there are no reference translations; score those of binarized data", "--score-reference")
def _(world):
    return tree_search_refused(score_reference=True)


def character_task(**options):
    """The task of latent trees for the letters a, b and c, without data."""
    dictionary = latent_trees.Task().source_dictionary
    config = TreeTranslationConfig(source_lang="a", target_lang="b", **options)
    return TreeTranslationTask(config, dictionary, dictionary)


def words_task(world, **options):
    """The task of latent trees with the good data, which are words."""
    given = {"data": str(world.bin), "source_lang": "en", "target_lang": "de", "dataset_impl": "mmap", **options}
    return TreeTranslationTask.setup_task(TreeTranslationConfig(**given))


@case("is a folder; name a file", "--rnng-tree-output ")
def _(world):
    character_task(rnng_tree_output=str(world.folder))


@case(
    "without --rnng-action-xent: nothing teaches the policy", "--rnng-forced-trees flat ", "give --rnng-action-xent 1"
)
def _(world):
    config = ReinforceTreeConfig(_name="reinforce_tree", seed=1)
    character_task(rnng_forced_trees="flat").build_criterion(config)
    (record,) = world.caplog.records
    return record.getMessage()


@case("dictionary has no ▁, which separates words", "--rnng-forced-trees words: the source ")
def _(world):
    words_task(world, rnng_forced_trees="words").load_dataset("train")


@case("has symbols that are no characters (madeupword0000)", "dict.en.txt has ", "--padding-factor 1")
def _(world):
    words_task(world)
    return next(record.getMessage() for record in world.caplog.records if record.levelname == "WARNING")


@pytest.mark.parametrize(
    "given, message",
    [
        ({"rnng_reward_discount": 50.0}, "--rnng-reward-discount 50.0: must be from 0 to 1"),
        ({"rnng_terminal_reward": float("nan")}, "--rnng-terminal-reward nan: must be finite"),
        ({"rnng_loo_samples": 1}, "--rnng-loo-samples 1: must be at least 2"),
    ],
)
def test_numbers_of_a_criterion_out_of_range(given, message):
    with pytest.raises(ValueError) as caught:
        ReinforceTreeCriterion(latent_trees.Task(), ReinforceTreeConfig(seed=1, **given))
    assert str(caught.value) == message


def trained_trees(broken=lambda model: None, **options):
    """A criterion of latent trees, and a step of it with a model."""
    task, model = latent_trees.build(rnng_max_open=4, rnng_actions_per_symbol=2)
    broken(model)
    criterion = ReinforceTreeCriterion(task, ReinforceTreeConfig(seed=1, **options))
    return criterion, lambda: criterion(model.train(), latent_trees.pairs(task, ["abcabcabc"], ["cab"]))


@case("the model has no value head; give --rnng-value-head, too", "--rnng-baseline value: ")
def _(world):
    _, step = trained_trees(rnng_baseline="value")
    step()


@case("not a finite number (sentence …); norms of the parameters", "source side, symbol loss: ", "lower --lr")
def _(world):
    _, step = trained_trees(lambda model: model.encoder.output.bias.data.fill_(float("nan")))
    step()


def told_of_trees(world, bias):
    """The warning after a step in which one action is all but certain."""

    def certain(model):
        model.encoder.policy.bias.data += torch.tensor(bias)

    criterion, step = trained_trees(certain)
    step()
    criterion.report_trees()
    return world.caplog.records[0].getMessage()


@case("are flat (nothing but the root)", "100 % of the source trees ", "--rnng-entropy-weight")
def _(world):
    return told_of_trees(world, [0.0, 1e4, 0.0])


@case("were kept from opening constituents by the limit of actions", "100 % of the source trees ")
def _(world):
    return told_of_trees(world, [1e4, 0.0, 5e3])


@case("is not legal there", "row 0, step 1: REDUCE ", "(2 constituents open, ")
def _(world):
    legality(np.array([[0, 2, 1, 1]]), np.array([1]), Limits())


@case("no dict.*.txt; make the directory with fairseq-preprocess --padding-factor 1", "fairseq-syntax characters wrote")
def _(world):
    empty = world.folder / "empty-characters"
    empty.mkdir()
    TreeTranslationTask.setup_task(TreeTranslationConfig(data=str(empty)))


@case("way of gathering the gradients does not allow", "--criterion joint_parsing: ", "give --ddp-backend legacy_ddp")
def _(world):
    torch.distributed.init_process_group("gloo", init_method=f"file://{world.folder}/group", rank=0, world_size=1)
    world.monkeypatch.setattr(DependencyParsingTask, "build_model", wrapped(DependencyParsingTask.build_model))
    try:
        return parser_refused(world)
    finally:
        torch.distributed.destroy_process_group()


def wrapped(build):
    """`build_model` of a task, but with PyTorch's wrapper around the model, as fairseq does it on several GPUs."""

    def build_wrapped(*args, **options):
        return ModuleProxyWrapper(DistributedDataParallel(build(*args, **options)))

    return build_wrapped


# --- training recipes, averaging, lengths -----------------------------------------------------------------------


@case("no words; give the training text that will be binarized", "empty.en: ")
def _(world):
    (world.text / "empty.en").write_text("\n")
    arguments = ["--train", world.text / "empty.en", "--output", world.folder / "dict.txt"]
    return world.program("dictionary", *arguments, model=False)


@case("vectors of … numbers, but the table has … columns", "vectors.txt:1: vectors of 3 numbers", "has 16 columns")
def _(world):
    path = world.text / "vectors.txt"
    path.write_text("the 0.1 0.2 0.3\n")
    return world.error("--lgp-word-vectors", path, arch="lgp_tiny")


@case("is not a line of a file of vectors (a word, then", "vectors.txt:1: 'A text without vectors.'", "16 numbers")
def _(world):
    path = world.text / "vectors.txt"
    path.write_text("A text without vectors.\n")
    return world.error("--lgp-word-vectors", path, arch="lgp_tiny")


@case(
    "has a vector of no …; give vectors of this language", "--lgp-word-vectors ", "vectors.txt: has a vector of no word"
)
def _(world):
    path = world.text / "vectors.txt"
    path.write_text(" ".join(["wort", *["0.1"] * 16]) + "\n")
    return world.error("--lgp-word-vectors", path, arch="lgp_tiny")


def optimizer(world, *extra):
    """The error of building optimizer and scheduler."""
    world.set_up(*extra, arch="lgp_tiny")
    built = build_optimizer(world.config.optimizer, list(world.model.parameters()))
    build_lr_scheduler(world.config.lr_scheduler, built)


@case("not with an adaptive softmax; leave --adaptive-softmax-cutoff out", "--criterion blackout: ")
def _(world):
    adaptive = ["--adaptive-softmax-cutoff", "6,9"]
    world.set_up("--criterion", "blackout", "--blackout-k", "5", *adaptive, arch="transformer_tiny")
    world.task.load_dataset("train")
    batch = world.task.datasets["train"].collater([world.task.datasets["train"][i] for i in range(2)])
    world.criterion(world.model.train(), batch)


def average(world, *inputs):
    arguments = [*inputs, "--output", world.folder / "average.pt"]
    return world.program("average", "--input", *arguments, model=False)


@case("average checkpoints of one training", "nmt_lstm_tiny")
def _(world):
    return average(world, world.checkpoint("sa_nmt_shared_tiny"), world.checkpoint("nmt_lstm_tiny"))


@case("no checkpointN.pt in this folder; train without --no-epoch-checkpoints", "sa_nmt_shared_tiny: ")
def _(world):
    return average(world, world.checkpoint("sa_nmt_shared_tiny").parent)


def generator(world, *extra, **options):
    """The error of building a generator."""
    task = world.set_up(*extra, arch="nmt_lstm_tiny")
    task.build_generator([world.model], argparse.Namespace(beam=2, **options))


@case("scores are divided by the length, which is --lenpen 1; leave out …", "--length-prior: ")
def _(world):
    meta = {"source": "en", "target": "de"}
    write_length_table(length_table_path(world.bin, "en", "de"), np.zeros((3, 3)), meta)
    return generator(world, "--length-prior", "auto", lenpen=0.5)


@case("needs the heads and labels of the source words (src_syntax); use --task", "--lgp-graph dep ")
def _(world):
    world.set_up("--lgp-graph", "dep", arch="lgp_tiny")
    tokens = torch.tensor([[4, 5, 2]])
    world.model(tokens, torch.tensor([3]), tokens)


@case("was trained with …, not …; give every system a --save-dir of its own", "--arch transformer_tiny", "--finetune-")
def _(world):
    train = ["--max-update", "1", "--save-dir", world.folder / "checkpoints"]
    commands.run("fairseq-train", world.bin, "--arch", "transformer_tiny", *commands.TRAINING, *train)
    commands.run("fairseq-train", world.bin, "--arch", "pascal_transformer_tiny", *commands.TRAINING, *train)


@case("there is no repair …; choose from", "patienc;", "patience", "FAIRSEQ_SYNTAX_WITHOUT")
def _(world):
    with pytest.MonkeyPatch.context() as patch, pytest.raises(ValueError) as caught:
        patch.setenv("FAIRSEQ_SYNTAX_WITHOUT", "quiet, patienc")
        compat.apply("quiet")
    return str(caught.value)


@case("the repair … does not fit this fairseq and is left out", "takes (text)", "FAIRSEQ_SYNTAX_WITHOUT=whole-copies")
def _(world):
    def other(text):
        raise AssertionError

    world.caplog.clear()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(PathManager, "copy", staticmethod(other))
        compat.apply("whole-copies")
        assert PathManager.copy is other
    return world.caplog.messages[-1]


# --- evaluation ---------------------------------------------------------------------------------------------------


def perturbed(world, *options, others=None, status=1):
    """What fairseq-syntax perturb says of the test set, of which `others` are the trees of another parser."""
    given, path = world.text / "test.en.conllu", world.folder / "others.conllu"
    if others is not None:
        path.write_text(others)
        options = ("--trees-of", path)
    return world.program(
        "perturb", "--input", given, "--output", world.folder / "worse.conllu", *options, model=False, status=status
    )


@case("roots, and perturbed trees have one", "test.en.conllu:1: the tree has 2 roots")
def _(world):
    world.tree([row(1, "a", 0), row(2, "b", 0)])
    return perturbed(world, "--reattach", 0.5)


@case("no sentence in it; give a CoNLL-U file", "test.en.conllu: ")
def _(world):
    (world.text / "test.en.conllu").write_text("")
    return perturbed(world, "--trees", "left")


@case("ends before …; give trees of the same text", "others.conllu: ")
def _(world):
    return perturbed(world, others="")


@case("goes on after the sentences of …; give trees of the same text", "others.conllu: ")
def _(world):
    text = (world.text / "test.en.conllu").read_text()
    return perturbed(world, others=text + text)


@case("no parse that could take the place of the input's", "others.conllu:1: ")
def _(world):
    world.tree([row(1, "a", 0)])
    return perturbed(world, others=row(1, "a", "_") + "\n\n")


@case("is not a share from 0 to 1", "argument --reattach: '30' ", "0.3 is 30 %")
def _(world):
    return perturbed(world, "--reattach", 30, status=2)


def contrasted(world, *options, status=1, model=False, **files):
    """What fairseq-syntax contrast says of two pairs, of which `source`, `correct` and `incorrect` can be changed."""
    lines = {"source": "a\nb\n", "correct": "c\nd\n", "incorrect": "e\nf\n"} | files
    for name, text in lines.items():
        (world.folder / name).write_text(text)
    named = [part for name in ("source", "correct", "incorrect") for part in (f"--{name}", world.folder / name)]
    beside = () if model or "--beside" in options else ("--beside", world.folder / "none.json")
    return world.program("contrast", *named, *beside, *options, model=model, status=status)


def record(world, name, system, pairs="x", measure="sum"):
    """A record of two pairs."""
    path = world.folder / name
    path.write_text(Record(system, pairs, measure, [1.0, 2.0], [2.0, 1.0], {}).as_json())
    return path


CONTRASTS = {
    "the files of the pairs have different numbers of lines": ({"correct": "c\n"}, "correct has 1"),
    "empty; a pair needs a source and two translations": ({"correct": "c\n\n"}, "correct:2: "),
    "the members of a pair differ": ({"incorrect": "e\nd\n"}, "correct:2: the same as ", "incorrect:2 ('d')"),
    "no pairs; the file is empty": ({"source": "", "correct": "", "incorrect": ""}, "source: "),
}
for fragment, (files, *details) in CONTRASTS.items():
    case(fragment, *details)(lambda world, files=files: contrasted(world, **files))


@case("a folder of pairs has one each of", "0 files src.*", "tgt.correct.*")
def _(world):
    return world.program("contrast", "--pairs", world.text, "--beside", "none.json", model=False)


@case("a file is named twice; name three")
def _(world):
    return contrasted(world, "--incorrect", world.folder / "correct")


@case("rows below the header, but there are … pairs; give a row each", "details:", "3 rows")
def _(world):
    return contrasted(world, "--details", world.folder / "details", details="distance\n1\n2\n3\n")


@case("columns, but the header has", "details:3: 2 columns", "has 1; use tabs")
def _(world):
    return contrasted(world, "--details", world.folder / "details", details="distance\n1\n2\t3\n")


@case("not what fairseq-syntax contrast --output has written", "none.json: ")
def _(world):
    return contrasted(world, **{"none.json": "{}"})


@case("were scored on different pairs", "b and a ")
def _(world):
    return contrasted(world, "--beside", record(world, "a", "a"), record(world, "b", "b", pairs="y"))


@case("have different --score; score both with the same", "b and a ")
def _(world):
    return contrasted(world, "--beside", record(world, "a", "a"), record(world, "b", "b", measure="mean"))


@case("two systems are called …; give another --name", "'a'")
def _(world):
    return contrasted(world, "--beside", record(world, "a", "a"), record(world, "b", "a"))


@case("a record of other pairs than", "a: ", "source; give those")
def _(world):
    return contrasted(world, "--beside", record(world, "a", "a"))


@case("needs sacremoses, which is not installed", "--tokenizer moses: ")
def _(world):
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, "sacremoses", None)
        return contrasted(world, "--tokenizer", "moses", model=True)


@case("give --pairs, or --source, --correct and --incorrect", "error: ")
def _(world):
    return contrasted(world, "--pairs", world.text, status=2)


@case("scores no translations; give a model that translates", "lgp_parser_tiny ")
def _(world):
    data, path = parser(world)
    (world.folder / "src.en").write_text("a\n")
    for name in ("correct", "incorrect"):
        (world.folder / f"tgt.{name}.de").write_text(f"{name}\n")
    return world.program("contrast", "--pairs", world.folder, data=data, path=path)


@case("without a model there is only --beside", "give DATA and --path; ")
def _(world):
    return world.program("contrast", "--pairs", world.text, model=False, status=2)


KINDS = {
    **{"training": World.error, "preprocess": World.refused, "programs": World.program, "check": World.check},
    **{"latent_trees": trees_refused, "parser": parser_refused, "optimizer": optimizer, "generator": generator},
    **{"constituents": constituents_refused, "average": average},
}


def of_table(kind, options="", run="", trees=(), without=(), write=None, says=(), **more):
    """A case of bad_input.toml, as a function of the world."""

    def provoke(world):
        if trees:
            world.tree([row(i, *word.split()) for i, word in enumerate(trees, 1)])
        places = {name: getattr(world, name) for name in ("folder", "text", "bin")}
        given = {key: value.format(**places) if isinstance(value, str) else value for key, value in more.items()}
        for path in without:
            Path(path.format(**places)).unlink()
        for path, content in (write or {}).items():
            Path(path.format(**places)).write_text(content)
        return KINDS[kind](world, *(options or run).format(**places).split(), **given)

    return provoke


for kind, cases in tomllib.loads(Path(__file__).with_name("bad_input.toml").read_text(encoding="utf-8")).items():
    for message, given in cases.items():
        case(message, *given.get("says", ()))(of_table(kind, **given))


@pytest.mark.parametrize("fragment", CASES)
def test_bad_input_has_one_clear_message(fragment, world):
    provoke, details = CASES[fragment]
    try:
        message = provoke(world)
    except (ValueError, OSError, FloatingPointError) as error:
        message = str(error)
    assert matches(fragment, message), message
    for detail in details:
        assert detail in message
    assert "\n" not in message


def table():
    """(error texts, from) of every row of the documentation."""
    rows = []
    page = (REPOSITORY / "docs" / "troubleshooting.md").read_text(encoding="utf-8")
    for line in page.split("\n## Repairs of fairseq\n")[0].splitlines():
        if line.startswith("| ") and not line.startswith("| Error text"):
            cells = [cell.strip() for cell in line.strip("|").split(" | ")]
            assert len(cells) == 4 and all(cells), line
            rows.append((cells[0], cells[1]))
    return rows


def test_documentation_has_the_texts_of_the_cases_and_no_others():
    rows = table()
    assert {origin for _, origin in rows} == {"ours", "fairseq", "torch", "NumPy"}
    ours = [text.strip("`") for text, origin in rows if origin == "ours"]
    assert len(ours) == len(set(ours)) >= 20
    assert set(ours) == set(CASES)


def test_no_text_of_the_documentation_is_that_of_another_row():
    """A reader who looks for the message finds one row."""
    ours = [text.strip("`") for text, origin in table() if origin == "ours"]
    for one in ours:
        assert not [other for other in ours if other != one and matches(one, other)], one


@pytest.mark.parametrize(
    "fragment, extra",
    [
        ("Error merging override tokenizer.source_lang=null", ["--tokenizer", "moses"]),
        ("unrecognized arguments: False", ["--left-pad-source", "False"]),
    ],
)
def test_traps_of_fairseq_say_what_the_documentation_says(fragment, extra, world):
    assert [origin for text, origin in table() if text == f"`{fragment}`"] == ["fairseq"]
    argv = [str(world.bin), *extra, "--arch", "transformer_tiny"]
    try:
        parser = options.get_training_parser(default_task="syntax_translation")
        convert_namespace_to_omegaconf(options.parse_args_and_arch(parser, argv))
    except (Exception, SystemExit) as error:
        assert matches(fragment, str(error) + world.capsys.readouterr().err)
    else:
        pytest.fail("fairseq accepts it now: take the row out of the documentation")


def test_trap_num_batch_buckets_is_still_one():
    """When NumPy or fairseq repairs it, our refusal can go."""
    import numpy as np

    with pytest.raises(TypeError):
        np.percentile([1, 2], 50, interpolation="lower")
