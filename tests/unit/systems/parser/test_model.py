"""The parser as a model: words that have rows, what decays, given vectors, what is refused."""

import argparse
from collections import Counter

import pytest
import treebanks
from fairseq.data import Dictionary

from fairseq_syntax.systems.lgp.decayed_sgd import decay_groups
from fairseq_syntax.systems.parser.model import LatentGraphParserModel


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return treebanks.make(tmp_path_factory.mktemp("treebank"), train=30, valid=6)


@pytest.fixture
def build(folder):
    """Function: options of task and model -> the model in eval mode."""
    return lambda task=None, **options: treebanks.parser(folder, task, **options)[1].eval()


def test_words_with_rows(build, folder, tmp_path):
    lines = (folder / "train.conllu").read_text().splitlines()
    counts = Counter(line.split("\t")[1] for line in lines if line)
    rare = min(counts.values()) + 1
    frequent = {word for word, count in counts.items() if count >= rare}
    assert set(build(lgp_src_min_freq=rare).words.row_symbols[4:]) == frequent != set(counts)

    def with_translator(translated):
        translator = Dictionary()
        for word, count in translated.items():
            translator.add_symbol(word, n=count)
        translator.save(str(tmp_path / "dict.txt"))
        return build({"lgp_mt_dict": str(tmp_path / "dict.txt")}, lgp_src_min_freq=rare).words

    other = next(word for word in counts if word not in frequent)
    words = with_translator({"unheard": rare, other: rare, "seldom": rare - 1})
    assert set(words.row_symbols[4:]) == frequent | {"unheard", other}
    assert {"3gram-hea", "2gram-#BEGIN#u"} <= set(words.ngram_keys) and "3gram-eld" not in words.ngram_keys
    # counts of the two are not added up
    assert set(with_translator({other: rare - 1}).row_symbols[4:]) == frequent


def test_decay(build):
    """Hashimoto et al. (2017): 1e-6 for LSTM matrices, 1e-5 for classifiers; none for biases and embeddings."""
    model = build()
    decays = {id(p): g["weight_decay"] for g in decay_groups(model.parameters(), 0.5) for p in g["params"]}
    for name, parameter in model.named_parameters():
        if name.startswith("words") or parameter.dim() < 2:
            expected = 0.0
        else:
            expected = 1e-6 if ".layer" in name else 1e-5
        assert decays[id(parameter)] == expected, name


def test_embeddings_are_frozen_if_given(build, tmp_path):
    vectors = tmp_path / "vectors.txt"
    vectors.write_text("dog 1 2 3 4 5\nthe 5 4 3 2 1\n")
    model = build(lgp_word_vectors=str(vectors))
    assert not model.words.words.weight.requires_grad and model.words.ngrams.weight.requires_grad
    assert model.words.lowercase
    row = model.words.row_symbols.index("dog")
    assert model.words.words.weight[row].tolist() == [1, 2, 3, 4, 5]
    assert not build(lgp_word_vectors=str(vectors), lgp_word_case="written").words.lowercase
    assert build().words.words.weight.requires_grad


def test_other_tasks_and_checkpoints_are_refused(repository):
    with pytest.raises(ValueError, match="--task dependency_parsing"):
        LatentGraphParserModel.build_model(argparse.Namespace(), argparse.Namespace())
    with pytest.raises(ValueError, match="a checkpoint of nmt_lstm, not of a parser"):
        LatentGraphParserModel.load(repository / "tests" / "golden" / "checkpoints" / "nmt_lstm.pt")
