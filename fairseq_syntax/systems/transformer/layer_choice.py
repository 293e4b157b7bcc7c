"""The number of special heads of each layer."""

from collections.abc import Sequence


def add_heads_option(parser, flag: str, heads: str) -> None:
    """Add an option with a number of special heads for each encoder layer."""
    help = f"number of {heads} in each encoder layer, from the first; the other layers have none"
    parser.add_argument(flag, type=int, nargs="+", metavar="N", help=help)


def heads_by_layer(option: str, numbers: int | Sequence[int], args) -> list[int]:
    """Fill up the list of numbers of special heads with 0 to one for every encoder layer.

    Raises ValueError, with the name of the option: too many layers, or more heads than a layer has.
    """
    heads = [numbers] if isinstance(numbers, int) else list(numbers)
    layers, available = args.encoder_layers, args.encoder_attention_heads
    if len(heads) > layers:
        raise ValueError(f"{option} has {len(heads)} numbers but the encoder {layers} layers")
    if any(n not in range(available + 1) for n in heads):
        raise ValueError(
            f"{option} {' '.join(map(str, heads))}: give 0 to {available} (--encoder-attention-heads) for each layer"
        )
    return heads + [0] * (layers - len(heads))


def check_layers_with_a_loss(args) -> None:
    """Raise ValueError for options that would drop a layer whose heads learn, or cut it off from its loss."""
    # with recomputed activations, fairseq computes the layer without gradients, and so are its scores
    for option in ("encoder_layerdrop", "checkpoint_activations", "offload_activations"):
        if getattr(args, option, 0):
            flag = f"--{option.replace('_', '-')}"
            raise ValueError(f"{flag} would cut the loss of heads off from their layer; leave it out")
