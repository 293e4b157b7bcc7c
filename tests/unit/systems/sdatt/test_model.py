"""SDAtt and its peers as whole models, against the paper's equations word by word."""

import math

import pytest
import small_models
import torch
from oracles import directed_translation as oracle
from small_models import EOS, PAD, TARGETS

from fairseq_syntax.systems.recurrent.dropout import VariationalDropout
from fairseq_syntax.systems.sdatt.model import SYSTEMS

SENTENCES = [[5, 6, 12, 7, 9, 11, EOS], [8, 9, 4, EOS], [10, 5, 6, EOS], [10, EOS], [EOS]]
# a tree, a forest, no parse, one word, none
HEADS = [[1, 2, 3, -1, 3, 4], [-1, 0, -1], [-2, -2, -2], [-1], []]
# options of the model -> of the oracle
READINGS = {
    "global": {},
    "local": {"sdatt_local_window": "window", "sdatt_local_softmax": "softmax"},
    "flexible": {"sdatt_flex_sigma": "sigma"},
    "sdatt": {"sdatt_n": "window", "sdatt_sigma": "sigma", "sdatt_position": "gradient"},
}


def batch(left_pad=False, rows=range(5)):
    """Arguments of a model: source tokens, their lengths, previous target words, trees."""
    whole = [(heads, range(len(ids)), ids) for heads, ids in zip(HEADS, SENTENCES, strict=True)]
    names = ("distances", "parent_pieces", "word_starts")
    return small_models.batch(None, rows, left_pad, sentences=whole, names=names)


def build(arch, **options):
    return small_models.build(arch, 0, **{"init_range": 0.8, **options})


def settings_of(arch, **options):
    """The oracle's settings of an architecture and options of the model; windows are narrow for these sentences."""
    given = {**small_models.SIZES, **SYSTEMS[arch], **options}
    names = {f"sdatt_{name}": name for name in ("attention", "double_context", "sdr")} | {"encoder_layers": "layers"}
    names |= READINGS[given["sdatt_attention"]]
    return {name: given[option] for option, name in names.items() if option in given}


def assert_equals_the_paper(model, **settings):
    """Logits and what attention found in eval mode, on either side of padding; logits and gradients in training."""
    parameters = dict(model.named_parameters(remove_duplicate=False))
    rows = list(zip(SENTENCES, HEADS, TARGETS, strict=True))
    expected, steps = zip(*(oracle.translate(parameters, *row, **settings) for row in rows), strict=True)
    expected = torch.stack(expected)
    for left_pad in (False, True):
        found, extra = model.eval()(**batch(left_pad))
        torch.testing.assert_close(found, expected, atol=1e-10, rtol=1e-10)
        extra["attn"] = extra["attn"][0]
        assert extra.keys() == steps[0][0].keys()
        for name, values in extra.items():
            for row, ids in enumerate(SENTENCES):
                wanted = torch.stack([step[name] for step in steps[row]])
                if values.dim() == 3:  # nothing for padding
                    padding = 7 - len(ids)
                    wanted = torch.nn.functional.pad(wanted, (padding, 0) if left_pad else (0, padding))
                torch.testing.assert_close(values[row], wanted, atol=1e-10, rtol=1e-10, msg=name)
    found, _ = model.train()(**batch())
    torch.testing.assert_close(found, expected, atol=1e-10, rtol=1e-10)
    small_models.assert_same_gradients(model, found, expected)
    return extra


OTHER = {"decoder_hidden_size": 7, "untied_output": True, "output_bias": True}


ALL_READINGS = [
    *((arch, {}) for arch in SYSTEMS),
    ("sdatt", {"sdatt_position": "hard"}),
    ("sdatt", {"sdatt_sdr": 1}),
    ("sdatt", {"encoder_layers": 2}),
    *(
        ("global_plus_local", {"sdatt_local_window": window, "sdatt_local_softmax": softmax})
        for window in (0.4, 1, 3, 10, math.inf)
        for softmax in ("window", "sentence")
    ),
    *(
        ("sdatt", {"sdatt_n": window, "sdatt_sigma": sigma})
        for window, sigma in ((4, None), (1, math.inf), (math.inf, 3.0), (math.inf, None), (0.5, None))
    ),
    ("sdatt", OTHER),
    ("global_plus_chen17", OTHER),
]


@pytest.mark.parametrize(("arch", "more"), ALL_READINGS, ids=str)
def test_equals_the_paper_word_by_word(arch, more):
    """In all readings; also with other sizes, and an output layer of its own."""
    model = build(arch, **more)
    tied = model.decoder.output_projection.weight is model.decoder.embed_tokens.weight
    assert tied == (more != OTHER) and (model.decoder.output_projection.bias is None) == (more != OTHER)
    extra = assert_equals_the_paper(model, **settings_of(arch, **more))
    if "position" in extra:  # not the same everywhere
        assert extra["position"].std() > 0.1
    if "sdatt_sdr" in more:
        assert model.syntax_inputs == ("distances", "parent_pieces", "word_starts")


def test_embeddings_and_annotations_are_dropped_as_in_nematus():
    for given, expected in (
        ({}, (0.4, 0.4)),
        ({"annotation_dropout": 0.0}, (0.4, 0)),
        ({"embedding_dropout": 0.1}, (0.1, 0.4)),
    ):
        model = build("sdatt", dropout=0.4, **given)
        assert (model.encoder.embedding_dropout.p, model.encoder.annotation_dropout.p) == expected
        assert (model.decoder.embedding_dropout.p, model.decoder.dropout.p) == (expected[0], 0.4)


def test_variational_dropout_drops_the_same_everywhere():
    model = build("global_plus_sdatt", dropout=0.5, variational_dropout=True).train()
    dropped = []
    for module in model.modules():
        if isinstance(module, VariationalDropout):
            module.register_forward_hook(lambda _, given, result: dropped.append((given[0], result)))
    model(**batch())
    wide = [(given, result) for given, result in dropped if given.dim() == 3 and given.shape[1] > 1]
    assert len(wide) == 5  # of the encoder's input and output, of the words before, around the deep output
    for given, result in wide:
        gone = (result == 0) & (given != 0)
        there = given != 0
        assert torch.equal(gone, gone.any(dim=1, keepdim=True) & there) and 0 < gone.sum() < there.sum()
        torch.testing.assert_close(result[~gone & there], 2 * given[~gone & there])
    assert not torch.equal(model.eval()(**batch())[0], model.train()(**batch())[0])


@pytest.mark.parametrize("arch", SYSTEMS)
def test_dropout_of_states_is_that_of_nematus(arch):
    """One mask for gates, another for candidates, a third for the attention; each the same at all steps."""
    model = build(arch, recurrent_dropout=0.4).train()
    drawn = []
    for side in (model.encoder, model.decoder):
        draw = side.recurrent_dropout.masks
        side.recurrent_dropout.masks = lambda count, states, draw=draw: drawn.append(draw(count, states)) or drawn[-1]
    found, _ = model(**batch(left_pad="plus" in arch))
    two = SYSTEMS[arch].get("sdatt_sdr") == 2
    *of_encoder, of_decoder = drawn
    assert [len(masks) for masks in drawn] == [2] * (4 if two else 2) + [10 if two else 5]
    values = torch.cat([mask.flatten() for masks in drawn for mask in masks])
    assert set(values.tolist()) == {0.0, 1 / 0.6} and len({tuple(mask.flatten().tolist()) for mask in of_decoder}) > 4
    parameters = dict(model.named_parameters(remove_duplicate=False))
    for row, given in enumerate(zip(SENTENCES, HEADS, TARGETS, strict=True)):
        pairs = [masks[row] for direction in of_encoder for masks in direction]
        steps = [masks[row] for masks in of_decoder]
        masks = [pairs[i : i + 4] for i in range(0, len(pairs), 4)], [steps[i : i + 5] for i in range(0, len(steps), 5)]
        expected, _ = oracle.translate(parameters, *given, masks=masks, **settings_of(arch))
        torch.testing.assert_close(found[row], expected, atol=1e-10, rtol=1e-10)
    plain = build(arch)  # in training only
    assert torch.equal(model.eval()(**batch())[0], plain(**batch())[0])


# --- sizes, first values, options -------------------------------------------------------------------------------------


def test_first_values_are_those_of_nematus():
    sizes = {"encoder_embed_dim": 10, "encoder_hidden_size": 20, "decoder_embed_dim": 30, "decoder_hidden_size": 30}
    model = build("global_plus_sdatt", **{**sizes, "init_range": None})
    kinds = {"square": 0, "gates": 0, "other": 0, "bias": 0}
    for name, parameter in model.named_parameters():
        parameter = parameter.detach()
        if parameter.dim() == 1:
            kinds["bias"] += 1
            assert not parameter.any(), name
            continue
        of_gates = any(part in name for part in ("_ih", "_hh", ".recurrent.", ".ahead.", ".input."))
        blocks = parameter.chunk(3) if of_gates else [parameter]
        for block in blocks:
            if block.shape[0] == block.shape[1]:
                kinds["gates" if of_gates else "square"] += 1
                torch.testing.assert_close(
                    block @ block.T, torch.eye(len(block), dtype=torch.double), atol=1e-5, rtol=0, msg=name
                )
            else:
                kinds["other"] += 1
                assert block.std() == pytest.approx(0.01, rel=0.35) and abs(block.mean()) < 0.005, name
    # two states of the encoder, two of the decoder, whose first input is square, too
    assert kinds["gates"] == 5 * 3 and kinds["square"] >= 2 and min(kinds.values()) > 0
    # the first positions are in the middle
    _, extra = model(**batch())
    lengths = torch.tensor([len(sentence) for sentence in SENTENCES]).double()
    torch.testing.assert_close(extra["position"], (lengths / 2)[:, None].expand(-1, 5), atol=0.1, rtol=0)
    assert not model.encoder.embed_tokens.weight[PAD].any() and model.decoder.embed_tokens.weight[EOS].any()
    convolution = build("chen17", init_range=None).encoder.units.convolutions[0].weight
    assert convolution.detach().std() > 0.1


@pytest.mark.parametrize(
    "arch, options, message",
    [
        ("sdatt", {"decoder_layers": 2}, "--decoder-layers 2: a conditional GRU has one layer"),
        ("sdatt", {"variational_dropout": True, "encoder_layers": 2}, "--encoder-layers 2: .* need one"),
        ("sdatt", {"recurrent_dropout": 0.2, "encoder_layers": 2}, "--encoder-layers 2: .* need one"),
        ("sdatt", {"sdatt_sdr": 2}, "--sdatt-sdr 2: needs --sdatt-attention global"),
    ],
)
def test_options_that_cannot_be(arch, options, message):
    with pytest.raises(ValueError, match=message):
        build(arch, **options)
