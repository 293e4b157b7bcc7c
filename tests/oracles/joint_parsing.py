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


def scores(graphs: list, gold: list[dict], punctuation: list[list[bool]]) -> dict[str, int]:
    """Hits and words, of all words and (`_np`) of those that are no punctuation."""
    found: dict[str, int] = {}

    def count(name: str, hit: bool, is_punctuation: bool) -> None:
        found[name] = found.get(name, 0) + hit
        found[f"{name}_np"] = found.get(f"{name}_np", 0) + (hit and not is_punctuation)

    for graph, sentence, marks in zip(graphs, gold, punctuation, strict=True):
        for word, mark in enumerate(marks):
            pos, head, label = (_best(graph[key][word]) for key in ("pos", "heads", "labels"))
            if sentence["pos"][word] != -1:
                count("pos_words", True, mark)
                count("pos_hits", pos == sentence["pos"][word], mark)
            if sentence["heads"][word] != -1:
                right = head == sentence["heads"][word]
                count("head_words", True, mark)
                count("head_hits", right, mark)
                if sentence["labels"][word] != -1:
                    count("label_words", True, mark)
                count("label_hits", right and label == sentence["labels"][word], mark)
    return found


def _best(values: list[float]) -> int:
    return max(range(len(values)), key=values.__getitem__)
