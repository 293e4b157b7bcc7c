"""The notebook: it runs from its first cell to its last, and what it shows and says is what comes out.

    python tests/contract/test_notebook.py

runs it and writes what comes out into it.
"""

import copy
import re
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

NOTEBOOK = Path(__file__).resolve().parents[2] / "examples" / "notebook.ipynb"
NUMBER = re.compile(r"-?\d+\.\d+")


def executed(notebook):
    """The same notebook, run in a new kernel."""
    found = copy.deepcopy(notebook)
    options = {"timeout": 120, "kernel_name": "python3", "coalesce_streams": True, "record_timing": False}
    NotebookClient(found, **options).execute()
    found.metadata = notebook.metadata  # without the version of Python
    return found


def shown(cell) -> list[tuple[str, str]]:
    """Kind and text of what a cell shows; of pictures, that there is one."""
    found = []
    for output in cell.get("outputs", []):
        data = output.get("data", {})
        kind = "picture" if "image/svg+xml" in data else output.get("name", output.output_type)
        found.append((kind, "" if kind == "picture" else output.get("text") or data["text/plain"]))
    return found


@pytest.fixture(scope="module")
def committed():
    return nbformat.read(NOTEBOOK, nbformat.current_nbformat)


def test_it_shows_what_comes_out(committed, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    nbformat.validate(committed)
    cells = [cell for cell in committed.cells if cell.cell_type == "code"]
    again = [cell for cell in executed(committed).cells if cell.cell_type == "code"]
    before, after = (" ".join(map(str, map(shown, side))) for side in (cells, again))
    assert NUMBER.sub("", after) == NUMBER.sub("", before), "meant? python tests/contract/test_notebook.py"
    # the last digit hangs on the processor
    assert [float(n) for n in NUMBER.findall(after)] == pytest.approx(
        [float(n) for n in NUMBER.findall(before)], abs=0.011
    )
    assert before.count("picture") == 3 and len(NUMBER.findall(before)) > 14


def test_what_it_says_is_so(committed):
    """Each model gives each tree its translation, more probable under it."""
    text = "\n".join(text for cell in committed.cells for _, text in shown(cell))
    on_object = "einige lehrer hatten die häuser in den schulen gefunden ."
    on_verb = "einige lehrer hatten in den schulen die häuser gefunden ."
    rows = re.findall(r"^(?:original|changed) +(-\d+\.\d+) +(-\d+\.\d+) +(einige.*\.)", text, re.MULTILINE)
    assert [row[2] for row in rows] == [on_object, on_verb] * 3
    for (original, of_other, _), (other_of_original, other, _) in (rows[:2], rows[2:4], rows[4:]):
        assert float(original) > float(of_other) + 3 and float(other) > float(other_of_original) + 3
    assert len(re.findall(r"'(?:dasa|tag|pascal)': (\d+\.\d+)", text)) == 3


if __name__ == "__main__":
    nbformat.write(executed(nbformat.read(NOTEBOOK, nbformat.current_nbformat)), NOTEBOOK)
