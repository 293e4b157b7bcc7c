"""Tables in their four forms."""

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
    assert format_table(HEADER, [], "tsv") == "system\tn\tDA"
    assert format_table(HEADER, ROWS, "tsv") == "system\tn\tDA\nL\t7\t33.5\na|b\t12345\t-"


def test_markdown():
    assert format_table(HEADER, ROWS, "markdown").splitlines() == [
        "| system | n | DA |",
        "| --- | ---: | ---: |",
        "| L | 7 | 33.5 |",
        "| a\\|b | 12345 | - |",
    ]


def test_latex():
    rows = [(r"50 % \a_b~", -1, "2.5 [-3, 1-10]"), ("* & ^", float("nan"), "-")]
    table = format_table(["$x", "n", "#"], rows, "latex")
    assert [" ".join(line.split()) for line in table.splitlines()] == [
        *(r"\begin{tabular}{lrl}", r"\toprule", r"\$x & n & \# \\", r"\midrule"),
        r"50 \% \textbackslash{}a\_b\textasciitilde{} & -1 & 2.5 [-3, 1-10] \\",
        r"* \& \^{} & - & - \\",
        *(r"\bottomrule", r"\end{tabular}"),
    ]


def test_html_is_escaped():
    assert "<td>&lt;script&gt;" in format_table(["x"], [["<script>"]], "html")
