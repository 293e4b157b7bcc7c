"""The baseline of latent-tree RNNGs: the size and the parts of OpenNMT's attentional LSTM."""

import argparse
from types import SimpleNamespace

from fairseq.models import ARCH_CONFIG_REGISTRY, ARCH_MODEL_REGISTRY
from small_models import dictionary


def model_of(**given):
    args = argparse.Namespace(**given)
    ARCH_CONFIG_REGISTRY["char_lstm"](args)
    source, target = (dictionary(chr(ord("a") + i) for i in range(count)) for count in (93, 76))
    task = SimpleNamespace(source_dictionary=source, target_dictionary=target)
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
