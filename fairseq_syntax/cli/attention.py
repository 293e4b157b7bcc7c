"""fairseq-syntax-attention: a picture of what a model attends to in one sentence."""

import argparse
import logging
import sys
from enum import StrEnum

import numpy as np
import torch

from ..analysis.attention_maps import draw_attention, draw_heat_map
from ..analysis.figures import save_figure
from ..models.syntax_encoder import SyntaxEncoderLayer
from .checkpoints import Loaded, add_checkpoint_arguments, load
from .outputs import exit_status, picture

_EPILOG = """\
--kind heads (the default) draws the source side: the parent-scaled heads of PASCAL and the parsing head of LISA with
the parent of every token framed; of models with latent trees (fa_nmt, sa_nmt and their kin), the probability of every
head for every dependent, the root first.
--kind translation draws which source tokens a model looks at when it predicts each token of the reference translation.

examples:
  fairseq-syntax-attention data-bin --path checkpoints/checkpoint_best.pt --subset test --sentence 3 --output map.png
  fairseq-syntax-attention data-bin --path checkpoints/checkpoint_best.pt --kind translation --output map.svg"""


class Kind(StrEnum):
    """What is drawn."""

    heads = "heads"
    translation = "translation"


def build_parser() -> argparse.ArgumentParser:
    """The program's options."""
    parser = argparse.ArgumentParser(
        prog="fairseq-syntax-attention",
        description="Draw what a model attends to in one sentence: syntactic heads, or the source of a translation.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_checkpoint_arguments(parser)
    parser.add_argument("--subset", default="test", help="split (default: test)")
    parser.add_argument("--sentence", type=int, default=0, help="number of the sentence, from 0 (default: 0)")
    parser.add_argument(
        "--kind", choices=[str(kind) for kind in Kind], default=str(Kind.heads), help="what to draw (default: heads)"
    )
    parser.add_argument("--output", type=picture, required=True, help="picture to write (.png, .svg or .pdf)")
    return parser


def main(argv: list[str] | None = None) -> int:
    """Entry point. Exit status: 0, 1 for bad data, 2 for bad usage."""
    parser = build_parser()
    args = parser.parse_args(argv)
    logging.basicConfig(level="WARNING", force=True)
    return exit_status(parser.prog, lambda: run(args))


@torch.no_grad()
def run(args: argparse.Namespace) -> None:
    """Load the model, run it on the sentence, draw its weights.

    Raises:
        ValueError: the model has no such weights, the split no such sentence.
        OSError: a file is missing.
    """
    loaded = load(args.path, args.data, args.cpu)
    draw = {Kind.heads: _heads(loaded), Kind.translation: _translation}[args.kind]
    dataset = loaded.load_split(args.subset)
    if not 0 <= args.sentence < len(dataset):
        raise ValueError(f"--sentence {args.sentence}: {args.subset} has sentences 0 to {len(dataset) - 1}")
    batch = loaded.to_device(dataset.collater([dataset[args.sentence]]))
    save_figure(draw(loaded, batch, f"{loaded.name}: {args.subset} {args.sentence}"), args.output)
    print(args.output)


def _heads(loaded: Loaded):
    """The function that draws the syntactic heads of this kind of model."""
    if any(isinstance(module, SyntaxEncoderLayer) for module in loaded.model.modules()):
        return _encoder_heads
    if getattr(loaded.model, "latent_heads", None) is not None and getattr(loaded.model, "has_latent_trees", True):
        return _latent_heads
    return _no_heads


def _no_heads(loaded: Loaded, batch: dict, title: str):
    raise ValueError(
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


def _translation(loaded: Loaded, batch: dict, title: str):
    """Attention of each target token to the source, with the reference translation given."""
    if batch.get("target") is None:
        raise ValueError("the split has no target side; preprocess it with both languages")
    extra = loaded.model(**batch["net_input"])[1]
    # fairseq's LSTM returns the weights themselves
    weights = extra.get("attn") if isinstance(extra, dict) else extra
    weights = weights[0] if isinstance(weights, list) and weights else weights
    if not isinstance(weights, torch.Tensor):
        raise ValueError(f"{loaded.path}: the architecture {loaded.architecture} returns no attention to the source")
    dictionary = loaded.task.target_dictionary
    target = [dictionary[i] for i in batch["target"][0].tolist()]
    source = _source_tokens(loaded, batch)
    return draw_heat_map(
        weights[0].float().cpu().numpy(), target, source, row_name="predicted", column_name="attends to", title=title
    )


def _source_tokens(loaded: Loaded, batch: dict) -> list[str]:
    return [loaded.task.source_dictionary[i] for i in batch["net_input"]["src_tokens"][0].tolist()]


if __name__ == "__main__":
    sys.exit(main())
