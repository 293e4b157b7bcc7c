"""The recurrent base: fairseq's own LSTM model where both can do the same, its options, its embeddings."""

import argparse

import pytest
import small_models
import torch
from fairseq.models.lstm import LSTMModel, base_architecture
from fairseq.modules import FairseqDropout
from small_models import EOS, PAD, TASK

SOURCE = torch.tensor([[5, 6, 7, 8, EOS], [9, 4, 5, EOS, PAD], [6, EOS, PAD, PAD, PAD]])
PREVIOUS = torch.tensor([[EOS, 5, 6, 7], [EOS, 4, 9, 9], [EOS, 10, 4, 8]])


def build(arch, **options):
    return small_models.build(arch, 0, **{"init_range": 0.8, **options})


def fairseq_lstm(model, layers):
    """fairseq's model with the weights of ours."""
    hidden = model.decoder.cells[0].hidden_size
    args = argparse.Namespace(
        dropout=0.0,
        encoder_embed_dim=model.encoder.embed_tokens.embedding_dim,
        encoder_hidden_size=model.encoder.rnn.hidden_size,
        encoder_layers=layers,
        encoder_bidirectional=True,
        decoder_embed_dim=hidden,
        decoder_hidden_size=hidden,
        decoder_layers=layers,
        decoder_out_embed_dim=hidden,
        share_decoder_input_output_embed=True,
        left_pad_source=False,
        criterion="cross_entropy",
    )
    base_architecture(args)
    twin = LSTMModel.build_model(args, TASK).double().eval()

    def order(rows):  # gates i, f, o, g -> i, f, g, o
        take, keep, show, new = rows.chunk(4)
        return torch.cat((take, keep, new, show))

    with torch.no_grad():
        twin.encoder.embed_tokens.weight.copy_(model.encoder.embed_tokens.weight)
        twin.encoder.lstm.load_state_dict(model.encoder.rnn.state_dict())
        twin.decoder.embed_tokens.weight.copy_(model.decoder.embed_tokens.weight)
        for layer, (theirs, cell) in enumerate(zip(twin.decoder.layers, model.decoder.cells, strict=True)):
            own = cell.recurrent.weight
            # theirs reads the embedding, then what is fed
            inputs = torch.cat((cell.ahead.weight, own[:, :-hidden]), dim=1) if layer == 0 else own[:, :-hidden]
            theirs.weight_ih.copy_(order(inputs))
            theirs.weight_hh.copy_(order(own[:, -hidden:]))
            theirs.bias_ih.copy_(order(cell.recurrent.bias))
            theirs.bias_hh.zero_()
        # theirs projects the query, ours the keys; theirs reads the context first, ours the state
        twin.decoder.attention.input_proj.weight.copy_(model.encoder.memory.keys.weight.T)
        both = model.decoder.output_state.weight
        twin.decoder.attention.output_proj.weight.copy_(torch.cat((both[:, hidden:], both[:, :hidden]), dim=1))
        if model.decoder.bridges is not None:
            for name, bridge in zip(("hidden", "cell"), model.decoder.bridges, strict=True):
                getattr(twin.decoder, f"encoder_{name}_proj").load_state_dict(bridge.state_dict())
    return twin


@pytest.mark.parametrize("dropped", [False, True])
@pytest.mark.parametrize(("layers", "hidden"), [(1, 8), (3, 6)], ids=["same size", "bridged"])
def test_equals_the_lstm_of_fairseq_with_dropout_at_the_same_places(layers, hidden, dropped):
    """Each dropout takes away half of everything it gets, so that both models take away the same."""
    sizes = {"decoder_embed_dim": hidden, "decoder_hidden_size": hidden}
    model = build("nmt_lstm", encoder_layers=layers, decoder_layers=layers, **sizes)
    twin, given = fairseq_lstm(model, layers), (SOURCE, SOURCE.ne(PAD).sum(1), PREVIOUS)
    plain, _ = model(*given)
    for each in (model, twin) if dropped else ():
        for module in each.modules():
            if isinstance(module, FairseqDropout):
                module.register_forward_hook(lambda module, given, result: result / 2)
    (found, extra), (expected, attention) = model(*given), twin(*given)
    # fairseq's attention is in float32
    torch.testing.assert_close(found, expected, atol=1e-7, rtol=0)
    torch.testing.assert_close(extra["attn"][0], attention, atol=1e-7, rtol=0)
    assert not dropped or (found - plain).abs().max() > 0.1


def test_shared_embeddings_are_one_table():
    model = build("sa_nmt_shared", share_all_embeddings=True)
    table = model.encoder.embed_tokens.weight
    assert table is model.decoder.embed_tokens.weight is model.decoder.output_projection.weight
    loose = build("sa_nmt_shared", share_all_embeddings=True, untied_output=True)
    assert loose.encoder.embed_tokens.weight is loose.decoder.embed_tokens.weight
    assert loose.decoder.output_projection.weight is not loose.decoder.embed_tokens.weight
    assert len(list(loose.parameters())) == len(list(model.parameters())) + 1
    # a model of its own for each language: --untied-output alone does not untie the source
    apart = build("sa_nmt_shared")
    assert apart.encoder.embed_tokens.weight is not apart.decoder.embed_tokens.weight
    assert apart.decoder.output_projection.weight is apart.decoder.embed_tokens.weight


def test_parameters_start_in_their_range():
    sizes = {"encoder_embed_dim": 40, "encoder_hidden_size": 20, "decoder_embed_dim": 40, "decoder_hidden_size": 50}
    model = small_models.build("sa_nmt", 0, **sizes)
    for name, parameter in model.named_parameters():
        if name.endswith("embed_tokens.weight"):
            assert not parameter[PAD].any()
            parameter = parameter[PAD + 1 :]
        assert parameter.abs().max() <= 0.04, name
        if parameter.numel() >= 40:
            assert parameter.max() > 0.03 and parameter.min() < -0.03, name


def test_attention_is_collected_only_where_it_is_shown():
    model = build("sa_nmt")
    assert model(SOURCE, None, PREVIOUS)[1].keys() == {"attn", "syntax_attn", "gate_norm"}
    model.make_generation_fast_(need_attn=False)
    assert model(SOURCE, None, PREVIOUS)[1] == {"attn": [None]}
    model = build("sa_nmt")
    assert model.train()(SOURCE, None, PREVIOUS)[1] == {"attn": [None]}
    model.eval().make_generation_fast_(need_attn=True)
    assert model(SOURCE, None, PREVIOUS)[1]["attn"][0].shape == (3, 4, 5)
