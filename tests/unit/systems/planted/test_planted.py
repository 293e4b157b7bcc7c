"""Planted heads: their loss against loops, their logits against fairseq's weights, and that nothing else is changed."""

import pytest
import small_models
import torch
from fairseq.criterions.label_smoothed_cross_entropy import LabelSmoothedCrossEntropyCriterion
from hypothesis import given
from hypothesis import strategies as st
from oracles import multihead, taught_heads
from small_models import PAD

from fairseq_syntax.systems.planted.criterion import PlantedHeadsConfig, PlantedHeadsCriterion, planting_loss
from fairseq_syntax.systems.planted.model import PlantedTransformerModel, head_logits

INPUTS = PlantedTransformerModel.training_syntax_inputs
SMOOTHED = {"label_smoothing": 0.1, "sentence_avg": False}
SIZES = {"encoder_layers": 3, "decoder_layers": 1, "planted_heads": [0, 2, 1]}


def pieces_of_parent(syntax):
    """Function: sentence, token -> columns of the word that the parent's first piece begins."""
    parents, starts = (syntax[name].tolist() for name in INPUTS)

    def pieces(b, t):
        end = first = parents[b][t]
        while 0 <= end < len(starts[b]) and (end == first or not (starts[b][end] or parents[b][end] < 0)):
            end += 1
        return range(max(first, 0), max(end, 0))

    return pieces


@given(st.lists(st.integers(0, 4), min_size=1, max_size=5), st.booleans(), st.integers(0, 99))
def test_the_loss_is_cross_entropy_with_the_pieces_of_the_parent(rows, left_pad, seed):
    """Over all heads, at either padding side, roots and EOS at themselves, a sentence without a parse nowhere."""
    sample = small_models.batch(None, rows, left_pad, columns=9, names=INPUTS)
    syntax, mask = sample["src_syntax"], sample["src_tokens"] == PAD
    logits = torch.randn(*mask.shape[:1], 2, 9, 9, generator=torch.Generator().manual_seed(seed)).double() * 2
    heads = planting_loss(logits, syntax["parent_pieces"], syntax["word_starts"], mask)
    expected, right, counted = taught_heads.loss(logits, pieces_of_parent(syntax), mask)
    assert float(heads.loss) == pytest.approx(expected, rel=1e-5)
    assert (int(heads.counted.sum()), int(heads.correct.sum())) == (counted, len(right))


def test_logits_are_those_of_fairseqs_heads():
    attention = small_models.build("planted_transformer", **SIZES).encoder.layers[1].self_attn
    x = torch.randn(5, 2, attention.embed_dim).double()
    keep = torch.ones(2, 5, dtype=torch.bool)
    _, weights = multihead.attend(attention, x, x, keep, lambda head, sentence, step, scores: multihead.softmax(scores))
    torch.testing.assert_close(head_logits(attention, x, 2).softmax(-1).transpose(0, 1), weights[:2])
    # and the loops weigh as fairseq does, which gives the mean of all heads
    torch.testing.assert_close(attention(x, x, x, need_weights=True)[1], weights.mean(0))


def both():
    """The model and fairseq's, with the same parameters."""
    model = small_models.build("planted_transformer", **SIZES)
    stock = small_models.build("transformer", seed=5, **SIZES)
    assert model.state_dict().keys() == stock.state_dict().keys()
    stock.load_state_dict(model.state_dict())
    return model, stock


def steps(model, criterion, sample):
    """The loss and all gradients, with dropout drawn from one seed."""
    torch.manual_seed(7)
    loss, size, log = criterion(model.train(), sample)
    (loss / size).backward()
    return loss.detach(), log, [parameter.grad for parameter in model.parameters()]


@pytest.mark.parametrize("left_pad", [False, True])
def test_with_weight_zero_it_trains_as_fairseqs_to_the_bit(left_pad):
    model, stock = (each.float() for each in both())
    planted = PlantedHeadsCriterion(PlantedHeadsConfig(**SMOOTHED, planted_weight=0.0), small_models.TASK)
    plain = LabelSmoothedCrossEntropyCriterion(small_models.TASK, False, 0.1)
    loss, log, gradients = steps(model, planted, small_models.sample(model, INPUTS, left_pad))
    expected, _, expected_gradients = steps(stock, plain, small_models.sample(stock, (), left_pad))
    assert torch.equal(loss, expected) and log["parse_tokens"] > 0
    assert all(torch.equal(found, value) for found, value in zip(gradients, expected_gradients, strict=True))


def test_models_and_data_without_what_it_needs_are_refused():
    model, stock = both()
    criterion = PlantedHeadsCriterion(PlantedHeadsConfig(**SMOOTHED), small_models.TASK)
    with pytest.raises(ValueError, match="the model has no planted head; use --arch planted_transformer"):
        criterion(stock, small_models.sample(stock, ()))
    with pytest.raises(ValueError, match="no trees to learn from"):
        criterion(model.train(), small_models.sample(model, ()))
