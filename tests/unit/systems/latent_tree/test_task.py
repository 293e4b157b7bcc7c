"""The task of latent trees: forced trees."""

import pytest
from oracles.characters import actions_of_words

from fairseq_syntax.systems.latent_tree.task import TreeTranslationConfig, TreeTranslationTask
from fairseq_syntax.systems.latent_tree.transitions import Action
from fairseq_syntax.trees.characters import SPACE


@pytest.mark.parametrize("left", [True, False])
def test_forced_trees_are_those_of_the_text(repository, left):
    data = {"data": str(repository / "tests/golden/characters"), "source_lang": "en", "target_lang": "de"}
    # what the parts of the configuration take from each other
    data |= {"train_subset": "train", "dataset_impl": "mmap", "required_seq_len_multiple": 1}
    task = TreeTranslationTask.setup_task(
        TreeTranslationConfig(**data, rnng_forced_trees="words", left_pad_source=left)
    )
    task.load_dataset("train")
    batches = task.get_batch_iterator(task.dataset("train"), max_sentences=3).next_epoch_itr(shuffle=True)
    for batch in batches:
        given = batch["net_input"]
        sides = ((given["src_tokens"], "src_actions", task.src_dict), (batch["target"], "tgt_actions", task.tgt_dict))
        for tokens, name, dictionary in sides:
            for ids, row in zip(tokens, given[name].tolist(), strict=True):
                text = [dictionary[token] for token in ids if token not in (dictionary.pad(), dictionary.eos())]
                assert [Action(a).name for a in row if a != Action.NOP] == actions_of_words(text, SPACE)
