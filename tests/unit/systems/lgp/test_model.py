"""LGP-NMT and its rivals: against loops over words, given heads, first values, trained parsers."""

import argparse
import copy

import pytest
import small_models
import torch
from fairseq.data import Dictionary
from oracles.graph_translation import translate
from small_models import EOS, PAD, TARGETS

from fairseq_syntax.systems.lgp.model import adapt_options, take_over
from fairseq_syntax.systems.parser.model import LatentGraphParserModel

GRAPHS = ("latent", "seq", "dep", "uni")
# heads and tokens
SENTENCES = [([1, -1, 1, 2], [5, 6, 7, 8, EOS]), ([2, 2, -1], [9, 4, 10, EOS]), ([-1], [6, EOS]), ([], [EOS])]


def build(graph="latent", scale=0.8, **options):
    """The model in double precision and eval mode, with parameters far from zero."""
    model = small_models.build("lgp_nmt", 0, lgp_graph=graph, **{"lgp_size": 5, **options})
    if scale:
        for parameter in model.parameters():
            torch.nn.init.uniform_(parameter, -scale, scale)
        for table in (model.encoder.words.words, model.encoder.words.ngrams, model.encoder.embed_tokens):
            torch.nn.init.zeros_(table.weight[table.padding_idx])
    return model


def batch(names=(), left_pad=False, sentences=SENTENCES):
    whole = [(heads, range(len(ids)), ids) for heads, ids in sentences]
    return small_models.batch(None, range(4), left_pad, sentences=whole, names=names)


def run(model, given):
    """(log probabilities (B, S, V), attention (B, S, T))."""
    logits, extra = model(**given)
    return torch.log_softmax(logits, -1), extra["attn"][0]


def with_root(heads):
    """The root is behind the words."""
    return [len(heads) if head < 0 else head for head in heads]


@pytest.mark.parametrize("graph", GRAPHS)
def test_equals_loops_over_words(graph):
    model, given = build(graph), batch(("parent_pieces", "deprels"))
    labels = given["src_syntax"]["deprels"] if graph == "dep" else given.pop("src_syntax")["deprels"]
    found, attention = run(model, given)
    for b, (heads, ids) in enumerate(SENTENCES):
        tree = {"heads": with_root(heads), "labels": labels[b, : len(heads)].tolist()}
        number = model.encoder.parser.num_labels
        logs, weights = translate(model, ids, TARGETS[b], graph=graph, **tree, num_labels=number)
        torch.testing.assert_close(found[b], torch.stack(logs), atol=1e-10, rtol=0)
        torch.testing.assert_close(attention[b, :, : len(ids)], torch.stack(weights), atol=1e-10, rtol=0)
        assert not attention[b, :, len(ids) :].any()


def test_a_latent_graph_can_be_clamped_on_either_padding_side():
    """Heads as they are given; sentences without a parse are left to themselves."""
    model, unparsed = build("latent"), [*SENTENCES[:2], ([-2], SENTENCES[2][1]), SENTENCES[3]]
    free, _ = run(model, batch())
    sides = [batch(("piece_heads",), left_pad, unparsed) for left_pad in (False, True)]
    (clamped, _), (left, _) = (run(model, given) for given in sides)
    torch.testing.assert_close(left, clamped, atol=1e-12, rtol=0)
    torch.testing.assert_close(clamped[2:], free[2:], atol=1e-12, rtol=0)
    source = model.encoder.source(sides[0]["src_tokens"], sides[0]["src_syntax"])
    graph, _, _ = model.encoder.parse(source)
    for b, (heads, _) in enumerate(SENTENCES[:2]):
        assert graph.heads[b, : len(heads)].argmax(1).tolist() == with_root(heads)
        assert graph.heads[b, : len(heads)].sum().item() == graph.heads[b].count_nonzero().item() == len(heads)
        assert (graph.heads[b].max(1).values <= 1).all() and (clamped[b] - free[b]).abs().max() > 1e-3


def test_first_values():
    model = build(scale=0)
    encoder, decoder = model.encoder, model.decoder
    for lstm in (encoder.rnn, encoder.parser.layer1.left_to_right, encoder.parser.layer2.right_to_left):
        biases = (lstm.bias_ih_l0 + lstm.bias_hh_l0).view(4, -1)
        assert torch.equal(biases.sum(1), torch.tensor([0, 1, 0, 0]) * biases.shape[1])
    assert torch.equal(decoder.cell.recurrent.bias.view(4, -1).sum(1), torch.tensor([0, 5, 0, 0]).double())
    for bias in (decoder.output_state.bias, decoder.output_projection.bias, encoder.graph_projection.bias):
        assert not bias.any()
    assert decoder.output_projection.weight is decoder.embed_tokens.weight
    for weight in (encoder.embed_tokens.weight, decoder.embed_tokens.weight, decoder.output_state.weight):
        assert 0.07 < weight.abs().max() <= 0.1
    assert not encoder.embed_tokens.weight[PAD].any() and not decoder.embed_tokens.weight[PAD].any()
    assert all(value.is_floating_point() for value in model.state_dict().values())


def test_dropout_is_of_the_state_that_predicts_a_word():
    model, sizes = build(dropout=0.5), []
    model.decoder.dropout.register_forward_pre_hook(lambda _, inputs: sizes.append(inputs[0].shape[-1]))
    given = batch()
    model.decoder(given["prev_output_tokens"][:, :1], encoder_out=model.encoder(given["src_tokens"], None))
    assert sizes == [5]


def trained_parser(words, network) -> LatentGraphParserModel:
    """A parser with tags X and labels y."""
    pos, labels = network.pos_input.in_features, network.num_labels
    return LatentGraphParserModel(words, network, Dictionary(), ["X"] * pos, ["y"] * labels)


def test_options_of_a_trained_parser():
    encoder = build(lgp_word_case="lower").encoder
    trained = trained_parser(encoder.words, encoder.parser)
    fixed = {"lgp_parser_size": 3, "lgp_pos_size": 4, "lgp_parser_path": "parser.pt"}
    args = argparse.Namespace(**fixed, lgp_word_case="auto")
    adapt_options(args, trained)
    assert (args.lgp_word_case, args.lgp_num_pos, args.lgp_num_labels) == ("lower", 6, 7)
    wrong = {"lgp_parser_size": 4, "lgp_pos_size": 3, "lgp_word_case": "written"}
    for option, value in wrong.items():
        args = argparse.Namespace(**{"lgp_word_case": "auto", **fixed, option: value})
        with pytest.raises(ValueError, match=f"--{option.replace('_', '-')} {value}: the parser parser.pt has "):
            adapt_options(args, trained)


@pytest.mark.parametrize("parts", ["all", "tables", "lstms"])
@pytest.mark.parametrize("graph", GRAPHS)
def test_exactly_the_parts_of_a_parser_that_are_asked_for_are_taken(graph, parts):
    model, donor = build(graph), build("latent")
    for parameter in donor.parameters():
        torch.nn.init.normal_(parameter)
    before = {name: value.clone() for name, value in model.encoder.state_dict().items()}
    # one word and the last n-gram are unknown to the parser
    words = copy.copy(donor.encoder.words)
    words.row_symbols, words.ngram_keys = [*words.row_symbols[:-1], "unheard"], [*words.ngram_keys[:-1], "4gram-none"]
    trained = trained_parser(words, donor.encoder.parser)
    take_over(model.encoder, trained, "parser.pt", parts)
    after, given = model.encoder.state_dict(), donor.encoder.state_dict()
    for name, value in after.items():
        if name in ("words.words.weight", "words.ngrams.weight"):
            known = parts != "lstms"
            rows = slice(1, -1) if "ngrams" in name else slice(0, -1)
            assert torch.equal(value[rows], (given if known else before)[name][rows]), name
            rest = torch.ones(len(value), dtype=torch.bool)
            rest[rows] = False
            assert torch.equal(value[rest], before[name][rest]), name
            continue
        of_lstm = name.startswith(("parser.layer1.", "parser.layer2."))
        taken = name.startswith("parser.") and (parts == "all" or (parts == "lstms" and of_lstm))
        assert torch.equal(value, (given if taken else before)[name]), name
        if name.startswith("parser."):
            assert not torch.equal(before[name], given[name]), "the test could not tell"
