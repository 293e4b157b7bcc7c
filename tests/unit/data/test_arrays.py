"""Array files: what is written is read."""

import pickle
import tracemalloc

import numpy as np
import pytest
from fairseq.data.indexed_dataset import MMapIndexedDataset
from hypothesis import given
from hypothesis import strategies as st

from fairseq_syntax.data.arrays import (
    ARRAY_TYPES,
    ArrayReader,
    ArrayWriter,
    manifest_path,
    split_prefix,
    tag_dictionary_path,
)


def write(prefix, sentences, dtype, chunks=1):
    """Write sentences in so many appends."""
    writer = ArrayWriter(prefix, dtype)
    for part in range(chunks):
        some = sentences[len(sentences) * part // chunks : len(sentences) * (part + 1) // chunks]
        writer.append(np.array([x for s in some for x in s], dtype=np.int64), np.array([len(s) for s in some], int))
    writer.close()
    return prefix


@given(st.data(), st.sampled_from(sorted(ARRAY_TYPES)), st.integers(1, 3))
def test_round_trip(tmp_path_factory, data, name, chunks):
    dtype = ARRAY_TYPES[name]
    values = st.integers(np.iinfo(dtype).min, np.iinfo(dtype).max)
    sentences = data.draw(st.lists(st.lists(values, max_size=5), max_size=7))
    reader = ArrayReader(write(tmp_path_factory.mktemp("arrays") / "x", sentences, dtype, chunks))
    assert len(reader) == len(sentences)
    assert [reader[i].tolist() for i in range(len(reader))] == sentences
    assert reader.sizes.tolist() == [len(s) for s in sentences]
    assert reader.dtype == dtype and all(reader[i].dtype == dtype for i in range(len(reader)))


def test_what_is_read_may_be_changed(tmp_path):
    reader = ArrayReader(write(tmp_path / "x", [[1, 2], [3]], np.uint16))
    first = reader[0]
    first[:] = 9
    assert reader[0].tolist() == ArrayReader(tmp_path / "x")[0].tolist() == [1, 2]


def test_pickles_as_a_path_not_as_data(tmp_path):
    reader = ArrayReader(write(tmp_path / "x", [list(range(10000)), [], [7]], np.int16))
    pickled = pickle.dumps(reader)
    assert len(pickled) < 1000
    again = pickle.loads(pickled)
    with pytest.raises(IndexError):  # no index wraps round
        again[3]
    assert again[2].tolist() == [7] and again[0].tolist() == list(range(10000)) and again.dtype == np.int16


def test_the_format_is_fairseqs(tmp_path):
    sentences = [[-2, 5], [], [3, -1, 0]]
    write(tmp_path / "x", sentences, np.int16)
    theirs = MMapIndexedDataset(str(tmp_path / "x"))
    assert [theirs[i].tolist() for i in range(3)] == sentences
    with MMapIndexedDataset.Index.writer(str(tmp_path / "y.idx"), np.int16) as index:
        index.write([2, 0, 3])
    assert (tmp_path / "x.idx").read_bytes() == (tmp_path / "y.idx").read_bytes()


def test_what_is_mapped_is_not_in_memory(tmp_path):
    """Neither values nor what the index says of each of a million sentences."""
    writer = ArrayWriter(tmp_path / "x", np.uint16)
    writer.append(np.zeros(10**6), np.ones(10**6))
    writer.close()
    tracemalloc.start()
    reader = ArrayReader(tmp_path / "x")
    size, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert len(reader) == 10**6 and size < 10**5


def test_names_of_files(tmp_path):
    assert split_prefix(tmp_path, "train", "en", "de") is None
    write(tmp_path / "train.en-de.en.words", [[0]], np.uint16)
    assert split_prefix(tmp_path, "train", "en", "de") == tmp_path / "train.en-de.en"
    assert split_prefix(tmp_path, "valid", "en", "de") is None
    assert tag_dictionary_path("d", "en", "deprels").name == "dict.en.deprel.txt"
    assert manifest_path("d", "en", "de").name == "syntax-en-de.json"
