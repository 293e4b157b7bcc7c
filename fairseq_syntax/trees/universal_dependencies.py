"""What Universal Dependencies demands of trees beyond the format, in which a tree may have any labels."""

from .conllu import ROOT


def universal_labels(heads: list[int], deprels: list[str]) -> list[str]:
    """The labels, with `root` where the head is 0 and nowhere else; `dep` takes its place there."""
    return [
        "root" if head == ROOT else "dep" if is_root_label(deprel) else deprel
        for head, deprel in zip(heads, deprels, strict=True)
    ]


def is_root_label(deprel: str) -> bool:
    """Whether only the root of a tree can have this label."""
    return deprel.split(":")[0].lower() == "root"
