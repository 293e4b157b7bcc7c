"""Pictures of when a decoder asks for syntax: tokens coloured by the norm of its gate (Tran & Bisk 2018, Figure 6)."""

import html
from collections.abc import Callable, Iterator, Sequence

import numpy as np

from ..pictures.arcs import text_widths
from ..pictures.figures import plt, shown
from .gate_norms import GatedSentence

from matplotlib.cm import ScalarMappable  # isort: skip
from matplotlib.colors import LinearSegmentedColormap, Normalize  # isort: skip


_PAGE = """\
<!DOCTYPE html>
<html>
<head>
<meta charset="utf-8">
<title>{title}</title>
<style>
body {{ font-family: sans-serif; margin: 2em; line-height: 1.9; }}
span {{ padding: 0.15em 0.3em; border-radius: 0.2em; }}
td {{ vertical-align: top; padding: 0 0.6em 0.6em 0; }}
td:first-child, .source {{ color: #777; }}
td:first-child {{ text-align: right; }}
.bar {{ padding: 0 6em; margin: 0 0.5em; background: linear-gradient(to right, {gradient}); }}
</style>
</head>
<body>
<h1>{title}</h1>
<p>Norm of the gate when each token is predicted: {low:.3f}<span class="bar"></span>{high:.3f}; the highest of each
sentence is bold. The source is above the translation.</p>
<table>
{rows}
</table>
</body>
</html>
"""


def gates_page(sentences: Sequence[GatedSentence], title: str) -> str:
    """An HTML page of its own with every token coloured by its norm (Figure 6).

    Colours run from the lowest to the highest norm on the page, so that sentences can be compared.
    """
    low, high, darkness = _scale(sentences)
    rows = []
    for sentence in sentences:
        spans = []
        for i, (token, norm) in enumerate(zip(sentence.tokens, sentence.norms.tolist(), strict=True)):
            text = html.escape(shown(token))
            text = f"<b>{text}</b>" if i == sentence.highest else text
            spans.append(f'<span style="{_style(darkness(norm))}" title="{norm:.3f}">{text}</span>')
        source = html.escape(shown(" ".join(sentence.source)))
        rows.append(f'<tr><td>{sentence.number}</td><td><div class="source">{source}</div>{" ".join(spans)}</td></tr>')
    return _PAGE.format(
        title=html.escape(shown(title)),
        low=low,
        high=high,
        gradient=", ".join(f"rgb{_colour(darkness)}" for darkness in (0.0, 1.0)),
        rows="\n".join(rows),
    )


_SIZE, _PAD, _ROW = 9.0, 3.0, 17.0  # points, of text, around tokens, and between lines


def draw_gates(sentences: Sequence[GatedSentence], title: str, width: float = 620.0):
    """The same as a picture, `width` points wide, with a bar of the colours; longer sentences are broken.

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


def _style(darkness: float) -> str:
    """The colour in a page; the text stays readable."""
    colour = ", ".join(map(str, _colour(darkness)))
    return f"background: rgb({colour}); color: {'white' if darkness > 0.5 else 'black'}"
