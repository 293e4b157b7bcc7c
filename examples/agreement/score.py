"""Score translations of the challenge set: does the main verb agree with its subject?

A hypothesis is correct if the expected German form of the main clause's finite verb ("sahen") is
among its words and the form of the other number ("sah") is not. Words are what is left when the
line is lower-cased and everything but letters and digits separates: detokenised and tokenised text
score the same, and "ansah" does not count as "sah". The challenge set uses each pair of forms in
one clause only, so the form that is found belongs to the main clause. Hypotheses that are not
correct fall into two groups:

wrong number  the form of the other number is there, with or without the expected one;
missing       neither form is there: another verb or tense was chosen, or the verb was left out.

The position of the verb and the rest of the sentence do not matter.

    python examples/agreement/score.py --challenge corpus/challenge.tsv --hypotheses hyp.de
"""

from __future__ import annotations

import argparse
import csv
import json
import re
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from fairseq_syntax.evaluate.tables import format_table
from fairseq_syntax.trees.text import read_lines

CORRECT, WRONG_NUMBER, MISSING = "correct", "wrong number", "missing"
_DISTANCES = ((1, "1"), (4, "2-4"), (7, "5-7"), (10, "8-10"), (10**9, "11+"))  # largest of each group, its name
_ORDER = [name for _, name in _DISTANCES]
_WORD = re.compile(r"[^\W_]+")


@dataclass(frozen=True)
class Row:
    """What challenge.tsv says about one sentence.

    ``right`` and ``wrong`` are verb forms; ``distance``, from the subject to the finite verb in words, is a group.
    """

    attractors: int
    distance: str
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
            distance = next(name for largest, name in _DISTANCES if int(fields["distance"]) <= largest)
            rows.append(Row(int(fields["attractors"]), distance, fields["construction"], right, wrong))
        except (KeyError, TypeError, ValueError):
            raise ValueError(f"{path}:{number}: not a row of a challenge set; make it with generate.py") from None
    if not rows:
        raise ValueError(f"{path}: no sentence; make the challenge set with --challenge above 0")
    return rows


def judge(row: Row, hypothesis: str) -> str:
    """CORRECT, WRONG_NUMBER or MISSING, as the module describes."""
    words = set(_WORD.findall(hypothesis.lower()))
    if row.wrong in words:
        return WRONG_NUMBER
    return CORRECT if row.right in words else MISSING


def tally(verdicts: Iterable[str]) -> dict[str, float | int]:
    """How many verdicts there are, and what share of them is each of the three."""
    verdicts = list(verdicts)
    shares = {kind: verdicts.count(kind) / len(verdicts) for kind in (CORRECT, WRONG_NUMBER, MISSING)}
    return {
        "n": len(verdicts),
        "accuracy": shares[CORRECT],
        "wrong_number": shares[WRONG_NUMBER],
        "missing": shares[MISSING],
    }


def score(rows: Sequence[Row], hypotheses: Sequence[str]) -> dict:
    """The tallies overall, by number of attractors, by distance of subject and verb, and by construction."""
    verdicts = [judge(row, line) for row, line in zip(rows, hypotheses, strict=True)]
    result: dict = {"overall": tally(verdicts)}
    for name in ("attractors", "distance", "construction"):
        values = [getattr(row, name) for row in rows]
        keys = sorted(set(values), key=_ORDER.index if name == "distance" else None)
        result[name] = {
            str(key): tally(verdict for value, verdict in zip(values, verdicts, strict=True) if value == key)
            for key in keys
        }
    return result


def read_translations(path: Path, rows: Sequence[Row]) -> list[str]:
    """The lines of a file, one for each row. Raises ValueError if it has more or fewer."""
    lines = list(read_lines(path))
    if len(lines) != len(rows):
        raise ValueError(
            f"{path}: {len(lines)} lines; expected {len(rows)}: translate challenge.en, all of it, in order"
        )
    return lines


def table(result: dict) -> str:
    """The tallies by number of attractors and overall, as text."""
    rows = [
        [name, values["n"], *(f"{values[kind]:.1%}" for kind in ("accuracy", "wrong_number", "missing"))]
        for name, values in [*result["attractors"].items(), ("all", result["overall"])]
    ]
    return format_table(["attractors", "n", "accuracy", "wrong number", "missing"], rows)


def main(arguments: Sequence[str] | None = None) -> None:
    """Score the hypotheses that the arguments name and print a table or JSON."""
    parser = argparse.ArgumentParser(description="Score agreement in the challenge translations.")
    add = parser.add_argument
    add("--challenge", required=True, type=Path, help="challenge.tsv")
    add("--hypotheses", required=True, type=Path, help="translations of challenge.en, in order")
    add("--json", action="store_true", help="print JSON, with distances and constructions too")
    options = parser.parse_args(arguments)
    try:
        rows = read_challenge(options.challenge)
        result = score(rows, read_translations(options.hypotheses, rows))
    except (ValueError, OSError) as error:
        sys.exit(f"score.py: {error}")
    print(json.dumps(result, indent=2) if options.json else table(result))


if __name__ == "__main__":
    main()
