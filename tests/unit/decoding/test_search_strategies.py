"""Every search strategy of fairseq: a sentence is translated alone as in a batch of several, in any order."""

from argparse import Namespace
from types import SimpleNamespace

import pytest
import torch
from fairseq.tasks.fairseq_task import FairseqTask
from fairseq.token_generation_constraints import pack_constraints
from small_models import EOS, TARGETS, WORDS, batch, build

ORDERS = ([4, 2, 0, 3, 1], [3, 1])
CONSTRAINTS = ([[5, 6]], [], [[4], [9]], [], [[7]])
STRATEGIES = {
    "beam": {"beam": 4},
    "sampling-topk 1": {"sampling": True, "sampling_topk": 1},
    "sampling-topp 0": {"sampling": True, "sampling_topp": 1e-9},
    "diverse-beam-groups": {"beam": 4, "diverse_beam_groups": 2},
    "diversity-rate": {"diversity_rate": 0.5},
    "match-source-len": {"match_source_len": True},
    "constraints ordered": {"constraints": "ordered"},
    "constraints unordered": {"constraints": "unordered"},
    "no-repeat-ngram-size": {"no_repeat_ngram_size": 1},
    "min-len": {"min_len": 3},
    "prefix-size": {},
    "allowed prefixes": {},
    "print-alignment": {"print_alignment": "hard"},
}


@pytest.fixture(scope="module")
def models():
    """One of each kind of decoder and encoder; hypotheses end now and then."""
    made = {}
    for arch in ("pascal_transformer", "sdatt", "lgp"):
        made[arch] = build(f"{arch}_tiny")
        made[arch].decoder.output_projection.weight.data[EOS] *= 3
    return made


def translate(model, strategy, rows):
    """Row -> tokens and scores of its hypotheses."""
    args = Namespace(**{"beam": 3, "max_len_a": 0.0, "max_len_b": 7, **STRATEGIES[strategy]})
    given, more = batch(model, rows), {}
    del given["prev_output_tokens"]
    if strategy == "allowed prefixes":
        args.prefix_allowed_tokens_fn = lambda place, words: [EOS, 4 + rows[place], 5 + rows[place], 6]
    elif strategy == "prefix-size":
        more["prefix_tokens"] = torch.tensor([TARGETS[row][1:3] for row in rows])
    elif strategy.startswith("constraints"):
        words = [[torch.tensor(phrase) for phrase in CONSTRAINTS[row]] for row in rows]
        more["constraints"] = pack_constraints(words)
    generator = FairseqTask.build_generator(SimpleNamespace(target_dictionary=WORDS), [model], args)
    with torch.no_grad():
        found = generator.generate([model], {"net_input": given}, **more)
    return {
        row: [(each["tokens"].tolist(), pytest.approx(each["score"].item(), abs=1e-6)) for each in beam]
        for row, beam in zip(rows, found, strict=True)
    }


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_sentence_is_translated_alone_as_in_a_batch(models, strategy):
    for model in models.values():
        alone = {}
        for row in range(5):
            alone |= translate(model, strategy, [row])
        for rows in ORDERS:
            assert translate(model, strategy, rows) == {row: alone[row] for row in rows}
        if strategy.startswith("constraints"):
            for row, phrases in enumerate(CONSTRAINTS):
                assert all(word in alone[row][0][0] for phrase in phrases for word in phrase)
