"""Tables as text."""

import math
import re
from collections.abc import Sequence
from decimal import Decimal
from enum import StrEnum

from tabulate import tabulate

from ..trees.text import visible


class TableFormat(StrEnum):
    """The output format of a table."""

    text = "text"  # aligned columns
    tsv = "tsv"
    markdown = "markdown"
    latex = "latex"  # with booktabs
    html = "html"


_TABULATE = {TableFormat.text: "plain", TableFormat.latex: "latex_booktabs", TableFormat.html: "html"}
_TAG = re.compile("<(?=[a-zA-Z/!])")


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
    numeric = [all(not isinstance(row[i], str) or row[i].startswith("< ") for row in rows) for i in range(len(header))]
    if form == TableFormat.markdown:
        rule = ["---:" if right else "---" for right in numeric]
        lines = [[_TAG.sub("&lt;", cell.replace("|", "\\|")) for cell in row] for row in (cells[0], rule, *cells[1:])]
        return "\n".join("| " + " | ".join(row) + " |" for row in lines)
    align = ["right" if right else "left" for right in numeric] if rows else None
    # tabulate pads headers, which are a row like others in text
    body, head = (cells, ()) if form == TableFormat.text else (cells[1:], cells[0])
    lines = tabulate(body, head, _TABULATE[TableFormat(form)], disable_numparse=True, colalign=align)
    return "\n".join(line.rstrip() for line in lines.splitlines())


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


def _cell(value) -> str:
    if isinstance(value, (float, Decimal)) and value != value:
        return "-"
    if isinstance(value, float):
        return f"{value:.1f}"
    return visible(str(value)).replace("\n", "\\n")
