"""Tables as text."""

import html
import math
import re
import statistics
from collections.abc import Iterable, Sequence
from decimal import Decimal
from enum import StrEnum

from ..trees.text import visible


class TableFormat(StrEnum):
    """The output format of a table."""

    text = "text"  # aligned columns
    tsv = "tsv"
    markdown = "markdown"
    latex = "latex"  # with booktabs
    html = "html"


_LATEX = str.maketrans(
    {
        **{letter: f"\\{letter}" for letter in "&%$#_{}"},
        **{"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"},
        **{"<": r"\textless{}", ">": r"\textgreater{}", "|": r"\textbar{}", "±": r"$\pm$", "−": "$-$"},
    }
)


_LESS = re.compile("< [0-9.]+")  # a number, too
_TAG = re.compile("<(?=[a-zA-Z/!])")
_NEGATIVE = re.compile(r"(?<!\w)-(?=\d)")


def format_table(header: Sequence[str], rows: Sequence[Sequence], form: str = TableFormat.text) -> str:
    """A table as text without a final line end; floats have one decimal, NaN is a dash.

    Args:
        header: names of the columns.
        rows: one text or number per column.
        form: a `TableFormat`.
    """
    cells = [[_cell(value) for value in row] for row in (header, *rows)]
    if form == TableFormat.tsv:
        return "\n".join("\t".join(row) for row in cells)
    numeric = [all(not isinstance(row[i], str) or _LESS.fullmatch(row[i]) for row in rows) for i in range(len(header))]
    if form == TableFormat.markdown:
        rule = ["---:" if right else "---" for right in numeric]
        lines = [[_TAG.sub("&lt;", cell.replace("|", "\\|")) for cell in row] for row in (cells[0], rule, *cells[1:])]
        return "\n".join("| " + " | ".join(row) + " |" for row in lines)
    if form == TableFormat.latex:
        return _latex(cells, numeric)
    if form == TableFormat.html:
        return _html(cells, numeric)
    widths = [max(len(row[i]) for row in cells) for i in range(len(header))]
    return "\n".join(
        "  ".join(
            c.rjust(w) if right else c.ljust(w) for c, w, right in zip(row, widths, numeric, strict=True)
        ).rstrip()
        for row in cells
    )


def rounded(value: float | None, digits: int) -> Decimal:
    """A number with so many decimals; None becomes NaN, which tables show as a dash."""
    # without + 0, -0.001 becomes -0.00
    return Decimal("nan" if value is None else f"{value:.{digits}f}") + 0


def signed(value: float, digits: int) -> str:
    """A rounded number with its sign; 0 has none."""
    number = rounded(value, digits)
    return f"{number:+}" if number else f"{number}"


def probability(p: float | None) -> Decimal | float | str:
    """A p-value as a cell of a table, with two digits; None becomes NaN, which tables show as a dash."""
    if p is not None and p < 1e-4:
        return "< 0.0001"
    return math.nan if p is None else Decimal(f"{p:.2g}")


def mean_and_deviation(values: Iterable[float]) -> str:
    """Mean ± standard deviation of a sample; the value alone if there is only one, a dash if there are none."""
    values = list(values)
    if len(values) < 2:
        return f"{values[0]:.1f}" if values else "-"
    return f"{statistics.mean(values):.1f} ± {statistics.stdev(values):.1f}"


def _latex(cells: list[list[str]], numeric: list[bool]) -> str:
    # at the start of a line, [ and * would be read as arguments of the previous \\
    rows = [" & ".join(_escaped(cell) for cell in row) for row in cells]
    head, *body = [("{}" if row[:1] in ("[", "*") else "") + row + r" \\" for row in rows]
    columns = "".join("r" if right else "l" for right in numeric)
    lines = [rf"\begin{{tabular}}{{{columns}}}", r"\toprule", head, r"\midrule", *body, r"\bottomrule"]
    return "\n".join([*lines, r"\end{tabular}"])


def _html(cells: list[list[str]], numeric: list[bool]) -> str:
    def row(texts: list[str], first: str, rest: list[str]) -> str:
        opened = [first, *rest]
        cells = (f"{tag}{html.escape(text)}</{tag[1:3]}>" for tag, text in zip(opened, texts, strict=True))
        return f"<tr>{''.join(cells)}</tr>"

    column = '<th scope="col">'
    data = ['<td class="number">' if right else "<td>" for right in numeric[1:]]
    body = "\n".join(row(texts, '<th scope="row">', data) for texts in cells[1:])
    head = row(cells[0], column, [column] * len(data))
    return f"<table>\n<thead>{head}</thead>\n<tbody>\n{body}\n</tbody>\n</table>"


def _escaped(cell: str) -> str:
    """Text for LaTeX; a hyphen before a number becomes a minus, and a cell `-` a dash."""
    return "--" if cell == "-" else _NEGATIVE.sub("$-$", cell.translate(_LATEX))


def _cell(value) -> str:
    if isinstance(value, (float, Decimal)) and value != value:
        return "-"
    if isinstance(value, float):
        return f"{value:.1f}"
    return visible(str(value)).replace("\n", "\\n")
