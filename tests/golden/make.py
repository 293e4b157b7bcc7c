"""Make the checkpoints, data and results that test_golden.py compares with, with the code of an older commit.

    git worktree add ../older fc347e9
    cd ../older && PYTHONPATH=$PWD python tests/golden/make.py NEW_FOLDER

NEW_FOLDER then holds text, data folders, checkpoints and expected.json; they replace those beside this script. This is
done once: the files stay what the older commit made. That commit's own families gave global_plus_sdatt a position
that has gone since; it was made with --sdatt-position hard.
"""

import contextlib
import json
import os
import subprocess
import sys
from argparse import Namespace
from importlib import import_module
from pathlib import Path

import torch

TESTS = Path(__file__).resolve().parent.parent
sys.path.append(str(TESTS))

from golden import families  # noqa: E402
from golden.families import FAMILIES, SENTENCES  # noqa: E402
from integration import commands  # noqa: E402

TRAINING = [
    *("--cpu", "--distributed-world-size", "1", "--optimizer", "adam", "--lr", "1e-3", "--batch-size", "10"),
    *("--seed", "1", "--num-workers", "0", "--max-update", "1", "--disable-validation", "--no-epoch-checkpoints"),
    *("--no-save-optimizer-state", "--save-dir", "run"),
]
GAINS = {"latent_tree_rnng": 4.0, "lgp_parser": 3.0}
UNPARSED = 1  # sentence of the test set without a parse


def write(path: Path, lines: list[str]) -> None:
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


def make_text(text: Path) -> None:
    """The agreement corpus in subwords, with trees of words; and beginnings of its sentences, in characters."""
    script = TESTS.parent / "examples" / "agreement" / "generate.py"
    sizes = [str(part) for split, size in SENTENCES.items() for part in (f"--{split}", size)]
    subprocess.run([sys.executable, script, "--output", "made", *sizes, "--challenge", "0", "--seed", "3"], check=True)
    text.mkdir()
    characters = import_module("fairseq_syntax.tools.characters")
    for split in SENTENCES:
        for language in ("en", "de"):
            lines = Path("made", f"{split}.{language}").read_text(encoding="utf-8").splitlines()
            write(text / f"{split}.{language}", [commands.cut(line) for line in lines])
            write(Path("beginnings"), [" ".join(line.split()[:3]) for line in lines])
            characters.main(["--input", "beginnings", "--output", str(text / f"{split}.char.{language}")])
        blocks = Path("made", f"{split}.en.conllu").read_text(encoding="utf-8").split("\n\n")
        if split == "test":
            rows = [row.split("\t") for row in blocks[UNPARSED].splitlines()]
            blocks[UNPARSED] = "\n".join("\t".join([*row[:6], "_", "_", *row[8:]]) for row in rows)
        (text / f"{split}.en.conllu").write_text("\n\n".join(blocks), encoding="utf-8")


def make_data() -> dict[str, Path]:
    """Data folders by name, all relative."""
    text = Path("text")
    make_text(text)
    prefixes = {split: text / split for split in SENTENCES}
    commands.binarize(prefixes, Path("words"), *families.PREPROCESSING)
    preprocess = import_module("fairseq_cli.preprocess")
    parser = import_module("fairseq.options").get_preprocessing_parser()
    given = ["-s", "en", "-t", "de", *(f"--{split}pref=text/{split}.char" for split in SENTENCES)]
    preprocess.main(parser.parse_args([*given, "--padding-factor", "1", "--destdir", "characters"]))
    for log in Path().glob("*/*.log"):
        log.unlink()
    return {name: Path(name) for name in ("text", "words", "characters")} | {"treebank": families.treebank(text)}


def neutral(value):
    """Without absolute paths, which name the machine that trained."""
    if isinstance(value, dict):
        return type(value)({key: neutral(item) for key, item in value.items()})
    if isinstance(value, Namespace):
        return Namespace(**neutral(vars(value)))
    if isinstance(value, (list, tuple)):
        return type(value)(map(neutral, value))
    return Path(value).name if isinstance(value, str) and os.path.isabs(value) else value


def make_checkpoint(name: str, data: Path) -> Path:
    """One update, then weights by hand."""
    commands.run("fairseq-train", data, "--arch", name, *TRAINING, *FAMILIES[name][1])
    path = Path("checkpoints", f"{name}.pt")
    commands.scatter(Path("run", "checkpoint_last.pt"), path, gain=GAINS.get(name, 1.5))
    torch.save(neutral(torch.load(path, weights_only=False)), path)
    Path("run", "checkpoint_last.pt").unlink()
    return path


def main(folder: str) -> None:
    """Everything, into a new folder."""
    os.mkdir(folder)
    with contextlib.chdir(folder):
        folders = make_data()
        os.mkdir("checkpoints")
        paths = {name: make_checkpoint(name, folders[data]) for name, (data, _) in FAMILIES.items()}
        expected = {name: families.compute(name, folders, path) for name, path in paths.items()}
        Path("expected.json").write_text(json.dumps(expected, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
