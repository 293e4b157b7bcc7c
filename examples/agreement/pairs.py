"""Minimal pairs of the agreement corpus, for `fairseq-syntax contrast`.

    python examples/agreement/pairs.py --corpus corpus --output pairs

makes two folders and two files. `agreement`, of the challenge set: the other translation has the main verb in the
other number. `attachment`, of a split: the other translation is that of the same words under another tree, in which a
prepositional phrase hangs on the verb instead of the object or the other way round, or a relative clause on another
noun; without the tree, neither is wrong. Beside the text lie the trees, trees.en.conllu, for `--parser conllu
--parser-model`; and, of `attachment`, those of which the other translations are, other.en.conllu, for `contrast
--both-trees`. `readings.test.txt` and `readings.challenge.txt` have a line for each sentence: `several` if it has
another translation under another tree, else `one`, for `fairseq-syntax compare --by label:FILE`.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from lexicon import NOUN_BY_FORM, VERB_BY_FORM
from score import read_challenge
from transfer import TransferError, translate
from trees import Word, from_conllu, text, to_conllu

from fairseq_syntax.evaluate.minimal_pairs import write_pairs
from fairseq_syntax.trees.text import read_lines

_RELATIVE = "acl:relcl"


def agreement(corpus: Path) -> Iterator[tuple[list[list[Word]], dict]]:
    """The tree, alone, and the pair of each sentence of the challenge set."""
    table = corpus / "challenge.tsv"
    rows = read_challenge(table)
    fields = [line.split("\t") for line in read_lines(table)][1:]
    sentences, references = read_trees(corpus, "challenge"), list(read_lines(corpus / "challenge.de"))
    if not len(rows) == len(sentences) == len(references):
        raise ValueError(f"{table}: not made along with challenge.en.conllu and challenge.de; make the corpus again")
    for number, (row, values, words, reference) in enumerate(zip(rows, fields, sentences, references, strict=True)):
        tokens, index = reference.split(), int(values[4])
        if index >= len(tokens) or tokens[index] != row.right:
            raise ValueError(f"{corpus / 'challenge.de'}, line {number + 1}: word {index} is not {row.right!r}")
        wrong = [*tokens[:index], row.wrong, *tokens[index + 1 :]]
        details = {"attractors": values[1], "distance": values[2], "construction": row.construction}
        yield [words], {"source": text(words), "correct": reference, "incorrect": " ".join(wrong), **details}


def shows_number(words: Sequence[Word], verb: Word) -> bool:
    """Whether the verb of a clause has a relative pronoun for its subject and a form for the number of that."""
    if not any(w.head == verb.id and w.deprel == "nsubj" and w.upos == "PRON" for w in words):
        return False
    for word in words:
        if word.head == verb.id and word.deprel == "aux":
            return word.form in ("is", "are", "has", "have", "was", "were")
    known = VERB_BY_FORM[verb.form]
    return verb.form in (known.base, known.third) and verb.form != known.past


def is_plural(noun: Word) -> bool | None:
    """The number of a noun, by its form; None if that is of either."""
    known = NOUN_BY_FORM.get(noun.form)
    return None if known is None or known.invariant else noun.form == known.plural


def other_trees(words: Sequence[Word]) -> Iterator[tuple[str, int, list[Word]]]:
    """The other trees of the same words that the rules may know: (what hangs elsewhere, its distance, the tree)."""
    for word in words:
        heads: list[tuple[str, Word]] = []
        parent = words[word.head - 1]
        if word.deprel == "nmod" and parent.deprel == "obj":
            heads = [("obl", words[parent.head - 1])]
        elif word.deprel == "obl":
            heads = [("nmod", w) for w in words if w.deprel == "obj" and w.head == word.head and w.id < word.id]
        elif word.deprel == _RELATIVE:
            heads = [(_RELATIVE, w) for w in words if w.upos == "NOUN" and w.id < word.id and w.id != word.head]
        shown = shows_number(words, word)
        for deprel, head in heads:
            if word.id in above(words, head):
                continue  # a noun of the clause itself
            if shown and is_plural(head) != is_plural(parent):
                continue  # "the dogs near the cat that sleeps": the verb says which
            kind = "relative" if deprel == _RELATIVE else "phrase"
            yield (
                kind,
                word.id - word.head,
                [replace(w, head=head.id, deprel=deprel) if w is word else w for w in words],
            )


def above(words: Sequence[Word], word: Word) -> list[int]:
    """The numbers of the words above a word, its own first, 0 for the root last."""
    path = [word.id]
    while path[-1]:
        path.append(words[path[-1] - 1].head)
    return path


def is_projective(words: Sequence[Word]) -> bool:
    """Whether every word between a word and its head hangs below that head; the rules read no other trees."""
    paths = [above(words, word) for word in words]
    return all(
        word.head in paths[i - 1]
        for word in words
        if word.head
        for i in range(min(word.id, word.head) + 1, max(word.id, word.head))
    )


def attachment(corpus: Path, split: str) -> Iterator[tuple[list[list[Word]], dict]]:
    """The tree of a sentence and another one, and the translation of each: a pair for every other translation."""
    for words in read_trees(corpus, split):
        correct = " ".join(translate(words))
        for kind, distance, other, incorrect in other_translations(words, correct):
            details = {"attachment": kind, "distance": str(abs(distance))}
            yield [words, other], {"source": text(words), "correct": correct, "incorrect": incorrect, **details}


def other_translations(words: Sequence[Word], correct: str) -> Iterator[tuple[str, int, list[Word], str]]:
    """`other_trees` that have a translation of their own, and that."""
    seen = {correct}
    for kind, distance, other in other_trees(words):
        try:
            incorrect = " ".join(translate(other)) if is_projective(other) else correct
        except TransferError:
            continue
        if incorrect not in seen:
            seen.add(incorrect)
            yield kind, distance, other, incorrect


def readings(corpus: Path, split: str) -> Iterator[str]:
    """Of each sentence, whether the rules know one reading or several."""
    for words in read_trees(corpus, split):
        yield "several" if any(other_translations(words, " ".join(translate(words)))) else "one"


def read_trees(corpus: Path, split: str) -> list[list[Word]]:
    """The gold trees of a split."""
    return list(from_conllu(corpus / f"{split}.en.conllu"))


def main(arguments: Sequence[str] | None = None) -> None:
    """Write both folders; exit status 1 if the corpus is not one."""
    parser = argparse.ArgumentParser(description="Make minimal pairs of the agreement corpus.")
    parser.add_argument("--corpus", required=True, type=Path, help="what generate.py wrote")
    parser.add_argument("--output", required=True, type=Path, help="folder, in which all is made")
    parser.add_argument("--split", default="test", help="of the pairs of attachment (default: test)")
    options = parser.parse_args(arguments)
    try:
        made = {
            "agreement": list(agreement(options.corpus)),
            "attachment": list(attachment(options.corpus, options.split)),
        }
        for name, pairs in ((name, pairs) for name, pairs in made.items() if pairs):
            write_pairs(options.output / name, "en", "de", [pair for _, pair in pairs])
            files = zip(("trees", "other"), zip(*(trees for trees, _ in pairs), strict=True), strict=False)
            for file, trees in files:
                blocks = "".join(map(to_conllu, trees))
                (options.output / name / f"{file}.en.conllu").write_text(blocks, encoding="utf-8")
            print(f"{options.output / name}: {len(pairs)} pairs", file=sys.stderr)
        for split in ("test", "challenge"):
            lines = "".join(f"{label}\n" for label in readings(options.corpus, split))
            (options.output / f"readings.{split}.txt").write_text(lines, encoding="utf-8")
    except (ValueError, OSError) as error:
        sys.exit(f"pairs.py: {error}")


if __name__ == "__main__":
    main()
