"""The numbers of layers that --encoder-layers-to-keep and its like leave."""

from collections.abc import Sequence


def kept_layers(side) -> Sequence[int]:
    """The numbers that the layers of an encoder or decoder had in training, ascending.

    Args:
        side: `encoder` or `decoder` of the configuration; fairseq has already put the number of kept layers there.
    """
    kept = side.layers_to_keep
    return sorted(int(number) for number in kept.split(",")) if kept else range(side.layers)


def check_kept_layers(args) -> None:
    """Raise ValueError if --encoder-layers-to-keep or its like name layers that the model does not have."""
    for side in ("encoder", "decoder"):
        layers, kept = getattr(args, f"{side}_layers"), getattr(args, f"{side}_layers_to_keep", None)
        if kept and not set(kept.split(",")) <= {str(layer) for layer in range(layers)}:
            raise ValueError(
                f"--{side}-layers-to-keep {kept}: give numbers from 0 to {layers - 1} such as 0,{layers - 1}"
            )


def heads_of_layers(option: str, numbers: int | Sequence[int], args) -> list[int]:
    """The number of special heads of every encoder layer, of a list that may end early.

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
