"""Minimal pairs: a source with a correct translation, and with one that has a single error.

A folder of pairs has the file names of DistilLingEval (Vamvas & Sennrich 2021): `src.LANGUAGE`, `tgt.correct.LANGUAGE`
and `tgt.incorrect.LANGUAGE`, with one sentence per line. `details.tsv`, a table with a header and one row per pair, is
optional.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ..files import staged
from ..trees.text import TreeFormatError, quoted, read_lines

DETAILS = "details.tsv"
_NAMES = {"source": "src.*", "correct": "tgt.correct.*", "incorrect": "tgt.incorrect.*"}


@dataclass(frozen=True)
class Pairs:
    """N minimal pairs.

    Attributes:
        sources, correct, incorrect: N stripped lines each.
        details: name of a column -> N values.
        source_path: path of the sources, for messages.
    """

    sources: list[str]
    correct: list[str]
    incorrect: list[str]
    details: dict[str, list[str]] = field(default_factory=dict)
    source_path: str = "pairs"

    def __len__(self) -> int:
        return len(self.sources)

    @property
    def digest(self) -> str:
        """A hash of the pairs in their order, without details."""
        text = "\n".join("\t".join(pair) for pair in zip(self.sources, self.correct, self.incorrect, strict=True))
        return hashlib.sha256(text.encode()).hexdigest()[:16]


def read_pairs(folder: str | Path) -> Pairs:
    """Read the pairs of a folder, and their details if it has some.

    Raises TreeFormatError: a file is missing, or there are several; there are no pairs, files differ in length, a line
    is empty, or the members of a pair are equal.
    """
    paths = []
    for pattern in _NAMES.values():
        files = sorted(Path(folder).glob(pattern))
        if len(files) != 1:
            known = ", ".join(_NAMES.values())
            raise TreeFormatError(f"{folder}: {len(files)} files {pattern}; a folder of pairs has one each of {known}")
        paths.append(str(files[0]))
    source, correct, incorrect = paths
    texts = {path: [" ".join(line.split()) for line in read_lines(path)] for path in paths}
    size = len(texts[source])
    if not size or {*map(len, texts.values())} != {size}:
        shown = ", ".join(f"{path} has {len(lines)}" for path, lines in texts.items())
        raise TreeFormatError(f"{folder}: {shown}; every file needs one line per pair")
    for number, (line, right, wrong) in enumerate(zip(*texts.values(), strict=True), 1):
        if not (line and right and wrong) or right == wrong:
            raise TreeFormatError(
                f"{correct}:{number}: {quoted(right)} and {quoted(wrong)} for {quoted(line)}; a pair needs a source "
                "and two translations that differ"
            )
    details = Path(folder, DETAILS)
    columns = _read_details(details, size) if details.exists() else {}
    return Pairs(texts[source], texts[correct], texts[incorrect], columns, source)


def _read_details(path: Path, size: int) -> dict[str, list[str]]:
    rows = [line.split("\t") for line in read_lines(path)]
    header = rows[0] if rows else []
    if len(rows) != size + 1 or {*map(len, rows)} != {len({*header})}:
        raise TreeFormatError(
            f"{path}: not a header of different names and {size} rows of {len(header)} cells; put tabs between them"
        )
    return {name: [row[i] for row in rows[1:]] for i, name in enumerate(header)}


def write_pairs(folder: str | Path, source_language: str, target_language: str, rows: Sequence[dict[str, str]]) -> None:
    """Write a folder of pairs.

    Args:
        source_language, target_language: suffixes of the files.
        rows: `source`, `correct`, `incorrect` and the same details for each pair.

    Raises TreeFormatError: there are no pairs.
    """
    if not rows:
        raise TreeFormatError(f"{folder}: this text has no pairs; nothing was written")
    names = [name for name in rows[0] if name not in _NAMES]
    languages = {"source": source_language, "correct": target_language, "incorrect": target_language}
    contents = {pattern.replace("*", languages[name]): [row[name] for row in rows] for name, pattern in _NAMES.items()}
    if names:
        contents[DETAILS] = ["\t".join(names), *("\t".join(str(row[name]) for name in names) for row in rows)]
    for name, lines in contents.items():
        with staged(Path(folder) / name) as partial:
            partial.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
