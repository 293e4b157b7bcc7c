"""A small corpus with gold trees, cut into subwords, binarized; and small models trained on it."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import shared
from integration import commands
from integration.commands import OPTIONS, TEST_SENTENCES, TRAIN_SENTENCES, binarize, cut


@pytest.fixture(scope="session")
def corpus(tmp_path_factory, repository) -> Path:
    """train, valid and test of the agreement corpus, in subwords, with trees."""
    sizes = ["--train", TRAIN_SENTENCES, "--valid", 61, "--test", TEST_SENTENCES, "--challenge", 0]
    script = repository / "examples" / "agreement" / "generate.py"

    def make(folder: Path) -> None:
        words, pieces = folder / "words", folder / "pieces"
        folder.mkdir()
        command = [sys.executable, script, "--output", words, *map(str, sizes), "--seed", "5"]
        subprocess.run(command, check=True, capture_output=True)
        pieces.mkdir()
        for split in ("train", "valid", "test"):
            for language in ("en", "de"):
                lines = (words / f"{split}.{language}").read_text(encoding="utf-8").splitlines()
                text = "".join(f"{cut(line)}\n" for line in lines)
                (pieces / f"{split}.{language}").write_text(text, encoding="utf-8")
            shutil.copy(words / f"{split}.en.conllu", pieces)
        splits = {split: pieces / split for split in ("train", "valid", "test")}
        binarize(splits, folder / "data-bin", "--joined-dictionary")

    return shared.once(tmp_path_factory, "corpus", make) / "pieces"


@pytest.fixture(scope="session")
def data_bin(corpus) -> Path:
    """The corpus, binarized with its trees and a joined dictionary."""
    return corpus.parent / "data-bin"


@pytest.fixture(scope="session")
def trained(data_bin, tmp_path_factory):
    """Function: architecture, options -> directory of a model of two updates, made once a session.

    After each update its weights were set by hand (`commands.scatter`): other sentences get other translations, and
    other trees other scores.
    """

    def get(arch: str, *options: str) -> Path:
        def make(directory: Path) -> None:
            limits = ("--max-update", "2", "--save-interval-updates", "1")
            commands.train(data_bin, directory, arch, *OPTIONS[arch], *limits, *options)
            for number, name in enumerate(("checkpoint_last.pt", "checkpoint_1_1.pt"), 1):
                commands.scatter(directory / name, number=number)

        return shared.once(tmp_path_factory, " ".join(("trained", arch, *options)), make)

    return get
