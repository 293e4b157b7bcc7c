"""The numbers of layers: options that choose some, and what --encoder-layers-to-keep and its like leave of them."""

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


def check_choice(text: str, layers: int, option: str) -> None:
    """Raise ValueError, naming the option, if `text` chooses a layer that does not exist."""
    try:
        valid = set(_numbers(text) or ()) <= set(range(layers))
    except ValueError:
        valid = False
    if not valid:
        raise ValueError(f"{option} {text}: give all, none, or numbers from 0 to {layers - 1} such as 0,{layers - 1}")


def chosen_layers(text: str, layers: Sequence[int]) -> tuple[int, ...]:
    """The layers that `text` chooses: "all", "none", or numbers from 0 separated by commas."""
    numbers = _numbers(text)
    return tuple(layer for layer in layers if numbers is None or layer in numbers)


def _numbers(text: str) -> set[int] | None:
    """The numbers; None stands for all."""
    text = str(text).strip("[] ")  # hydra makes lists and numbers of such values
    if text in ("all", "none"):
        return None if text == "all" else set()
    return {int(part) for part in text.split(",")}
