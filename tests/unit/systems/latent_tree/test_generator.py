"""Translation with trees: greedy search against the replay."""

import numpy as np
import pytest
import torch
from latent_trees import build, given_trees, pairs, sample

from fairseq_syntax.systems.latent_tree.generator import TreeGenerator, TreeScorer
from fairseq_syntax.systems.latent_tree.growing import grow_trees
from fairseq_syntax.systems.latent_tree.transitions import Action
from fairseq_syntax.systems.latent_tree.tree_files import from_brackets


def generator(task, **options):
    """A generator of short translations."""
    options = {"max_len_b": 12, **options}
    return TreeGenerator(task.source_dictionary, task.target_dictionary, **options)


TEXTS = ("abca", "", "c", "bbbaaccab")


@pytest.mark.parametrize("lenpen", [1.0, 0.0])
def test_translations_are_the_most_probable_symbols_with_the_scores_of_actions_and_symbols(lenpen):
    task, model = build(seed=2)
    translator, batch, dictionary = generator(task, lenpen=lenpen), sample(task, "abca", "ccb"), task.target_dictionary
    _, _, memory = model.encode(batch["net_input"]["src_tokens"])
    most = np.array([12, 12])
    grown = grow_trees(model.decoder, most, model.limits, translator.choice, memory, greedy=True)
    for row, (hypothesis,) in enumerate(translator.generate([model], batch)):
        text = hypothesis["tokens"].tolist()
        taken = grown.actions[row : row + 1, : (grown.actions[row] != Action.NOP).sum()]
        own = type(memory)(*(part[row : row + 1] for part in memory))
        scores, replay = given_trees(model.decoder, taken, np.array([text]), model.limits, own)
        logits = model.decoder.output(replay.states[replay.state[0][taken[0] == Action.GEN]])
        total = float(scores.log_policy.sum() + logits.log_softmax(1).gather(1, hypothesis["tokens"][:, None]).sum())
        assert float(hypothesis["positional_scores"].sum()) == pytest.approx(total, abs=1e-4)
        assert float(hypothesis["score"]) == pytest.approx(total / len(text) ** lenpen, abs=1e-4)
        logits[:, [dictionary.pad(), dictionary.bos()]] = -torch.inf
        logits[0, dictionary.eos()] = -torch.inf
        logits[12:, : dictionary.eos()] = logits[12:, dictionary.eos() + 1 :] = -torch.inf
        assert logits.argmax(1).tolist() == text


@pytest.mark.parametrize(("side", "head"), [("source", "policy"), ("target", "policy"), ("target", "output")])
def test_probabilities_that_are_not_numbers_are_refused(side, head):
    task, model = build()
    grammar = model.encoder if side == "source" else model.decoder
    getattr(grammar, head).bias.data[0] = float("inf")
    with pytest.raises(FloatingPointError, match=f"{side} side: a probability is not a number"):
        generator(task).generate([model], sample(task, "ab", "c"))


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
