"""Every value of a record, changed or taken out: its readers work, or name the file and the place."""

import copy
import gzip
import json
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import pytest
from contract.command_lines import REPOSITORY

from fairseq_syntax.evaluate.contrast import read_record
from fairseq_syntax.experiment.run import load

RESULTS = REPOSITORY / "docs" / "results" / "agreement"
OTHERS = (None, "x", "", [], {}, -1, 1e400, True, [None], {"x": None})
GONE = object()


def places(content, depth: int = 0) -> Iterator[tuple]:
    """Paths to the values of a JSON object: all keys, and the first two of each list."""
    inside = content.items() if isinstance(content, dict) else enumerate(content[:2])
    for key, value in inside:
        yield (key,)
        if isinstance(value, dict | list):
            yield from ((key, *rest) for rest in places(value))


def damaged(content: dict) -> Iterator[tuple[tuple, object, dict]]:
    """Place, new value, and the content with it; `GONE` stands for no value at all."""
    for number, (*path, last) in enumerate(places(content)):
        for value in (GONE, *islice(OTHERS[number % 5 :], 0, None, 5)):
            changed = copy.deepcopy(content)
            inner = changed
            for key in path:
                inner = inner[key]
            if value is GONE:
                del inner[last]
            else:
                inner[last] = value
            yield (*path, last), value, changed


def write(path: Path, content: dict) -> None:
    text = json.dumps(content).encode()
    path.write_bytes(gzip.compress(text, 1) if path.suffix == ".gz" else text)


def tried(content: dict, path: Path, read) -> int:
    """How many changes of a record its reader refuses; it must not fail otherwise."""
    refused = 0
    for place, value, changed in damaged(content):
        write(path, changed)
        try:
            read()
        except ValueError as error:
            assert str(error).startswith(str(path)) and "\n" not in str(error), (place, value, error)
            refused += 1
        except Exception as error:
            pytest.fail(f"{place} = {'gone' if value is GONE else value!r}: {type(error).__name__}: {error}")
    write(path, content)
    read()
    return refused


def test_runs(tmp_path):
    record = json.loads((RESULTS / "pascal-1.json").read_text(encoding="utf8"))
    for key in ("versions", "sha256"):
        record[key] = dict(islice(record[key].items(), 2))
    record["curve"], record["curve_of_parses"] = record["curve"][:2], []
    assert tried(record, tmp_path / "pascal-1.json", lambda: load(tmp_path / "pascal-1.json")) > 60


def test_minimal_pairs(tmp_path):
    content = {"format": 1, "name": "a", "digest": "d", "measure": "sum", "details": {"a": ["1", "2"]}}
    path = tmp_path / "pairs.json"
    content |= {"correct": [-1.0, -2.0], "incorrect": [-2.0] * 2}
    assert tried(content, path, lambda: read_record(path)) > 12


@pytest.mark.parametrize("name", ["pascal-2.json", "dasa-1.json"])
def test_a_record_is_of_the_run_that_its_name_says(tmp_path, name):
    write(tmp_path / name, json.loads((RESULTS / "pascal-1.json").read_text(encoding="utf8")))
    with pytest.raises(ValueError, match=f"{name}: the record is of pascal-1; give the file its name"):
        load(tmp_path / name)
