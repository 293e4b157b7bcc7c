"""Score translations of the challenge set: does the main verb agree with its subject?

A translation is correct if the expected German form of the main clause's finite verb ("sahen") is among its words and
that of the other number ("sah") is not. Words are what is left when everything but letters and digits separates and
case is ignored: detokenised and tokenised text score the same, and "ansah" does not count as "sah". The challenge set
uses each pair of forms in one clause only. What is not correct has the wrong number, if the other form is there, or
is missing: another verb or tense was chosen, or none. Neither the place of the verb nor the other words matter.

    python examples/agreement/score.py --challenge corpus/challenge.tsv --hypotheses hyp.de
"""

from __future__ import annotations

import argparse
import csv
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from fairseq_syntax.evaluate.tables import format_table
from fairseq_syntax.trees.text import read_lines

_WORD = re.compile(r"[^\W_]+")


class Row(NamedTuple):
    """What challenge.tsv says about one sentence; ``right`` and ``wrong`` are forms of the verb."""

    attractors: int
    construction: str
    right: str
    wrong: str


def read_challenge(path: Path) -> list[Row]:
    """The rows of challenge.tsv. Raises ValueError if it is not such a file."""
    rows = []
    for number, fields in enumerate(csv.DictReader(read_lines(path), delimiter="\t"), start=2):
        try:
            forms = fields["singular"], fields["plural"]
            right, wrong = {"singular": forms, "plural": forms[::-1]}[fields["expected"]]
            rows.append(Row(int(fields["attractors"]), fields["construction"], right, wrong))
        except (KeyError, TypeError, ValueError):
            raise ValueError(f"{path}:{number}: not a row of a challenge set; make it with generate.py") from None
    if not rows:
        raise ValueError(f"{path}: no sentence; make the challenge set with --challenge above 0")
    return rows


def judge(row: Row, hypothesis: str) -> str:
    """accuracy, wrong_number or missing: where the translation counts."""
    words = set(_WORD.findall(hypothesis.lower()))
    return "wrong_number" if row.wrong in words else "accuracy" if row.right in words else "missing"


def score(rows: Sequence[Row], hypotheses: Sequence[str]) -> dict:
    """Number of sentences and shares of each kind, overall and by number of attractors."""

    def tally(attractors: int | None = None) -> dict[str, float | int]:
        found = [v for row, v in zip(rows, verdicts, strict=True) if attractors in (None, row.attractors)]
        shares = {kind: found.count(kind) / len(found) for kind in ("accuracy", "wrong_number", "missing")}
        return {"n": len(found), **shares}

    verdicts = [judge(row, line) for row, line in zip(rows, hypotheses, strict=True)]
    return {"overall": tally(), "attractors": {str(n): tally(n) for n in sorted({row.attractors for row in rows})}}


def main(arguments: Sequence[str] | None = None) -> None:
    """Print a table of the score of some translations."""
    parser = argparse.ArgumentParser(description="Score agreement in the challenge translations.")
    parser.add_argument("--challenge", required=True, type=Path, help="challenge.tsv")
    parser.add_argument("--hypotheses", required=True, type=Path, help="translations of challenge.en, in order")
    options = parser.parse_args(arguments)
    try:
        rows, lines = read_challenge(options.challenge), list(read_lines(options.hypotheses))
        if len(lines) != len(rows):
            expected = f"expected {len(rows)}: translate challenge.en, all of it, in order"
            raise ValueError(f"{options.hypotheses}: {len(lines)} lines; {expected}")
    except (ValueError, OSError) as error:
        sys.exit(f"score.py: {error}")
    result = score(rows, lines)
    table = [
        [name, found["n"], *(f"{found[kind]:.1%}" for kind in ("accuracy", "wrong_number", "missing"))]
        for name, found in [*result["attractors"].items(), ("all", result["overall"])]
    ]
    print(format_table(["attractors", "n", "accuracy", "wrong number", "missing"], table))


if __name__ == "__main__":
    main()
