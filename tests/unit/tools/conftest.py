"""A tiny corpus in subwords, and models trained on it, for the programs that look inside models."""

import io
import random
import shutil
from pathlib import Path
from types import SimpleNamespace

import pytest
import shared
import treebanks
from corpora import Item, random_heads, write_split
from integration import commands
from subword_nmt.apply_bpe import BPE
from subword_nmt.learn_bpe import learn_bpe

LEXICON = {
    "NOUN": ["dog", "dogs", "doghouse", "house", "houses", "tree"],
    "VERB": ["sees", "seeing", "houses", "runs"],
    "DET": ["the", "a"],
    "ADJ": ["big", "bigger", "green"],
    "PUNCT": [",", "."],
}


def random_sentences(count: int, bpe: BPE, seed: int, longest: int = 6) -> list[Item]:
    """Sentences over the lexicon with random trees."""
    rng = random.Random(seed)
    items = []
    for _ in range(count):
        tags = [rng.choice(list(LEXICON)) for _ in range(rng.randint(1, longest))]
        words = [rng.choice(LEXICON[tag]) for tag in tags]
        pieces = [[piece.removesuffix("@@") for piece in bpe.process_line(word).split()] for word in words]
        items.append(Item(pieces, random_heads(rng, len(words)), upos=tags))
    return items


@pytest.fixture(scope="session")
def latent(tmp_path_factory) -> SimpleNamespace:
    """The corpus: `data` (with syntax), `plain` (without), `items` of the test split, `text` (prefix)."""
    folder = tmp_path_factory.mktemp("latent")
    codes = folder / "codes"
    words = "\n".join(word for words in LEXICON.values() for word in words)
    with open(codes, "w", encoding="utf-8") as out:
        learn_bpe(io.StringIO(words), out, 12, min_frequency=1)
    with open(codes, encoding="utf-8") as file:
        bpe = BPE(file)
    items = {}
    for seed, (split, count) in enumerate((("train", 80), ("valid", 10), ("test", 17))):
        items[split] = random_sentences(count, bpe, seed)
        write_split(folder / "text" / split, items[split])
    prefixes = {split: folder / "text" / split for split in items}
    data = commands.binarize(prefixes, folder / "bin")
    shutil.copy(codes, data)
    plain = folder / "plain"
    shutil.copytree(data, plain)
    for path in (*plain.glob("syntax-*"), *plain.glob("*.words.*")):
        path.unlink()
    return SimpleNamespace(data=data, plain=plain, items=items["test"], text=folder / "text" / "test")


@pytest.fixture(scope="session")
def trained(latent, tmp_path_factory):
    """Function: architecture, options -> checkpoint, made once a session, with weights set by hand."""

    def get(arch: str, *options: str) -> Path:
        def make(directory: Path) -> None:
            commands.train(latent.data, directory, arch, "--max-update", "1", *options)
            commands.scatter(directory / "checkpoint_last.pt")

        return shared.once(tmp_path_factory, " ".join(("latent", arch, *options)), make) / "checkpoint_last.pt"

    return get


@pytest.fixture(scope="session")
def treebank(tmp_path_factory) -> Path:
    """A folder with train.conllu and valid.conllu."""
    return shared.once(tmp_path_factory, "treebank", treebanks.make)


@pytest.fixture(scope="session")
def trained_parser(treebank, tmp_path_factory):
    """Function: options -> checkpoint of a parser, made once a session, with weights set by hand."""

    def get(*options: str) -> Path:
        def make(directory: Path) -> None:
            few = ["--cpu", "--num-workers", "0", "--max-epoch", "2", "--no-epoch-checkpoints"]
            commands.run("fairseq-train", treebank, *treebanks.TRAINING, *few, "--save-dir", directory, *options)
            commands.scatter(directory / "checkpoint_last.pt")

        return shared.once(tmp_path_factory, " ".join(("parser", *options)), make) / "checkpoint_last.pt"

    return get
