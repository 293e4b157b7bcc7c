"""Treebanks as a parser is trained on them: columns, vocabulary, batches, passes, new words."""

import argparse

import numpy as np
import pytest
import torch
import treebanks
from fairseq.data import Dictionary

from fairseq_syntax.systems.parser.task import DependencyParsingConfig, DependencyParsingTask
from fairseq_syntax.systems.parser.treebank import (
    MISSING,
    UNSEEN,
    Pass,
    TreebankDataset,
    build_vocabulary,
    read_treebank,
    vocabulary_dictionary,
)
from fairseq_syntax.trees.conllu import TreeFormatError

TREEBANK = """\
# sent_id = 1
1-2\tIm\t_\t_\t_\t_\t_\t_\t_\t_
1\tIn\t_\tADP\tIN\t_\t3\tcase\t_\t_
2\tdem\t_\tDET\tDT\t_\t3\tdet:def\t_\t_
3\tHaus\t_\tNOUN\tNN\t_\t0\troot\t_\t_
3.1\tist\t_\tAUX\tVB\t_\t_\t_\t_\t_
4\t.\t_\tPUNCT\t.\t_\t3\tpunct\t_\t_

1\tAch\t_\t_\tUH\t_\t_\t_\t_\t_
2\t,\t_\t_\t,\t_\t_\t_\t_\t_

1\t<unk>\t_\tX\tFW\t_\t0\troot\t_\t_
2\tHaus\t_\tNOUN\tNN\t_\t1\tnmod:poss\t_\t_

"""


@pytest.fixture
def path(tmp_path):
    (tmp_path / "train.conllu").write_text(TREEBANK, encoding="utf-8")
    return tmp_path / "train.conllu"


def task_of(**options) -> DependencyParsingTask:
    return DependencyParsingTask.setup_task(DependencyParsingConfig(**options))


def test_words_tags_and_labels(path):
    first, second, third = read_treebank(path)
    assert first.words == ["In", "dem", "Haus", "."] and first.tree.heads == [2, 2, -1, 2]
    assert first.tags == ["ADP", "DET", "NOUN", "PUNCT"] and first.labels == ["case", "det:def", "root", "punct"]
    assert second.tags == ["_", "_"] and not second.tree.is_parsed and third.labels == ["root", "nmod:poss"]
    first, second, third = read_treebank(path, pos_column="xpos", strip_subtypes=True, lowercase=True)
    assert first.words == ["in", "dem", "haus", "."] and first.tree.forms[0] == "In"
    assert first.tags == ["IN", "DT", "NN", "."] and first.labels == ["case", "det", "root", "punct"]
    assert second.tags == ["UH", ","] and third.labels == ["root", "nmod"]


def test_vocabulary(path):
    vocabulary = build_vocabulary(read_treebank(path))
    assert vocabulary == {
        "words": ["In", "dem", "Haus", ".", "Ach", ","],
        "counts": [1, 1, 2, 1, 1, 1],
        "translator_counts": [0] * 6,
        "pos": ["ADP", "DET", "NOUN", "PUNCT", "X"],
        "labels": ["case", "det:def", "nmod:poss", "punct", "root"],
    }
    dictionary = vocabulary_dictionary(vocabulary)
    assert dictionary.symbols[dictionary.nspecial :] == vocabulary["words"]
    assert dictionary.count[dictionary.index("Haus")] == 2


def test_vocabulary_with_that_of_a_translator(path):
    translator = Dictionary()
    for word, count in (("ein", 5), ("Haus", 3), ("madeupword0000", 0)):
        translator.add_symbol(word, n=count)
    vocabulary = build_vocabulary(read_treebank(path), translator)
    assert vocabulary["words"] == ["ein", "Haus", "In", "dem", ".", "Ach", ","]
    assert vocabulary["counts"] == [0, 2, 1, 1, 1, 1, 1]
    assert vocabulary["translator_counts"] == [5, 3, 0, 0, 0, 0, 0]


def test_treebanks_that_cannot_be_used(path, tmp_path):
    with pytest.raises(ValueError, match="no part-of-speech tags"):
        build_vocabulary(read_treebank(path)[1:2])
    with pytest.raises(ValueError, match="no trees"):
        build_vocabulary(read_treebank(path, pos_column="xpos")[1:2])
    (tmp_path / "empty.conllu").write_text("# nothing\n\n")
    with pytest.raises(TreeFormatError, match="no sentences"):
        read_treebank(tmp_path / "empty.conllu")
    other, stored = task_of(), task_of(data=str(path.parent)).get_checkpoint_dict()["DependencyParsingTask"]
    with pytest.raises(ValueError, match="name the folder"):
        other.set_checkpoint_dict(stored)
    other.state.merge_state_dict({"vocabulary": {"words": ["b"]}})
    with pytest.raises(ValueError, match="other words, tags or labels"):
        other.set_checkpoint_dict(stored)


def test_batch(path):
    sentences = read_treebank(path)
    dictionary = vocabulary_dictionary(build_vocabulary(sentences))
    dataset = TreebankDataset(sentences, dictionary, ["NOUN", "DET", "PUNCT"], ["root", "case"])
    batch = dataset.collater([dataset[0], dataset[1], dataset[2]])
    eos, pad, unk = dictionary.eos(), dictionary.pad(), dictionary.unk()
    tokens = batch["net_input"]["src_tokens"]
    haus = dictionary.index("Haus")
    assert tokens[0].tolist()[2:] == [haus, dictionary.index("."), eos]
    # a word that is spelled like a special symbol
    assert tokens[2].tolist() == [unk, haus, eos, pad, pad]
    assert batch["net_input"]["src_lengths"].tolist() == [5, 3, 3]
    assert (batch["ntokens"], batch["nsentences"], batch["pass"]) == (8, 3, "all")
    assert batch["pos"].tolist() == [[UNSEEN, 1, 0, 2, MISSING], [MISSING] * 5, [UNSEEN, 0, MISSING, MISSING, MISSING]]
    # the head of a root is the column of EOS
    assert batch["heads"].tolist() == [[2, 2, 4, 2, MISSING], [MISSING] * 5, [2, 0, MISSING, MISSING, MISSING]]
    assert batch["labels"].tolist() == [
        [1, UNSEEN, 0, UNSEEN, MISSING],
        [MISSING] * 5,
        [0, UNSEEN, MISSING, MISSING, MISSING],
    ]
    assert dataset.collater([]) is None


def test_batches_lose_nothing(tmp_path):
    treebanks.make(tmp_path, train=53)
    sentences = read_treebank(tmp_path / "train.conllu")
    vocabulary = build_vocabulary(sentences)
    of = (sentences, vocabulary_dictionary(vocabulary), vocabulary["pos"], vocabulary["labels"])
    dataset = TreebankDataset(*of, Pass.pos, 25, shuffle=True)
    orders = []
    for seed in (1, 1, 2):
        np.random.seed(seed)  # noqa: NPY002
        orders.append(dataset.ordered_indices())
    assert (orders[0] == orders[1]).all() and (orders[0] != orders[2]).any()
    batches = dataset.batch_by_size(orders[0], max_sentences=4, required_batch_size_multiple=8)
    assert [len(batch) for batch in batches] == [25, 25, 3]
    assert sorted(i for batch in batches for i in batch) == list(range(53))
    validation = TreebankDataset(*of)
    assert (np.diff(validation.sizes[validation.ordered_indices()]) <= 0).all()
    batches = validation.batch_by_size(validation.ordered_indices(), max_sentences=10, required_batch_size_multiple=8)
    assert [len(batch) for batch in batches] == [10] * 5 + [3]


def test_passes_take_turns(tmp_path):
    """Odd epochs are passes over tags, even ones over trees, of parsed sentences only, with batches of their own."""
    treebanks.make(tmp_path, train=30)
    with open(tmp_path / "train.conllu", "a", encoding="utf-8") as file:
        file.write(TREEBANK)  # of whose three sentences two have trees
    task = task_of(data=str(tmp_path), lgp_first_k=32)
    assert task.has_sharded_data("train") and not task.has_sharded_data("valid")
    for epoch, kind, number, size in ((1, "pos", 32, 25), (2, "dependency", 31, 15), (3, "pos", 32, 25)):
        task.load_dataset("train", epoch=epoch)
        dataset = task.dataset("train")
        assert (str(dataset.kind), len(dataset), dataset.batch_size, dataset.shuffle) == (kind, number, size, True)
    task.load_dataset("valid")
    assert (task.dataset("valid").kind, len(task.dataset("valid"))) == (Pass.all, 20)


def test_unseen_words_have_ngrams(path, tmp_path):
    """Words of other splits are unknown, but not their spelling; in whatever order things are loaded."""
    for name, word in (("valid", "Hausboot"), ("test", "Rathaus")):
        (tmp_path / f"{name}.conllu").write_text(TREEBANK.replace("Haus", word), encoding="utf-8")
    task = task_of(data=str(tmp_path))
    task.load_dataset("valid")
    model = task.build_model(argparse.Namespace(arch="lgp_parser_tiny", lgp_parser_size=4, lgp_pos_size=2))
    task.load_dataset("test")
    dictionary = task.source_dictionary
    unseen = [dictionary.index("Hausboot"), dictionary.index("Rathaus")]
    assert dictionary.unk() not in unseen and [dictionary.count[i] for i in unseen] == [0, 0]
    model.words.follow()
    assert model.words.word_row[unseen].tolist() == [dictionary.unk()] * 2
    assert (model.words.ngram_means(torch.tensor([unseen])).abs().sum(2) > 0).all()
    assert task.dataset("test")[0]["tokens"].tolist()[2] == unseen[1]
    # what a checkpoint holds is not touched
    assert "Hausboot" not in task.state_dict()["vocabulary"]["words"]
