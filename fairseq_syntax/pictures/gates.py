"""Pictures of when a decoder asks for syntax: tokens coloured by the norm of its gate (Tran & Bisk 2018, Figure 6)."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from .arcs import text_widths
from .figures import plt, shown

from matplotlib.cm import ScalarMappable  # isort: skip
from matplotlib.colors import LinearSegmentedColormap, Normalize  # isort: skip


@dataclass(frozen=True)
class GatedSentence:
    """A target sentence and how wide the gate was open when each of its tokens was predicted."""

    tokens: list[str]  # S pieces, the end of the sentence last
    norms: np.ndarray  # (S,) Euclidean norm of the gate before each token is predicted: 0 to the root of its width
    source: list[str]  # pieces of the source sentence, without the end of the sentence

    @property
    def highest(self) -> int:
        """Position of the highest norm, the first one of equals."""
        return int(np.argmax(self.norms))


_SIZE, _PAD, _ROW = 9.0, 3.0, 17.0  # points, of text, around tokens, and between lines


def draw_gates(sentences: Sequence[GatedSentence], title: str, width: float = 620.0):
    """Target sentences with every token coloured by its norm (Figure 6), and a bar of the colours.

    The picture is `width` points wide; longer sentences are broken.

    The gid of the source of sentence N of the picture, from 0, begins with `source-N-`.
    """
    low, high, darkness = _scale(sentences)
    places, row = [], 0.0  # (text, middle, row, how it looks)
    for number, sentence in enumerate(sentences):
        source = [{"color": "0.45", "gid": f"source-{number}-{i}"} for i in range(len(sentence.source))]
        target = [_look(darkness(norm), i == sentence.highest) for i, norm in enumerate(sentence.norms)]
        for tokens, looks in ((sentence.source, source), (sentence.tokens, target)):
            for token, (middle, line), look in zip(tokens, _broken(tokens, width), looks, strict=True):
                places.append((token, middle, row + line, look))
            row = places[-1][2] + 1 if tokens else row
        row += 0.5
    height = (row + 3.0) * _ROW
    figure = plt.figure(figsize=(width / 72, height / 72))
    axis = figure.add_axes((0, 0, 1, 1))
    axis.set(xlim=(0, width), ylim=(height, 0))  # one unit is one point, downwards
    axis.axis("off")
    heading = f"{shown(title)}; the highest norm of a sentence in bold, the source in grey"
    axis.text(0, _ROW / 2, heading, fontsize=_SIZE, va="center", parse_math=False)
    style = dict(fontsize=_SIZE, ha="center", va="center", parse_math=False)
    for text, middle, row, look in places:
        axis.text(middle, (row + 1.5) * _ROW, shown(text), **style, **look)
    _draw_colour_bar(figure, height, low, high)
    return figure


def _broken(tokens: Sequence[str], width: float) -> Iterator[tuple[float, int]]:
    """Middle and line, from 0, of each token of a text that is broken at `width`."""
    left, line = 0.0, 0
    for extent in text_widths([shown(token) for token in tokens], _SIZE, weight="bold") + 2 * _PAD:
        if left and left + extent > width:
            left, line = 0.0, line + 1
        yield left + extent / 2, line
        left += extent + _PAD


def _look(dark: float, highest: bool) -> dict:
    """How a token is drawn."""
    return {
        "color": "white" if dark > 0.5 else "black",
        "weight": "bold" if highest else "normal",
        "bbox": {"boxstyle": f"square,pad={_PAD / _SIZE}", "facecolor": [c / 255 for c in _colour(dark)], "lw": 0},
    }


def _draw_colour_bar(figure, height: float, low: float, high: float) -> None:
    """A bar of the colours, with the norms that they stand for, along the lower edge."""
    ends = [[c / 255 for c in _colour(darkness)] for darkness in (0.0, 1.0)]
    # norms that do not differ are all white
    scale = Normalize(low, high if high > low else low + 1.0)
    bar = figure.add_axes((0.02, 1.1 * _ROW / height, 0.4, 0.5 * _ROW / height))
    colours = ScalarMappable(scale, LinearSegmentedColormap.from_list("gate", ends))
    figure.colorbar(colours, cax=bar, orientation="horizontal")
    bar.tick_params(labelsize=_SIZE - 2)
    bar.set_title("norm of the gate", fontsize=_SIZE - 2, x=1.02, y=0.0, ha="left", va="center")


def _scale(sentences: Sequence[GatedSentence]) -> tuple[float, float, Callable[[float], float]]:
    """The lowest and the highest norm, and how dark a norm is, 0 to 1."""
    norms = np.concatenate([sentence.norms for sentence in sentences]) if sentences else np.zeros(1)
    low, high = float(norms.min()), float(norms.max())
    return low, high, lambda norm: (norm - low) / ((high - low) or 1.0)


def _colour(darkness: float) -> tuple[int, ...]:
    """White to dark blue, 0 to 255."""
    return tuple(round(255 + darkness * (dark - 255)) for dark in (8, 48, 107))
