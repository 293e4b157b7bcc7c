"""The value of options that choose layers."""


def chosen_layers(text: str, layers: int, option: str) -> tuple[int, ...]:
    """Numbers of the chosen layers, ascending: "all", "none", or numbers from 0 with commas between.

    Raises ValueError, naming the option: it is none of these, or there is no such layer.
    """
    text = str(text).strip("[] ")  # hydra makes lists and numbers of such values
    if text in ("all", "none"):
        return tuple(range(layers)) if text == "all" else ()
    try:
        numbers = {int(part) for part in text.split(",")}
    except ValueError:
        numbers = {-1}
    if not numbers <= set(range(layers)):
        raise ValueError(f"{option} {text}: give all, none, or numbers from 0 to {layers - 1} such as 0,{layers - 1}")
    return tuple(sorted(numbers))
