"""Bad input of every kind ends in one clear message; docs/troubleshooting.md explains those that need it.

Every case below, and in bad_input.toml, provokes its message through the real program or API. A text in the table of
the documentation must be that of a case, or of a message of the package, whose test is in its room.
"""

import ast
import importlib
import inspect
import re
import shutil
import sys
import tomllib
from argparse import Namespace
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace

import latent_trees
import pytest
import torch
import treebanks
from corpora import random_items, write_split
from fairseq import tasks
from integration import commands
from training_options import configuration

from fairseq_syntax.compat.checkpoint_files import check_state
from fairseq_syntax.data.parsers import ParserOptions, load_parser
from fairseq_syntax.systems.latent_tree.task import TreeTranslationConfig, TreeTranslationTask
from fairseq_syntax.tools import preprocess

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


class World:
    """A copy of good data to be spoilt, and ways to run the programs on it."""

    def __init__(self, folder, capsys, checkpoint):
        self.folder, self.text, self.bin = folder, folder / "text", folder / "bin"
        self.capsys, self.checkpoint = capsys, checkpoint

    def arguments(self, *extra, splits=("train", "valid", "test"), destdir="new"):
        """Of fairseq-syntax preprocess."""
        prefixes = [part for s in splits for part in (f"--{s}pref", f"{self.text}/{s}")]
        return ["-s", "en", "-t", "de", *prefixes, "--destdir", f"{self.folder}/{destdir}", *map(str, extra)]

    def refused(self, *extra, status=1, **kwargs):
        """What fairseq-syntax preprocess says when it refuses."""
        return self.program("preprocess", *self.arguments(*extra, **kwargs), model=False, status=status)

    def tree(self, words):
        """Make the test set one sentence, of each word its form and head; and a text of two words."""
        (self.text / "test.en").write_text("a b\n")
        (self.text / "test.de").write_text("x\n")
        rows = [f"{i}\t{{}}\t_\tX\t_\t_\t{{}}\tdep\t_\t_\n".format(*word.split()) for i, word in enumerate(words, 1)]
        (self.text / "test.en.conllu").write_text("".join(rows) + "\n")

    def files(self):
        return {path: path.read_bytes() for path in self.folder.rglob("*") if path.is_file()}

    def program(self, name, *arguments, arch="sa_nmt_shared_tiny", path=None, data=None, model=True, status=1):
        """What a program says when it refuses: one line, no traceback, nothing written or changed."""
        main = importlib.import_module(f"fairseq_syntax.tools.{name.replace('-', '_')}").main
        given = [data or self.bin, "--path", path or self.checkpoint(arch), "--cpu"] if model else []
        before = self.files()
        self.capsys.readouterr()
        try:
            code = main([*map(str, given), *map(str, arguments)])
        except SystemExit as stopped:
            code = stopped.code
        error = self.capsys.readouterr().err
        assert code == status and self.files() == before and "Traceback" not in error
        (said,) = re.findall(rf"fairseq-syntax[ -]{name}: (.*)", error)
        return said

    def set_up(self, *extra, data=None, arch="pascal_transformer_tiny"):
        """Task and model as fairseq-train makes them."""
        self.config = configuration(data or self.bin, arch, *extra)
        self.task = tasks.setup_task(self.config.task)
        self.model = self.task.build_model(self.config.model)
        self.criterion = self.task.build_criterion(self.config.criterion)
        return self.task

    def error(self, *extra, load=None, **kwargs):
        """The error of setting up a training, or of loading a split."""
        with pytest.raises((ValueError, OSError)) as caught:
            self.set_up(*extra, **kwargs)
            assert load, "no error"
            self.task.load_dataset(load)
        return str(caught.value)


# --- data directories -------------------------------------------------------------------------------------------


@case("other words than in the binarized text", "test.en:1: ", "give the text that was binarized")
def _(world):
    for path in world.text.glob("test.en*"):
        path.write_text(path.read_text().replace("w", "v"))
    return world.refused("--only-syntax", "--overwrite", destdir="bin", splits=["test"])


@case(
    "in the binarized text, but … in the trees; the text was changed after the trees were added",
    "split 'test', line 1: ",
)
def _(world):
    write_split(world.text / "test", random_items(3, 77))
    dicts = ["--srcdict", world.bin / "dict.en.txt", "--tgtdict", world.bin / "dict.de.txt"]
    preprocess.main(world.arguments(*dicts, "--syntax-dicts", world.bin, splits=["test"], destdir="changed"))
    for end in ("en.bin", "en.idx", "de.bin", "de.idx"):
        shutil.copy(world.folder / "changed" / f"test.en-de.{end}", world.bin / f"test.en-de.{end}")
    return world.error(load="test")


# --- models and options -----------------------------------------------------------------------------------------


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


# --- looking inside models --------------------------------------------------------------------------------------


@case("the scores allow no tree for", "edited.pt: ")
def _(world):
    state = torch.load(world.checkpoint("sa_nmt_shared_tiny"), weights_only=False)
    for parameter in state["model"].values():
        parameter.fill_(3e38)
    torch.save(state, world.folder / "edited.pt")
    return world.program("look", "--subset", "test", "--output", "-", path=world.folder / "edited.pt")


@pytest.mark.parametrize("value, is_fine", [(-float("inf"), True), (float("inf"), False)])
def test_a_checkpoint_may_hold_a_mask(value, is_fine):
    options = {"_name": "any"}
    state = {"model": {"mask": torch.full((2, 2), value)}, "cfg": {"model": options, "task": options}}
    with nullcontext() if is_fine else pytest.raises(ValueError, match="mask holds NaN or infinite numbers"):
        check_state(state, "x.pt")


# --- the cases and the documentation ----------------------------------------------------------------------------


@pytest.fixture
def world(good, trained, tmp_path, capsys, monkeypatch):
    for name in ("text", "bin"):
        shutil.copytree(good / name, tmp_path / name)
    world = World(tmp_path, capsys, trained)
    world.monkeypatch = monkeypatch
    return world


def tree_search_refused(_, **options):
    """What translation with latent constituents ends with."""
    task, model = latent_trees.build()
    task = TreeTranslationTask(
        TreeTranslationConfig(source_lang="a", target_lang="b"), task.source_dictionary, task.target_dictionary
    )
    count = options.pop("models", 1)
    generator = task.build_generator([model], Namespace(**options))
    generator.generate([model] * count, latent_trees.sample(task, "abc"))


@case("dictionary has no ▁, which separates words", "--rnng-forced-trees words: the source ")
def _(world):
    given = {"data": str(world.bin), "source_lang": "en", "target_lang": "de", "dataset_impl": "mmap"}
    config = TreeTranslationConfig(**given, rnng_forced_trees="words")
    TreeTranslationTask.setup_task(config).load_dataset("train")


# --- training recipes -----------------------------------------------------------------------


@case("does not support an adaptive softmax; leave out --adaptive-softmax-cutoff", "--criterion blackout: ")
def _(world):
    adaptive = ["--adaptive-softmax-cutoff", "6,9"]
    world.set_up("--criterion", "blackout", "--blackout-k", "5", *adaptive, arch="transformer_tiny")
    world.task.load_dataset("train")
    batch = world.task.datasets["train"].collater([world.task.datasets["train"][i] for i in range(2)])
    world.criterion(world.model.train(), batch)


def interactive(world, *options, text="a b"):
    """What comes of a line of raw text."""
    world.set_up(*options).get_interactive_tokens_and_lengths([text], lambda line: line)


KINDS = {
    **{"training": World.error, "preprocess": World.refused, "programs": World.program},
    "interactive": interactive,
    "parser": lambda world, *options: commands.run(
        "fairseq-train", treebanks.make(world.folder / "bank"), *treebanks.TRAINING, "--cpu", *options
    ),
    "tree_search": tree_search_refused,
    "parsers": lambda _, **given: load_parser(given.pop("name"), ParserOptions(**given)),
}


def spoil(world, at, copy=None, without=(), write=None, append=None, fill=None, hide=()):
    """Change the good data as a case of bad_input.toml says; `at` makes a path of a text."""
    for target, source in (copy or {}).items():
        at(target).parent.mkdir(exist_ok=True)
        (shutil.copytree if at(source).is_dir() else shutil.copy)(at(source), at(target))
    for pattern in without:
        for found in (paths := list(at(pattern).parent.glob(at(pattern).name))):
            found.unlink()
        assert paths, pattern
    for mode, files in (("wb", write or {}), ("ab", append or {})):
        for name, content in files.items():
            at(name).parent.mkdir(exist_ok=True)
            text, times = content if isinstance(content, list) else (content, 1)
            with open(at(name), mode) as file:
                file.write(text.encode("latin-1" if max(text, default="") < "\u0100" else "utf-8") * times)
    for name, content in (fill or {}).items():
        at(name).write_bytes(content.encode("latin-1") * (at(name).stat().st_size // len(content)))
    for name in hide:
        world.monkeypatch.setitem(sys.modules, name, None)


CHANGES = set(inspect.signature(spoil).parameters)


def of_table(kind, options="", run="", trees=(), first=None, needs="pytest", says=(), **more):
    """A case of bad_input.toml, as a function of the world."""

    def provoke(world):
        pytest.importorskip(needs)
        places = {name: getattr(world, name) for name in ("folder", "text", "bin")}
        given = {key: value.format(**places) if isinstance(value, str) else value for key, value in more.items()}
        if trees:
            world.tree(trees)
        changes = {key: given.pop(key) for key in CHANGES & given.keys()}
        spoil(world, lambda text: Path(text.format(**places)), **changes)
        if first is not None:
            assert preprocess.main(world.arguments("--overwrite", *first.split(), destdir="bin")) == 0
        return KINDS[kind](world, *(word.format(**places) for word in (options or run).split()), **given)

    return provoke


ROWS = tomllib.loads(Path(__file__).with_name("bad_input.toml").read_text(encoding="utf-8"))
for kind, cases in ROWS.items():
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


def messages():
    """Strings of the package, with … where a value stands."""
    for path in (REPOSITORY / "fairseq_syntax").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.JoinedStr):
                yield "".join(part.value if isinstance(part, ast.Constant) else "…" for part in node.values)
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                yield node.value


def test_documentation_explains_messages():
    rows = table()
    assert {origin for _, origin in rows} == {"ours", "fairseq", "torch", "NumPy"}
    ours = [text.strip("`") for text, origin in rows if origin == "ours"]
    assert len(ours) == len(set(ours)) >= 15
    texts = list(messages())
    assert not [text for text in ours if text not in CASES and not any(matches(text, one) for one in texts)]
    for one in ours:  # a reader who looks for the message finds one row
        assert not [other for other in ours if other != one and matches(one, other)], one
