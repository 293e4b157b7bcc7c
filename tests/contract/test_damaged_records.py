"""A record with a value that is gone or wrong: its reader names the file and the place in one message."""

import json

import pytest
from contract.command_lines import REPOSITORY

from fairseq_syntax.evaluate.contrast import PairScores, read_record
from fairseq_syntax.evaluate.schemas import RunRecord
from fairseq_syntax.experiment.run import read_run

RUN = json.loads((REPOSITORY / "docs" / "results" / "agreement" / "pascal-1.json").read_text(encoding="utf8"))
PAIRS = {"name": "a", "digest": "d", "measure": "sum", "details": {"a": ["1", "2"]}}
PAIRS |= {"correct": [-1.0, -2.0], "incorrect": [-2.0, -2.0]}
WRONG = (None, [None], {"x": None}, float("inf"))  # of whatever type the field is
OTHERS = [{"scores": {"test": {}}}, {"updates": "1"}, {"correct": ["-1", "-2"]}, {"details": {"a": ["1"]}}]
OTHERS += [{"correct": []}, {"correct": [], "incorrect": [], "details": {}}]


@pytest.mark.parametrize(
    ("name", "right", "kind", "read"), [("pascal-1", RUN, RunRecord, read_run), ("p", PAIRS, PairScores, read_record)]
)
def test_what_is_damaged_is_named(name, right, kind, read, tmp_path):
    path = tmp_path / f"{name}.json"
    path.write_text(json.dumps(right))
    assert read(path)
    damaged = [{key: value for key, value in right.items() if key != gone} for gone in kind.__annotations__]
    damaged += [{**right, key: value} for key in kind.__annotations__ for value in WRONG]
    damaged += [{**right, **changed} for changed in OTHERS if changed.keys() <= kind.__annotations__.keys()]
    for content in damaged:
        path.write_text(json.dumps(content))
        with pytest.raises(ValueError, match=rf"^{path}: .*; (remove|give) \w"):
            read(path)


def test_a_record_is_of_the_run_that_its_name_says(tmp_path):
    (tmp_path / "dasa-1.json").write_text(json.dumps(RUN))
    with pytest.raises(ValueError, match=r"dasa-1\.json: the record is of pascal-1; give the file its name"):
        read_run(tmp_path / "dasa-1.json")
