"""The processes that load an epoch end with it: none of an earlier epoch or validation is there in a later one.

The garbage collector is off, for it would free some of them, each after five seconds.
"""

import gc
import multiprocessing

import pytest
import treebanks

from fairseq_syntax.systems.parser.task import DependencyParsingConfig, DependencyParsingTask


@pytest.fixture(autouse=True)
def no_collector():
    gc.collect()
    gc.disable()
    yield
    gc.enable()


@pytest.fixture
def task(tmp_path):
    treebanks.make(tmp_path, 12, 6)
    task = DependencyParsingTask.setup_task(
        DependencyParsingConfig(data=str(tmp_path), lgp_pos_batch_size=4, lgp_dep_batch_size=4)
    )
    task.load_dataset("valid")
    return task


def iterator(task, split, epoch=1, **options):
    if split == "train":
        task.load_dataset(split, epoch)
    return task.get_batch_iterator(task.dataset(split), max_sentences=2, num_workers=1, epoch=epoch, **options)


def read(batches):
    return sorted(i for batch in batches for i in batch["id"].tolist())


def loaders():
    return {process.pid for process in multiprocessing.active_children()}


def test_an_epoch_has_its_own_processes_only(task):
    others = loaders()
    for epoch in (1, 2, 3):
        train = iterator(task, "train", epoch)
        assert not loaders() - others
        assert read(train.next_epoch_itr()) == list(range(12))
        assert len(loaders() - others) == 1
        assert read(iterator(task, "valid").next_epoch_itr(shuffle=False)) == list(range(6))
        assert len(loaders() - others) == 1


def test_validation_in_the_middle_of_an_epoch(task):
    others = loaders()
    train = iterator(task, "train")
    batches = train.next_epoch_itr()
    first = next(batches)
    (training,) = loaders() - others
    for _ in range(2):
        assert read(iterator(task, "valid").next_epoch_itr(shuffle=False)) == list(range(6))
        # of the training, and of the validation that has just been
        assert training in loaders() and len(loaders() - others) == 2
    assert read([first, *batches]) == list(range(12))
    iterator(task, "valid")
    assert not loaders() - others
