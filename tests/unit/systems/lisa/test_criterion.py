"""The loss of the parsing head against loops, and how it is put together with the translation loss."""

import math

import pytest
import small_models
import torch
from fairseq.criterions.label_smoothed_cross_entropy import LabelSmoothedCrossEntropyCriterion
from fairseq.logging import metrics
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


def test_sentences_without_a_parse_count_for_eos_only():
    logits, parents, mask = case([4, 3], unparsed={0, 1})
    _, _, counted = parse_loss(logits, parents, mask)
    assert int(counted.sum()) == 2
    loss, _, _ = parse_loss(logits, torch.full_like(parents, -1), mask)
    assert float(loss) == 0  # not NaN, the mean of nothing


class FakeModel(torch.nn.Module):
    """Gives the logits that it holds; ids of sentences stand in `src_lengths`."""

    def __init__(self, parse_logits, symbols=12):
        super().__init__()
        self.parse_logits = torch.nn.Parameter(parse_logits)
        self.words = torch.nn.Parameter(torch.randn(symbols, generator=torch.Generator().manual_seed(9)).double())

    def forward(self, src_tokens, src_lengths, prev_output_tokens, src_syntax=None):
        size = src_tokens.shape[1]
        out = self.words.repeat(*prev_output_tokens.shape, 1) * (1 + prev_output_tokens.unsqueeze(-1) % 5)
        return out, {"syntax": [{"parse_logits": self.parse_logits[src_lengths][:, :size, :size]}]}

    def get_normalized_probs(self, net_output, log_probs, sample=None):
        return net_output[0].log_softmax(-1)

    def get_targets(self, sample, net_output):
        return sample["target"]


def criterion(sentence_avg=False, **options):
    return LabelSmoothedCrossEntropyWithHeadsCriterion(small_models.TASK, sentence_avg, 0.1, **options)


SENTENCES = [
    # words of tokens (EOS last), parents by column, target length
    ([0, 0, 1, 2], [2, 2, 2, 3], 3),
    ([0, 1], [0, 1], 5),
    ([0, 1, 2, 2, 2, 3], [1, 1, 1, 1, 1, 5], 2),
]


def sample(ids):
    """A batch of some of the sentences, padded on the right."""
    size, longest = max(len(SENTENCES[i][0]) for i in ids), max(SENTENCES[i][2] for i in ids)
    tokens = torch.full((len(ids), size), PAD)
    parents, starts = (
        torch.full((len(ids), size), -1, dtype=torch.int32),
        torch.zeros(len(ids), size, dtype=torch.int32),
    )
    target, previous = torch.full((len(ids), longest), PAD), torch.full((len(ids), longest), PAD)
    for row, i in enumerate(ids):
        words, heads, length = SENTENCES[i]
        tokens[row, : len(words)] = torch.tensor([*range(4, 3 + len(words)), EOS])
        parents[row, : len(heads)] = torch.tensor(heads, dtype=torch.int32)
        starts[row, : len(words)] = torch.tensor([int(t == 0 or words[t] != words[t - 1]) for t in range(len(words))])
        target[row, :length] = torch.tensor([*range(5, 4 + length), EOS])
        previous[row, :length] = torch.tensor([EOS, *range(5, 4 + length)])
    return {
        "id": torch.tensor(ids),
        "target": target,
        "ntokens": int((target != PAD).sum()),
        "net_input": {
            "src_tokens": tokens,
            "src_lengths": torch.tensor(ids),
            "prev_output_tokens": previous,
            "src_syntax": {"parent_pieces": parents, "word_starts": starts},
        },
    }


@pytest.fixture
def model():
    generator = torch.Generator().manual_seed(2)
    return FakeModel(torch.randn(3, 6, 6, generator=generator, dtype=torch.double) * 2)


def stock_loss(model, batch, sentence_avg=False):
    return LabelSmoothedCrossEntropyCriterion(small_models.TASK, sentence_avg, 0.1)(model, batch)


@pytest.mark.parametrize("sentence_avg", [False, True])
@pytest.mark.parametrize("penalty", [0.0, 1.0, 0.3])
def test_both_losses_are_means_over_their_own_tokens(model, penalty, sentence_avg):
    """What the optimizer sees, loss / sample_size, is translation loss per unit + penalty x parse loss per token."""
    batch = sample([0, 1, 2])
    loss, size, log = criterion(sentence_avg, lisa_parse_penalty=penalty)(model, batch)
    translation, stock_size, stock_log = stock_loss(model, batch, sentence_avg)
    syntax, mask = batch["net_input"]["src_syntax"], batch["net_input"]["src_tokens"] == PAD
    parse, _, tokens = loop_loss(model.parse_logits, syntax["parent_pieces"], mask)
    assert size == stock_size and tokens == 12
    expected = float(translation) / size + penalty * parse / tokens
    assert float(loss) / size == pytest.approx(expected, rel=1e-5)
    assert float(log["nll_loss"]) == pytest.approx(float(stock_log["nll_loss"]))
    assert float(log["parse_loss"]) == pytest.approx(parse, rel=1e-5)


def logged(logs):
    with metrics.aggregate(new_root=True) as aggregator:
        LabelSmoothedCrossEntropyWithHeadsCriterion.reduce_metrics(logs)
    return aggregator.get_smoothed_values()


def test_logs_of_several_batches_are_those_of_one(model):
    whole = logged([criterion()(model, sample([0, 1, 2]))[2]])
    parts = logged([criterion()(model, sample(ids))[2] for ids in ([1], [2, 0])])
    for key in ("parse_loss", "head_accuracy", "uas", "nll_loss"):
        assert parts[key] == pytest.approx(whole[key], abs=2e-3), key
    assert LabelSmoothedCrossEntropyWithHeadsCriterion.logging_outputs_can_be_summed()
    summed = {}
    for ids in ([1], [2, 0]):  # what fairseq does on several devices
        for key, value in criterion()(model, sample(ids))[2].items():
            summed[key] = summed.get(key, 0) + float(value)
    assert logged([summed])["uas"] == pytest.approx(whole["uas"], abs=1e-2)


def test_uas_is_of_words_and_head_accuracy_of_tokens(model):
    """Sentence 2: of 6 tokens, columns 0, 1, 2 begin words, 5 is EOS. Right are columns 1, 2, 3 and EOS."""
    with torch.no_grad():
        model.parse_logits.zero_()
        for column, best in enumerate([3, 1, 1, 1, 0, 5]):
            model.parse_logits[2, column, best] = 9.0
    log = criterion()(model, sample([2]))[2]
    assert {k: int(v) for k, v in log.items() if k.startswith("parse_") and k != "parse_loss"} == {
        "parse_tokens": 6,
        "parse_correct": 4,
        "parse_words": 3,
        "parse_words_correct": 2,
    }
    values = logged([log])
    assert values["uas"] == pytest.approx(66.67) and values["head_accuracy"] == pytest.approx(66.67)
    first = criterion()(model, sample([0, 2]))[2]
    assert int(first["parse_words"]) == 5  # 2 + 3: no piece inside a word, no EOS, no padding


def test_parse_loss_is_logged_in_bits_a_token(model):
    with torch.no_grad():
        model.parse_logits.zero_()
    assert logged([criterion()(model, sample([0]))[2]])["parse_loss"] == pytest.approx(2.0)  # one of four
    assert "parse_loss" not in logged([{"loss": 1.0, "nll_loss": 1.0, "ntokens": 1, "sample_size": 1}])


def test_accuracy_of_words_is_reported_when_asked_for(model):
    log = criterion(report_accuracy=True)(model, sample([0, 1]))[2]
    assert log["total"] == 8 and 0 <= log["n_correct"] <= 8


def test_data_without_trees_are_refused_in_words(model):
    batch = sample([0])
    del batch["net_input"]["src_syntax"]
    with pytest.raises(ValueError, match="no trees to learn from; add them with fairseq-syntax preprocess"):
        criterion()(model, batch)
