"""The loss of the parsing head against loops, and how it is put together with the translation loss."""

import pytest
import small_models
import torch
from fairseq.criterions.label_smoothed_cross_entropy import LabelSmoothedCrossEntropyCriterion
from hypothesis import given
from hypothesis import strategies as st
from oracles import taught_heads
from small_models import EOS, PAD

from fairseq_syntax.systems.lisa import criterion as lisa

INPUTS = ("parent_pieces", "word_starts")


@given(st.lists(st.integers(0, 4), min_size=1, max_size=5), st.booleans(), st.integers(0, 99))
def test_parse_loss_is_over_parents_and_logits(rows, left_pad, seed):
    """Regression (defect 3 of the published code): it was over the dependents, and took softmax of a softmax."""
    batch = small_models.batch(None, rows, left_pad, columns=9, names=INPUTS)
    parents, mask = batch["src_syntax"]["parent_pieces"], batch["src_tokens"] == PAD
    logits = torch.randn(len(rows), 9, 9, generator=torch.Generator().manual_seed(seed)).double() * 3
    loss, correct, counted = lisa.parse_loss(logits, parents, mask)
    expected, right, tokens = expected_loss(logits, parents, mask)
    assert float(loss) == pytest.approx(expected, rel=1e-5)
    assert correct.nonzero().tolist() == [[b, t] for b, _, t in right]
    assert int(counted.sum()) == tokens


def expected_loss(logits, parents, mask):
    return taught_heads.loss(logits.unsqueeze(1), lambda b, t: [p for p in [int(parents[b, t])] if p >= 0], mask)


def criterion(sentence_avg=False, **options):
    cfg = lisa.LabelSmoothedCrossEntropyWithHeadsConfig(label_smoothing=0.1, sentence_avg=sentence_avg, **options)
    return lisa.LabelSmoothedCrossEntropyWithHeadsCriterion(cfg, small_models.TASK)


@pytest.fixture(scope="module")
def model():
    return small_models.build("lisa_transformer_tiny")


@pytest.mark.parametrize(("penalty", "sentence_avg"), [(0.0, False), (1.0, False), (0.3, True)])
def test_both_losses_are_means_over_their_own_tokens(model, penalty, sentence_avg):
    """What the optimizer sees, loss / sample_size, is translation loss per unit + penalty x parse loss per token."""
    batch = small_models.sample(model, INPUTS)
    loss, size, log = criterion(sentence_avg, lisa_parse_penalty=penalty)(model, batch)
    stock = LabelSmoothedCrossEntropyCriterion(small_models.TASK, sentence_avg, 0.1)
    translation, stock_size, stock_log = stock(model, batch)
    (logits,) = [each["parse_logits"] for each in model(**batch["net_input"])[1]["syntax"]]
    syntax, source = batch["net_input"]["src_syntax"], batch["net_input"]["src_tokens"]
    parse, right, tokens = expected_loss(logits, syntax["parent_pieces"], source == PAD)
    assert size == stock_size
    assert float(loss) / size == pytest.approx(float(translation) / size + penalty * parse / tokens, rel=1e-5)
    assert float(log["nll_loss"]) == pytest.approx(float(stock_log["nll_loss"]))
    assert float(log["parse_loss"]) == pytest.approx(parse, rel=1e-5)
    # accuracy is of tokens, UAS of first pieces of words, to which EOS does not belong
    starts = syntax["word_starts"].bool() & (source != EOS) & (syntax["parent_pieces"] >= 0)
    counts = (log[f"parse_{name}"] for name in ("tokens", "correct", "words", "words_correct"))
    assert [*map(int, counts)] == [tokens, len(right), int(starts.sum()), sum(bool(starts[b, t]) for b, _, t in right)]
