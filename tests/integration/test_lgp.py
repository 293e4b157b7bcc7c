"""LGP-NMT and its rivals through fairseq's commands: resuming, batches and padding sides."""

import re
import shutil
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import torch
import treebanks
from integration import commands
from integration.commands import OPTIONS, assert_same_hypotheses, binarize

from fairseq_syntax.systems.lgp.model import LatentGraphModel
from fairseq_syntax.systems.parser.model import LatentGraphParserModel
from fairseq_syntax.systems.parser.treebank import encode_words
from fairseq_syntax.tools import parse

GRAPHS = ["latent", "seq", "dep", "uni"]


# the others in double precision, without fairseq's commands: tests/unit/systems/lgp/test_model.py
@pytest.fixture
def checkpoint(trained):
    """Function: graph -> checkpoint of a model of two updates."""
    return lambda graph: trained("lgp_tiny", "--lgp-graph", graph) / "checkpoint_last.pt"


def test_all_graphs_in_one_ensemble(data_bin, checkpoint):
    alone, found = (
        commands.generate(data_bin, ":".join(str(checkpoint(graph)) for graph in graphs), "--gen-subset", "valid")
        for graphs in (GRAPHS[:1], ("latent", "uni", "seq"))
    )
    assert found.keys() == alone.keys() and found != alone


def test_unseen_words_are_read_by_their_spelling(data_bin, tmp_path, checkpoint):
    """As if they had been in the dictionary with count 0: through interactive, and the hub."""
    checkpoint = checkpoint("latent")
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
    path = checkpoint("latent")

    def opened():
        return LatentGraphModel.from_pretrained(path.parent, path.name, str(data_bin), cpu=True)

    calls = [[f"the {letter * 5}{number} sees {letter}{number} ."] for number in range(5) for letter in "abcd"]
    alone, shared = opened(), opened()
    expected = [alone.translate(lines, max_len_b=10) for lines in calls]
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        with ThreadPoolExecutor(4) as pool:
            found = list(pool.map(lambda lines: shared.translate(lines, max_len_b=10), calls))
    finally:
        sys.setswitchinterval(interval)
    assert found == expected == [shared.translate(lines, max_len_b=10) for lines in calls]


@pytest.fixture(scope="module")
def own_parser(tmp_path_factory):
    """Checkpoint of a parser of two passes, and a dictionary of words that it has seen."""
    folder = treebanks.make(tmp_path_factory.mktemp("treebank"))
    directory = tmp_path_factory.mktemp("parser")
    options = ["--cpu", "--num-workers", 0, "--max-epoch", 4, "--no-epoch-checkpoints"]
    commands.run("fairseq-train", folder, *treebanks.TRAINING, *options, "--save-dir", directory)
    return directory / "checkpoint_last.pt"


@pytest.fixture(scope="module")
def whole_words(corpus, tmp_path_factory):
    """The corpus binarized word for word; its trees, too."""
    folder = tmp_path_factory.mktemp("words")
    return binarize({split: corpus / split for split in ("train", "valid", "test")}, folder / "bin")


def test_translator_starts_from_a_trained_parser(whole_words, own_parser, tmp_path):
    """Heads of a sentence of words that both know are the parser's; the file is not needed afterwards."""
    path = shutil.copy(own_parser, tmp_path / "parser.pt")
    plus = ["--lgp-parser-path", path, "--lgp-src-min-freq", 1]
    for graph in GRAPHS:
        directory = tmp_path / graph
        log = commands.train(whole_words, directory, "lgp_tiny", *plus, "--lgp-graph", graph, "--max-update", 1)
        assert re.search(r"parser\.pt: vectors of (\d+) of \d+ words and \d+ of \d+ n-grams taken over", log)
    # an update of nothing leaves the parser as it was
    commands.train(whole_words, tmp_path / "same", "lgp_tiny", *plus, "--lr", 0, "--max-update", 1)
    trained, task = LatentGraphParserModel.load(path)
    Path(path).unlink()
    hub = LatentGraphModel.from_pretrained(tmp_path / "same", "checkpoint_last.pt", str(whole_words), cpu=True)
    assert len(commands.generate(whole_words, tmp_path / "uni" / "checkpoint_last.pt", "--gen-subset", "valid")) == 61
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


def test_text_is_parsed_with_a_parser_of_ours(corpus, own_parser, tmp_path):
    """Trees made beforehand are those that are made when text is translated: no other parser is needed."""
    pieces = ["--subword-type", "subword_nmt"]
    for split in ("train", "valid", "test"):
        for language in ("en", "de"):
            shutil.copy(corpus / f"{split}.{language}", tmp_path)
        text = str(tmp_path / f"{split}.en")
        given = ["--input", text, "--output", f"{text}.conllu", "--parser", "checkpoint"]
        assert parse.main([*given, "--parser-model", str(own_parser), *pieces]) == 0
    data = binarize(
        {split: tmp_path / split for split in ("train", "valid", "test")}, tmp_path / "bin", "--joined-dictionary"
    )
    arch = "pascal_transformer_tiny"
    commands.train(data, tmp_path / "run", arch, *OPTIONS[arch], "--lr", "0.02", "--max-update", 10)
    checkpoint = tmp_path / "run" / "checkpoint_last.pt"
    expected = commands.generate(data, checkpoint, "--gen-subset", "valid")
    given = ["--parser", "checkpoint", "--parser-model", own_parser, "--buffer-size", 100, "--batch-size", 7]
    assert_same_hypotheses(commands.interactive(data, checkpoint, tmp_path / "valid.en", *given), expected)
