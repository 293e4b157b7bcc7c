"""Pictures of a decoder's use of syntax: tokens coloured by the norm of its gate (Tran & Bisk 2018, Figure 6)."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from .arcs import wrapped
from .figures import plt, shown

from matplotlib.cm import ScalarMappable  # isort: skip
from matplotlib.colors import LinearSegmentedColormap, Normalize  # isort: skip


@dataclass(frozen=True)
class GatedSentence:
    """A target sentence with the norms of the gate."""

    tokens: list[str]  # S pieces, EOS last
    norms: np.ndarray  # (S,) Euclidean norm of the gate at each prediction, at most the square root of its width
    source: list[str]  # pieces of the source sentence, without EOS

    @property
    def highest(self) -> int:
        """Position of the highest norm, the first one if there are several."""
        return int(np.argmax(self.norms))


_SIZE, _PAD, _ROW = 9.0, 3.0, 17.0  # font size, padding of tokens and distance of lines, in points
_WIDTH, _NAMES = 460.0, 54.0  # width in points of the picture, and of the names of lines


def draw_gates(sentences: Sequence[GatedSentence]):
    """A figure of target sentences with every token coloured by its norm, from 0, and a colour bar.

    The highest norm of a sentence is in bold, and its source in grey above it. The picture is `_WIDTH` points wide;
    longer sentences are broken. The gids of the source tokens of sentence N, from 0, begin with `source-N-`.
    """
    norms = np.concatenate([sentence.norms for sentence in sentences]) if sentences else np.zeros(1)
    high = float(norms.max())
    places, row = [], 0.0  # (text, middle, row, style)
    for number, sentence in enumerate(sentences):
        source = [{"color": "0.45", "gid": f"source-{number}-{i}"} for i in range(len(sentence.source))]
        darkness = sentence.norms / (high or 1.0)
        target = [_look(dark, i == sentence.highest) for i, dark in enumerate(darkness.tolist())]
        for name, tokens, looks in (("source", sentence.source, source), ("translation", sentence.tokens, target)):
            if tokens:
                places.append((name, 0.0, row, {"color": "0.45", "ha": "left", "fontsize": _SIZE - 2, "gid": "name"}))
            # the source is running text, because its words are not aligned with those of the translation
            pad, gap = (0.0, _SIZE * 0.4) if looks is source else (_PAD, _PAD)
            for token, (middle, line), look in zip(
                tokens, wrapped(tokens, _SIZE, _WIDTH - _NAMES, gap, pad, "bold"), looks, strict=True
            ):
                places.append((token, _NAMES + middle, row + line, look))
            row = places[-1][2] + 1 if tokens else row
        row += 0.5
    height = (row + 1.6) * _ROW
    figure = plt.figure(figsize=(_WIDTH / 72, height / 72))
    axis = figure.add_axes((0, 0, 1, 1))
    axis.set(xlim=(0, _WIDTH), ylim=(height, 0))  # one unit is one point, downwards
    axis.axis("off")
    style = dict(fontsize=_SIZE, ha="center", va="center", parse_math=False)
    for text, middle, row, look in places:
        axis.text(middle, (row + 0.5) * _ROW, shown(text), **(style | look))
    _draw_colour_bar(figure, height, high)
    return figure


def _look(dark: float, highest: bool) -> dict:
    """The style of a token, whose darkness ranges from 0 to 1."""
    return {
        "color": "white" if dark > 0.5 else "black",
        "weight": "bold" if highest else "normal",
        "bbox": {"boxstyle": f"square,pad={_PAD / _SIZE}", "facecolor": [c / 255 for c in _colour(dark)], "lw": 0},
    }


def _draw_colour_bar(figure, height: float, high: float) -> None:
    """Draw a bar of colours and norms along the lower edge."""
    ends = [[c / 255 for c in _colour(darkness)] for darkness in (0.0, 1.0)]
    bar = figure.add_axes((_NAMES / _WIDTH, 0.9 * _ROW / height, 0.4, 0.4 * _ROW / height))
    colours = ScalarMappable(Normalize(0, high or 1.0), LinearSegmentedColormap.from_list("gate", ends))
    figure.colorbar(colours, cax=bar, orientation="horizontal")
    bar.tick_params(labelsize=_SIZE - 2)
    bar.set_title("norm of the gate", fontsize=_SIZE - 2, x=1.02, y=0.0, ha="left", va="center")


def _colour(darkness: float) -> tuple[int, ...]:
    """A colour from white to dark blue, in components from 0 to 255."""
    return tuple(round(255 + darkness * (dark - 255)) for dark in (8, 48, 107))
