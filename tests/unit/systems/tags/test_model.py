"""Tag embeddings: one table for all embeddings, the size of tags, labels and parts of speech together."""

import argparse
import math
from types import SimpleNamespace

import pytest
import torch
from fairseq.models import ARCH_CONFIG_REGISTRY, ARCH_MODEL_REGISTRY
from small_models import dictionary

import fairseq_syntax

fairseq_syntax.register()

WIDTH, TAG, WORDS = 256, 4, 60
SIZES = {
    **dict.fromkeys(("encoder_embed_dim", "decoder_embed_dim"), WIDTH),
    **dict.fromkeys(("encoder_ffn_embed_dim", "decoder_ffn_embed_dim"), 8),
    **dict.fromkeys(("encoder_layers", "decoder_layers"), 1),
    **dict.fromkeys(("encoder_attention_heads", "decoder_attention_heads"), 1),
    "dropout": 0.0,
    "tag_embed_dim": TAG,
}
# no token, no tag and no position is padding, which would be 0
TOKENS = torch.tensor([[4, 5, 6, 2], [7, 8, 9, 2]])
TAGS = torch.tensor([[4, 5, 6, 2], [5, 5, 4, 2]])


@pytest.fixture(scope="module")
def task():
    words, tags = (dictionary(f"w{i}" for i in range(size)) for size in (WORDS, 200))
    return SimpleNamespace(
        source_dictionary=words, target_dictionary=words, attach_syntax=None, syntax_dictionary=lambda name: tags
    )


def build(task, **options):
    args = argparse.Namespace(**{**SIZES, **options})
    ARCH_CONFIG_REGISTRY["tag_transformer_tiny"](args)
    torch.manual_seed(5)
    return ARCH_MODEL_REGISTRY["tag_transformer_tiny"].build_model(args, task).eval()


def embedded(model, **tags):
    """What the encoder adds positions to, (B, T, D)."""
    (found,) = model.encoder(TOKENS, torch.tensor([4, 4]), src_syntax=tags)["encoder_embedding"]
    return found


def test_one_table_for_source_target_and_output(task):
    model = build(task, share_all_embeddings=True)
    table = model.decoder.embed_tokens.weight
    assert model.encoder.embed_tokens.tokens.weight is table and model.decoder.output_projection.weight is table
    assert table.shape == (len(task.source_dictionary), WIDTH)
    # the source side takes the first coordinates of a row; tags, unscaled, are the others
    expected = torch.cat(
        [math.sqrt(WIDTH) * table[TOKENS][..., :-TAG], model.encoder.embed_tokens.tags["deprels"].weight[TAGS]], dim=-1
    )
    torch.testing.assert_close(embedded(model, deprels=TAGS), expected)


@pytest.mark.parametrize("shared", [True, False])
def test_size_of_tags_at_the_start(task, shared):
    """As large as in the authors' code; a coordinate of a token is 1."""
    model = build(task, share_all_embeddings=shared)
    every = torch.arange(4, 200).unsqueeze(0)
    found = model.encoder(torch.full_like(every, 7), torch.tensor([196]), src_syntax={"deprels": every})
    assert found["encoder_embedding"][0][..., -TAG:].std().item() == pytest.approx(TAG**-0.5, rel=0.1)
    tokens = math.sqrt(WIDTH) * model.encoder.embed_tokens.tokens.weight[4:, : WIDTH - TAG]
    assert tokens.std().item() == pytest.approx(1, rel=0.05)


def test_labels_and_tags_together(task):
    model = build(task, share_all_embeddings=True, tag_inputs="both")
    tables = model.encoder.embed_tokens
    expected = torch.cat(
        [
            math.sqrt(WIDTH) * tables.tokens.weight[TOKENS][..., : -2 * TAG],
            tables.tags["deprels"].weight[TAGS],
            tables.tags["upos"].weight[TAGS + 1],
        ],
        dim=-1,
    )
    torch.testing.assert_close(embedded(model, deprels=TAGS, upos=TAGS + 1), expected)
