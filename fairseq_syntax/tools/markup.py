"""HTML of text, tables and figures, and the page that holds them.

Every string goes through `text`, so that nothing in it is markup.
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
    """Escaped; control characters become visible signs."""
    return html.escape(visible(str(value)))


def isolated(value: object) -> str:
    """Escaped, in a direction of its own: text from right to left does not turn what stands beside it."""
    return f"<bdi>{text(value)}</bdi>"


def paragraph(value: object) -> str:
    return f"<p>{text(value)}</p>"


def table(header: Sequence[str], rows: Iterable[Sequence], caption: str) -> str:
    """A table that scrolls by itself where the window is narrow."""
    return framed(format_table(header, list(rows), TableFormat.html), caption)


def framed(content: str, caption: str) -> str:
    """A table of `format_table` with a caption, in a frame."""
    content = "\n".join(map(visible, content.split("\n")))
    captioned = content.replace("<table>", f"<table><caption>{text(caption)}</caption>", 1)
    return f'<div class="frame" tabindex="0" role="region" aria-label="{text(caption)}">{captioned}</div>'


def section(name: str, title: str, parts: Iterable[str]) -> str:
    """A part of the page that the contents lead to; nothing if it is empty."""
    body = "\n".join(part for part in parts if part)
    return f'<section id="{name}"><h2>{text(title)}</h2>\n{body}\n</section>' if body else ""


def folded(title: str, body: str) -> str:
    """What is shown when it is asked for."""
    return f"<details><summary>{title}</summary>\n{body}\n</details>"


def figure(drawing, description: str) -> str:
    """A matplotlib figure as a picture inside the page, which has neither scripts nor names in common with it."""
    held = io.BytesIO()
    settled(drawing)
    drawing.savefig(held, format="svg", bbox_inches="tight", metadata=NO_DATE[".svg"])
    plt.close(drawing)
    return image(held.getvalue(), "image/svg+xml", description)


def image(content: bytes, kind: str, description: str) -> str:
    """A picture inside the page."""
    data = base64.b64encode(content).decode("ascii")
    words = text(description)
    return f'<figure><img src="data:{kind};base64,{data}" alt="{words}"><figcaption>{words}</figcaption></figure>'


def marked(hypothesis: str, reference: str) -> str:
    """A translation whose words are marked where the reference has others."""
    ours, theirs = hypothesis.split(), reference.split()
    parts = []
    for kind, _, _, start, end in difflib.SequenceMatcher(None, theirs, ours, autojunk=False).get_opcodes():
        words = text(" ".join(ours[start:end]))
        if words:
            parts.append(words if kind == "equal" else f"<mark>{words}</mark>")
    return f"<bdi>{' '.join(parts)}</bdi>" if parts else "<i>empty</i>"


def frame(title: str, links: str, body: str) -> str:
    """A page of its own: contents, sections, style and script."""
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
