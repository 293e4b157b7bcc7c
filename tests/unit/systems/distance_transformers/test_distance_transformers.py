"""Transformers that use tree distances: the stock Transformer when switched off, decoding, options, warm start."""

import argparse
import copy
import math
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from fairseq.data import Dictionary
from fairseq.logging import metrics
from fairseq.models import ARCH_CONFIG_REGISTRY, ARCH_MODEL_REGISTRY
from fairseq.models.transformer import TransformerModel
from fairseq.sequence_generator import SequenceGenerator
from oracles import forests

import fairseq_syntax  # noqa: F401  registers the architectures
from fairseq_syntax.systems.transformer.layer_choice import chosen_layers
from fairseq_syntax.systems.transformer.model import SIZES

PAD, EOS = 1, 2
SMALL = {
    **dict.fromkeys(("encoder_embed_dim", "decoder_embed_dim"), 16),
    **dict.fromkeys(("encoder_ffn_embed_dim", "decoder_ffn_embed_dim"), 24),
    **dict.fromkeys(("encoder_attention_heads", "decoder_attention_heads"), 4),
    **dict.fromkeys(("encoder_layers", "decoder_layers"), 3),
    "dropout": 0.0,
    "max_source_positions": 64,
    "max_target_positions": 64,
}
SDATT, DASA = "sdatt_transformer", "dasa_transformer"
OFF = [
    pytest.param(SDATT, {"sdatt_heads": 0}, id="sdatt no heads"),
    pytest.param(SDATT, {"sdatt_layers": "none"}, id="sdatt no layers"),
    pytest.param(DASA, {"dasa_layers": "none"}, id="dasa no layers"),
]
ON = [
    pytest.param(SDATT, {}, id="sdatt"),
    pytest.param(SDATT, {"sdatt_layers": "0,2", "sdatt_heads": 4, "sdatt_n": 1.0}, id="sdatt some layers"),
    pytest.param(SDATT, {"sdatt_position": "mix", "decoder_normalize_before": True}, id="sdatt mix"),
    pytest.param(DASA, {}, id="dasa"),
    pytest.param(DASA, {"dasa_layers": "1", "encoder_normalize_before": True}, id="dasa one layer"),
]
# what makes the equations those of the stock Transformer, without switching anything off
WITHOUT_EFFECT = [
    pytest.param(SDATT, {"sdatt_n": math.inf}, id="sdatt"),
    pytest.param(DASA, {"dasa_init": 0.0}, id="dasa"),
]
HEADS = [[1, -1, 1, 2, 3], [-1, 0], [2, 2, -1, -1]]
SOURCES = [[4, 5, 6, 7, 8, EOS], [9, 10, EOS], [11, 4, 9, 5, EOS]]
TARGETS = [[5, 6, 7, 8, EOS], [4, 9, EOS], [10, 4, 8, 6, EOS]]


@pytest.fixture(scope="module")
def task():
    """What of a task models are built from."""
    dictionary = Dictionary()
    for i in range(8):
        dictionary.add_symbol(f"w{i}")
    return SimpleNamespace(source_dictionary=dictionary, target_dictionary=dictionary, attach_syntax=None)


def arguments(arch, options):
    args = argparse.Namespace(**{**SMALL, **options})
    ARCH_CONFIG_REGISTRY[arch](args)
    return args


@pytest.fixture
def build(task):
    """Function: architecture, options -> the model; "transformer" is fairseq's own."""

    def get(arch, seed=1, **options):
        torch.manual_seed(seed)
        model = ARCH_MODEL_REGISTRY[arch].build_model(arguments(arch, options), task)
        for name, parameter in model.named_parameters():
            if parameter.dim() > 1 and parameter.requires_grad and "embed" not in name:
                torch.nn.init.normal_(parameter, std=0.4)  # so that attention is not even
        return model.eval()

    return get


def inputs(rows=(0, 1, 2), left_pad=False, parsed=True, columns=0):
    """`net_input` of some sentences."""
    columns = max(columns, *(len(SOURCES[i]) for i in rows))
    tokens = torch.full((len(rows), columns), PAD)
    distances = torch.full((len(rows), columns, columns), 255, dtype=torch.uint8)
    for row, i in enumerate(rows):
        length = len(SOURCES[i])
        part = slice(columns - length, columns) if left_pad else slice(0, length)
        tokens[row, part] = torch.tensor(SOURCES[i])
        paths = forests.distances(HEADS[i]) if parsed else [[0] * length] * length
        distances[row, part, part] = torch.tensor(paths, dtype=torch.uint8)
    longest = max(len(TARGETS[i]) for i in rows)
    previous = torch.full((len(rows), longest), PAD)
    for row, i in enumerate(rows):
        previous[row, : len(TARGETS[i])] = torch.tensor([EOS, *TARGETS[i][:-1]])
    lengths = tokens.ne(PAD).sum(1)
    net_input = {"src_tokens": tokens, "src_lengths": lengths, "prev_output_tokens": previous}
    return {**net_input, "src_syntax": {"distances": distances}}


def plain(net_input):
    return {name: value for name, value in net_input.items() if name != "src_syntax"}


def loss_of(model, net_input):
    """Summed cross entropy, as a criterion finds it."""
    scores = model.get_normalized_probs(model(**net_input), log_probs=True)
    previous = net_input["prev_output_tokens"]
    target = torch.cat((previous[:, 1:], torch.full_like(previous[:, :1], PAD)), dim=1)
    target = target.masked_fill(target.eq(PAD) & previous.ne(PAD), EOS)  # after the last token
    return torch.nn.functional.nll_loss(scores.flatten(0, 1), target.flatten(), ignore_index=PAD, reduction="sum")


def gradients(model, net_input):
    model.zero_grad()
    loss = loss_of(model, net_input)
    loss.backward()
    return loss, {name: parameter.grad for name, parameter in model.named_parameters()}


def taught(model):
    """The model after some updates, so that hypotheses end, and at different steps."""
    optimizer = torch.optim.Adam((p for p in model.parameters() if p.requires_grad), lr=5e-3)
    model.train()
    for _ in range(50):
        gradients(model, inputs())
        optimizer.step()
    return model.eval()


@pytest.mark.parametrize("arch, options", OFF)
@pytest.mark.parametrize("left_pad", [False, True])
def test_switched_off_it_is_the_stock_transformer_to_the_bit(build, arch, options, left_pad):
    """Initialization, loss and every gradient, with dropout; and it asks for no trees."""
    some = {"dropout": 0.2, "attention_dropout": 0.1}
    model, stock = build(arch, **options, **some).train(), build("transformer", **some).train()
    assert model.syntax_inputs == ()
    assert list(model.state_dict()) == list(stock.state_dict())
    assert all(torch.equal(ours, theirs) for ours, theirs in zip(model.parameters(), stock.parameters(), strict=True))
    net_input = inputs(left_pad=left_pad)
    for given in (net_input, plain(net_input)):  # in an ensemble there may be trees
        torch.manual_seed(3)
        loss, found = gradients(model, given)
        torch.manual_seed(3)
        expected_loss, expected = gradients(stock, plain(net_input))
        assert torch.equal(loss, expected_loss)
        assert found.keys() == expected.keys()
        assert all(torch.equal(found[name], expected[name]) for name in expected)


def own_names(model, stock):
    return set(model.state_dict()) - set(stock.state_dict())


@pytest.mark.parametrize("arch, options", WITHOUT_EFFECT)
def test_warm_start_from_a_stock_checkpoint(build, arch, options, caplog):
    """Strictly, as fairseq loads; with no effect of the trees the loss and gradients are those of the checkpoint."""
    model, stock = build(arch, **options).double(), build("transformer", seed=2).double()
    own = own_names(model, stock)
    before = {name: model.state_dict()[name].clone() for name in own}
    model.load_state_dict(copy.deepcopy(stock.state_dict()), strict=True)
    assert own and "start afresh" in caplog.text and min(own) in caplog.text
    assert all(torch.equal(model.state_dict()[name], value) for name, value in before.items())
    loss, found = gradients(model, inputs())
    expected_loss, expected = gradients(stock, plain(inputs()))
    torch.testing.assert_close(loss, expected_loss, atol=1e-5, rtol=1e-6)  # softmax of fairseq's decoder is float32
    for name in expected:
        torch.testing.assert_close(found[name], expected[name], atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("arch", [SDATT, DASA])
def test_a_damaged_checkpoint_is_refused(build, arch):
    model = build(arch)
    state = model.state_dict()
    del state[min(own_names(model, build("transformer")))]
    with pytest.raises(RuntimeError, match="Missing key"):
        model.load_state_dict(state, strict=True)


@pytest.mark.parametrize("arch, options", ON)
def test_trees_matter_and_a_sentence_without_one_is_the_stock_model(build, arch, options):
    model, stock = build(arch, **options).double(), build("transformer", **options).double()
    assert model.syntax_inputs == ("distances",)
    stock.load_state_dict({name: value for name, value in model.state_dict().items() if name in stock.state_dict()})
    expected = stock(**plain(inputs()))[0]
    torch.testing.assert_close(model(**inputs(parsed=False))[0], expected, atol=1e-5, rtol=1e-5)
    assert (model(**inputs())[0] - expected).abs().amax(dim=(1, 2)).min() > 1e-3


@pytest.mark.parametrize("arch, options", ON)
def test_every_parameter_learns(build, arch, options):
    model = build(arch, **options).train()
    for given in (inputs(), inputs(left_pad=True), inputs(rows=(1,))):
        _, found = gradients(model, given)
        for name, gradient in found.items():
            assert gradient is not None and gradient.isfinite().all(), name
    _, found = gradients(model, inputs())
    own = own_names(model, build("transformer", **options))
    assert own and all(found[name].abs().max() > 1e-7 for name in own)


@pytest.mark.parametrize("arch, options", ON)
def test_batch_is_its_sentences_on_either_side_of_padding(build, arch, options):
    model = build(arch, **options).double()
    right, left, wide = (model(**inputs(**kind))[0] for kind in ({}, {"left_pad": True}, {"columns": 11}))
    for i, target in enumerate(TARGETS):
        alone = model(**inputs(rows=(i,)))[0][0]
        for batch in (right, left, wide):
            torch.testing.assert_close(batch[i, : len(target)], alone, atol=1e-6, rtol=1e-6)


@pytest.mark.parametrize("arch, options", ON)
def test_beam_search_scores_are_those_of_teacher_forcing(build, task, arch, options):
    """With sentences that end at different steps, in a batch, and in an ensemble with a model that is switched off."""
    models = [taught(build(arch, **options).double()), taught(build(SDATT, sdatt_heads=0, seed=5).double())]
    net_input = inputs()
    del net_input["prev_output_tokens"]
    for ensemble in (models[:1], models):
        generator = SequenceGenerator(ensemble, task.target_dictionary, beam_size=3, max_len_a=0, max_len_b=9)
        with torch.no_grad():
            for model in ensemble:
                model.decoder.set_beam_size(3)  # fairseq's attention then keeps keys once a sentence
            hypotheses = generator.generate(ensemble, {"net_input": net_input})
            for model in ensemble:
                model.decoder.set_beam_size(1)
            for i, best in enumerate(hypotheses):
                for hypothesis in best:
                    tokens = hypothesis["tokens"]
                    given = inputs(rows=(i,))
                    given["prev_output_tokens"] = torch.cat((torch.tensor([EOS]), tokens[:-1])).unsqueeze(0)
                    scores = [model.get_normalized_probs(model(**given), log_probs=False) for model in ensemble]
                    mean = torch.stack(scores).double().mean(0).log()[0]
                    expected = mean.gather(1, tokens.unsqueeze(1)).squeeze(1)
                    torch.testing.assert_close(hypothesis["positional_scores"].double(), expected, atol=1e-5, rtol=1e-5)
        assert len({len(best[0]["tokens"]) for best in hypotheses}) > 1


@pytest.mark.parametrize("arch, options", ON)
def test_alignment(build, arch, options):
    """Mean attention of the last layer, or of the first heads of a layer; 0 at padding, where fairseq asks for it."""
    model = build(arch, **options)
    net_input = inputs()
    for where in ({}, {"alignment_layer": 0}, {"alignment_layer": 1, "alignment_heads": 1}):
        (attention,) = model(**net_input, **where)[1]["attn"]
        assert attention.shape == (3, 5, 6)
        torch.testing.assert_close(attention.sum(-1), torch.ones(3, 5))
        assert not attention[1, :, 3:].any()
    model.make_generation_fast_(need_attn=False)
    torch.testing.assert_close(model(**net_input)[1]["attn"][0], model(**net_input, alignment_layer=2)[1]["attn"][0])


@pytest.mark.parametrize("arch, options", ON)
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision(build, arch, options, dtype):
    model = build(arch, **options)
    expected = model(**inputs())[0]
    half = copy.deepcopy(model).to(dtype)
    found = half(**inputs())[0]
    assert found.dtype == dtype
    # a rounded position may choose another word now and then
    assert (found.float() - expected).abs().median() < 0.1
    loss, grads = gradients(half.train(), inputs())
    assert loss.isfinite() and all(gradient.isfinite().all() for gradient in grads.values())


@pytest.mark.parametrize("arch, options", ON)
def test_recomputed_activations_change_nothing(build, arch, options):
    expected_loss, expected = gradients(build(arch, **options).double().train(), inputs())
    loss, found = gradients(build(arch, checkpoint_activations=True, **options).double().train(), inputs())
    torch.testing.assert_close(loss, expected_loss)
    for name in expected:
        torch.testing.assert_close(found[name], expected[name], atol=1e-6, rtol=1e-6)


@pytest.mark.parametrize("arch", [SDATT, DASA])
def test_layers_may_be_dropped(build, arch):
    model = build(arch, encoder_layerdrop=0.5, decoder_layerdrop=0.5).train()
    for _ in range(5):
        assert model(**inputs())[0].isfinite().all()


def test_encoder_output_is_reordered_with_its_trees(build):
    encoder = build(SDATT).encoder
    given = inputs()
    del given["prev_output_tokens"]
    out = encoder(**given)
    order = torch.tensor([2, 0, 0, 1])
    reordered = encoder.reorder_encoder_out(out, order)
    assert torch.equal(reordered["tree_penalty"][0], out["tree_penalty"][0][order])
    assert torch.equal(reordered["encoder_out"][0], out["encoder_out"][0][:, order])


def test_what_a_sentence_without_a_parse_gets(build):
    net_input = inputs()
    net_input["src_syntax"]["distances"][1, :3, :3] = 0
    linear = inputs()
    linear["src_syntax"]["distances"][1, :3, :3] = torch.tensor([[0, 1, 2], [1, 0, 1], [2, 1, 0]])
    model, expected = build(SDATT, sdatt_missing="linear", sdatt_n=1.0), build(SDATT, sdatt_n=1.0)(**linear)[0]
    assert torch.equal(model(**net_input)[0], expected)
    with pytest.raises(ValueError, match="1 of 3 sentences of a batch have no parse"):
        build(SDATT, sdatt_missing="error")(**net_input)


@pytest.mark.parametrize("arch", [SDATT, DASA])
def test_without_trees_there_is_a_message(build, arch):
    with pytest.raises(ValueError, match=r"needs the tree distances of the source tokens .* --task syntax_translation"):
        build(arch)(**plain(inputs()))


@pytest.mark.parametrize("arch", [SDATT, DASA])
@pytest.mark.parametrize("size", SIZES)
def test_presets(arch, size, task):
    """Those of fairseq, in all its sizes; half of the heads are directed."""
    args, stock = argparse.Namespace(), argparse.Namespace()
    ARCH_CONFIG_REGISTRY[f"{arch}{size}"](args)
    ARCH_CONFIG_REGISTRY[f"transformer{size}"](stock)
    assert vars(args) == vars(stock)
    if size in ("_tiny", "_iwslt_de_en"):
        model = ARCH_MODEL_REGISTRY[arch].build_model(args, task)
        if arch == SDATT:
            for layer in model.decoder.layers:
                assert layer.encoder_attn.syntax_heads == args.decoder_attention_heads // 2
        else:
            assert all(layer.self_attn.distance_weight.tolist().count(1.0) for layer in model.encoder.layers)


def test_chosen_layers_have_the_parameters(build):
    stock = build("transformer")
    names = own_names(build(SDATT, sdatt_layers="2,0"), stock)
    assert names == {
        f"decoder.layers.{i}.encoder_attn.position.{part}.weight" for i in (0, 2) for part in ("hidden", "output")
    }
    model = build(DASA, dasa_layers="1", dasa_init=0.5)
    assert own_names(model, stock) == {"encoder.layers.1.self_attn.distance_weight"}
    assert model.encoder.layers[1].self_attn.distance_weight.tolist() == [0.5] * 4
    assert not any("distance" in name for name, _ in build(SDATT).named_buffers())
    one_head = build(SDATT, encoder_attention_heads=1, decoder_attention_heads=1)
    assert one_head.decoder.layers[0].encoder_attn.syntax_heads == 1


@pytest.mark.parametrize(
    "arch, options, message",
    [
        (SDATT, {"sdatt_heads": 5}, r"--sdatt-heads 5: give 0 to 4 \(--decoder-attention-heads\)"),
        (SDATT, {"sdatt_heads": -1}, "--sdatt-heads -1: give 0 to 4"),
        (SDATT, {"sdatt_layers": "0,3"}, "--sdatt-layers 0,3: give all, none, or numbers from 0 to 2"),
        (SDATT, {"sdatt_n": 0.0}, "--sdatt-n 0.0: must be greater than 0"),
        (SDATT, {"sdatt_n": math.nan}, "--sdatt-n nan: must be greater than 0"),
        (SDATT, {"sdatt_sigma": -2.0}, "--sdatt-sigma -2.0: must be greater than 0"),
        (SDATT, {"sdatt_position": "soft"}, "--sdatt-position soft: choose from ste, hard, mix"),
        (SDATT, {"sdatt_missing": "none"}, "--sdatt-missing none: choose from global, linear, error"),
        (SDATT, {"no_cross_attention": True}, "--no-cross-attention leaves no attention to the source"),
        (SDATT, {"cross_self_attention": True}, "--cross-self-attention leaves no attention to the source"),
        (DASA, {"dasa_layers": "some"}, "--dasa-layers some: give all, none, or numbers from 0 to 2"),
        (DASA, {"dasa_layers": "-1"}, "--dasa-layers -1: give"),
        (DASA, {"dasa_sigma": 0.0}, "--dasa-sigma 0.0: must be greater than 0"),
        (DASA, {"dasa_sigma": math.nan}, "--dasa-sigma nan: must be greater than 0"),
        (DASA, {"dasa_init": math.inf}, "--dasa-init inf: must be finite"),
    ],
)
def test_wrong_options_are_named(task, arch, options, message):
    with pytest.raises(ValueError, match=message):
        ARCH_MODEL_REGISTRY[arch].build_model(arguments(arch, options), task)


def test_stock_options_stay_where_nothing_is_directed(build):
    assert isinstance(build(SDATT, sdatt_heads=0, no_cross_attention=True), TransformerModel)


@pytest.mark.parametrize(
    "text, expected", [("all", (0, 1, 2)), ("none", ()), ("2,0", (0, 2)), (1, (1,)), ([0, 2], (0, 2)), ("0, 1", (0, 1))]
)
def test_choice_of_layers(text, expected):
    assert chosen_layers(text, 3, "--x") == expected


@pytest.mark.parametrize("text", ["", "3", "0,,1", "-1", "1.5", "ALL"])
def test_wrong_choice_of_layers(text):
    with pytest.raises(ValueError, match=r"^--x"):
        chosen_layers(text, 3, "--x")


@pytest.mark.parametrize("left_pad", [False, True])
def test_spread_of_positions_is_logged_in_validation(build, left_pad):
    model = build(SDATT)
    given = inputs(left_pad=left_pad)
    found = [[] for _ in range(3)]
    for layer, seen in zip(model.decoder.layers, found, strict=True):
        layer.encoder_attn.position.register_forward_hook(lambda _, arguments, output, seen=seen: seen.append(output))
    with metrics.aggregate(new_root=True) as log:
        model(**given)
    (values,) = zip(*found, strict=True)
    lengths, real = given["src_lengths"], given["prev_output_tokens"].ne(PAD)
    spreads, shares, times = [], [], []
    steps = real.sum(dim=1, keepdim=True)
    time = ((torch.arange(real.shape[1]) + 0.5) / steps)[real]
    for layer in values:
        for head in range(layer.shape[1]):
            shares.append((layer[:, head] / lengths[:, None])[real])
            times.append(time)
            spreads.append(float(shares[-1].std(correction=0)))
    assert len(spreads) == 6 and min(spreads) > 0.01
    clock = np.corrcoef(torch.cat(shares).detach().numpy(), torch.cat(times).numpy())[0, 1]
    assert log.get_smoothed_values() == {
        "position_spread": round(sum(spreads) / 6, 3),
        "position_clock": pytest.approx(clock, abs=6e-4),
    }
    with metrics.aggregate(new_root=True) as log:
        model.train()(**given)
        build(SDATT, sdatt_heads=0)(**plain(given))
    assert not log.get_smoothed_values()
