"""Tag embeddings: one table for all embeddings, the size of tags, labels and parts of speech together."""

import math

import pytest
import small_models
import torch

WIDTH, TAG = 1024, 32
# no token, no tag and no position is padding, which would be 0
TOKENS = torch.tensor([[4, 5, 6, 2], [7, 8, 9, 2]])
TAGS = torch.tensor([[4, 5, 6, 2], [5, 5, 4, 2]])


def build(**options):
    sizes = {"encoder_embed_dim": WIDTH, "decoder_embed_dim": WIDTH, "tag_embed_dim": TAG}
    return small_models.build("tag_transformer_tiny", 0, **sizes, **options)


def embedded(model, tokens=TOKENS, **tags):
    """What the encoder adds positions to, (B, T, D)."""
    (found,) = model.encoder(tokens, torch.full((len(tokens),), 4), src_syntax=tags)["encoder_embedding"]
    return found


def test_one_table_for_source_target_and_output():
    model = build(share_all_embeddings=True)
    table = model.decoder.embed_tokens.weight
    assert model.encoder.embed_tokens.tokens.weight is table and model.decoder.output_projection.weight is table
    assert table.shape == (len(small_models.WORDS), WIDTH)
    # the source side takes the first coordinates of a row; tags, unscaled, are the others
    expected = torch.cat(
        [math.sqrt(WIDTH) * table[TOKENS][..., :-TAG], model.encoder.embed_tokens.tags["deprels"].weight[TAGS]], dim=-1
    )
    torch.testing.assert_close(embedded(model, deprels=TAGS), expected)


@pytest.mark.parametrize("shared", [True, False])
def test_size_of_tags_at_the_start(shared):
    """As large as in the authors' code; a coordinate of a token is 1."""
    model = build(share_all_embeddings=shared)
    every = torch.arange(4, 8).unsqueeze(0)
    found = embedded(model, torch.full_like(every, 7), deprels=every)[..., -TAG:]
    assert found.std().item() == pytest.approx(TAG**-0.5, rel=0.1)
    tokens = math.sqrt(WIDTH) * model.encoder.embed_tokens.tokens.weight[4:, : WIDTH - TAG]
    assert tokens.std().item() == pytest.approx(1, rel=0.05)


def test_labels_and_tags_together():
    model = build(share_all_embeddings=True, tag_inputs="both")
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
