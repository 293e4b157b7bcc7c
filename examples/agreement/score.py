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
import json
import re
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

CORRECT, WRONG_NUMBER, MISSING = "correct", "wrong number", "missing"
_COLUMNS = ("line", "attractors", "distance", "construction", "verb_index", "singular", "plural", "expected")
_DISTANCES = ((1, "1"), (4, "2-4"), (7, "5-7"), (10, "8-10"), (10**9, "11+"))  # largest of each group, its name
_WORD = re.compile(r"[^\W_]+")


class ScoreError(Exception):
    """The files given do not belong together or cannot be read."""


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


def read_lines(path: Path) -> list[str]:
    """The lines of a text file without their ends; only line feeds end lines."""
    try:
        content = path.read_bytes().decode("utf-8")
    except OSError as error:
        raise ScoreError(f"{path}: {error.strerror}; expected a file that can be read; check the name") from error
    except UnicodeDecodeError as error:
        raise ScoreError(
            f"{path}: not UTF-8 ({error.reason} at byte {error.start}); expected UTF-8 text; convert the file"
        ) from error
    lines = content.split("\n")
    if lines[-1] == "":
        lines.pop()
    return [line.removesuffix("\r") for line in lines]


def read_challenge(path: Path) -> list[Row]:
    """The rows of challenge.tsv. Raises ScoreError if it is not such a file."""
    lines = read_lines(path)
    if not lines or tuple(lines[0].split("\t")) != _COLUMNS:
        raise ScoreError(
            f"{path}, line 1: not the header of a challenge set; expected the columns "
            f"{', '.join(_COLUMNS)}; give the challenge.tsv that generate.py wrote"
        )
    rows = []
    for number, line in enumerate(lines[1:], start=2):
        fields = dict(zip(_COLUMNS, line.split("\t"), strict=False))
        if (
            line.count("\t") != len(_COLUMNS) - 1
            or fields["line"] != str(number - 2)
            or not (fields["attractors"].isdecimal() and fields["distance"].isdecimal())
            or fields["expected"] not in ("singular", "plural")
        ):
            raise ScoreError(
                f"{path}, line {number}: not a row for sentence {number - 2}; expected "
                f"{len(_COLUMNS)} tab-separated fields in the order of the header; make the "
                "challenge set again with generate.py"
            )
        forms = (fields["singular"], fields["plural"])
        right, wrong = forms if fields["expected"] == "singular" else forms[::-1]
        distance = next(name for largest, name in _DISTANCES if int(fields["distance"]) <= largest)
        rows.append(Row(int(fields["attractors"]), distance, fields["construction"], right, wrong))
    if not rows:
        raise ScoreError(
            f"{path}: no rows after the header; expected at least one sentence; make the "
            "challenge set again with --challenge above 0"
        )
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
    size = len(verdicts)
    return {
        "n": size,
        "accuracy": verdicts.count(CORRECT) / size,
        "wrong_number": verdicts.count(WRONG_NUMBER) / size,
        "missing": verdicts.count(MISSING) / size,
    }


def _order(value: int | str) -> tuple:
    names = [name for _, name in _DISTANCES]
    return (names.index(value),) if value in names else (len(names), value)


def score(rows: Sequence[Row], hypotheses: Sequence[str]) -> dict:
    """The tallies overall, by number of attractors, by distance of subject and verb, and by construction."""
    verdicts = [judge(row, line) for row, line in zip(rows, hypotheses, strict=True)]

    def group(name: str) -> dict[str, dict]:
        keys = sorted({getattr(row, name) for row in rows}, key=_order)
        return {
            str(key): tally(verdict for row, verdict in zip(rows, verdicts, strict=True) if getattr(row, name) == key)
            for key in keys
        }

    return {
        "overall": tally(verdicts),
        "attractors": group("attractors"),
        "distance": group("distance"),
        "construction": group("construction"),
    }


def _same_length(lines: Sequence[str], path: Path, rows: Sequence[Row], challenge: Path) -> None:
    if len(lines) != len(rows):
        raise ScoreError(
            f"{path}: {len(lines)} lines; expected {len(rows)}, one for each row of {challenge}; "
            "translate challenge.en, all of it and in order"
        )


def table(result: dict) -> str:
    """The tallies by number of attractors and overall, as text."""
    lines = [f"{'attractors':<12}{'n':>6}{'accuracy':>11}{'wrong number':>15}{'missing':>10}"]
    for name, values in [*result["attractors"].items(), ("all", result["overall"])]:
        lines.append(
            f"{name:<12}{values['n']:>6}{values['accuracy']:>11.1%}"
            f"{values['wrong_number']:>15.1%}{values['missing']:>10.1%}"
        )
    if "exact_match" in result:
        lines.append(f"sentences equal to their reference: {result['exact_match']:.1%}")
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> int:
    """Score the hypotheses that the arguments name and print a table or JSON."""
    parser = argparse.ArgumentParser(description="Score agreement in the challenge translations.")
    parser.add_argument("--challenge", required=True, type=Path, help="challenge.tsv")
    parser.add_argument("--hypotheses", required=True, type=Path, help="translations of challenge.en, in order")
    parser.add_argument(
        "--references",
        type=Path,
        help="challenge.de; adds the share of sentences whose words equal the reference's",
    )
    parser.add_argument("--json", action="store_true", help="print JSON, with distances and constructions too")
    options = parser.parse_args(arguments)
    try:
        rows = read_challenge(options.challenge)
        hypotheses = read_lines(options.hypotheses)
        _same_length(hypotheses, options.hypotheses, rows, options.challenge)
        result = score(rows, hypotheses)
        if options.references is not None:
            references = read_lines(options.references)
            _same_length(references, options.references, rows, options.challenge)
            for number, (row, line) in enumerate(zip(rows, references, strict=True), start=1):
                if judge(row, line) != CORRECT:
                    raise ScoreError(
                        f"{options.references}, line {number}: lacks {row.right!r}, the verb form "
                        f"that {options.challenge} expects; expected the challenge.de made along "
                        "with it; give files of one corpus"
                    )
            equal = sum(
                _WORD.findall(hypothesis.lower()) == _WORD.findall(reference.lower())
                for hypothesis, reference in zip(hypotheses, references, strict=True)
            )
            result["exact_match"] = equal / len(rows)
    except ScoreError as error:
        print(f"score.py: {error}", file=sys.stderr)
        return 2
    print(json.dumps(result, indent=2) if options.json else table(result))
    return 0


if __name__ == "__main__":
    sys.exit(main())
