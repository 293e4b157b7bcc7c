"""The criterion of latent trees: against loops, its formulas and averages, validation, logs, options."""

import math
import multiprocessing
import random

import latent_trees
import pytest
import torch
from oracles import reinforce, rnng_trees
from oracles.rnng_trees import rewards as tree_rewards
from oracles.toy_grammar import END, LIMITS, PADDING, translator
from torch import nn

from fairseq_syntax.systems.latent_tree.reinforce import (
    GenCount,
    MovingBaselines,
    Preset,
    ReinforceTreeConfig,
    ReinforceTreeCriterion,
    coverage_loss,
    generated,
    reward_to_go,
)

NT, GEN, REDUCE, NOP = range(4)
SOURCES, TARGETS = [[4, 5, 4, 6], [7], []], [[5, 5], [6, 4, 7, 4, 5], [7]]
LOSSES = {"rnng_source_weight": 0.7, "rnng_target_weight": 1.3, "rnng_coverage_weight": 2.1, "rnng_policy_weight": 0.3}
OPTIONS = {**LOSSES, "rnng_reward_discount": 0.8}


def criterion(readings=None, **changes):
    """The criterion, with some `readings` of the paper (fields of `Preset`)."""
    result = ReinforceTreeCriterion(None, ReinforceTreeConfig(seed=5, **changes))
    result.weights = result.weights._replace(**readings or {})
    return result


def text(sentences):
    width = max(map(len, sentences)) + 1
    return torch.tensor([[*row, END] + [PADDING] * (width - len(row) - 1) for row in sentences])


def sample_of(sources=SOURCES, targets=TARGETS):
    source, target = text(sources), text(targets)
    inputs = {"src_tokens": source, "src_lengths": source.ne(PADDING).sum(1), "prev_output_tokens": target}
    tokens = int(target.ne(PADDING).sum())
    ids = torch.tensor([40, 7, 23][: len(sources)])
    return {"id": ids, "nsentences": len(sources), "ntokens": tokens, "net_input": inputs, "target": target}


def random_trees(sentences, seed):
    """(rows, T) trees over these sentences."""
    draw = random.Random(seed)
    limits = LIMITS.max_open, LIMITS.max_consecutive
    rows = [rnng_trees.random_actions(draw, len(row), *limits, 3 * len(row) + 6, (1.0, 1.0, 1.0)) for row in sentences]
    return torch.from_numpy(rnng_trees.padded(rows))


def toy(seed=2):
    model = translator(seed=1)
    model.trees["sample"] = random_trees(SOURCES, seed), random_trees(TARGETS, seed + 1)
    model.trees["greedy"] = random_trees(SOURCES, seed + 2), random_trees(TARGETS, seed + 3)
    return model


def pair_of(model):
    return model(text(SOURCES), None, text(TARGETS), "sample")


def in_loops(pair, baselines):
    """(B, side) advantages as lists, tree rewards, coverage losses: with OPTIONS, all by loops."""
    weights, sides = (0.7, 1.3), (pair.source, pair.target)
    rows = len(pair.source.actions)
    coverages, totals, advantages = [], [], []
    for row in range(rows):
        j, i = int(pair.attending[row].sum()), int(pair.attended[row].sum())
        coverages.append(reinforce.coverage(pair.attention[row, :j, :i].tolist(), i))
        found = []
        for scores in sides:
            actions = [action for action in scores.actions[row].tolist() if action != NOP]
            found.append((actions, *tree_rewards(actions, 4.0, 9.0, False)))
        totals.append([sum(tree) + at_end for _, tree, at_end in found])
        both = []
        for side, (actions, tree, at_end) in enumerate(found):
            losses = sides[side].symbol_loss[row].tolist()
            symbols = sides[side].symbols[row].tolist()
            average = [baselines[side].get(symbol, loss) for symbol, loss in zip(symbols, losses, strict=True)]
            of_tree = baselines["tree"].get(side, totals[-1][side] / actions.count(GEN))
            earned = reinforce.rewards(actions, losses, tree, at_end, weights[side], average, of_tree)
            to_go = reinforce.to_go(earned, reinforce.counts(actions), 0.8)[:-1]
            both.append(to_go + [0.0] * (sides[side].actions.shape[1] - len(actions)))
        advantages.append(both)
    return advantages, totals, coverages


def total_in_loops(pair, advantages, coverages):
    totals = []
    for row, (both, coverage) in enumerate(zip(advantages, coverages, strict=True)):
        total = 2.1 * coverage
        for scores, weight, values in zip((pair.source, pair.target), (0.7, 1.3), both, strict=True):
            total += weight * float(scores.symbol_loss[row].sum())
            total -= 0.3 * sum(value * log for value, log in zip(values, scores.log_policy[row].tolist(), strict=True))
        totals.append(total)
    return totals


# --- losses -------------------------------------------------------------------------------------------------------


def test_losses_and_moving_averages_equal_loops():
    """Averages are those of the updates before: none, of some symbols, of most."""
    model, loop = toy(), {0: {}, 1: {}, "tree": {}}
    train = criterion(**OPTIONS)
    model.train()
    for seed in (2, 20, 30):
        model.trees["sample"] = random_trees(SOURCES, seed), random_trees(TARGETS, seed + 1)
        pair = pair_of(model)
        advantages, totals, coverages = in_loops(pair, loop)
        losses = train.losses(pair, model.baselines)
        assert losses.total.tolist() == pytest.approx(total_in_loops(pair, advantages, coverages), abs=1e-5)
        assert losses.coverage.tolist() == pytest.approx(coverages)
        loss, size, _ = train(model, sample_of())
        assert size == 3 and float(loss.detach()) == pytest.approx(float(losses.total.sum()))
        for side, scores in enumerate((pair.source, pair.target)):
            expected = torch.tensor([both[side] for both in advantages], dtype=torch.float64)
            torch.testing.assert_close(losses.advantages[side], expected, rtol=0, atol=1e-6)  # averages are float32
            seen = [
                (symbol, value)
                for row in zip(
                    scores.actions.tolist(), scores.symbols.tolist(), scores.symbol_loss.tolist(), strict=True
                )
                for action, symbol, value in zip(*row, strict=True)
                if action == GEN
            ]
            loop[side] = reinforce.move(loop[side], seen, 0.95)
        gens = [[row.count(GEN) for row in scores.actions.tolist()] for scores in (pair.source, pair.target)]
        means = [(side, sum(row[side] for row in totals) / sum(gens[side])) for side in range(2)]
        loop["tree"] = reinforce.move(loop["tree"], means, 0.95)
    for key, name in ((0, "source"), (1, "target"), ("tree", "tree")):
        found = getattr(model.baselines, name).tolist()
        assert {i for i, seen in enumerate(getattr(model.baselines, f"{name}_seen").tolist()) if seen} == set(loop[key])
        assert {i: found[i] for i in loop[key]} == pytest.approx(loop[key], abs=1e-5)


def test_averages_of_tree_rewards_at_reduce():
    model = toy()
    model.train()
    at_reduce = {"tree_baseline": "reduce"}
    criterion(at_reduce)(model, sample_of())
    for side, scores in enumerate(model.trees["sample"]):
        total = count = 0
        for row in scores.tolist():
            actions = [action for action in row if action != NOP]
            tree, _ = tree_rewards(actions, 4.0, 9.0, False)
            total += sum(reward for action, reward in zip(actions, tree, strict=True) if action == REDUCE)
            count += actions.count(REDUCE)
        assert count and float(model.baselines.tree[side]) == pytest.approx(total / count, rel=1e-6)
    # subtracted there and nowhere else: without discount, an action's share falls by one average at each place
    level = {"rnng_reward_discount": 1.0, "rnng_source_weight": 0.0, "rnng_target_weight": 0.0}
    pair = pair_of(model)
    nothing = MovingBaselines(8, 8)
    for name in nothing.NAMES:
        getattr(nothing, f"{name}_seen").fill_(True)  # averages of 0
    for baselines in (nothing, model.baselines):
        baselines.source.zero_(), baselines.target.zero_()
    plain, less = (criterion(at_reduce, **level).losses(pair, each) for each in (nothing, model.baselines))
    for side, actions in enumerate(model.trees["sample"]):
        to_come = (actions == REDUCE).long().flip(1).cumsum(1).flip(1) * (actions != NOP)
        expected = plain.advantages[side] - model.baselines.tree[side].double() * to_come
        torch.testing.assert_close(less.advantages[side], expected, rtol=0, atol=1e-9)


def test_given_trees_are_learned_and_not_reinforced():
    model = toy()
    model.train()
    pair = pair_of(model)
    sample = sample_of()
    sample["net_input"]["tgt_actions"] = model.trees["sample"][1]
    losses = criterion(**LOSSES).losses(pair, model.baselines, (False, True))
    assert losses.advantages[0] is not None and losses.advantages[1] is None
    model.trees["sample"] = (model.trees["sample"][0], None)  # the target's are not drawn
    sample["net_input"]["src_actions"] = model.trees["sample"][0]
    loss, _, log = criterion(**LOSSES, rnng_action_xent=0.4)(model, sample)
    expected = 2.1 * float(log["att"]) + 0.7 * float(log["loss_src"]) + 1.3 * float(log["loss_tgt"])
    expected -= 0.4 * float(pair.source.log_policy.sum() + pair.target.log_policy.sum())
    assert float(loss.detach()) == pytest.approx(expected)
    model.eval()
    loss, _, _ = criterion(**LOSSES, rnng_action_xent=0.4)(model, sample)
    assert float(loss.detach()) < expected


# --- validation ---------------------------------------------------------------------------------------------------


def real(**changes):
    return latent_trees.build(size=8, sharpness=1.0, symbols="abcde", **changes)[1]


def test_validation_draws_the_same_trees_and_leaves_training_alone():
    model = real().eval()
    valid = criterion()
    state = torch.get_rng_state()
    before = {name: value.clone() for name, value in model.state_dict().items()}
    first = valid(model, sample_of())[0]
    assert torch.equal(torch.get_rng_state(), state)
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
    torch.rand(3)
    assert torch.equal(valid(model, sample_of())[0], first)
    # whatever the batch
    alone = [sample_of(SOURCES[i : i + 1], TARGETS[i : i + 1]) | {"id": sample_of()["id"][i : i + 1]} for i in range(3)]
    assert float(sum(valid(model, each)[0] for each in alone)) == pytest.approx(float(first))
    # other sentences and seeds have other trees
    others = sample_of()
    others["id"] += 1
    assert valid(model, others)[0] != first
    valid.seed = 6
    assert valid(model, sample_of())[0] != first
    greedy = criterion(rnng_valid_trees="greedy")(model, sample_of())[0]
    source = text(SOURCES)
    pair = model(source, source.ne(PADDING).sum(1), text(TARGETS), trees="greedy")
    coverage = coverage_loss(pair.attention, pair.attending, pair.attended)
    expected = pair.source.symbol_loss.sum() + pair.target.symbol_loss.sum() + coverage.sum()
    assert float(greedy.detach()) == pytest.approx(float(expected.detach())) and greedy != first


def test_a_batch_that_stands_in_moves_no_average():
    model = toy()
    for name in model.baselines.NAMES:
        getattr(model.baselines, name).fill_(1.5)
        getattr(model.baselines, f"{name}_seen").fill_(True)
    train = criterion(**OPTIONS)
    before = {name: value.clone() for name, value in model.baselines.named_buffers()}
    calls, update = [], model.baselines.update
    model.baselines.update = lambda **totals: (calls.append(sorted(totals)), update(**totals))
    train(model, sample_of() | {"stand_in": True})
    assert all(torch.equal(value, before[name]) for name, value in model.baselines.named_buffers())
    train(model, sample_of() | {"stand_in": False})
    assert calls[0] == calls[1], "processes gather their averages together"
    moved = {name for name in model.baselines.NAMES if not torch.equal(getattr(model.baselines, name), before[name])}
    assert moved == {"source", "target", "tree"}


# --- options and what is refused ----------------------------------------------------------------------------------


def test_presets_set_what_is_not_given():
    assert criterion().weights == Preset() == Preset(1, 1, 1, 0.02, 4, 9, "exclusive", "exclusive", "gen")
    assert criterion(rnng_preset="paper").weights == Preset(10, 1, 100)
    assert criterion(rnng_preset="shallow").weights == Preset(1, 1, 0.1, 0.02, 1, 0)
    # penalties and rewards add up, GENs are counted up to an action, averages are subtracted where rewards are
    literal = Preset(reward_mode="additive", gen_count="inclusive", tree_baseline="reduce", lm_grad="softmax")
    assert criterion(rnng_preset="literal").weights == literal
    # 0 is given, too
    mixed = criterion(rnng_preset="paper", rnng_target_weight=0.0, rnng_nonterminal_reward=3.0)
    assert mixed.weights == Preset(10, 0, 100, 0.02, 4, 3)


# --- losses ---


def mask(sizes, width):
    return torch.arange(width) < torch.tensor(sizes)[:, None]


def test_coverage_equals_loops():
    torch.manual_seed(1)
    targets, sources = [0, 3, 1, 4, 2, 0, 4], [1, 5, 1, 2, 5, 3, 4]
    attending, attended = mask(targets, 4), mask(sources, 5)
    scores = torch.randn(7, 4, 5, dtype=torch.float64).masked_fill(~attended[:, None], -math.inf)
    attention = scores.softmax(2)
    found = coverage_loss(attention, attending, attended)
    expected = [
        reinforce.coverage(attention[row, :j, :i].tolist(), i)
        for row, (j, i) in enumerate(zip(targets, sources, strict=True))
    ]
    torch.testing.assert_close(found, torch.tensor(expected, dtype=torch.float64), rtol=0, atol=1e-12)
    # what stands in padding is nobody's business
    outside = ~(attending[:, :, None] & attended[:, None])
    for rubbish in (7.0, math.nan):
        polluted = attention.masked_fill(outside, rubbish).requires_grad_()
        again = coverage_loss(polluted, attending, attended)
        assert torch.equal(again, found)
        again.sum().backward()
        assert torch.isfinite(polluted.grad).all() and not polluted.grad[outside].any()


def test_the_first_of_equal_maxima_gets_the_gradient():
    attention = torch.full((1, 2, 3), 0.25, dtype=torch.float64, requires_grad=True)
    exists = torch.ones(1, 2, 3, dtype=torch.bool)
    coverage_loss(attention, exists[:, :, 0], exists[:, 0]).sum().backward()
    gradient = attention.grad[0]
    assert gradient[0, 1] < gradient[1, 1] < gradient[1, 2]  # in a column and a row; in its row; in no maximum
    assert gradient[0, 2] == pytest.approx(float(gradient[1, 1]))
    assert gradient[0, 0] == gradient[1, 0] > 0


@pytest.mark.parametrize("count", GenCount)
@pytest.mark.parametrize("discount", [0.0, 0.3, 0.95, 1.0])
def test_rewards_to_go_equal_loops(discount, count):
    actions = random_trees([[4] * (row % 8) for row in range(20)], 4)
    torch.manual_seed(4)
    rewards = torch.randn(*actions.shape, dtype=torch.float64).masked_fill(actions == NOP, 0)
    counts = generated(actions, count)
    assert counts.tolist() == [reinforce.counts(row, count == GenCount.inclusive) for row in actions.tolist()]
    found = reward_to_go(rewards, counts[:, :-1], discount)
    expected = [
        reinforce.to_go(*rows, discount) for rows in zip(rewards.tolist(), counts[:, :-1].tolist(), strict=True)
    ]
    torch.testing.assert_close(found, torch.tensor(expected, dtype=torch.float64), rtol=0, atol=1e-12)


# --- moving baselines ---


def totals(batch, size):
    """Sums and counts of (key, number)."""
    sums, counts = torch.zeros(size, dtype=torch.float64), torch.zeros(size, dtype=torch.float64)
    for key, number in batch:
        sums[key] += number
        counts[key] += 1
    return sums, counts


@pytest.mark.parametrize("convert", [nn.Module.half, nn.Module.bfloat16, nn.Module.double])
def test_precision_stays(convert):
    model = nn.Sequential(nn.Linear(2, 2), MovingBaselines(3, 3))
    third = (torch.tensor([0.0, 1.0, 0.0]), torch.tensor([0.0, 3.0, 0.0]))
    model[1].update(source=third)
    before = {name: value.clone() for name, value in model[1].state_dict().items()}
    convert(model)
    assert model[0].weight.dtype != torch.float32
    for name, value in model[1].state_dict().items():
        assert value.dtype == before[name].dtype and torch.equal(value, before[name])
    model.to("meta")
    assert all(value.is_meta for value in model[1].state_dict().values())


BATCHES = [[(0, 1.0), (1, 5.0)], [(0, 4.0)], [(1, 1.0), (1, 2.0)], [(2, 7.0)]]


def in_process(rank: int, folder: str, results) -> None:
    torch.set_num_threads(1)
    torch.distributed.init_process_group("gloo", init_method=f"file://{folder}/group", rank=rank, world_size=2)
    baselines = MovingBaselines(3, 3)
    for batch in BATCHES[rank::2]:
        baselines.update(source=totals(batch, 3), tree=totals([(rank, 1.0)], 2))
    results.put((rank, {name: value.tolist() for name, value in baselines.state_dict().items()}))
    torch.distributed.destroy_process_group()


def test_two_processes_agree(tmp_path):
    """Both have what one process has that sees the batches of both at once."""
    context = multiprocessing.get_context("fork")
    results = context.Queue()
    processes = [context.Process(target=in_process, args=(rank, str(tmp_path), results)) for rank in range(2)]
    for process in processes:
        process.start()
    found = dict(results.get(timeout=60) for _ in processes)
    for process in processes:
        process.join(60)
        assert process.exitcode == 0
    assert found[0] == found[1]
    one = MovingBaselines(3, 3)
    for first in range(0, len(BATCHES), 2):
        one.update(source=totals(BATCHES[first] + BATCHES[first + 1], 3), tree=totals([(0, 1.0), (1, 1.0)], 2))
    assert found[0] == {name: value.tolist() for name, value in one.state_dict().items()}
    assert found[0]["source"] == pytest.approx([2.5, 0.95 * 5 + 0.05 * 1.5, 7.0])
