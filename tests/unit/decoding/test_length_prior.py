"""The prior over lengths: its table against loops over pairs, its search against all translations there are."""

import math
from argparse import Namespace

import numpy as np
import pytest
import torch
from fairseq.data import Dictionary
from fairseq.models import FairseqDecoder, FairseqEncoder, FairseqEncoderDecoderModel
from fairseq.sequence_generator import SequenceGenerator
from fairseq.tasks.fairseq_task import FairseqTask
from hypothesis import given
from hypothesis import strategies as st
from oracles import length_prior as oracle

from fairseq_syntax.decoding.length_prior import FORBIDDEN, LONGEST, length_table, use_length_prior

# --- the table --------------------------------------------------------------------------------------------------------

PAIRS = st.lists(st.tuples(st.integers(0, 9), st.integers(0, 12)), min_size=1, max_size=30)


def table_of(pairs):
    return length_table(*np.array(pairs).T)


@given(PAIRS)
def test_tables_are_those_of_loops(pairs):
    size = (max(source for source, _ in pairs) + 2, max(target for _, target in pairs) + 2)
    table = table_of(pairs)
    assert table.shape == size
    for source in range(size[0]):
        seen = oracle.frequencies(pairs, source, size[1]) or [1.0] * size[1]
        np.testing.assert_allclose(table[source], [math.log(p) if p else FORBIDDEN for p in seen], atol=1e-12)


def test_very_long_sentences_are_not_told_apart():
    table = table_of([(3, 4), (5000, 6000), (7000, 6000)])
    assert table.shape == (LONGEST + 2, LONGEST + 2)
    assert table[-1, -1] == table[3, 4] == 0 and table[3, 9] == FORBIDDEN


def test_no_pairs():
    with pytest.raises(ValueError, match="no sentence pairs"):
        length_table([], [])


# --- the search -------------------------------------------------------------------------------------------------------

MAX_LENGTH = 5
LETTERS = "abc"


def dictionary(size):
    """Three letters, and others that no model ever chooses."""
    words = Dictionary()
    for letter in LETTERS:
        words.add_symbol(letter)
    while len(words) < size:
        words.add_symbol(f"never{len(words)}")
    return words


class ToyEncoder(FairseqEncoder):
    def forward(self, src_tokens, src_lengths=None, **kwargs):
        # words by themselves, whatever the generator says of lengths
        special = src_tokens.eq(self.dictionary.pad()) | src_tokens.eq(self.dictionary.eos())
        return {"words": (~special).sum(dim=1)}

    def reorder_encoder_out(self, encoder_out, new_order):
        return {"words": encoder_out["words"][new_order]}


class ToyDecoder(FairseqDecoder):
    """p(next | previous, step, source length), drawn at random; over letters and EOS."""

    def __init__(self, words, seed):
        super().__init__(words)
        generator = torch.Generator().manual_seed(seed)
        self.choices = [*(words.index(letter) for letter in LETTERS), words.eos()]
        logits = torch.randn(8, MAX_LENGTH + 1, len(words), 4, generator=generator) * 1.5
        self.register_buffer("scores", logits.log_softmax(-1))

    def forward(self, prev_output_tokens, encoder_out=None, **kwargs):
        batch, steps = prev_output_tokens.shape
        output = torch.full((batch, steps, len(self.dictionary)), -math.inf, device=prev_output_tokens.device)
        step = torch.arange(steps, device=output.device)
        output[:, :, self.choices] = self.scores[encoder_out["words"][:, None], step, prev_output_tokens]
        return output, None


class Toy(FairseqEncoderDecoderModel):
    def __init__(self, words, seed):
        super().__init__(ToyEncoder(words), ToyDecoder(words, seed))

    def max_decoder_positions(self):
        return 100


def batch_of(words, lengths, left_pad=False):
    """Sources of so many words."""
    width = max(lengths) + 1
    tokens = torch.full((len(lengths), width), words.pad())
    for row, length in zip(tokens, lengths, strict=True):
        start = width - length - 1 if left_pad else 0
        row[start : start + length] = words.index("a")
        row[start + length] = words.eos()
    return {"net_input": {"src_tokens": tokens, "src_lengths": torch.tensor(lengths) + 1}}


def generator_of(models, beam, table=None, **options):
    generator = SequenceGenerator(
        models, models[0].decoder.dictionary, **{"beam_size": beam, "max_len_b": MAX_LENGTH, **options}
    )
    if table is not None:
        use_length_prior(generator, table)
    return generator


def random_table(seed, rows=6, columns=MAX_LENGTH + 1):
    return torch.randn(rows, columns, generator=torch.Generator().manual_seed(seed)).mul(2).log_softmax(-1).numpy()


def prior_of(table, source, target):
    return float(table[min(source, len(table) - 1)][min(target, len(table[0]) - 1)])


def model_scores(models, source):
    """Function: symbols so far, next one or None -> log p of the ensemble."""
    eos = models[0].decoder.dictionary.eos()

    def log_probability(before, word):
        previous = models[0].decoder.dictionary.index(before[-1]) if before else eos
        column = 3 if word is None else LETTERS.index(word)
        values = [model.decoder.scores[source, len(before), previous, column].exp() for model in models]
        return math.log(sum(map(float, values)) / len(models))

    return log_probability


def letters(words, tokens):
    return tuple(words[token] for token in tokens.tolist()[:-1])


@pytest.mark.parametrize(("members", "left_pad"), [(1, False), (2, True)])
def test_with_a_wide_beam_the_best_of_all_translations_is_found(members, left_pad):
    words = dictionary(2048)
    # longer sentences than the table knows, on both sides
    lengths, table = [2, 7], random_table(1, 4, 5)
    models = [Toy(words, member) for member in range(members)]
    found = generator_of(models, 900, table).generate(models, batch_of(words, lengths, left_pad))
    for source, beam in zip(lengths, found, strict=True):
        expected, score = oracle.best_translation(
            model_scores(models, source), lambda target, x=source: prior_of(table, x, target), LETTERS, MAX_LENGTH
        )
        assert letters(words, beam[0]["tokens"]) == expected
        assert float(beam[0]["score"]) == pytest.approx(score, abs=1e-5)


# shorter than any sentence, longer than any, and between: a model is left to itself there
UNSEEN = [1, 4, 7], table_of([(5, 7)] * 20 + [(6, 2)] * 20)


@pytest.mark.parametrize(("lengths", "table"), [([3, 1, 5, 2], np.zeros((3, 4))), UNSEEN], ids=["zeros", "unseen"])
@pytest.mark.parametrize("beam", [1, 8])
def test_a_prior_of_nothing_is_fairseqs_search(beam, lengths, table):
    words = dictionary(16)
    for seed in range(5):
        models, batch = [Toy(words, seed)], batch_of(words, lengths)
        plain, own = (generator_of(models, beam, each).generate(models, batch) for each in (None, table))
        for one, other in zip(plain, own, strict=True):
            assert [h["tokens"].tolist() for h in one] == [h["tokens"].tolist() for h in other]
            assert [float(h["score"]) for h in one] == [float(h["score"]) for h in other]
            for a, b in zip(one, other, strict=True):
                torch.testing.assert_close(a["positional_scores"], b["positional_scores"], rtol=0, atol=0)


def test_scores_are_those_of_the_equation():
    """(sum log p + log prior) / T, for every hypothesis; T counts EOS, the prior's length does not."""
    words = dictionary(16)
    lengths, compared = [3, 1, 5], 0
    for seed in range(12):
        models, table = [Toy(words, seed)], random_table(seed)
        for beam in (2, 4, 12):
            found = generator_of(models, beam, table).generate(models, batch_of(words, lengths))
            for source, hypotheses in zip(lengths, found, strict=True):
                log_probability = model_scores(models, source)
                for hypothesis in hypotheses:
                    symbols = letters(words, hypothesis["tokens"])
                    total = sum(log_probability(symbols[:t], word) for t, word in enumerate((*symbols, None)))
                    total += prior_of(table, source, len(symbols))
                    assert float(hypothesis["score"]) * (len(symbols) + 1) == pytest.approx(total, abs=1e-4)
                    assert float(hypothesis["positional_scores"].sum()) == pytest.approx(total, abs=1e-4)
                    compared += 1
    assert compared > 12 * 3 * 6


@pytest.mark.parametrize("beam", [1, 4])
def test_no_length_is_impossible(beam):
    """Where every length is forbidden, the search still ends; -inf would leave it with nothing."""
    words = dictionary(16)
    models, batch = [Toy(words, 0)], batch_of(words, [3, 1])
    table = length_table(np.array([3, 3, 1]), np.array([9, 9, 9]))
    for hypotheses in generator_of(models, beam, table).generate(models, batch):
        assert hypotheses and all(math.isfinite(h["score"]) for h in hypotheses)
    with pytest.raises(AssertionError):
        generator_of(models, beam, np.full((4, 10), -np.inf)).generate(models, batch)


# --- what does not go together ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"sampling": True}, "--sampling"),
        ({"prefix_allowed_tokens_fn": lambda number, tokens: [4]}, "allowed prefixes"),
        ({"unnormalized": True}, "--unnormalized"),
        ({"unkpen": 0.5}, "--unkpen"),
        ({"lenpen": 0.5}, "--length-prior works with plain beam search, of probabilities divided by .* --lenpen"),
    ],
)
def test_other_searches_are_refused(options, message):
    words = dictionary(16)
    task = type("Task", (FairseqTask,), {"target_dictionary": words})(Namespace())
    generator = task.build_generator([Toy(words, 0)], Namespace(**options))
    with pytest.raises(ValueError, match=message):
        use_length_prior(generator, random_table(0))
