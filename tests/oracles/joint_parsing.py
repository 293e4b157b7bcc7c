"""Losses and scores of a parser, counted word by word over graphs of one sentence each."""

import math


def losses(graphs: list, gold: list[dict]) -> dict[str, float]:
    """Σ -log p of every annotated word.

    Args:
        graphs: of each sentence, lists: "pos", "labels" (J, classes) and "heads" (J, J + 1) of probabilities.
        gold: of each sentence "pos", "heads", "labels": J numbers, below 0 where there is nothing to learn.
    """
    found = dict.fromkeys(("pos_loss", "head_loss", "label_loss"), 0.0)
    for graph, sentence in zip(graphs, gold, strict=True):
        for name, key in (("pos_loss", "pos"), ("head_loss", "heads"), ("label_loss", "labels")):
            for word, right in enumerate(sentence[key]):
                if right >= 0:
                    found[name] -= math.log(graph[key][word][right])
    return found


def scores(graphs: list, gold: list[dict]) -> dict[str, int]:
    """Hits and words."""
    found = dict.fromkeys(("pos_words", "pos_hits", "head_words", "head_hits", "label_words", "label_hits"), 0)
    for graph, sentence in zip(graphs, gold, strict=True):
        for word in range(len(sentence["pos"])):
            pos, head, label = (_best(graph[key][word]) for key in ("pos", "heads", "labels"))
            if sentence["pos"][word] != -1:
                found["pos_words"] += 1
                found["pos_hits"] += pos == sentence["pos"][word]
            if sentence["heads"][word] != -1:
                right = head == sentence["heads"][word]
                found["head_words"] += 1
                found["head_hits"] += right
                found["label_words"] += sentence["labels"][word] != -1
                found["label_hits"] += right and label == sentence["labels"][word]
    return found


def _best(values: list[float]) -> int:
    return max(range(len(values)), key=values.__getitem__)
