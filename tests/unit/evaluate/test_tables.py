"""Tables in their three forms."""

from fairseq_syntax.evaluate.tables import format_table

HEADER = ["system", "n", "DA"]
ROWS = [("L", 7, 33.55), ("a|b", 12345, float("nan"))]


def test_text():
    assert format_table(HEADER, ROWS).splitlines() == [
        "system      n    DA",
        "L           7  33.5",
        "a|b     12345     -",
    ]


def test_tsv():
    assert format_table(HEADER, ROWS, "tsv") == "system\tn\tDA\nL\t7\t33.5\na|b\t12345\t-"


def test_markdown():
    assert format_table(HEADER, ROWS, "markdown").splitlines() == [
        "| system | n | DA |",
        "| --- | ---: | ---: |",
        "| L | 7 | 33.5 |",
        "| a\\|b | 12345 | - |",
    ]


def test_no_rows():
    assert format_table(HEADER, [], "tsv") == "system\tn\tDA"
