"""Data that are right, and models trained on them, for tests of what is damaged or wrong."""

from pathlib import Path

import pytest
from corpora import random_items, write_split
from integration import commands


@pytest.fixture(scope="session")
def good(tmp_path_factory) -> Path:
    """A folder with text/ and bin/, of 12, 4 and 3 sentences."""
    folder = tmp_path_factory.mktemp("good")
    prefixes = {name: folder / "text" / name for name in ("train", "valid", "test")}
    for seed, (name, count) in enumerate((("train", 12), ("valid", 4), ("test", 3))):
        write_split(prefixes[name], random_items(count, seed))
    commands.binarize(prefixes, folder / "bin")
    (folder / "bin" / "preprocess.log").unlink()
    return folder


@pytest.fixture(scope="session")
def trained(good):
    """Function: architecture -> checkpoint of one update, made once a session."""

    def get(arch: str) -> Path:
        path = good / "models" / arch / "checkpoint_last.pt"
        if not path.exists():
            train(good / "bin", path.parent, arch)
        return path

    return get


def train(data: Path, directory: Path, arch: str, *options) -> str:
    """Train for one update, if the options do not say otherwise; returns the log."""
    heads = ["--criterion", "label_smoothed_cross_entropy_with_heads"] if "lisa" in arch else []
    return commands.train(data, directory, arch, "-s", "en", "-t", "de", "--max-update", 1, *heads, *options)
