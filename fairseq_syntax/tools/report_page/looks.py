"""What systems look at in the same sentence, side by side."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from ...pictures.figures import visible
from ..attention_figures import Kind, figure
from ..loaded_model import NothingToShow, load
from . import markup

_TYPES = {".svg": "image/svg+xml", ".png": "image/png"}


def looks(given: Sequence[Sequence[str]], sentences: Sequence[int]) -> Iterator[str]:
    """Pictures, a group a sentence, and a group of those that exist already.

    Args:
        given: (name, picture), or (name, checkpoint, data directory, subset), whose model is asked for every kind of
            picture that it has.
        sentences: numbers in the subset, from 0.

    Raises:
        NothingToShow: a model has no weights of any kind.
        ValueError: a subset has no such sentence, or weights are NaN.
        OSError: a file is missing.
    """
    ready = [(name, Path(rest[0])) for name, *rest in given if len(rest) == 1]
    models = [(name, load(rest[0], rest[1]), rest[2]) for name, *rest in given if len(rest) == 3]
    for sentence in sentences if models else ():
        pictures = [picture for name, loaded, subset in models for picture in _of_model(name, loaded, subset, sentence)]
        yield f'<h3>Sentence {sentence}</h3><div class="beside">{"".join(pictures)}</div>'
    if ready:
        pictures = [markup.image(path.read_bytes(), _TYPES[path.suffix.lower()], name) for name, path in ready]
        yield f'<div class="beside">{"".join(pictures)}</div>'


def _of_model(name: str, loaded, subset: str, sentence: int) -> Iterator[str]:
    reasons = []
    for kind in Kind:
        try:
            drawing = figure(loaded, subset, sentence, kind)
        except NothingToShow as error:
            reasons.append(error)
            continue
        yield markup.figure(drawing, f"{visible(name)}: {kind}")
    if len(reasons) == len(Kind):
        raise reasons[0]
