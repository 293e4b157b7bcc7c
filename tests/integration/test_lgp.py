"""LGP-NMT through fairseq's commands: words by their spelling, threads, a parser that was trained before."""

import re
import shutil
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch
import treebanks
from integration import commands
from integration.commands import assert_same_hypotheses, binarize

from fairseq_syntax.systems.lgp.model import LatentGraphModel
from fairseq_syntax.systems.parser.model import LatentGraphParserModel
from fairseq_syntax.systems.parser.treebank import encode_words


# the other graphs in double precision, without fairseq's commands: tests/unit/systems/lgp/test_model.py
@pytest.fixture
def checkpoint(trained):
    """Of a model of two updates."""
    return trained("lgp_tiny", "--lgp-graph", "latent") / "checkpoint_last.pt"


def test_unseen_words_are_read_by_their_spelling(data_bin, tmp_path, checkpoint):
    """As if they had been in the dictionary with count 0: through interactive, and the hub."""
    known = [line.split()[0] for line in (data_bin / "dict.en.txt").read_text(encoding="utf-8").splitlines()]
    words = [word for word in known if word.isalpha() and len(word) == 4]
    one, other = words[0] + words[1], words[2] + words[3]
    assert not {one, other} & set(known)
    lines = [f"{words[0]} {one} .", f"{words[0]} {other} .", f"{words[0]} {one} .", f"{words[0]} {words[1]} ."]
    (tmp_path / "input").write_text("\n".join(lines) + "\n")
    found = commands.interactive(data_bin, checkpoint, tmp_path / "input")
    open_data = shutil.copytree(data_bin, tmp_path / "data-bin")
    with open(open_data / "dict.en.txt", "a", encoding="utf-8") as file:
        for word in (other, one):
            file.write(f"{word} 0\n")
    expected = commands.interactive(open_data, checkpoint, tmp_path / "input")
    assert_same_hypotheses(found, expected)
    assert found[0][0] == found[2][0] != found[1][0]

    model = LatentGraphModel.from_pretrained(checkpoint.parent, checkpoint.name, str(data_bin), cpu=True)
    before = len(model.task.source_dictionary)
    with torch.no_grad():
        batch = [model.encode(line)[None] for line in lines[:2]]
        states = [model.models[0].encoder(row)["memory"]["values"] for row in batch]
    assert len(model.task.source_dictionary) > before
    assert model.models[0].encoder.words.word_row.shape[0] == len(model.task.source_dictionary)
    assert not torch.allclose(states[0], states[1])
    assert len(model.translate(lines)) == 4


def test_threads_may_share_a_hub_object(data_bin, checkpoint):
    """Every thread makes the dictionary grow, while others translate."""
    alone, shared = (
        LatentGraphModel.from_pretrained(checkpoint.parent, checkpoint.name, str(data_bin), cpu=True) for _ in range(2)
    )
    calls = [[f"the {letter * 5}{number} sees {letter}{number} ."] for number in range(5) for letter in "abcd"]
    expected = [alone.translate(lines, max_len_b=10) for lines in calls]
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        with ThreadPoolExecutor(4) as pool:
            found = list(pool.map(lambda lines: shared.translate(lines, max_len_b=10), calls))
    finally:
        sys.setswitchinterval(interval)
    assert found == expected == [shared.translate(lines, max_len_b=10) for lines in calls]


def test_translator_starts_from_a_trained_parser(corpus, tmp_path):
    """Heads of a sentence of words that both know are the parser's; the file is not needed afterwards."""
    # word for word
    data = binarize({split: corpus / split for split in ("train", "valid", "test")}, tmp_path / "bin")
    few = ["--cpu", "--max-epoch", 4, "--no-epoch-checkpoints", "--save-dir", tmp_path]
    commands.run("fairseq-train", treebanks.make(tmp_path / "treebank"), *treebanks.TRAINING, *few)
    path = (tmp_path / "checkpoint_last.pt").rename(tmp_path / "parser.pt")
    plus = ["--lgp-parser-path", path, "--lgp-src-min-freq", 1]
    # an update of nothing leaves the parser as it was
    log = commands.train(data, tmp_path / "same", "lgp_tiny", *plus, "--lr", 0, "--max-update", 1)
    assert len(re.findall(r"parser\.pt: [1-9]\d* of \d+ rows have a vector", log)) == 2, "words and n-grams"
    trained, task = LatentGraphParserModel.load(path)
    path.unlink()
    hub = LatentGraphModel.from_pretrained(tmp_path / "same", "checkpoint_last.pt", str(data), cpu=True)
    both = set(trained.words.row_symbols) & set(hub.models[0].encoder.words.row_symbols)
    shared = sorted(word for word in both if word.isalpha())
    assert len(shared) >= 3
    texts = [" ".join(shared[:3]), " ".join(shared[::-1][:2])]
    for text in texts:
        own = encode_words(text.split(), task.source_dictionary)[None]
        expected = trained.latent_heads(own)
        found = hub.models[0].latent_heads(hub.encode(text)[None])
        # n-grams that only one of the two knows are in no word that both know
        for name in ("arc_marginals", "root_marginals"):
            torch.testing.assert_close(found[name], expected[name], atol=1e-6, rtol=0)
