"""What the translator writes about trees is what the analysis reads."""

import random

import pytest
import torch
from latent_trees import build, sample

from fairseq_syntax.systems.latent_tree.generator import TreeGenerator
from fairseq_syntax.systems.latent_tree.tree_files import read_tree_file, tree_lines


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16], ids=str)
def test_translations_in_any_precision_are_read_again(dtype):
    task, model = build(size=32, sharpness=2.0)
    draw = random.Random(0)
    texts = ["".join(draw.choices("abc", k=draw.randint(3, 25))) for _ in range(20)]
    generator = TreeGenerator(task.source_dictionary, task.target_dictionary, max_len_b=20)
    found = [best for best, *_ in generator.generate([model.to(dtype)], sample(task, *texts))]
    assert sum(len(hypothesis["tgt_spans"]) > 0 for hypothesis in found) > 5
    lines = "".join(tree_lines(number, hypothesis) for number, hypothesis in enumerate(found)).splitlines()
    for pair, hypothesis, text in zip(read_tree_file(enumerate(lines, 1), "trees"), found, texts, strict=True):
        assert pair.source.symbols == list(text)
        expected = hypothesis["node_attention"].double().numpy().reshape(pair.attention.shape)
        assert pair.attention == pytest.approx(expected, abs=5.1e-5)
