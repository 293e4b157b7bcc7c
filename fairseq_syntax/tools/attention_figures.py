"""What a model attends to in one sentence, as a picture."""

import sys
from argparse import Namespace
from enum import StrEnum

import numpy as np
import torch

from ..pictures.attention_maps import draw_annotations, draw_attention, draw_heat_map, draw_positions
from ..pictures.figures import save_figure
from ..systems.distance_transformers.cross_attention import SyntaxCrossAttention
from ..systems.sa_nmt.attention import SharedSyntaxAttention
from ..systems.transformer.encoder import SyntaxEncoderLayer
from .gate_drawing import draw_gates
from .gate_norms import gate_norms
from .loaded_model import Loaded, NothingToShow, load
from .word_attention import source_attention

Kind = StrEnum("Kind", "heads annotations translation syntax gate position")
"""What is drawn."""


def run(args: Namespace) -> None:
    """Load the model, run it on the sentence, draw its weights.

    Raises NothingToShow: the model has no such weights; ValueError: the split no such sentence; OSError: a file is
    missing.
    """
    loaded = load(args.path, args.data, args.cpu)
    save_figure(figure(loaded, args.subset, args.sentence, args.kind), args.draw)
    print(args.draw, file=sys.stderr)


@torch.no_grad()
def figure(loaded: Loaded, subset: str, sentence: int, kind: str):
    """A matplotlib figure of a `Kind`, of one sentence of a split.

    Raises:
        NothingToShow: the model has no such weights.
        ValueError: the split has no such sentence.
    """
    dataset = loaded.load_split(subset)
    if not 0 <= sentence < len(dataset):
        raise ValueError(f"--sentence {sentence}: {subset} has sentences 0 to {len(dataset) - 1}")
    title = f"{loaded.name}: {subset} {sentence}"
    if kind == Kind.gate:
        return draw_gates(gate_norms(loaded, dataset, subset, 1, [sentence]), title)
    draw = {
        Kind.heads: _heads(loaded),
        Kind.annotations: _annotations,
        Kind.translation: _translation,
        Kind.syntax: _syntax,
        Kind.position: _positions,
    }[kind]
    return draw(loaded, loaded.to_device(dataset.collater([dataset[sentence]])), title)


def _heads(loaded: Loaded):
    """The function that draws the syntactic heads of this kind of model."""
    if any(isinstance(module, SyntaxEncoderLayer) for module in loaded.model.modules()):
        return _encoder_heads
    if getattr(loaded.model, "latent_heads", None) is not None and getattr(loaded.model, "has_latent_trees", True):
        return _latent_heads
    return _no_heads


def _no_heads(loaded: Loaded, batch: dict, title: str):
    raise NothingToShow(
        f"{loaded.path}: the architecture {loaded.architecture} has no syntactic attention heads; give a model of "
        "PASCAL or LISA, or one with latent trees (fa_nmt, sa_nmt, …), or draw --kind translation"
    )


def _encoder_heads(loaded: Loaded, batch: dict, title: str):
    """What the first syntactic layer of PASCAL or LISA found."""
    net_input = batch["net_input"]
    syntax = net_input.get("src_syntax")
    found = loaded.model.encoder(net_input["src_tokens"], src_syntax=syntax)["syntax"]
    parents = None
    if syntax is not None and "parents" in syntax:
        positions = syntax["parents"][0].float() / 2
        parents = positions.masked_fill(positions < 0, float("nan")).cpu().numpy()
    elif syntax is not None and "parent_pieces" in syntax:
        positions = syntax["parent_pieces"][0].float()
        parents = positions.masked_fill(positions < 0, float("nan")).cpu().numpy()
    if "attention" not in found[0]:  # DASA's heads look at all words
        return _no_heads(loaded, batch, title)
    tokens = _source_tokens(loaded, batch)
    return draw_attention(found[0]["attention"][0].float().cpu().numpy(), tokens, parents, title)


def _latent_heads(loaded: Loaded, batch: dict, title: str):
    """Probabilities of heads (Figure 4): a row for each piece but EOS, a column for the root and for each head."""
    net_input = batch["net_input"]
    found = loaded.model.latent_heads(net_input["src_tokens"], net_input["src_lengths"])
    real = found["word_mask"][0].cpu().numpy()
    if not real.any():
        raise ValueError("the sentence has no words; give another --sentence")
    arcs, roots = (found[name][0].float().cpu().numpy() for name in ("arc_marginals", "root_marginals"))
    np.fill_diagonal(arcs, 0)  # of flat attention, a word that chooses itself: it stands for the root already
    weights = np.concatenate([roots[real, None], arcs[np.ix_(real, real)]], axis=1)
    tokens = [token for token, keep in zip(_source_tokens(loaded, batch), real, strict=True) if keep]
    return draw_heat_map(weights, tokens, ["ROOT", *tokens], row_name="dependent", column_name="head", title=title)


def _annotations(loaded: Loaded, batch: dict, title: str):
    """M, of models with latent heads."""
    selection = getattr(getattr(loaded.model.encoder, "memory", None), "head_selection", None)
    if selection is None:
        raise NothingToShow(
            f"{loaded.path}: the architecture {loaded.architecture} has no syntactic annotations; give fa_nmt, sa_nmt "
            "or one of their kin"
        )
    source = loaded.model.encoder.source(batch["net_input"]["src_tokens"])
    states, _ = loaded.model.encoder.annotate(source)
    return draw_annotations(selection(states, source)[0].float().cpu().numpy(), _source_tokens(loaded, batch), title)


def _translation(loaded: Loaded, batch: dict, title: str):
    """Attention of each target token to the source."""
    return _of_target(loaded, batch, source_attention(loaded, batch)["attn"], "attends to", title)


def _syntax(loaded: Loaded, batch: dict, title: str):
    """The same of the attention to syntax."""
    found = source_attention(loaded, batch)
    if isinstance(getattr(loaded.model.decoder, "attention", None), SharedSyntaxAttention):
        found.setdefault("syntax_attn", found["attn"])
    if "syntax_attn" not in found:
        raise NothingToShow(
            f"{loaded.path}: the architecture {loaded.architecture} has no attention to syntax beside that to content; "
            "give --kind translation"
        )
    return _of_target(loaded, batch, found["syntax_attn"], "attends to the syntax of", title)


def _of_target(loaded: Loaded, batch: dict, weights: torch.Tensor, column_name: str, title: str):
    return draw_heat_map(
        weights[0].float().cpu().numpy(),
        _target_tokens(loaded, batch),
        _source_tokens(loaded, batch),
        row_name="predicted",
        column_name=column_name,
        title=title,
    )


def _positions(loaded: Loaded, batch: dict, title: str):
    """Attention around predicted positions, and these."""
    directed = [m for m in loaded.model.modules() if isinstance(m, SyntaxCrossAttention) and m.syntax_heads]
    if directed:
        weights, positions = _directed_heads(loaded, batch, directed[-1])
    else:
        found = source_attention(loaded, batch)
        if "position" not in found:
            raise NothingToShow(
                f"{loaded.path}: the architecture {loaded.architecture} predicts no positions; give sdatt, local_att "
                "or one of their kin"
            )
        weights, positions = found.get("syntax_attn", found["attn"]), found["position"]
    arrays = (tensor.float().cpu().numpy() for tensor in (weights, positions))
    return draw_positions(*arrays, _target_tokens(loaded, batch), _source_tokens(loaded, batch), title)


def _directed_heads(loaded: Loaded, batch: dict, attention: SyntaxCrossAttention):
    """Weights (h, S, T) and positions (h, S) of the syntax-directed heads of a layer of a Transformer."""
    if batch.get("target") is None:
        raise ValueError("the split has no target side; preprocess it with both languages")
    found = {}
    weigh = attention.weigh

    def keep(scores, position, centres):
        found["weights"], found["positions"] = weigh(scores, position, centres), position
        return found["weights"]

    attention.weigh = keep
    loaded.model(**batch["net_input"])
    del attention.weigh
    return found["weights"][0], found["positions"][0]


def _target_tokens(loaded: Loaded, batch: dict) -> list[str]:
    return [loaded.task.target_dictionary[i] for i in batch["target"][0].tolist()]


def _source_tokens(loaded: Loaded, batch: dict) -> list[str]:
    return [loaded.task.source_dictionary[i] for i in batch["net_input"]["src_tokens"][0].tolist()]
