"""Small models of any architecture that translates, in this process, and batches for them."""

import argparse
from types import SimpleNamespace

import numpy as np
import torch
from fairseq.data import Dictionary
from fairseq.models import ARCH_CONFIG_REGISTRY, ARCH_MODEL_REGISTRY

import fairseq_syntax
from fairseq_syntax.data.collating import TokenSyntax, collate_syntax

fairseq_syntax.register()

PAD, EOS = 1, 2
SIZES = {
    **dict.fromkeys(("encoder_embed_dim", "decoder_embed_dim", "decoder_hidden_size", "lgp_size"), 8),
    **dict.fromkeys(("encoder_ffn_embed_dim", "decoder_ffn_embed_dim"), 12),
    **dict.fromkeys(("encoder_attention_heads", "decoder_attention_heads"), 4),
    **{"encoder_hidden_size": 4, "lgp_parser_size": 3, "lgp_pos_size": 4, "lgp_num_pos": 6, "lgp_num_labels": 7},
    **{"dropout": 0.0, "tag_embed_dim": 2, "pascal_heads": [2, 0], "max_source_positions": 50},
    "max_target_positions": 50,
    # so narrow that something is left out
    **{"sdatt_local_window": 2.0, "sdatt_flex_sigma": 1.5, "sdatt_n": 2.0, "sdatt_sigma": 1.3, "dasa_sigma": 2.0},
}
# heads and the word of each token: a tree of whole words, pieces under two roots, no parse, one word, none
SENTENCES = [
    ([1, 2, -1, 2], [0, 1, 2, 3, 4], [4, 5, 13, 7, EOS]),
    ([-1, 0, -1], [0, 0, 1, 2, 2, 2, 3], [10, 11, 4, 6, 7, 8, EOS]),
    ([-2, -2, -2], [0, 1, 2, 3], [8, 9, 4, EOS]),
    ([-1], [0, 1], [10, EOS]),
    ([], [0], [EOS]),
]
TARGETS = [[EOS, 5, 6, 9, 4], [EOS, 7, 7, 4, 8], [EOS, 9, 4, 10, 5], [EOS, 4, 5, 6, 7], [EOS, 8, 9, 4, 6]]


def dictionary(symbols):
    made = Dictionary()
    for symbol in symbols:
        made.add_symbol(symbol, n=2)
    return made


WORDS, LABELS = dictionary([*(f"w{i}" for i in range(9)), ".", ","]), dictionary("abcd")
# what of a task models are built from
TASK = SimpleNamespace(
    source_dictionary=WORDS,
    target_dictionary=WORDS,
    attach_syntax=None,
    cfg=SimpleNamespace(lisa_gold_parses=False),
    syntax_dictionary=lambda name: LABELS,
)


def build(arch, scale=0.6, seed=3, **options):
    """The model in double precision and eval mode; its matrices far from zero, unless `scale` is 0."""
    args = argparse.Namespace(**{**SIZES, **options})
    ARCH_CONFIG_REGISTRY[arch](args)
    torch.manual_seed(seed)
    model = ARCH_MODEL_REGISTRY[arch].build_model(args, TASK).double().eval()
    for parameter in model.parameters() if scale else ():
        if parameter.dim() > 1:
            torch.nn.init.uniform_(parameter, -scale, scale)
    for module in model.modules():
        if isinstance(module, (torch.nn.Embedding, torch.nn.EmbeddingBag)) and module.padding_idx is not None:
            torch.nn.init.zeros_(module.weight[module.padding_idx])
    return model


def batch(model, rows=range(5), left_pad=False, columns=0, sentences=SENTENCES, names=None):
    """`net_input` of some sentences, with the trees that a model reads to translate, or with the inputs `names`."""
    chosen = [sentences[row] for row in rows]
    columns = max(columns, *(len(words) for _, words, _ in chosen))
    tokens = torch.full((len(chosen), columns), PAD)
    for row, (_, _, ids) in zip(tokens, chosen, strict=True):
        row[slice(columns - len(ids), None) if left_pad else slice(len(ids))] = torch.tensor(ids)
    given = {"src_tokens": tokens, "src_lengths": tokens.ne(PAD).sum(1)}
    given["prev_output_tokens"] = torch.tensor([TARGETS[row] for row in rows])
    names = getattr(model, "syntax_inputs", ()) if names is None else names
    if names:
        tags = [np.arange(4, 4 + len(heads)) % 8 for heads, _, _ in chosen]
        trees = [
            TokenSyntax(np.array(words), np.array(heads, dtype=int), tag, tag)
            for (heads, words, _), tag in zip(chosen, tags, strict=True)
        ]
        given["src_syntax"] = collate_syntax(trees, names, columns, left_pad)
    return given


def sample(model, names, left_pad=False, rows=range(5)):
    """A batch with the inputs `names` as a criterion gets it."""
    target = torch.tensor([[*TARGETS[row][1:], EOS] for row in rows])
    net_input = batch(model, rows, left_pad, names=names)
    return {"net_input": net_input, "target": target, "ntokens": target.numel(), "id": torch.arange(len(target))}


def attention_layer(kind, *given, **options):
    """An attention of 3 heads over 12 coordinates in double precision and eval mode; parameters far from zero."""
    torch.manual_seed(0)
    layer = kind(12, 3, *given, **options).double().eval()
    for name, parameter in layer.named_parameters():
        if name != "distance_weight":
            torch.nn.init.normal_(parameter, std=0.5)
    return layer


def attention_input(left_pad=False):
    """States (6, 3, 12) of sentences of 6, 4 and 1 tokens, mask of padding (3, 6), and the columns of each sentence."""
    x, mask = torch.full((6, 3, 12), 3.0, dtype=torch.double), torch.ones(3, 6, dtype=torch.bool)
    parts = [range(6 - length, 6) if left_pad else range(length) for length in (6, 4, 1)]
    generator = torch.Generator().manual_seed(1)
    for b, part in enumerate(parts):
        x[part, b] = torch.randn(len(part), 12, generator=generator, dtype=torch.double)
        mask[b, part] = False
    return x, mask, parts


def assert_same_gradients(model, found, expected):
    """Gradients of a loss of logits of all sentences; fairseq keeps the padding's row of embeddings as it is."""
    learned = {name: parameter for name, parameter in model.named_parameters() if parameter.requires_grad}
    labels = torch.tensor(TARGETS).roll(-1, 1).flatten()  # words that are not those given
    losses = (torch.nn.functional.cross_entropy(logits.flatten(0, 1), labels) for logits in (found, expected))
    gradients = (torch.autograd.grad(loss, learned.values()) for loss in losses)
    for name, gradient, reference in zip(learned, *gradients, strict=True):
        rows = slice(PAD + 1 if name.endswith("embed_tokens.weight") else 0, None)
        torch.testing.assert_close(gradient[rows], reference[rows], atol=1e-10, rtol=1e-10, msg=name)
