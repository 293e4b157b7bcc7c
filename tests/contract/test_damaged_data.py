"""Damaged data directories: whatever reads one says what is wrong in one message, or reads it rightly."""

import random
import shutil

import pytest
from contract.conftest import train
from damage import KINDS, SIZES, damaged
from integration import commands

from fairseq_syntax.data.collating import INPUTS
from fairseq_syntax.tools import preprocess

# architecture -> inputs it reads
READ = {
    "pascal_transformer_tiny": {"parents"},
    "tag_transformer_tiny": {"deprels"},
    "lisa_transformer_tiny": {"parent_pieces", "word_starts"},
    "transformer_tiny": set(),
}
CASES = random.Random(14).sample(range(90), 4)


def draw(case, files):
    """File and kind of damage of a case; every file has its turn before one has a second."""
    order = sorted(files)
    rng = random.Random(case)
    random.Random(case // len(order)).shuffle(order)
    return order[case % len(order)], rng.choice(KINDS), rng


def is_read(name, arch, split):
    """Whether a command with this model cannot do without a file."""
    if name in ("dict.en.txt", "dict.de.txt"):
        return True
    if not READ[arch]:
        return name.startswith(f"{split}.") and name.count(".") == 3
    if name.startswith("dict."):
        return arch == "tag_transformer_tiny" and name == "dict.en.deprel.txt"
    if name == "syntax-en-de.json":
        return True
    arrays = {array for kind in READ[arch] for array in INPUTS[kind].arrays} | {"words", "heads"}
    return name.startswith(f"{split}.") and (name.count(".") == 3 or name.split(".")[3] in arrays)


def refused(work):
    """The message of a command that refuses, None if it does its work; any other end is a failure."""
    try:
        work()
    except (ValueError, OSError) as error:
        assert "\n" not in str(error).strip(), error
        return str(error)
    return None


@pytest.mark.parametrize("case", CASES)
def test_a_damaged_data_directory(case, good, trained, tmp_path, capsys):
    folder = shutil.copytree(good / "bin", tmp_path / "bin")
    name, kind, rng = draw(case, [path.name for path in folder.iterdir()])
    path = folder / name
    before = path.read_bytes()
    content = damaged(before, kind, rng)
    if content == before or (name.endswith(".json") and kind == "flip"):
        kind, content = "half", damaged(before, "half", rng)  # of a manifest, a letter may not matter
    path.unlink()
    if content is not None:
        path.write_bytes(content)

    # everything is found by fairseq-syntax preprocess --check
    capsys.readouterr()
    assert preprocess.main(["--check", str(folder)]) == 1, (name, kind)
    said = capsys.readouterr()
    assert "Traceback" not in said.err and "all right" not in said.out
    lines = said.err.splitlines()
    assert lines and all(line.startswith("fairseq-syntax preprocess: ") for line in lines)
    assert any(str(folder) in line or "split" in line for line in lines), lines
    assert any(name.rsplit(".", 1)[0] in line or "sentence" in line for line in lines), (name, lines)

    arch = rng.choice(list(READ))
    checkpoint = trained(arch)
    for split, work in (
        ("train", lambda: train(folder, tmp_path / "new", arch)),
        ("test", lambda: commands.run("fairseq-generate", folder, "--path", checkpoint, *commands.DECODING)),
    ):
        message = refused(work)
        needs = is_read(name, arch, split) and not (split == "test" and "lisa" in arch)
        # parents and distances follow from the heads, and are computed where they are missing
        spare = kind == "gone" and name.split(".")[-2] in ("parents", "distances") and name.endswith(".idx")
        if message is None:
            assert not (needs and kind in SIZES and not spare), (name, kind, arch, split)
        else:
            assert str(folder) in message or repr(split) in message, (name, kind, message)


def test_the_directory_itself_is_right(good, capsys):
    """Otherwise the test above would prove nothing."""
    assert preprocess.main(["--check", str(good / "bin")]) == 0
    said = capsys.readouterr()
    assert said.err == "" and said.out.splitlines()[-1] == f"{good / 'bin'}: all right"


def test_a_byte_of_the_distances(good, tmp_path):
    """Nothing else would tell: distances may be any numbers."""
    folder = shutil.copytree(good / "bin", tmp_path / "bin")
    path = folder / "train.en-de.en.distances.bin"
    content = bytearray(path.read_bytes())
    content[5] ^= 1
    path.write_bytes(content)
    said = refused(lambda: train(folder, tmp_path / "new", "sdatt_tiny"))
    assert said.startswith(f"{path}: changed since it was written; copy it again")
