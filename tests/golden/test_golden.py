"""Checkpoints and data that an older commit made load, translate and score as they did then."""

import json
from pathlib import Path

import pytest
from golden import families
from golden.families import FAMILIES, SENTENCES
from integration import commands

HERE = Path(__file__).resolve().parent
EXPECTED = json.loads((HERE / "expected.json").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def folders(tmp_path_factory) -> dict[str, Path]:
    """Copies of text, data folders and checkpoints."""
    return families.copies(tmp_path_factory.mktemp("golden"))


def numbers_apart(value, numbers: list[float]):
    """The value with None for each number, which goes to the list."""
    if isinstance(value, dict):
        return {key: numbers_apart(item, numbers) for key, item in value.items()}
    if isinstance(value, list):
        return [numbers_apart(item, numbers) for item in value]
    if isinstance(value, (int, float)):
        numbers.append(value)
        return None
    return value


@pytest.mark.parametrize("name", FAMILIES)
def test_a_checkpoint_computes_what_it_did(name, folders):
    found = families.compute(name, folders, folders["checkpoints"] / f"{name}.pt")
    for key, expected in EXPECTED[name].items():
        pairs = [], []
        assert numbers_apart(found[key], pairs[0]) == numbers_apart(expected, pairs[1]), key
        # losses are printed with three digits
        assert pairs[0] == pytest.approx(pairs[1], abs=1e-4 if key == "translations" else 1.1e-3, rel=1e-5), key


def test_preprocessing_writes_what_it_did(folders, monkeypatch):
    """Every file, byte for byte; the manifest may say more."""
    monkeypatch.chdir(folders["text"].parent)  # it names the files as they were given
    data = commands.binarize(
        {split: Path("text", split) for split in SENTENCES}, Path("again"), *families.PREPROCESSING
    )
    files = sorted(path.name for path in folders["words"].iterdir() if path.suffix != ".json")
    assert len(files) == 4 + 3 * (2 + 2 + 6 * 2)
    for name in files:
        assert (data / name).read_bytes() == (folders["words"] / name).read_bytes(), name
    found, expected = (json.loads((folder / "syntax-en-de.json").read_text()) for folder in (data, folders["words"]))
    assert expected == {key: found[key] for key in expected}
