"""Labels as Universal Dependencies requires them; CoNLL-U itself allows any."""

from .conllu import ROOT


def universal_labels(heads: list[int], deprels: list[str]) -> list[str]:
    """The labels, with `root` for roots only; any other word with that label gets `dep` instead."""
    return [
        "root" if head == ROOT else "dep" if is_root_label(deprel) else deprel
        for head, deprel in zip(heads, deprels, strict=True)
    ]


def is_root_label(deprel: str) -> bool:
    """True if a label, or its part before the colon, is `root`."""
    return deprel.split(":")[0].lower() == "root"
