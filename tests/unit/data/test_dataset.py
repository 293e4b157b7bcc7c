"""The dataset inside the real task: whatever fairseq does with sentences, trees stay with their tokens.

Each sentence of these corpora can be told from its tokens, and its tree is looked up by them.
"""

import pickle
import random
import shutil

import numpy as np
import pytest
import torch
from corpora import Item, random_heads, write_split
from fairseq import tasks
from training_options import configuration

from fairseq_syntax.data.collating import INPUTS, TokenSyntax, collate_syntax
from fairseq_syntax.tools import preprocess
from fairseq_syntax.trees.conllu import TreeFormatError


def items_named(label, count, seed):
    """Sentences that begin with a word of their own."""
    rng = random.Random(seed)
    items = []
    for number in range(count):
        size = 1 + number % 9
        words = [[f"{label}{number}"], *([f"w{rng.randrange(9)}"] + ["x"] * rng.randrange(3) for _ in range(size - 1))]
        items.append(Item(words, random_heads(rng, size)))
    return items


SPLITS = {
    "one": {"train": items_named("a", 21, 1), "valid": items_named("v", 11, 2), "test": items_named("t", 6, 3)},
    "more": {"train": items_named("b", 10, 4)},
    "two": {"train": items_named("c", 13, 5)},
}
ITEMS = {item.text(): item for splits in SPLITS.values() for items in splits.values() for item in items}


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """bin-one with train, train1, valid and test; bin-two with a train of its own."""
    folder = tmp_path_factory.mktemp("data")
    for name, splits in SPLITS.items():
        for split, items in splits.items():
            write_split(folder / name / split, items)
    everything = [item for splits in SPLITS.values() for items in splits.values() for item in items]
    write_split(folder / "all" / "train", everything)
    languages = ["-s", "en", "-t", "de"]
    preprocess.main([*languages, "--trainpref", f"{folder}/all/train", "--destdir", f"{folder}/bin-all"])
    dicts = [f"--{side}dict={folder}/bin-all/dict.{lang}.txt" for side, lang in (("src", "en"), ("tgt", "de"))]
    for name, splits in SPLITS.items():
        prefixes = [part for split in splits for part in (f"--{split}pref", f"{folder}/{name}/{split}")]
        shared = [*dicts, "--syntax-dicts", f"{folder}/bin-all", "--destdir", f"{folder}/bin-{name}"]
        preprocess.main([*languages, *prefixes, *shared])
    for path in (folder / "bin-more").glob("train.*"):
        shutil.copy(path, folder / "bin-one" / path.name.replace("train.", "train1."))
    return folder


def set_up(data_path, *extra, inputs=INPUTS):
    """The task as fairseq-train makes it, told to load all inputs."""
    task = tasks.setup_task(configuration(data_path, "transformer_tiny", *extra).task)
    task.required_inputs = set(inputs)
    return task


FROM_HEADS = tuple(INPUTS.keys() - {"deprels", "upos"})


def check_batch(task, batch):
    """Each row holds the tree of its own tokens, in the columns of its tokens; returns the texts."""
    found = []
    tokens, syntax = batch["net_input"]["src_tokens"], batch["net_input"]["src_syntax"]
    for b, row in enumerate(tokens):
        ids = row[row != 1].tolist()
        item = ITEMS[" ".join(task.source_dictionary[token] for token in ids[:-1])]
        found.append(item.text())
        assert batch["net_input"]["src_lengths"][b] == len(ids)
        tree = TokenSyntax(np.array(item.word_of_token), np.array(item.heads))
        expected = collate_syntax([tree], FROM_HEADS, len(row), bool(row[0] == 1))
        assert all(syntax[name][b].equal(expected[name][0]) for name in FROM_HEADS)
    return found


# what the trainer says of training only
TRAINS = {"update_epoch_batch_itr": False}


def epoch(task, split, number=1, **kwargs):
    """All batches of an epoch, shuffled as in training."""
    iterator = task.get_batch_iterator(
        task.dataset(split), **{"max_sentences": 4, "epoch": number, "seed": 3, "num_workers": 0} | kwargs
    )
    return list(iterator.next_epoch_itr(shuffle=True))


def texts_of(task, batches):
    return [text for batch in batches for text in check_batch(task, batch)]


def texts(items):
    return sorted(item.text() for item in items)


@pytest.mark.parametrize("stored", [True, False])
@pytest.mark.parametrize("padding", [[], ["--left-pad-source"]])
def test_trees_stay_with_their_tokens_on_either_side(data, tmp_path, padding, stored):
    """Also where distances and parents are computed, because they are not stored."""
    folder = shutil.copytree(data / "bin-one", tmp_path / "bin")
    for path in [] if stored else [*folder.glob("*.distances.*"), *folder.glob("*.parents.*")]:
        path.unlink()
    task = set_up(folder, *padding)
    task.load_dataset("train", combine=False)
    assert len(task.dataset("train").syntax) == len(task.dataset("train"))
    assert stored == ("distances" in task.dataset("train").syntax.readers)
    batches = epoch(task, "train")
    assert sorted(texts_of(task, batches)) == texts(SPLITS["one"]["train"])
    padded = torch.cat([(b["net_input"]["src_tokens"][:, 0] == 1) for b in batches])
    assert padded.any() == bool(padding)
    deprels = batches[0]["net_input"]["src_syntax"]["deprels"]
    assert (deprels == 1).equal(batches[0]["net_input"]["src_tokens"] == 1)


ONCE, MORE = SPLITS["one"]["train"], SPLITS["more"]["train"]
SHORT = [item for item in ONCE if len(item.word_of_token) <= 7]


@pytest.mark.parametrize(
    ("extra", "load", "batches", "expected"),
    [
        (["--upsample-primary", 2], {"combine": True}, {}, [*ONCE, *ONCE, *MORE]),
        ([], {"combine": True}, {"max_sentences": None, "max_tokens": 40}, [*ONCE, *MORE]),
        ([], {"combine": False}, {"max_positions": (7, 100), "ignore_invalid_inputs": True}, SHORT),
        ([], {"combine": False}, {"max_sentences": 8, "required_batch_size_multiple": 8}, ONCE),  # 21, no multiple of 8
    ],
    ids=["one set twice", "batches of tokens", "filtered by size", "a smaller batch at the end"],
)
def test_every_sentence_is_in_as_many_batches_as_it_should_be(data, extra, load, batches, expected):
    task = set_up(data / "bin-one", *extra)
    task.load_dataset("train", **load)
    found = epoch(task, "train", **batches)
    assert sorted(texts_of(task, found)) == texts(expected)
    assert "max_tokens" not in batches or all(b["net_input"]["src_tokens"].numel() <= 40 for b in found)


@pytest.mark.parametrize("parts", [1, 2])
def test_directories_take_turns_after_all_parts(data, parts):
    task = set_up(f"{data}/bin-one:{data}/bin-two", "--epoch-parts", parts)
    for turn, name in enumerate(("one", "two", "one")):
        found = []
        for number in range(1 + turn * parts, 1 + (turn + 1) * parts):
            task.load_dataset("train", epoch=number, combine=False)
            found += texts_of(task, epoch(task, "train", number, **TRAINS))
        assert sorted(found) == texts(SPLITS[name]["train"])
    task.load_dataset("valid", epoch=1 + parts)  # always from the first
    assert sorted(texts_of(task, epoch(task, "valid"))) == texts(SPLITS["one"]["valid"])


def test_directories_with_different_tags_are_refused(data, tmp_path):
    shutil.copytree(data / "bin-two", tmp_path / "bin")
    (tmp_path / "bin" / "dict.en.deprel.txt").write_text("other 1\n")
    with pytest.raises(TreeFormatError, match=r"dict\.en\.deprel\.txt: other symbols, .*--syntax-dicts"):
        set_up(f"{data}/bin-one:{tmp_path}/bin")


def test_epochs_are_divided_by_seed_and_number_and_the_same_way_after_a_restart(data):
    def divided(count, start, seed=1):
        """Texts of so many parts of three."""
        task, found = set_up(data / "bin-one", "--epoch-parts", 3, "--seed", seed), []
        for number in range(start, start + count):
            task.load_dataset("train", epoch=number, combine=True)
            found.append(sorted(texts_of(task, epoch(task, "train", number, **TRAINS))))
        return found

    first, second = divided(3, 1), divided(3, 4)
    for parts in (first, second):
        assert sorted(text for part in parts for text in part) == texts([*ONCE, *MORE])
        assert max(map(len, parts)) - min(map(len, parts)) <= 1
    assert first[1] != second[1]
    assert divided(1, 5) == second[1:2]
    assert divided(1, 1, seed=2)[0] != first[0]


@pytest.mark.parametrize("split", ["valid", "train"])
def test_data_of_an_evaluation_are_not_divided(data, split):
    task = set_up(data / "bin-one", "--epoch-parts", 3)
    task.load_dataset(split, epoch=2)
    assert sorted(texts_of(task, epoch(task, split))) == texts(SPLITS["one"][split])


def test_rows_follow_the_order_that_fairseq_gives_them(data):
    """The base class sorts by length, not stably; equal lengths are the test of it."""
    task = set_up(data / "bin-one")
    task.load_dataset("train", combine=True)
    dataset = pickle.loads(pickle.dumps(task.dataset("train")))
    assert dataset.collater([]) == {}
    chosen = [i for _ in range(2) for i in range(len(dataset))]
    random.Random(0).shuffle(chosen)
    batch = dataset.collater([dataset[i] for i in chosen])
    assert len(check_batch(task, batch)) == len(chosen)
    padded = dataset.collater([dataset[0], dataset[3]], pad_to_length={"source": 30, "target": 30})
    assert padded["net_input"]["src_syntax"]["distances"].shape == (2, 30, 30)
    check_batch(task, padded)


# --- data that does not fit -------------------------------------------------------------------------------------


def test_text_made_again_without_its_trees_is_found_when_it_is_loaded(data, tmp_path):
    folder = shutil.copytree(data / "bin-one", tmp_path / "bin")
    for end in ("de.bin", "de.idx", "en.bin", "en.idx"):
        shutil.copy(folder / f"valid.en-de.{end}", folder / f"test.en-de.{end}")
    with pytest.raises(TreeFormatError, match=r"11 sentences in the binarized text, but 6 in the trees.*--overwrite"):
        set_up(folder).load_dataset("test")


def test_trees_are_not_cut(data):
    task = set_up(data / "bin-one", "--truncate-source", "--max-source-positions", 6)
    with pytest.raises(ValueError, match="--truncate-source: trees cannot be truncated"):
        task.load_dataset("valid")
    task.required_inputs = set()
    task.load_dataset("valid")


def test_missing_array_names_the_command(data, tmp_path):
    folder = shutil.copytree(data / "bin-one", tmp_path / "bin")
    (folder / "test.en-de.en.upos.idx").unlink()
    with pytest.raises(TreeFormatError, match=r"upos\.idx: not found, but the model needs upos; run fairseq-"):
        set_up(folder, inputs={"upos"}).load_dataset("test")
    set_up(folder, inputs={"parents"}).load_dataset("test")  # opens only what is asked for


def withheld(task, batches):
    """Numbers of the sentences without a parse, which have none in any input; the others have their own."""
    found = []
    for batch in batches:
        syntax, tokens = batch["net_input"]["src_syntax"], batch["net_input"]["src_tokens"]
        real = tokens != 1
        without = (syntax["parents"] == -1).all(1)
        assert without.equal((syntax["parent_pieces"] == -1).all(1))
        words = real & (tokens != 2)
        for name in ("deprels", "upos"):
            missing = task.syntax_dictionary(name).index("_")
            assert (syntax[name] == missing).equal(words & without[:, None])
        assert (syntax["distances"][without] == 0).equal((real[:, :, None] & real[:, None])[without])
        kept = {name: value[~without] for name, value in syntax.items()}
        lengths = batch["net_input"]["src_lengths"][~without]
        check_batch(task, {"net_input": {"src_tokens": tokens[~without], "src_lengths": lengths, "src_syntax": kept}})
        found += batch["id"][without].tolist()
    return sorted(found)


def test_parses_are_withheld_by_seed_epoch_and_number_and_in_training_only(data):
    task = set_up(data / "bin-one", "--parse-dropout", 0.3, "--left-pad-source")
    task.load_dataset("train", combine=True)

    def drawn(number, **kwargs):
        return withheld(task, epoch(task, "train", number, **TRAINS, **kwargs))

    first = drawn(1)
    assert 0 < len(first) < len(task.dataset("train")) and drawn(1, num_workers=2, max_sentences=7) == first
    assert drawn(2) != first != drawn(1, seed=4)
    assert first == sorted(i for shard in (0, 1) for i in drawn(1, num_shards=2, shard_id=shard))
    # over epochs, a binomial share: 34 sentences, 15 epochs
    share = np.mean([len(drawn(number)) / len(task.dataset("train")) for number in range(1, 16)])
    assert abs(share - 0.3) < 4 * (0.3 * 0.7 / (15 * len(task.dataset("train")))) ** 0.5
    assert withheld(task, epoch(task, "train")) == []
