"""What is checked of arrays, against loops over one sentence."""

import random
import shutil

import numpy as np
import pytest
from corpora import Item, expected_arrays, random_items
from oracles import forests

from fairseq_syntax.data import invariants
from fairseq_syntax.data.arrays import ARRAY_TYPES, ArrayReader, ArrayWriter
from fairseq_syntax.data.invariants import check_trees
from fairseq_syntax.trees.conllu import TreeFormatError

ITEMS = [
    *random_items(9, seed=4),
    Item([], []),
    Item([["a"], ["b", "c"]], [-2, -2]),
    Item([["a"], ["b"]], [-1, -1]),  # two roots
    *random_items(4, seed=5),
]


def write(folder, sentences):
    """Write name -> list of arrays of each sentence; returns the readers."""
    for name, arrays in sentences.items():
        writer = ArrayWriter(folder / f"x.{name}", ARRAY_TYPES[name])
        flat = np.array([value for array in arrays for value in array], dtype=np.int64)
        writer.append(flat.astype(ARRAY_TYPES[name]), np.array([len(array) for array in arrays]))
        writer.close()
    return {name: ArrayReader(folder / f"x.{name}") for name in sentences}


def right():
    tags = {f"d{i}": 4 + i for i in range(6)} | {f"rel{i}": 4 for i in range(4)}
    upos = {"NOUN": 4, "VERB": 5, "ADP": 6, "DET": 7}
    made = [expected_arrays(item, tags, upos) for item in ITEMS]
    return {name: [list(arrays[name]) for arrays in made] for name in ARRAY_TYPES}


def is_right(arrays):
    """By loops, for one sentence: what `check_trees` promises. `arrays` are as on disk."""
    words, heads = arrays["words"], arrays["heads"]
    size = len(heads)
    if words != sorted(words) or sorted(set(words)) != list(range(size + 1)) or words.count(size) != 1:
        return False
    if (
        len(arrays["upos"]) != size
        or max([4, *arrays["upos"]]) >= 8
        or len(arrays["distances"]) != size * (size + 1) // 2
    ):
        return False
    parsed = [head for head in heads if head != -2]
    if parsed and not forests.is_forest(heads):
        return False
    pieces = [["x"] * words.count(word) for word in range(size)]
    return arrays["parents"] == expected_arrays(Item(pieces, heads), {}, {})["parents"]


def test_one_wrong_value_is_found_where_a_loop_finds_it(tmp_path, monkeypatch):
    monkeypatch.setattr(invariants, "_CHUNK", 4)
    rng, refused = random.Random(1), 0
    for number in range(120):
        arrays = right()
        name = rng.choice(["words", "heads", "parents", "upos"])
        sentence = rng.choice([i for i, array in enumerate(arrays[name]) if array])
        place = rng.randrange(len(arrays[name][sentence]))
        lowest = -2 if name == "heads" else 0
        arrays[name][sentence][place] = rng.choice([lowest, rng.randrange(10), rng.randrange(30), 999])
        folder = tmp_path / str(number)
        folder.mkdir()
        readers = write(folder, arrays)
        expected = is_right({kind: values[sentence] for kind, values in arrays.items()})
        try:
            check_trees({name: reader for name, reader in readers.items() if name != "distances"}, {"upos": 8})
        except TreeFormatError as error:
            assert not expected
            assert ": damaged: " in str(error) and (name == "upos" or f"in sentence {sentence};" in str(error))
            refused += 1
        else:
            assert expected, (name, sentence, place, arrays[name][sentence])
        shutil.rmtree(folder)
    assert 60 < refused < 116


@pytest.mark.parametrize("name", ARRAY_TYPES)
def test_wrong_lengths_and_types_are_found(tmp_path, name):
    arrays = right()
    arrays[name][3] = arrays[name][3] + [arrays[name][3][-1]]
    with pytest.raises(TreeFormatError, match="damaged"):
        check_trees(write(tmp_path, arrays), {})
    arrays[name][3].pop()
    last = arrays[name].pop()
    with pytest.raises(TreeFormatError, match=r"damaged: \d+ sentences, but 1\d in "):
        check_trees(write(tmp_path, arrays), {})
    arrays[name].append(last)
    readers = write(tmp_path, arrays)
    other = "heads" if name != "heads" else "words"
    readers[name] = ArrayReader(tmp_path / f"x.{other}")
    with pytest.raises(TreeFormatError, match=f"not {ARRAY_TYPES[name].__name__}"):
        if ARRAY_TYPES[name] == ARRAY_TYPES[other]:
            pytest.skip("the same type")
        check_trees(readers, {})


def test_distances_of_another_tree_are_found_and_right_ones_are_taken(tmp_path, monkeypatch):
    monkeypatch.setattr(invariants, "_CHUNK", 3)
    arrays = right()
    check_trees(write(tmp_path, arrays), {"deprels": 10, "upos": 8})
    sizes = [len(item.heads) for item in ITEMS]
    one = max(range(9), key=lambda i: sizes[i])
    heads = [-1, *range(sizes[one] - 1)]
    assert heads != ITEMS[one].heads
    rows = forests.distances(heads)
    arrays["distances"][one] = [rows[i][j] for i in range(len(rows)) for j in range(i + 1, len(rows))]
    readers = write(tmp_path, arrays)
    with pytest.raises(TreeFormatError, match=rf"x\.distances\.bin: damaged: distances .* in sentence {one};"):
        check_trees(readers, {})
