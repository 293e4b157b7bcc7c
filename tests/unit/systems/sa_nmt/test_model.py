"""SA-NMT, FA-NMT and the recurrent baseline as whole models, against the paper's equations word by word."""

import pytest
import small_models
import torch
from fairseq.data import Dictionary
from fairseq.data.data_utils import collate_tokens
from oracles import syntax_translation as oracle
from small_models import EOS, PAD, TARGETS, WORDS

from fairseq_syntax.systems.sa_nmt.model import punctuation

# architecture -> the oracle's settings
SYSTEMS = {
    "nmt_lstm": {"context": "none"},
    "fa_nmt": {"context": "separate", "tree": False},
    "fa_nmt_shared": {"context": "shared", "tree": False},
    "sa_nmt": {"context": "separate"},
    "sa_nmt_shared": {"context": "shared"},
    "sa_nmt_hard": {"context": "shared", "hard": True},
    "sa_nmt_1set": {"context": "one-set"},
}
SYNTAX = [arch for arch in SYSTEMS if arch != "nmt_lstm"]
SENTENCES = [[5, 6, 13, 7, EOS], [8, 9, EOS], [14, 13, EOS], [10, EOS], [EOS]]


def batch():
    """Arguments of a model: source tokens, no lengths, previous target words."""
    return collate_tokens(list(map(torch.tensor, SENTENCES)), PAD), None, torch.tensor(TARGETS)


def build(arch, **options):
    return small_models.build(arch, 0, **{"init_range": 0.8, **options})


@pytest.mark.parametrize(
    ("arch", "more"),
    [
        *((arch, {}) for arch in SYSTEMS),
        *((arch, {"decoder_hidden_size": 7, "untied_output": True, "layers": 1}) for arch in SYSTEMS),
        ("sa_nmt", {"sa_scaled_heads": True, "sa_root_scores": "query"}),
    ],
    ids=str,
)
def test_equals_the_paper_word_by_word(arch, more):
    """Also bridged, untied, of one layer; and with the other readings of head selection."""
    layers, others = more.get("layers", 2), "decoder_hidden_size" in more
    sizes = {"encoder_layers": layers, "decoder_layers": layers}
    model = build(arch, **sizes, **{name: value for name, value in more.items() if name != "layers"})
    assert ("bridges.0.weight" in model.decoder.state_dict()) == others
    assert (model.decoder.output_projection.weight is model.decoder.embed_tokens.weight) == (not others)
    found, extra = model(*batch())
    settings = {"layers": layers, "eos": EOS, **SYSTEMS[arch]}
    settings |= {"scaled": True} if "sa_scaled_heads" in more else {}
    parameters = dict(model.named_parameters(remove_duplicate=False))  # tied ones have two names
    expected = []
    for row, (sentence, previous) in enumerate(zip(SENTENCES, TARGETS, strict=True)):
        logits, gates, attention = oracle.translate(parameters, sentence, previous, **settings)
        expected.append(logits)
        torch.testing.assert_close(extra["attn"][0][row, :, : len(sentence)], torch.stack(attention))
        if gates:
            torch.testing.assert_close(extra["gate_norm"][row].double(), torch.stack(gates), atol=1e-6, rtol=0)
    assert ("gate_norm" in extra) == (settings["context"] in ("shared", "separate"))
    assert ("syntax_attn" in extra) == (settings["context"] == "separate")
    expected = torch.stack(expected)
    torch.testing.assert_close(found, expected, atol=1e-10, rtol=1e-10)
    small_models.assert_same_gradients(model, found, expected)


@pytest.mark.parametrize("arch", list(SYSTEMS))
def test_embeddings_and_annotations_are_dropped_only_if_asked_for(arch):
    """As in OpenNMT: with --dropout alone, what heads, values and keys are made of is whole."""
    seen = {}

    def look(model):
        encoder, memory = model.encoder, model.encoder.memory
        reader = memory.keys if arch == "nmt_lstm" else memory.head_selection
        for name, module in (("rnn", encoder.rnn), ("annotations", reader)):
            module.register_forward_pre_hook(lambda _, given, name=name: seen.update({name: given[0]}))
        encoder.rnn.dropout = 0.0  # between layers
        return seen

    for rate in (0.0, 0.5):
        model = build(arch, dropout=0.5, embedding_dropout=rate, annotation_dropout=rate)
        look(model)
        torch.manual_seed(1)
        model.train()(*batch())
        embedded, annotations = seen["rnn"].data, seen["annotations"]
        model.eval()(*batch())
        if rate:
            for found in (embedded == 0, annotations[:1] == 0):
                assert 0.2 < found.double().mean() < 0.8
        else:
            assert torch.equal(embedded, seen["rnn"].data) and torch.equal(annotations, seen["annotations"])
    plain = build(arch, dropout=0.5)
    assert (plain.encoder.annotation_dropout.p, plain.encoder.embedding_dropout.p) == (0, 0)
    assert (plain.decoder.embedding_dropout.p, plain.decoder.dropout.p) == (0, 0.5)


@pytest.mark.parametrize("arch", SYNTAX)
def test_without_the_contribution_of_syntax_it_is_the_baseline(arch):
    baseline, model = build("nmt_lstm"), build(arch)
    shared = {name: value for name, value in baseline.state_dict().items() if name != "decoder.output_state.weight"}
    left = model.load_state_dict(shared, strict=False)
    assert not left.unexpected_keys
    weights, plain = model.decoder.output_state.weight, baseline.decoder.output_state.weight
    with torch.no_grad():
        if arch == "sa_nmt_1set":
            model.encoder.memory.head_selection.value.weight.zero_()
            weights.copy_(plain)
        else:
            weights[:, plain.shape[1] :] = 0
            weights[:, : plain.shape[1]] = plain
    found, expected = (m(*batch())[0] for m in (model, baseline))
    torch.testing.assert_close(found, expected, atol=1e-12, rtol=0)
    with torch.no_grad():  # and it is not, otherwise
        weights.normal_()
        model.encoder.memory.head_selection.value.weight.normal_()
    assert (model(*batch())[0] - expected).abs().max() > 1e-2


def test_checkpoints_from_before_scaling_was_an_option():
    for unscaled, scale in ((False, 8**-0.5), (True, 1)):
        selection = build("sa_nmt", sa_unscaled_heads=unscaled).encoder.memory.head_selection
        assert selection.scale == pytest.approx(scale)


def test_punctuation_of_a_dictionary():
    symbols = {",": True, ".@@": True, "\u2581...": True, "@-@": True, "\u00bb": True, "\u3002": True, "--": True}
    symbols |= {"a.": False, "@@": False, "\u2581": False, "3": False, "\u20ac": False, "a@@": False}
    dictionary = Dictionary()
    for symbol in symbols:
        dictionary.add_symbol(symbol)
    found = punctuation(dictionary).tolist()
    assert dict(zip(dictionary.symbols, found, strict=True)) == {
        **dict.fromkeys(dictionary.symbols[:4], False),
        **symbols,
    }
    assert punctuation(WORDS).nonzero().flatten().tolist() == [13, 14]
