"""The baseline of latent-tree RNNGs: the size and the parts of OpenNMT's attentional LSTM."""

import argparse
from types import SimpleNamespace

from fairseq.models import ARCH_CONFIG_REGISTRY, ARCH_MODEL_REGISTRY
from small_models import dictionary


def test_two_layers_of_384_everywhere():
    """Annotations, states, embeddings and the output state, whatever the alphabet; the output layer is its own."""
    args = argparse.Namespace()
    ARCH_CONFIG_REGISTRY["char_lstm"](args)
    source, target = (dictionary(chr(ord("a") + i) for i in range(count)) for count in (93, 76))
    task = SimpleNamespace(source_dictionary=source, target_dictionary=target)
    model = ARCH_MODEL_REGISTRY["char_lstm"].build_model(args, task)
    counted = sum(parameter.numel() for parameter in model.parameters())
    gates = 4 * 384
    encoder = 2 * (4 * 192 * (384 + 192 + 2)) * 2
    decoder = gates * (384 * 3 + 1) + gates * (384 * 2 + 1)
    attention = 384 * 384 + 384 * 768
    assert counted == encoder + decoder + attention + 384 * (97 + 2 * 80) + 80
    assert all(parameter.abs().max() <= 0.1 for parameter in model.parameters())
