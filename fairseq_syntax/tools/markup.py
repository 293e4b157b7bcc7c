"""HTML of text, tables and figures, and of the page around them.

`text` escapes every string.
"""

import base64
import difflib
import html
import io
from collections.abc import Iterable, Sequence
from importlib.resources import files

from ..evaluate.tables import TableFormat, format_table
from ..pictures.figures import NO_DATE, plt, settled, visible
from ..version import __version__

_NOTHING_ELSE = "default-src 'none'; img-src data:; style-src 'unsafe-inline'; script-src 'unsafe-inline'"


def text(value: object) -> str:
    """Escaped text, with visible signs for control characters."""
    return html.escape(visible(str(value)))


def isolated(value: object) -> str:
    """Escaped text with its own direction, so that right-to-left text does not affect its surroundings."""
    return f"<bdi>{text(value)}</bdi>"


def paragraph(value: object) -> str:
    return f"<p>{text(value)}</p>"


def table(header: Sequence[str], rows: Iterable[Sequence], caption: str) -> str:
    """A table that scrolls in a narrow window."""
    return framed(format_table(header, list(rows), TableFormat.html), caption)


def framed(content: str, caption: str) -> str:
    """A framed table from `format_table` with a caption."""
    content = "\n".join(map(visible, content.split("\n")))
    captioned = content.replace("<table>", f"<table><caption>{text(caption)}</caption>", 1)
    return f'<div class="frame" tabindex="0" role="region" aria-label="{text(caption)}">{captioned}</div>'


def section(name: str, title: str, parts: Iterable[str]) -> str:
    """A section of the page for the table of contents; an empty string if it has no content."""
    body = "\n".join(filter(None, parts))
    return f'<section id="{name}"><h2>{text(title)}</h2>\n{body}\n</section>' if body else ""


def folded(title: str, body: str) -> str:
    """A folded block, which opens on a click."""
    return f"<details><summary>{title}</summary>\n{body}\n</details>"


def figure(drawing, description: str) -> str:
    """A matplotlib figure as an embedded picture, isolated from the scripts and names of the page."""
    held = io.BytesIO()
    settled(drawing)
    drawing.savefig(held, format="svg", bbox_inches="tight", metadata=NO_DATE[".svg"])
    plt.close(drawing)
    return image(held.getvalue(), "image/svg+xml", description)


def image(content: bytes, kind: str, description: str) -> str:
    """An embedded picture."""
    data = base64.b64encode(content).decode("ascii")
    words = text(description)
    return f'<figure><img src="data:{kind};base64,{data}" alt="{words}"><figcaption>{words}</figcaption></figure>'


def marked(hypothesis: str, reference: str) -> str:
    """A translation in which words that differ from the reference are marked."""
    hyp, ref = hypothesis.split(), reference.split()
    parts = []
    for kind, _, _, start, end in difflib.SequenceMatcher(None, ref, hyp, autojunk=False).get_opcodes():
        words = text(" ".join(hyp[start:end]))
        if words:
            parts.append(words if kind == "equal" else f"<mark>{words}</mark>")
    return f"<bdi>{' '.join(parts)}</bdi>" if parts else "<i>empty</i>"


def frame(title: str, links: str, body: str) -> str:
    """A complete page with contents, sections, style and script."""
    style, script = ((files(__package__) / name).read_text(encoding="utf8") for name in ("page.css", "page.js"))
    return f"""<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta http-equiv="Content-Security-Policy" content="{_NOTHING_ELSE}">
<title>{text(title)}</title>
<style>
{style}</style>
</head>
<body>
<a class="skip" href="#systems">Skip to the results</a>
<header><h1>{isolated(title)}</h1>
<nav aria-label="Contents"><ul>{links}</ul></nav></header>
<main>
{body}
</main>
<footer>Made by fairseq-syntax {__version__}, <code>fairseq-syntax report</code>.</footer>
<script>
{script}</script>
</body>
</html>
"""
