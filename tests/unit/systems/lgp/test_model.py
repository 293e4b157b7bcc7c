"""LGP-NMT and its rivals: against loops over words, given heads, first values, trained parsers."""

import argparse
import copy

import pytest
import small_models
import torch
from fairseq.data import Dictionary
from oracles.graph_translation import translate

from fairseq_syntax.systems.lgp.model import adapt_options, take_over
from fairseq_syntax.systems.parser.model import LatentGraphParserModel
from fairseq_syntax.systems.recurrent.rotation import Rotation

PAD, EOS, UNK = 1, 2, 3
GRAPHS = ("latent", "seq", "dep", "uni")
SOURCE = torch.tensor([[5, 6, 7, 8, EOS], [9, 4, 10, EOS, PAD], [6, EOS, PAD, PAD, PAD], [EOS, PAD, PAD, PAD, PAD]])
# in columns, a root its own head
PARENTS = torch.tensor([[1, 1, 1, 2, 4], [2, 2, 2, 3, -1], [0, 1, -1, -1, -1], [0, -1, -1, -1, -1]])
HEADS = [[1, 4, 1, 2], [2, 2, 3], [1], []]
LABELS = torch.tensor([[4, 5, 6, 4, EOS], [5, 5, 4, EOS, PAD], [6, EOS, PAD, PAD, PAD], [EOS, PAD, PAD, PAD, PAD]])
PREVIOUS = torch.tensor([[EOS, 5, 6, 7], [EOS, 4, 9, 9], [EOS, 10, 4, 8], [EOS, 6, 6, 5]])


def build(graph="latent", scale=0.8, **options):
    """The model in double precision and eval mode, with parameters far from zero."""
    model = small_models.build("lgp_nmt", 0, lgp_graph=graph, **{"lgp_size": 5, **options})
    if scale:
        for parameter in model.parameters():
            torch.nn.init.uniform_(parameter, -scale, scale)
        for table in (model.encoder.words.words, model.encoder.words.ngrams, model.encoder.embed_tokens):
            torch.nn.init.zeros_(table.weight[table.padding_idx])
    return model


def syntax(graph, parents=PARENTS, labels=LABELS):
    return {"parent_pieces": parents, "deprels": labels} if graph == "dep" else None


def run(model, graph, source=SOURCE, previous=PREVIOUS, trees=None):
    """(log probabilities (B, S, V), attention (B, S, T))."""
    logits, extra = model(source, source.ne(PAD).sum(1), previous, src_syntax=trees or syntax(graph))
    return torch.log_softmax(logits, -1), extra["attn"][0]


@pytest.mark.parametrize("graph", GRAPHS)
def test_equals_loops_over_words(graph):
    model = build(graph)
    found, attention = run(model, graph)
    for b, length in enumerate(SOURCE.ne(PAD).sum(1).tolist()):
        logs, weights = translate(
            model,
            SOURCE[b, :length].tolist(),
            PREVIOUS[b].tolist(),
            graph=graph,
            heads=HEADS[b],
            labels=LABELS[b, : length - 1].tolist(),
            num_labels=model.encoder.parser.num_labels,
        )
        torch.testing.assert_close(found[b], torch.stack(logs), atol=1e-10, rtol=0)
        torch.testing.assert_close(attention[b, :, :length], torch.stack(weights), atol=1e-10, rtol=0)
        assert not attention[b, :, length:].any()


def test_a_latent_graph_can_be_clamped_on_either_padding_side():
    """Heads as they are given; sentences without a parse are left to themselves."""
    model = build("latent")
    free, _ = run(model, "latent")
    trees = torch.full((4, 5), -1)
    for b, heads in enumerate(HEADS[:2]):
        trees[b, : len(heads)] = torch.tensor(heads)
        trees[b, len(heads)] = len(heads)
    clamped, _ = run(model, "latent", trees={"piece_heads": trees})
    torch.testing.assert_close(clamped[2:], free[2:], atol=1e-12, rtol=0)
    source = model.encoder.source(SOURCE, {"piece_heads": trees})
    graph, _, _ = model.encoder.parse(source, Rotation(source.padding_mask))
    for b, heads in enumerate(HEADS[:2]):
        assert graph.heads[b, : len(heads)].argmax(1).tolist() == heads and (graph.heads[b].max(1).values <= 1).all()
        assert graph.heads[b, : len(heads)].sum().item() == graph.heads[b].count_nonzero().item() == len(heads)
        assert (clamped[b] - free[b]).abs().max() > 1e-3
        left = {"piece_heads": torch.cat((torch.tensor([[-1, -1]]), trees[b : b + 1, : len(heads) + 1] + 2), 1)}
        padded = torch.cat((torch.tensor([[PAD, PAD]]), SOURCE[b : b + 1, : len(heads) + 1]), 1)
        alone, _ = run(model, "latent", padded, PREVIOUS[b : b + 1], left)
        torch.testing.assert_close(alone[0], clamped[b], atol=1e-12, rtol=0)


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
    model.decoder(PREVIOUS[:, :1], encoder_out=model.encoder(SOURCE, None))
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
