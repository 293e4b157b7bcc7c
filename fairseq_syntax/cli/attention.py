"""fairseq-syntax-attention: a picture of the syntactic attention heads on one sentence."""

import argparse
import logging
import sys
from pathlib import Path

import torch
from fairseq import checkpoint_utils, tasks

import fairseq_syntax  # noqa: F401  (registers the models)

from ..analysis.attention_maps import draw_attention, save_figure
from ..models.syntax_encoder import SyntaxEncoderLayer

_EXAMPLE = """\
example:
  fairseq-syntax-attention data-bin --path checkpoints/checkpoint_best.pt --subset test --sentence 3 --output map.png"""


def build_parser() -> argparse.ArgumentParser:
    """The program's options."""
    parser = argparse.ArgumentParser(
        prog="fairseq-syntax-attention",
        description="Draw what the parent-scaled heads of PASCAL, or the parsing head of LISA, attend to.",
        epilog=_EXAMPLE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("data", help="data directory")
    parser.add_argument("--path", required=True, help="checkpoint")
    parser.add_argument("--subset", default="test", help="split (default: test)")
    parser.add_argument("--sentence", type=int, default=0, help="number of the sentence, from 0 (default: 0)")
    parser.add_argument("--output", required=True, help="picture to write (.png, .svg or .pdf)")
    return parser


def main(argv: list[str] | None = None) -> None:
    """Entry point. Exit status: 0, 1 for bad data, 2 for bad usage."""
    args = build_parser().parse_args(argv)
    logging.basicConfig(level="WARNING", force=True)
    try:
        run(args)
    except (ValueError, OSError) as error:
        print(f"fairseq-syntax-attention: {error}", file=sys.stderr)
        sys.exit(1)


def run(args: argparse.Namespace) -> None:
    """Load the model, run its encoder on the sentence, draw the weights that its first syntactic layer found.

    Raises:
        ValueError: the model has no such heads, the split no such sentence.
        OSError: a file is missing.
    """
    state = checkpoint_utils.load_checkpoint_to_cpu(args.path, {"data": args.data})
    task = tasks.setup_task(state["cfg"].task, from_checkpoint=True)
    (model,), _ = checkpoint_utils.load_model_ensemble([args.path], task=task, state=state)
    if not any(isinstance(module, SyntaxEncoderLayer) for module in model.modules()):
        raise ValueError(f"{args.path}: the model has no syntactic attention heads; give one of PASCAL or LISA")
    task.load_dataset(args.subset)
    dataset = task.dataset(args.subset)
    if not 0 <= args.sentence < len(dataset):
        raise ValueError(f"--sentence {args.sentence}: {args.subset} has sentences 0 to {len(dataset) - 1}")
    example = dataset[args.sentence]
    batch = dataset.collater([example])["net_input"]
    syntax = batch.get("src_syntax")
    with torch.no_grad():
        found = model.eval().encoder(batch["src_tokens"], src_syntax=syntax)["syntax"]
    parents = None
    if syntax is not None and "parents" in syntax:
        positions = syntax["parents"][0].float() / 2
        parents = positions.masked_fill(positions < 0, float("nan")).numpy()
    elif syntax is not None and "parent_pieces" in syntax:
        positions = syntax["parent_pieces"][0].float()
        parents = positions.masked_fill(positions < 0, float("nan")).numpy()
    tokens = [task.source_dictionary[i] for i in batch["src_tokens"][0].tolist()]
    figure = draw_attention(
        found[0]["attention"][0].float().numpy(),
        tokens,
        parents,
        f"{Path(args.path).name}: {args.subset} {args.sentence}",
    )
    save_figure(figure, args.output)
    print(args.output)


if __name__ == "__main__":
    main()
