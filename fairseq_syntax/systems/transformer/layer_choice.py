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
