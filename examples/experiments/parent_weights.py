"""What heads of bundled models give the parent, and which words have to hear of another tree for another translation.

    python examples/experiments/parent_weights.py outputs/agreement > docs/results/parents.json

reads corpus/ and pairs/ there; results.py takes figures from the record: percent, but `ratio`, a weight times the
tokens of its sentence. Roots do not count. `moved` is of the words that two trees attach differently, `other` of the
same words and their parents in the other tree.
"""

import json
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch

from fairseq_syntax.evaluate.tree_pairs import BOTH_TRANSLATIONS
from fairseq_syntax.experiment.records import describe
from fairseq_syntax.systems.planted.model import head_logits
from fairseq_syntax.tools.models import load
from fairseq_syntax.tools.whatif import GivenTrees, whatif_pairs
from fairseq_syntax.trees import read_conllu
from fairseq_syntax.trees.distances import tree_distances


@torch.no_grad()
def attention(loaded, tree):
    """Scores before they are scaled, and weights, of the heads that know trees: arrays (heads, T, T)."""
    ids = loaded.encode([" ".join(tree.forms)], [tree] if loaded.task.required_inputs else None)
    [batch] = loaded.batches(loaded.as_dataset(ids), [len(ids[0])], 1)
    encoder, tokens = loaded.model.encoder, batch["net_input"]["src_tokens"]
    # planted heads speak only where there are parents
    [found] = encoder(tokens, src_syntax=batch["net_input"].get("src_syntax", {"parent_pieces": None}))["syntax"]
    scores = head_logits(encoder.layers[0].self_attn, encoder.forward_embedding(tokens)[0].transpose(0, 1), 2)
    scores = found.get("parse_logits", found.get("planted_logits", scores)).view(-1, *scores.shape[-2:])
    return scores.numpy(), found.get("attention", scores.softmax(-1)[None])[0].numpy()


def given_to_parents(name, sentences):
    """Number of a head -> what it gives parents; of (tree, parents (J,), which words count (J,)) of all sentences."""
    loaded, heads = load(f"agreement-{name}", cpu=True), {}
    for tree, parents, counts in sentences:
        word, parent = np.flatnonzero(counts), np.array(parents)[counts]
        for number, (s, a) in enumerate(zip(*attention(loaded, tree), strict=True), start=1):
            rows = s[word, parent] < 0, a[word].argmax(1) == parent, a[word, parent], a[word, parent] * len(a) / 100
            heads.setdefault(str(number), []).append(np.stack(rows, 1))
    means = {number: (100 * np.concatenate(rows).mean(0, float)).round(1).tolist() for number, rows in heads.items()}
    return {n: dict(zip(("negative", "highest", "weight", "ratio"), mean, strict=True)) for n, mean in means.items()}


class PartlyTold(GivenTrees):
    """DASA that hears of another tree than the text's first in the rows of moved words, or in all others (`moved`)."""

    def encode(self, source, tree):
        ids, first = super().encode(source, tree), self.first.setdefault(tuple(tree.forms), tree)
        told = np.append(np.not_equal(first.heads, tree.heads), False) == self.moved
        rows = np.where(told[:, None], tree_distances(tree.heads), tree_distances(first.heads))
        ids.syntax = replace(ids.syntax, distances=rows)
        return ids


if __name__ == "__main__":
    out, folder = Path(sys.argv[1]), Path(sys.argv[1], "pairs", "attachment")
    test = [(tree, tree.heads, np.array(tree.heads) >= 0) for tree in read_conllu(out / "corpus" / "test.en.conllu")]
    pairs = list(zip(*(read_conllu(folder / f"{name}.en.conllu") for name in ("trees", "other")), strict=True))
    both = [(a, b, np.not_equal(a.heads, b.heads)) for one in pairs for a, b in (one, one[::-1])]
    found = {name: given_to_parents(name, test) for name in ("pascal", "lisa", "planted")}
    found["moved"] = given_to_parents("pascal", [(a, a.heads, moved) for a, b, moved in both])
    found["other"] = given_to_parents("pascal", [(a, b.heads, moved) for a, b, moved in both])
    models = {name: GivenTrees(f"agreement-{name}") for name in ("pascal", "lisa", "tag", "dasa")}
    for name, moved in (("dasa-moved", True), ("dasa-others", False)):
        models[name] = PartlyTold("agreement-dasa")
        models[name].first, models[name].moved = {}, moved
    found["both"] = {}
    for name, model in models.items():
        measured = whatif_pairs(model, str(folder), beam=5, max_len_a=1.5, max_len_b=10)[0].measures()
        found["both"][name] = round(100 * measured[BOTH_TRANSLATIONS].mean().item(), 1)
    print(json.dumps({**describe(), "pairs": len(pairs), **found}, indent=1))
