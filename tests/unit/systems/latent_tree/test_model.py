"""The latent-tree translator as a model: padding, precision, options, what a loss trains, attention."""

import pytest
import torch
from latent_trees import build, pairs

from fairseq_syntax.systems.latent_tree.reinforce import ReinforceTreeConfig, ReinforceTreeCriterion
from fairseq_syntax.systems.latent_tree.transitions import Action

NT, GEN, REDUCE = (int(action) for action in (Action.NT, Action.GEN, Action.REDUCE))
NO_OTHER_LOSS = dict.fromkeys(("rnng_source_weight", "rnng_target_weight", "rnng_policy_weight"), 0.0)
SOURCES, TARGETS = ("abca", "", "c", "bbbaac"), ("cab", "a", "", "bccab")


def scores(model, batch, **options):
    """What the model says of a batch with its most probable trees."""
    return model(**batch["net_input"], target=batch["target"], trees="greedy", **options)


def test_padding_and_company_change_nothing():
    task, model = build()
    together = scores(model, pairs(task, SOURCES, TARGETS))
    left = scores(model, pairs(task, SOURCES, TARGETS, left=True))
    for row in range(len(SOURCES)):
        alone = scores(model, pairs(task, SOURCES[row : row + 1], TARGETS[row : row + 1]))
        for side in ("source", "target"):
            for name in ("log_policy", "symbol_loss"):
                one = getattr(getattr(alone, side), name)[0]
                for batch in (together, left):
                    other = getattr(getattr(batch, side), name)[row]
                    torch.testing.assert_close(other[: len(one)], one, atol=1e-5, rtol=1e-5)
                    assert not other[len(one) :].any()
        shape = alone.attention.shape[1:]
        torch.testing.assert_close(together.attention[row, : shape[0], : shape[1]], alone.attention[0])
        assert together.attended[row].sum() == shape[1] and together.attending[row].sum() == alone.attending.sum()


def test_mixed_precision_leaves_the_loops_alone():
    task, model = build()
    batch = pairs(task, SOURCES, TARGETS)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        mixed = scores(model, batch)
    assert torch.equal(mixed.target.symbol_loss, scores(model, batch).target.symbol_loss)


def test_attention_of_many_constituents_in_half_precision():
    """A source's root gets more of it than half precision can square."""
    task, model = build(sharpness=1.0)
    number = 600
    batch = pairs(task, ["abc"], ["a" * number])
    batch["net_input"]["src_actions"] = torch.tensor([[NT, GEN, GEN, REDUCE, GEN, GEN]])
    batch["net_input"]["tgt_actions"] = torch.tensor([[NT, GEN, REDUCE] * number + [GEN]])
    criterion = ReinforceTreeCriterion(task, ReinforceTreeConfig(seed=1, rnng_coverage_weight=1.0, **NO_OTHER_LOSS))
    found = []
    for dtype in (torch.float32, torch.float16):
        model = model.to(dtype).train()
        pair = model(**batch["net_input"], target=batch["target"])
        assert pair.attention.dtype == pair.target.symbol_loss.dtype == pair.target.log_policy.dtype == torch.float32
        assert float(pair.attention[0, :, 0].sum()) > 256
        torch.testing.assert_close(pair.attention.sum(2), torch.ones(1, number))
        loss, _, log = criterion(model, batch)
        model.zero_grad()
        loss.backward()
        gradients = [p.grad.double().flatten() for p in model.parameters() if p.grad is not None]
        found.append((float(log["att"]), torch.cat(gradients)))
    (expected, exact), (half, gradient) = found
    assert half == pytest.approx(expected, rel=0.02)
    assert float((gradient - exact).norm()) < 0.05 * float(exact.norm())


GRAMMAR = {"embed", "composition", "stack"}
PATHS = {
    "encoder": {f"encoder.{part}" for part in GRAMMAR | {"nonterminal"}},
    "decoder": {f"decoder.{part}" for part in GRAMMAR},
}
BOTH = PATHS["encoder"] | PATHS["decoder"]
POLICIES, OUTPUTS = ({f"{name}.{head}" for name in PATHS} for head in ("policy", "output"))


@pytest.mark.parametrize(
    ("loss", "options", "trained"),
    [
        ("source", {}, PATHS["encoder"] | {"encoder.output"}),
        ("source", {"rnng_policy_grad": "head"}, PATHS["encoder"] | {"encoder.output"}),
        # "affects only the weights of the output softmax perceptron"
        ("source", {"rnng_lm_grad": "softmax"}, {"encoder.output"}),
        ("target", {}, BOTH | {"decoder.output"}),
        ("target", {"rnng_policy_grad": "head"}, BOTH | {"decoder.output"}),
        ("target", {"rnng_lm_grad": "softmax"}, {"decoder.output"}),
        ("coverage", {}, BOTH),
        ("coverage", {"rnng_policy_grad": "head", "rnng_lm_grad": "softmax"}, BOTH),
        ("policy", {}, BOTH | POLICIES),
        ("policy", {"rnng_lm_grad": "softmax"}, BOTH | POLICIES),
        ("policy", {"rnng_policy_grad": "head"}, POLICIES),
    ],
    ids=lambda value: "-".join(value.values()) if isinstance(value, dict) else value if isinstance(value, str) else "",
)
def test_which_weights_a_term_of_the_loss_trains(loss, options, trained):
    """By themselves, the losses of symbols and of attention do not reach the policies, and so on."""
    task, model = build(sharpness=1.0, rnng_policy_grad=options.get("rnng_policy_grad", "full"))
    weights = {**NO_OTHER_LOSS, "rnng_coverage_weight": 0.0, f"rnng_{loss}_weight": 1.0}
    weights["rnng_lm_grad"] = options.get("rnng_lm_grad")
    criterion = ReinforceTreeCriterion(task, ReinforceTreeConfig(seed=1, **weights))
    model.train()
    torch.manual_seed(4)
    total, _, _ = criterion(model, pairs(task, SOURCES * 4, TARGETS * 4))
    total.backward()
    found = {name for name, weight in model.named_parameters() if weight.grad is not None and weight.grad.any()}
    assert found == {name for name, _ in model.named_parameters() if ".".join(name.split(".")[:2]) in trained}
