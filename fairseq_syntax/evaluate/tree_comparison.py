"""How much of some trees is in others of the same words: attachment scores, counted sentence by sentence."""

from dataclasses import dataclass

from ..trees.conllu import Sentence


@dataclass
class Comparison:
    """How many words of the trees that went in came out with the same head, and with the same label as well."""

    sentences: int = 0
    unparsed: int = 0
    words: int = 0
    heads: int = 0
    both: int = 0

    def add(self, before: Sentence, after: Sentence) -> None:
        """Count a sentence."""
        self.sentences += 1
        self.unparsed += not before.is_parsed
        if before.is_parsed:
            same = [a == b for a, b in zip(before.heads, after.heads, strict=True)]
            self.words += len(same)
            self.heads += sum(same)
            self.both += sum(s and a == b for s, a, b in zip(same, before.deprels, after.deprels, strict=True))

    def __str__(self) -> str:
        uas, las = (100 * right / max(self.words, 1) for right in (self.heads, self.both))
        return f"UAS {uas:.2f}, LAS {las:.2f} of {self.words} words, {self.sentences} sentences" + (
            f"; {self.unparsed} of them have no parse" if self.unparsed else ""
        )
