"""The baseline of latent-tree RNNGs: the size and the parts of OpenNMT's attentional LSTM."""

import argparse
from types import SimpleNamespace

import torch
from fairseq import options
from fairseq.data import Dictionary
from fairseq.models import ARCH_CONFIG_REGISTRY, ARCH_MODEL_REGISTRY


def characters(count: int) -> Dictionary:
    dictionary = Dictionary()
    for i in range(count):
        dictionary.add_symbol(chr(ord("a") + i))
    return dictionary


def model_of(**given):
    args = argparse.Namespace(**given)
    ARCH_CONFIG_REGISTRY["char_lstm"](args)
    task = SimpleNamespace(source_dictionary=characters(93), target_dictionary=characters(76))
    return args, ARCH_MODEL_REGISTRY["char_lstm"].build_model(args, task)


def test_two_layers_of_384_everywhere():
    _, model = model_of()
    assert model.encoder.rnn.num_layers == len(model.decoder.cells) == 2
    # annotations, states, embeddings, output state
    assert 2 * model.encoder.rnn.hidden_size == 384 and model.encoder.rnn.bidirectional
    assert model.decoder.bridges is None
    assert [cell.hidden_size for cell in model.decoder.cells] == [384, 384]
    for side in (model.encoder, model.decoder):
        assert side.embed_tokens.embedding_dim == 384
    assert model.decoder.output_state.out_features == 384
    assert model.decoder.output_projection.weight is not model.decoder.embed_tokens.weight
    assert model.decoder.output_projection.bias is not None
    # that of two layers over states of 384, whatever the alphabet
    counted = sum(parameter.numel() for parameter in model.parameters())
    gates = 4 * 384
    encoder = 2 * (4 * 192 * (384 + 192 + 2)) * 2
    decoder = gates * (384 * 3 + 1) + gates * (384 * 2 + 1)
    attention = 384 * 384 + 384 * 768
    assert counted == encoder + decoder + attention + 384 * (97 + 2 * 80) + 80
    assert all(parameter.abs().max() <= 0.1 for parameter in model.parameters())


def test_learns_to_copy():
    """It runs on left and on right padding, and gets better."""
    torch.manual_seed(1)
    _, model = model_of(encoder_embed_dim=16, encoder_hidden_size=8, decoder_embed_dim=16, decoder_hidden_size=16)
    tokens = torch.randint(4, 20, (8, 5))
    tokens[:, -1] = 2
    previous = torch.cat((tokens[:, -1:], tokens[:, :-1]), dim=1)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
    losses = []
    for _ in range(120):
        scores, _ = model(tokens, None, previous)
        loss = torch.nn.functional.cross_entropy(scores.flatten(0, 1), tokens.flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(float(loss))
    assert losses[-1] < 0.5 * losses[0]


def test_preset_gives_way_to_options():
    parser = options.get_training_parser()
    args = options.parse_args_and_arch(parser, ["data", "--arch", "char_lstm", "--decoder-hidden-size", "64"])
    assert (args.decoder_hidden_size, args.encoder_hidden_size, args.dropout) == (64, 192, 0.1)
    assert args.untied_output and args.output_bias
