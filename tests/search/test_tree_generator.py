"""Translation with trees: greedy search against the replay, beam search against all there is."""

import itertools

import numpy as np
import pytest
import torch
from latent_trees import build, pairs, sample
from oracles.rnng_trees import all_action_rows

from fairseq_syntax.modules.tree_growing import grow_trees
from fairseq_syntax.search.tree_beam import beam_search
from fairseq_syntax.search.tree_generator import Sentence, TreeGenerator, TreeScorer, symbol_attention
from fairseq_syntax.trees.brackets import from_brackets
from fairseq_syntax.trees.transitions import Action, Limits


def generator(task, **options):
    """A generator of short translations."""
    options = {"max_len_b": 12, **options}
    return TreeGenerator(task.source_dictionary, task.target_dictionary, **options)


TEXTS = ("abca", "", "c", "bbbaaccab")


def plain(hypothesis):
    """What is compared of a hypothesis."""
    return hypothesis["tokens"].tolist(), hypothesis["src_tree"], hypothesis["tgt_tree"]


@pytest.mark.parametrize("beam", [1, 3])
@pytest.mark.parametrize("seed", [0, 1])
def test_sentences_are_translated_the_same_alone_and_with_either_padding(beam, seed):
    task, model = build(seed=seed)
    found = generator(task, beam=beam).generate([model], sample(task, *TEXTS))
    padded_left = generator(task, beam=beam).generate([model], sample(task, *TEXTS, left=True))
    for row, text in enumerate(TEXTS):
        (alone,) = generator(task, beam=beam).generate([model], sample(task, text))
        assert len(alone) == len(found[row]) <= beam
        for one, two, three in zip(alone, found[row], padded_left[row], strict=True):
            assert plain(one) == plain(two) == plain(three)
            assert float(one["score"]) == pytest.approx(float(two["score"]), abs=1e-5)


@pytest.mark.parametrize("beam", [1, 4])
def test_hypotheses(beam):
    task, model = build()
    found = generator(task, beam=beam).generate([model], sample(task, *TEXTS))
    dictionary = task.target_dictionary
    for text, hypotheses in zip(TEXTS, found, strict=True):
        assert [float(one["score"]) for one in hypotheses] == sorted(
            (float(one["score"]) for one in hypotheses), reverse=True
        )
        for hypothesis in hypotheses:
            tokens = hypothesis["tokens"]
            assert tokens[-1] == dictionary.eos() and (tokens[:-1] != dictionary.eos()).all()
            assert 2 <= len(tokens) <= 13
            assert from_brackets(hypothesis["src_tree"])[1] == list(text)
            assert from_brackets(hypothesis["tgt_tree"])[1] == [dictionary[i] for i in tokens[:-1]]
            assert hypothesis["positional_scores"].shape == tokens.shape
            assert float(hypothesis["positional_scores"].mean()) == pytest.approx(float(hypothesis["score"]), abs=1e-5)
            assert hypothesis["node_attention"].shape == (len(hypothesis["tgt_spans"]), len(hypothesis["src_spans"]))
            assert hypothesis["src_spans"][0] == (0, len(text))
            assert hypothesis["tgt_tree"].count("(X") == len(hypothesis["tgt_spans"]) + 1
            attention = hypothesis["attention"]
            assert attention.shape == (len(text) + 1, len(tokens))
            torch.testing.assert_close(attention.sum(0), torch.ones(len(tokens)))


def test_greedy_translations_are_the_most_probable_symbols():
    task, model = build(seed=2)
    batch = sample(task, "abca", "ccb")
    _, _, memory = model.encode(batch["net_input"]["src_tokens"])
    roots, most = model.roots(memory), torch.tensor([12, 12])
    chosen = generator(task).choice.greedy(model.decoder, most)
    actions = grow_trees(model.decoder, most, model.limits, chosen, memory, roots, greedy=True).numpy()
    _, replay = model.decoder(actions, chosen.text.numpy(), model.limits, memory, roots, most.numpy())
    dictionary = task.target_dictionary
    for row, (hypothesis,) in enumerate(generator(task).generate([model], batch)):
        text = hypothesis["tokens"].tolist()
        states = replay.states[replay.state[row][actions[row] == Action.GEN]]
        logits = model.decoder.output(states)
        logits[:, [dictionary.pad(), dictionary.bos()]] = -torch.inf
        logits[0, dictionary.eos()] = -torch.inf
        logits[12:, : dictionary.eos()] = logits[12:, dictionary.eos() + 1 :] = -torch.inf
        assert logits.argmax(1).tolist() == text


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("power", [0.0, 1.0])
def test_a_beam_that_nothing_falls_out_of_finds_the_best_of_all(seed, power):
    limits = Limits(max_open=2, max_consecutive=1)
    task, model = build(seed=seed, sharpness=2.0, max_open=2, max_consecutive=1)
    tokens = sample(task, "ab")["net_input"]["src_tokens"]
    _, _, memory = model.encode(tokens)
    roots = model.roots(memory)
    choice = generator(task, min_len=0).choice
    most = torch.tensor([2])
    rows, actions, text = beam_search(model.decoder, most, limits, choice, memory, roots, 400, power)
    assert (rows == 0).all()
    allowed = [i for i in range(len(task.target_dictionary)) if i not in choice.never]
    eos = choice.eos
    scored = []
    for length in range(3):
        texts = [[*line, eos] for line in itertools.product([i for i in allowed if i != eos], repeat=length)]
        trees = all_action_rows(length, 2, 1, limits.max_actions(2))
        pairs = list(itertools.product(trees, texts))
        width = max(map(len, trees))
        taken = np.array([[*tree, *[Action.NOP] * (width - len(tree))] for tree, _ in pairs])
        lines = np.array([line for _, line in pairs])
        count = len(pairs)
        own = type(memory)(*(part.expand(count, *part.shape[1:]) for part in memory))
        scores, _ = model.decoder(taken, lines, limits, own, roots.expand(count, -1), np.full(count, 2))
        total = (scores.log_policy - scores.symbol_loss).sum(1)
        scored += [
            (float(score) / (length + 1) ** power, tree, line) for score, (tree, line) in zip(total, pairs, strict=True)
        ]
    best = max(scored)
    tree = [action for action in actions[0].tolist() if action != Action.NOP]
    assert (tree, text[0, : len(best[2])].tolist()) == (list(best[1]), best[2])


def test_attention_of_symbols():
    attention = torch.tensor([[0.5, 0.25, 0.25]])
    found = symbol_attention(attention, np.array([0, 1, -1]), [(0, 3), (0, 1), (1, 3)])
    uniform = [0.25] * 4
    shared = [0.5 / 3 + 0.25, 0.5 / 3 + 0.125, 0.5 / 3 + 0.125, 0.0]
    torch.testing.assert_close(found.T, torch.tensor([uniform, shared, uniform]))
    empty = symbol_attention(torch.ones(1, 1), np.array([1]), [(0, 0)])
    assert empty.tolist() == [[1.0]]


def test_what_is_refused():
    task, model = build()
    batch = sample(task, "ab")
    with pytest.raises(ValueError, match="2 models"):
        generator(task).generate([model, model], batch)
    with pytest.raises(ValueError, match="prefixes"):
        generator(task).generate([model], batch, prefix_tokens=torch.ones(1, 1))
    with pytest.raises(ValueError, match="--beam 0"):
        generator(task, beam=0)
    model.decoder.output.bias.data[0] = float("nan")
    for beam in (1, 2):
        with pytest.raises(FloatingPointError, match=r"output\.bias nan"):
            generator(task, beam=beam).generate([model], batch)


def test_lengths():
    task, model = build()
    for beam in (1, 3):
        for limits in ({"max_len_b": 3}, {"max_len_a": 1, "max_len_b": 0}, {"min_len": 5, "max_len_b": 2}):
            found = generator(task, beam=beam, **limits).generate([model], sample(task, "abca"))
            for hypothesis in found[0]:
                number = len(hypothesis["tokens"]) - 1
                assert limits.get("min_len", 1) <= number <= max(limits.get("min_len", 1), 5)
                assert number <= 3 or "max_len_a" in limits or "min_len" in limits


def test_sentences_of_a_batch():
    class Trees:
        row = np.array([0, 0, 1])
        start = np.array([0, 1, 0])
        end = np.array([3, 2, 1])

    assert Sentence(Trees, 0).spans == [(0, 3), (1, 2)]
    assert Sentence(Trees, 1).local(np.array([2, -1])).tolist() == [0, -1]


def test_references_get_trees_and_scores():
    task, model = build(seed=5)
    targets = ("cab", "a", "", "bccab")
    scorer = TreeScorer(task.source_dictionary, task.target_dictionary)
    batch = pairs(task, TEXTS, targets)
    forced = model(**batch["net_input"], target=batch["target"], trees="greedy")
    for row, (hypothesis,) in enumerate(scorer.generate([model], batch)):
        assert from_brackets(hypothesis["tgt_tree"])[1] == list(targets[row])
        assert from_brackets(hypothesis["src_tree"])[1] == list(TEXTS[row])
        total = forced.target.log_policy[row].sum() - forced.target.symbol_loss[row].sum()
        assert float(hypothesis["positional_scores"].sum()) == pytest.approx(float(total), abs=1e-5)
