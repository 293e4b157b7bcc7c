"""Translation with trees: greedy search against the replay, beam search against all there is."""

import itertools

import numpy as np
import pytest
import torch
from latent_trees import build, pairs, sample
from oracles.rnng_trees import all_action_rows

from fairseq_syntax.systems.latent_tree.generator import TreeGenerator, TreeScorer, beam_search
from fairseq_syntax.systems.latent_tree.growing import grow_trees
from fairseq_syntax.systems.latent_tree.transitions import Action, Limits, legality
from fairseq_syntax.systems.latent_tree.tree_files import from_brackets, to_brackets


def generator(task, **options):
    """A generator of short translations."""
    options = {"max_len_b": 12, **options}
    return TreeGenerator(task.source_dictionary, task.target_dictionary, **options)


TEXTS = ("abca", "", "c", "bbbaaccab")


def plain(hypothesis):
    """What is compared of a hypothesis."""
    return hypothesis["tokens"].tolist(), hypothesis["src_tree"], hypothesis["tgt_tree"]


@pytest.mark.parametrize("beam", [1, 3])
def test_sentences_are_translated_the_same_alone_and_with_either_padding(beam):
    task, model = build()
    found = generator(task, beam=beam).generate([model], sample(task, *TEXTS))
    padded_left = generator(task, beam=beam).generate([model], sample(task, *TEXTS, left=True))
    for row, text in enumerate(TEXTS):
        (alone,) = generator(task, beam=beam).generate([model], sample(task, text))
        assert len(alone) == len(found[row]) <= beam
        for one, two, three in zip(alone, found[row], padded_left[row], strict=True):
            assert plain(one) == plain(two) == plain(three)
            assert float(one["score"]) == pytest.approx(float(two["score"]), abs=1e-5)


def test_greedy_translations_are_the_most_probable_symbols():
    task, model = build(seed=2)
    batch = sample(task, "abca", "ccb")
    _, _, memory = model.encode(batch["net_input"]["src_tokens"])
    most = torch.tensor([12, 12])
    chosen = generator(task).choice.greedy
    grown = grow_trees(model.decoder, most, model.limits, chosen, memory, greedy=True)
    actions, pad = grown.actions.numpy(), task.target_dictionary.pad()
    text = np.where(actions == Action.GEN, grown.symbols, pad)
    text = np.take_along_axis(text, (text == pad).argsort(1, kind="stable"), 1)
    _, replay = model.decoder(actions, text, model.limits, memory, most.numpy())
    dictionary = task.target_dictionary
    for row, (hypothesis,) in enumerate(generator(task).generate([model], batch)):
        text = hypothesis["tokens"].tolist()
        states = replay.states[replay.state[row][actions[row] == Action.GEN]]
        logits = model.decoder.output(states)
        logits[:, [dictionary.pad(), dictionary.bos()]] = -torch.inf
        logits[0, dictionary.eos()] = -torch.inf
        logits[12:, : dictionary.eos()] = logits[12:, dictionary.eos() + 1 :] = -torch.inf
        assert logits.argmax(1).tolist() == text


SMALL = Limits(max_open=2, max_consecutive=1)
OPTIONS = {"rnng_max_open": 2, "rnng_max_consecutive": 1}


def all_translations(task, model, source, longest, power, unkpen=0.0, temperature=1.0):
    """(score, actions, symbols) of all translations with all their trees, under SMALL limits."""
    limits = SMALL
    dictionary = task.target_dictionary
    _, _, memory = model.encode(sample(task, source)["net_input"]["src_tokens"])
    allowed = [i for i in range(len(dictionary)) if i not in (dictionary.pad(), dictionary.bos(), dictionary.eos())]
    scored = []
    for length in range(longest + 1):
        texts = [[*line, dictionary.eos()] for line in itertools.product(allowed, repeat=length)]
        trees = all_action_rows(length, limits.max_open, limits.max_consecutive, limits.max_actions(longest))
        for tree in trees:
            count = len(texts)
            own = type(memory)(*(part.expand(count, *part.shape[1:]) for part in memory))
            taken, most = np.array([tree] * count), np.full(count, longest)
            scores, replay = model.decoder(taken, np.array(texts), limits, own, most)
            for row, text in enumerate(texts):
                states = replay.states[replay.state[row][taken[row] == Action.GEN]]
                of_symbols = (model.decoder.output(states) / temperature).log_softmax(1)
                total = float(scores.log_policy[row].sum()) - unkpen * text.count(dictionary.unk())
                total += sum(float(of_symbol[symbol]) for of_symbol, symbol in zip(of_symbols, text, strict=True))
                scored.append((total / (length + 1) ** power, list(tree), text))
    return scored


@pytest.mark.parametrize(
    "options", [{}, {"unkpen": 1.5, "temperature": 3.0}, {"unkpen": -1.0, "temperature": 0.5, "lenpen": 0.0}]
)
def test_a_beam_that_nothing_falls_out_of_finds_and_orders_all_there_is(options):
    """As in fairseq, the penalty and the temperature are in the scores."""
    task, model = build(seed=1, sharpness=2.0, **OPTIONS)
    power = options.get("lenpen", 1.0)
    counted = {name: value for name, value in options.items() if name != "lenpen"}
    expected = sorted(all_translations(task, model, "ab", 2, power, **counted), reverse=True)
    (found,) = generator(task, beam=400, max_len_b=2, min_len=0, **options).generate([model], sample(task, "ab"))
    assert len(found) == len(expected)
    scores = [float(hypothesis["score"]) for hypothesis in found]
    assert scores == sorted(scores, reverse=True)
    for hypothesis, score in zip(found, scores, strict=True):
        total = score * len(hypothesis["tokens"]) ** power
        assert float(hypothesis["positional_scores"].sum()) == pytest.approx(total, abs=1e-5)
    # constituents that the end closes and those that are closed before it look the same
    ours = sorted((one["tokens"].tolist(), one["tgt_tree"], float(one["score"])) for one in found)
    theirs = []
    for score, tree, text in expected:
        symbols = [task.target_dictionary[symbol] for symbol in text[:-1]]
        theirs.append((text, *to_brackets(np.array([tree]), [symbols]), score))
    for one, other in zip(ours, sorted(theirs), strict=True):
        assert one == (*other[:2], pytest.approx(other[2], abs=1e-5))


@pytest.mark.parametrize(
    ("side", "head", "beam"),
    [("source", "policy", 1), ("target", "policy", 1), ("target", "output", 1), ("target", "output", 3)],
)
def test_probabilities_that_are_not_numbers_are_refused(side, head, beam):
    task, model = build()
    grammar = model.encoder if side == "source" else model.decoder
    getattr(grammar, head).bias.data[0] = float("inf")
    with pytest.raises(FloatingPointError, match=f"{side} side: a probability is not a number"):
        generator(task, beam=beam).generate([model], sample(task, "ab", "c"))


@pytest.mark.parametrize("limits", [Limits(4, 1), Limits(2, 1)])
def test_states_that_are_not_numbers_lead_to_no_forbidden_action(limits):
    task, model = build()
    with torch.no_grad():
        model.decoder.policy.bias.copy_(torch.tensor([5.0, 0.0, 0.0]))
    _, _, memory = model.encode(sample(task, "ab")["net_input"]["src_tokens"])
    memory.values[:] = torch.nan
    choice, most = generator(task).choice, torch.tensor([6])
    with pytest.raises(FloatingPointError, match="target side"):
        beam_search(model.decoder, most, limits, choice, memory, 2, 1.0)
    for seeds in (None, [(1,)]):
        grown = grow_trees(model.decoder, most, limits, choice.greedy, memory, greedy=not seeds, seeds=seeds)
        legality(grown.actions.numpy(), (grown.actions == Action.GEN).sum(1).numpy() - 1, limits, most.numpy())


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
