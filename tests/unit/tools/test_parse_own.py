"""fairseq-syntax parse with a parser of the suite: any text, always a tree, no model but the checkpoint."""

import pytest
import torch
from oracles import conllu_format

from fairseq_syntax.systems.parser.parse import OwnParser
from fairseq_syntax.systems.parser.treebank import encode_words
from fairseq_syntax.tools import loaded_model
from fairseq_syntax.tools.latent_trees import Cutter, TreeInducer
from fairseq_syntax.tools.parse import main
from fairseq_syntax.trees import spanning
from fairseq_syntax.trees.conllu import ROOT, TreeFormatError, format_sentence, read_conllu

TEXT = "the dog runs .\n\nthe big hound sees a tree .\nx\nZzz the <unk> </s> 10 000 , qqq the the a . runs\n"
WORDS = [line.split() for line in TEXT.split("\n")[:-1]]


@pytest.fixture
def checkpoint(trained_parser):
    return trained_parser()


# --- the parser ---------------------------------------------------------------------------------------------------


def alone(parser, words):
    """Numbers of classes and probabilities of heads of a sentence by itself, by the model."""
    words = [word.lower() for word in words] if parser.lowercase else words
    tokens = encode_words(words, parser.task.source_dictionary).unsqueeze(0)
    with torch.no_grad():
        return parser.model(tokens, torch.tensor([len(words) + 1]))


@pytest.mark.parametrize("batch_tokens", [1, 2000])
def test_against_the_model(checkpoint, batch_tokens):
    """Batches, unknown words and short cuts change nothing."""
    parser = OwnParser(checkpoint, "cpu")
    parser.batch_tokens = batch_tokens
    sentences = [words * (1 + i % 3) for i, words in enumerate(WORDS * 2)]
    found = parser.parse(sentences)
    assert [tree.forms for tree in found] == sentences and parser.parse([]) == []
    assert all(len(tree.heads) == len(tree) for tree in found)
    for tree in filter(len, found):
        graph = alone(parser, tree.forms)
        size = len(tree.forms)
        assert tree.upos == [parser.model.pos[i] for i in graph.pos_log_probs.argmax(2)[0, :size]]
        best = graph.label_log_probs[0, :size].clone()
        best[:, parser.model.labels.index("root")] = -torch.inf
        others = [parser.model.labels[i] for i in best.argmax(1)]
        assert tree.deprels == [
            "root" if head == ROOT else label for head, label in zip(tree.heads, others, strict=True)
        ]
        scores = graph.heads[0].clamp(min=1e-12).log().double().numpy()
        arcs, roots = [scores[:size, :size]], [scores[:size, size]]
        assert [tree.heads] == spanning.chu_liu_edmonds(arcs, roots)


@pytest.mark.parametrize("label", ["amod", "root"])
def test_the_root_and_no_other_word_is_labelled_root(checkpoint, label, monkeypatch):
    """Whatever label the model finds best for every word: what is written is valid UD."""
    parser = OwnParser(checkpoint, "cpu")
    forward = parser.model.forward

    def all_the_same(tokens, lengths):
        graph = forward(tokens, lengths)
        graph.label_log_probs[..., parser.model.labels.index(label)] = 1.0
        return graph

    monkeypatch.setattr(parser.model, "forward", all_the_same)
    written = "".join(map(format_sentence, parser.parse([words for words in WORDS if words])))
    found = conllu_format.read(written.encode())
    for tree in found:
        conllu_format.check_universal(tree)
    others = {deprel for tree in found for deprel in tree.deprels} - {"root"}
    assert others == {"amod"} if label == "amod" else others and "root" not in others


def test_lower_case_and_tags_of_another_set(trained_parser):
    """The latter are not written."""
    parser = OwnParser(trained_parser("--lgp-lowercase", "--lgp-pos-column", "xpos"), device="cpu")
    upper, lower = parser.parse([["THE", "Dog", "RUNS", "."], ["the", "dog", "runs", "."]])
    assert upper.forms == ["THE", "Dog", "RUNS", "."]
    assert (upper.heads, upper.deprels) == (lower.heads, lower.deprels)
    assert "VBZ" in parser.model.pos and upper.upos == ["_"] * 4


# --- the program --------------------------------------------------------------------------------------------------


def test_a_sentence_that_is_too_long_goes_without_a_parse(checkpoint, tmp_path, capsys):
    (tmp_path / "text").write_text("x\nthe dog runs .\nthe dog .\n" + "a " * 1024 + "\n")
    options = ["--parser", "checkpoint", "--parser-model", str(checkpoint), "--parser-device", "cpu"]
    files = ["--input", str(tmp_path / "text"), "--output", str(tmp_path / "out")]
    assert main([*files, *options, "--shard", "1/2", "--chunk", "1"]) == 0
    [said] = [line for line in capsys.readouterr().err.splitlines() if "without a parse" in line]
    with pytest.raises(TreeFormatError, match="1024 words and the end of the sentence, but the parser reads 1024"):
        OwnParser(checkpoint, "cpu").parse([["the"], ["a"] * 1024])
    assert f"{tmp_path}/text:4: 1024 words, but the parser reads at most 1023; " in said
    short, long = read_conllu(tmp_path / "out")
    assert not long.is_parsed and long.forms == ["a"] * 1024 and short.is_parsed


def test_words_with_spaces_are_read_whole_by_every_program(checkpoint, treebank):
    """As in training, where a word of the treebank is a word."""
    words = ["the", "10 000", "dogs", "see", "."]
    (tree,) = OwnParser(checkpoint, "cpu").parse([words])
    loaded = loaded_model.load_model(str(checkpoint), str(treebank), cpu=True)
    source = Cutter(loaded).cut_words(words, "x")
    assert source.pieces == words
    assert TreeInducer(loaded)([source]) == [tree.heads]
