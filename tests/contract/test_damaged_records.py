"""Every value of a record, changed or taken out: its readers work, or name the file and the place."""

import copy
import gzip
import json
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import matplotlib.pyplot as plt
import pytest
from contract.command_lines import REPOSITORY

from fairseq_syntax.evaluate.contrast import read_record
from fairseq_syntax.evaluate.curves import draw_parse_quality, draw_training, parse_points
from fairseq_syntax.evaluate.probes import read_probes, tables
from fairseq_syntax.evaluate.results import read_results
from fairseq_syntax.tools import sections

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
        finally:
            plt.close("all")
    write(path, content)
    read()
    return refused


def test_runs(tmp_path):
    record = json.loads((RESULTS / "pascal-1.json").read_text(encoding="utf8"))
    for key in ("versions", "sha256"):
        record[key] = dict(islice(record[key].items(), 2))
    record["curve"], record["curve_of_parses"] = record["curve"][:2], record["curve_of_parses"][:2]
    score = {"name": "BLEU", "higher_is_better": True, "digits": 2}
    system = {"name": "pascal", "runs": ["1"], "scores": {"BLEU": {"mean": 1.0, "sd": None}}}

    def read():
        records = read_results(tmp_path)
        parse_points(records)
        assert sections._systems({"systems": [system], "metrics": [score]}, {"pascal": {}, **records})

    assert tried(record, tmp_path / "pascal-1.json", read) > 60


def test_pictures_of_runs(tmp_path):
    record = json.loads((RESULTS / "pascal-1.json").read_text(encoding="utf8"))
    point = record["curve_of_parses"][0]
    point["agreement"] = {"overall": point["agreement"]["overall"]}

    def read():
        records = read_results(tmp_path)
        draw_training(records)
        draw_parse_quality(parse_points(records))

    few = {"system": "pascal", "seed": 1, "scores": {}, "curve": record["curve"][:1], "curve_of_parses": [point]}
    assert tried(few, tmp_path / "pascal-1.json", read) > 12


@pytest.mark.parametrize("probe", ["agreement", "whatif", "treebank", "unparsed"])
def test_answers(tmp_path, probe):
    (tmp_path / probe).mkdir()
    name = "sa_nmt-2" if probe == "treebank" else "pascal-1"
    record = json.loads(gzip.decompress((RESULTS / probe / f"{name}.json.gz").read_bytes()))
    record["versions"] = {}
    for lists in (record, record.get("details", {})):  # some pairs are enough
        lists |= {key: value[:6] for key, value in lists.items() if isinstance(value, list)}
    # another of the same, to be compared with
    write(tmp_path / probe / f"{name[:-1]}3.json.gz", {**record, "seed": 3})
    run = {name[:-2]: {seed: {"scores": record["scores"]} if probe == "unparsed" else {} for seed in "123"}}

    def read():
        answers = read_probes(tmp_path)[probe]
        try:
            list(tables(answers, run if probe == "unparsed" else {}, name[:-2], 3))
        except ValueError as error:  # it names the runs, not a file
            raise ValueError(f"{path}: {error}") from None

    path = tmp_path / probe / f"{name}.json.gz"
    assert tried(record, path, read) > 18


def test_minimal_pairs(tmp_path):
    content = {
        "format": 1,
        "name": "a",
        "digest": "d",
        "measure": "sum",
        "correct": [-1.0, -2.0],
        "incorrect": [-2.0] * 2,
    }
    path = tmp_path / "pairs.json"

    def read():
        list(sections._contrast([[read_record(path)]]))

    assert tried({**content, "details": {"a": ["1", "2"]}}, path, read) > 12


def test_comparisons(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(str(REPOSITORY / "examples" / "experiments"))
    from table import controls, differences

    from fairseq_syntax.experiment.comparisons import load_comparison
    from fairseq_syntax.experiment.plan import PlanError, read_plan

    board = read_plan(REPOSITORY / "examples" / "experiments" / "agreement.toml")
    content = json.loads((RESULTS / "comparisons" / "test.seq.json").read_text(encoding="utf8"))
    for kind in content["buckets"]:
        kind["groups"] = kind["groups"][:1]
    path = tmp_path / "test.seq.json"

    def read():
        try:
            comparison = load_comparison(path)
        except PlanError as error:
            raise ValueError(str(error)) from None
        differences(board, "test", comparison)
        controls("test", [comparison])

    assert tried(content, path, read) > 90


@pytest.mark.parametrize("name", ["pascal-2.json", "dasa-1.json"])
def test_a_record_is_of_the_run_that_its_name_says(tmp_path, name):
    write(tmp_path / name, json.loads((RESULTS / "pascal-1.json").read_text(encoding="utf8")))
    with pytest.raises(ValueError, match=f"{name}: the record is of pascal-1; give the file its name"):
        read_results(tmp_path)
