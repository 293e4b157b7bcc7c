"""When a decoder asks for syntax: the norms of its gate (Tran & Bisk 2018, eq. 23, Figure 6)."""

import html
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import log2

import numpy as np

from .drawing import text_widths
from .figures import plt


@dataclass(frozen=True)
class GatedSentence:
    """A target sentence and how wide the gate was open when each of its tokens was predicted.

    Attributes:
        number: of the sentence in its corpus, from 0.
        tokens: S pieces, the end of the sentence (EOS) last.
        norms: (S,) z_t, the Euclidean norm of the gate before token t is predicted: 0 to the root of its width.
    """

    number: int
    tokens: list[str]
    norms: np.ndarray

    @property
    def highest(self) -> int:
        """Position of the highest norm, the first one of equals."""
        return int(np.argmax(self.norms))


def count_highest(sentences: Sequence[GatedSentence], tags: Sequence[Sequence[str]]) -> dict[str, tuple[int, int]]:
    """Which tags have the highest norm of their sentence, and how often they occur at all.

    Args:
        sentences: with their norms.
        tags: for each sentence the tags of its S tokens: every piece has the tag of its word, EOS one of its own.

    Returns:
        tag -> (sentences whose highest norm it has, tokens that have it), the most frequent highest first. Where the
        gate does not look at tags, both are shares of the same size of their sums.
    """
    highest, all_tokens = Counter(), Counter()
    for sentence, of_tokens in zip(sentences, tags, strict=True):
        highest[of_tokens[sentence.highest]] += 1
        all_tokens.update(of_tokens)
    order = sorted(all_tokens, key=lambda tag: (-highest[tag], -all_tokens[tag], tag))
    return {tag: (highest[tag], all_tokens[tag]) for tag in order}


def relative_entropy(counts: dict[str, tuple[int, int]]) -> float:
    """Kullback-Leibler divergence, in bits, of where the highest norms are from where the tokens are.

    0 if the gate does not look at tags; `counts` as of `count_highest`.
    """
    highest, tokens = (sum(column) for column in zip(*counts.values(), strict=True))
    return sum(h / highest * log2((h / highest) / (t / tokens)) for h, t in counts.values() if h)


_PAGE = """\
<!DOCTYPE html>
<html>
<head>
<meta charset="utf-8">
<title>{title}</title>
<style>
body {{ font-family: sans-serif; margin: 2em; line-height: 1.9; }}
span {{ padding: 0.15em 0.3em; border-radius: 0.2em; }}
td {{ vertical-align: top; padding: 0 0.6em 0.3em 0; }}
td:first-child {{ color: #777; text-align: right; }}
</style>
</head>
<body>
<h1>{title}</h1>
<p>Norm of the gate when each token is predicted: <span style="{low_style}">{low:.3f}</span> to
<span style="{high_style}">{high:.3f}</span>, darker is higher; the highest of each sentence is bold.</p>
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
            text = html.escape(token)
            text = f"<b>{text}</b>" if i == sentence.highest else text
            spans.append(f'<span style="{_style(darkness(norm))}" title="{norm:.3f}">{text}</span>')
        rows.append(f"<tr><td>{sentence.number}</td><td>{' '.join(spans)}</td></tr>")
    return _PAGE.format(
        title=html.escape(title),
        low=low,
        high=high,
        low_style=_style(0.0),
        high_style=_style(1.0),
        rows="\n".join(rows),
    )


def draw_gates(sentences: Sequence[GatedSentence], title: str, width: float = 620.0):
    """The same as a picture: a matplotlib figure `width` points wide, in which long sentences are broken."""
    low, high, darkness = _scale(sentences)
    size, pad, line = 9.0, 3.0, 17.0
    places, row = [], 0.0
    for sentence in sentences:
        left = 0.0
        for i, extent in enumerate(text_widths(sentence.tokens, size, weight="bold") + 2 * pad):
            if left and left + extent > width:
                left, row = 0.0, row + 1
            places.append((sentence, i, left + extent / 2, row))
            left += extent + pad
        row += 1.5
    height = (row + 1.5) * line
    figure = plt.figure(figsize=(width / 72, height / 72))
    axis = figure.add_axes((0, 0, 1, 1))
    axis.set(xlim=(0, width), ylim=(height, 0))  # one unit is one point, downwards
    axis.axis("off")
    heading = f"{title}: norm {low:.2f} (white) to {high:.2f}, the highest of a sentence in bold"
    axis.text(0, line / 2, heading, fontsize=size, va="center", parse_math=False)
    for sentence, i, centre, row in places:
        dark = darkness(sentence.norms[i])
        axis.text(
            centre,
            (row + 1.5) * line,
            sentence.tokens[i],
            fontsize=size,
            ha="center",
            va="center",
            parse_math=False,
            color="white" if dark > 0.5 else "black",
            weight="bold" if i == sentence.highest else "normal",
            bbox={"boxstyle": f"square,pad={pad / size}", "facecolor": [c / 255 for c in _colour(dark)], "lw": 0},
        )
    return figure


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
