"""Tables as text."""

from collections.abc import Sequence
from enum import StrEnum


class TableFormat(StrEnum):
    """How a table is written."""

    text = "text"  # aligned columns
    tsv = "tsv"
    markdown = "markdown"


def format_table(header: Sequence[str], rows: Sequence[Sequence], form: str = TableFormat.text) -> str:
    """A table; floats get one decimal, NaN is a dash.

    Args:
        header: names of the columns.
        rows: one value a column; text and numbers.
        form: a `TableFormat`.

    Returns:
        Lines, without the last line end.
    """
    cells = [list(header), *([_cell(value) for value in row] for row in rows)]
    if form == TableFormat.tsv:
        return "\n".join("\t".join(row) for row in cells)
    numeric = [all(not isinstance(row[i], str) for row in rows) for i in range(len(header))]
    if form == TableFormat.markdown:
        rule = ["---:" if right else "---" for right in numeric]
        lines = [[cell.replace("|", "\\|") for cell in row] for row in (cells[0], rule, *cells[1:])]
        return "\n".join("| " + " | ".join(row) + " |" for row in lines)
    widths = [max(len(row[i]) for row in cells) for i in range(len(header))]
    return "\n".join(
        "  ".join(
            c.rjust(w) if right else c.ljust(w) for c, w, right in zip(row, widths, numeric, strict=True)
        ).rstrip()
        for row in cells
    )


def _cell(value) -> str:
    if isinstance(value, float):
        return "-" if value != value else f"{value:.1f}"
    return str(value)
