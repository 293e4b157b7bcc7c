"""The loss of the parsing head against loops, and how it is put together with the translation loss."""

import math

import pytest
import small_models
import torch
from fairseq.criterions.label_smoothed_cross_entropy import LabelSmoothedCrossEntropyCriterion
from hypothesis import given
from hypothesis import strategies as st

from fairseq_syntax.systems.lisa.criterion import LabelSmoothedCrossEntropyWithHeadsCriterion, parse_loss

PAD, EOS = 1, 2


def case(lengths, left_pad=False, seed=0, unparsed=()):
    """Random logits, parents and padding of a batch; sentences in `unparsed` have no parents but EOS's."""
    generator = torch.Generator().manual_seed(seed)
    size = max(lengths) + 1
    logits = torch.randn(len(lengths), size, size, generator=generator, dtype=torch.double) * 3
    parents = torch.full((len(lengths), size), -1, dtype=torch.int32)
    mask = torch.ones(len(lengths), size, dtype=torch.bool)
    for b, length in enumerate(lengths):
        start = size - length if left_pad else 0
        mask[b, start : start + length] = False
        if b in unparsed:
            parents[b, start + length - 1] = start + length - 1
        else:
            drawn = torch.randint(0, length, (length,), generator=generator, dtype=torch.int32)
            parents[b, start : start + length] = drawn + start
    return logits, parents, mask


def loop_loss(logits, parents, mask):
    """-Σ log softmax over the parents of each token, and how many tokens have the best one right."""
    total, right, counted = 0.0, [], 0
    for b in range(len(parents)):
        real = [j for j in range(parents.shape[1]) if not mask[b, j]]
        for t in real:
            parent = int(parents[b, t])
            if parent < 0:
                continue
            scores = {j: float(logits[b, t, j]) for j in real}
            top = max(scores.values())
            log_sum = top + math.log(sum(math.exp(s - top) for s in scores.values()))
            total += log_sum - scores[parent]
            counted += 1
            if max(scores, key=scores.get) == parent:
                right.append((b, t))
    return total, right, counted


@given(st.lists(st.integers(1, 6), min_size=1, max_size=4), st.booleans(), st.integers(0, 99))
def test_parse_loss_is_over_parents_and_logits(lengths, left_pad, seed):
    """Regression (defect 3 of the published code): it was over the dependents, and took softmax of a softmax."""
    logits, parents, mask = case(lengths, left_pad, seed, unparsed={1} if seed % 3 == 0 else ())
    loss, correct, counted = parse_loss(logits, parents, mask)
    expected, right, tokens = loop_loss(logits, parents, mask)
    assert float(loss) == pytest.approx(expected, rel=1e-5)
    assert correct.nonzero().tolist() == [list(place) for place in right]
    assert int(counted.sum()) == tokens


def criterion(sentence_avg=False, **options):
    return LabelSmoothedCrossEntropyWithHeadsCriterion(small_models.TASK, sentence_avg, 0.1, **options)


@pytest.fixture(scope="module")
def model():
    return small_models.build("lisa_transformer_tiny")


def sample(model, rows=range(5), names=("parent_pieces", "word_starts")):
    net_input = small_models.batch(model, rows, names=names)
    target = torch.tensor([[*small_models.TARGETS[row][1:], EOS] for row in rows])
    return {"net_input": net_input, "target": target, "ntokens": target.numel()}


@pytest.mark.parametrize(("penalty", "sentence_avg"), [(0.0, False), (1.0, False), (0.3, True)])
def test_both_losses_are_means_over_their_own_tokens(model, penalty, sentence_avg):
    """What the optimizer sees, loss / sample_size, is translation loss per unit + penalty x parse loss per token."""
    batch = sample(model)
    loss, size, log = criterion(sentence_avg, lisa_parse_penalty=penalty)(model, batch)
    stock = LabelSmoothedCrossEntropyCriterion(small_models.TASK, sentence_avg, 0.1)
    translation, stock_size, stock_log = stock(model, batch)
    (logits,) = [each["parse_logits"] for each in model(**batch["net_input"])[1]["syntax"]]
    syntax, source = batch["net_input"]["src_syntax"], batch["net_input"]["src_tokens"]
    parse, right, tokens = loop_loss(logits, syntax["parent_pieces"], source == PAD)
    assert size == stock_size
    assert float(loss) / size == pytest.approx(float(translation) / size + penalty * parse / tokens, rel=1e-5)
    assert float(log["nll_loss"]) == pytest.approx(float(stock_log["nll_loss"]))
    assert float(log["parse_loss"]) == pytest.approx(parse, rel=1e-5)
    # accuracy is of tokens, UAS of first pieces of words, to which EOS does not belong
    starts = syntax["word_starts"].bool() & (source != EOS) & (syntax["parent_pieces"] >= 0)
    counts = (log[f"parse_{name}"] for name in ("tokens", "correct", "words", "words_correct"))
    assert [*map(int, counts)] == [tokens, len(right), int(starts.sum()), sum(bool(starts[place]) for place in right)]
