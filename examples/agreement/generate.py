"""Write the agreement corpus: English and German text, English gold trees, and a challenge set.

The files are the same, byte for byte, for the same arguments, and each split draws from its own
generator: a larger ``--train`` leaves validation, test and challenge set as they were.

    python examples/agreement/generate.py --output corpus
"""

from __future__ import annotations

import argparse
import random
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path

from grammar import NESTED, Plan, Sampler, attractors, construction, subject_and_verb
from lexicon import NUMBERS, PLURAL, SINGULAR
from readings import has_one_reading
from transfer import Transfer
from trees import Word, flatten, text, to_conllu

from fairseq_syntax.evaluate.tables import format_table
from fairseq_syntax.files import written

SHORTEST, LONGEST, LONGEST_DEEPER = 5, 40, 60
ATTRACTOR_WEIGHTS = {0: 0.34, 1: 0.32, 2: 0.24, 3: 0.10}
"""How many attractors the sentences of train, valid and test have, and how often."""
CHALLENGE_ATTRACTORS = (0, 1, 2, 3, 4)
SHALLOW, DEEP = (0, 1, 2), (3, 4, 5)
"""With --deeper: how deep all sentences but those of the challenge set nest, and what that has besides."""
FLAT_WORDS = 18
"""English words of its flat sentences, or more."""
TSV_HEADER = "line\tattractors\tdistance\tconstruction\tverb_index\tsingular\tplural\texpected"
_ATTEMPTS = 20_000
_OPPOSITE = {SINGULAR: PLURAL, PLURAL: SINGULAR}


@dataclass(frozen=True)
class Pair:
    """One English sentence with its tree and its German translation."""

    english: tuple[Word, ...]
    german: tuple[str, ...]

    @property
    def source(self) -> str:
        """The English text."""
        return text(self.english)

    @property
    def target(self) -> str:
        """The German text."""
        return " ".join(self.german)


@dataclass(frozen=True)
class Item:
    """One challenge sentence: the pair, a verb of it, and which form that must have in German."""

    pair: Pair
    verb: Word
    singular: str
    plural: str
    expected: str
    construction: str

    def row(self, line: int) -> str:
        """The line of challenge.tsv for this sentence, the ``line``-th from 0."""
        words = self.pair.english
        subject, verb = subject_and_verb(words, self.verb)
        right = self.singular if self.expected == SINGULAR else self.plural
        fields = (
            line,
            len(attractors(words, self.verb)),
            verb.id - subject.id,
            self.construction,
            self.pair.german.index(right),
            self.singular,
            self.plural,
            self.expected,
        )
        return "\t".join(str(field) for field in fields)


class Corpus:
    """Makes splits that share no sentence, on either side."""

    def __init__(self, seed: int, deeper: bool = False) -> None:
        self._seed, self._deeper = seed, deeper
        self._seen: set[str] = set()

    def _generator(self, split: str) -> random.Random:
        # Strings seed through SHA-512, so this does not depend on the process or its hash seed.
        return random.Random(f"agreement {self._seed} {'deeper ' * self._deeper}{split}")

    def _new_pair(self, sampler: Sampler, plan: Plan, shortest: int = SHORTEST) -> Pair | None:
        """A pair by ``plan``, or None if it is too long, too short, known already or has a reading too many."""
        english = tuple(flatten(sampler.sentence(plan)))
        longest = LONGEST_DEEPER if self._deeper else LONGEST
        if not shortest <= len(english) <= longest:
            return None
        pair = Pair(english, tuple(Transfer(english).translate()))
        if not SHORTEST <= len(pair.german) <= longest:
            return None
        if {"en " + pair.source, "de " + pair.target} & self._seen:
            return None
        if self._deeper and not has_one_reading(english):
            return None
        return pair

    def _keep(self, pair: Pair) -> None:
        self._seen |= {"en " + pair.source, "de " + pair.target}

    def split(self, name: str, size: int) -> list[Pair]:
        """``size`` new pairs for the split ``name``."""
        sampler = Sampler(self._generator(name))
        pairs: list[Pair] = []
        while len(pairs) < size:
            plan = Plan(sampler.weighted(ATTRACTOR_WEIGHTS))
            if self._deeper:
                plan = Plan(sampler.pick(SHALLOW), construction=sampler.pick(list(NESTED)))
            for _ in range(_ATTEMPTS):
                pair = self._new_pair(sampler, plan)
                if pair is not None:
                    break
            else:
                raise ValueError(_exhausted(name, len(pairs), size))
            self._keep(pair)
            pairs.append(pair)
        return pairs

    def challenge(self, size: int) -> list[Item]:
        """``size`` items for each number of attractors, half of them with a plural subject; of each construction."""
        items: list[Item] = []
        groups = [("", count) for count in CHALLENGE_ATTRACTORS]
        if self._deeper:
            groups = [("flat", 0), ("none", 0), *product(NESTED, (*SHALLOW[1:], *DEEP))]
        for name, count in groups:
            sampler = Sampler(self._generator(" ".join(filter(None, ("challenge", name, str(count))))))
            for index in range(size):
                number = NUMBERS[index % 2]
                plan = Plan(count, number, _OPPOSITE[number], True, name if name in ("", *NESTED) else "phrases")
                for _ in range(_ATTEMPTS):
                    pair = self._new_pair(sampler, plan, FLAT_WORDS if name == "flat" else SHORTEST)
                    item = pair and _as_item(pair, name and f"{name}-{count}")
                    if item:
                        break
                else:
                    raise ValueError(_exhausted("challenge", index, size))
                self._keep(item.pair)
                items.append(item)
        return items


def _exhausted(split: str, made: int, size: int) -> str:
    return (
        f"{split}: only {made} of {size} sentences found before the grammar ran out of new ones; "
        "expected enough different sentences; ask for fewer"
    )


def _as_item(pair: Pair, name: str = "") -> Item | None:
    """The challenge item for ``pair``, or None if its main verb could be mistaken for another.

    In an object that nests, it is the first verb there, whose subject has the other nouns.
    """
    transfer = Transfer(pair.english)
    verb = transfer.root
    if name.startswith("in-object"):
        [thing] = (word.id for word in pair.english if word.head == verb.id and word.deprel == "obj")
        [verb] = (word for word in pair.english if word.head == thing and word.deprel == "acl:relcl")
    singular, plural = transfer.finite_forms(verb)
    expected = transfer.noun_number(transfer.subject(verb))
    right, wrong = (singular, plural) if expected == SINGULAR else (plural, singular)
    if pair.german.count(right) != 1 or wrong in pair.german:
        return None
    lemmas = Counter(transfer.lemma(word) for word in pair.english if word.upos == "VERB")
    if lemmas[transfer.lemma(verb)] != 1:
        return None
    return Item(pair, verb, singular, plural, expected, name or construction(pair.english))


def _files(train: int, valid: int, test: int, challenge: int, seed: int, deeper: bool) -> dict[str, list]:
    """All splits by name. The challenge set comes first, so that no other can take from it."""
    corpus = Corpus(seed, deeper)
    splits: dict[str, list] = {"challenge": corpus.challenge(challenge)}
    for name, size in (("test", test), ("valid", valid), ("train", train)):
        splits[name] = corpus.split(name, size)
    return splits


def _contents(splits: dict[str, list]) -> Iterator[tuple[str, str]]:
    """File names with what they are to hold."""
    for name, members in splits.items():
        pairs = [member.pair if isinstance(member, Item) else member for member in members]
        yield f"{name}.en", "".join(pair.source + "\n" for pair in pairs)
        yield f"{name}.de", "".join(pair.target + "\n" for pair in pairs)
        yield f"{name}.en.conllu", "".join(to_conllu(pair.english) for pair in pairs)
    rows = [item.row(line) for line, item in enumerate(splits["challenge"])]
    yield "challenge.tsv", "\n".join([TSV_HEADER, *rows]) + "\n"


def statistics(splits: dict[str, list]) -> str:
    """A table with the sizes and lengths of the splits, and the shares of attractors in percent."""
    rows = []
    for name, members in splits.items():
        pairs = [member.pair if isinstance(member, Item) else member for member in members]
        size, counts = max(len(pairs), 1), Counter(len(attractors(pair.english)) for pair in pairs)
        words = [sum(map(len, side)) / size for side in ([p.english for p in pairs], [p.german for p in pairs])]
        rows.append([name, len(pairs), *words, *(100 * counts[count] / size for count in CHALLENGE_ATTRACTORS)])
    header = ["split", "sentences", "en words", "de words", *(f"{count} attractors" for count in CHALLENGE_ATTRACTORS)]
    return format_table(header, rows)


def _count(value: str) -> int:
    try:
        number = int(value)
    except ValueError:
        number = -1
    if number < 0:
        raise argparse.ArgumentTypeError(f"{value!r}; expected a whole number, 0 or more")
    return number


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description="Write the English-German agreement corpus.")
    parser.add_argument("--output", required=True, type=Path, help="folder for the files")
    parser.add_argument("--train", type=_count, default=6000, help="training sentences")
    parser.add_argument("--valid", type=_count, default=400, help="validation sentences")
    parser.add_argument("--test", type=_count, default=400, help="test sentences")
    parser.add_argument("--challenge", type=_count, default=100, help="challenge sentences per attractor count")
    parser.add_argument(
        "--deeper",
        action="store_true",
        help="sentences with one reading that nest 0 to 2 deep; in the challenge set, of each construction, 0 to 5",
    )
    parser.add_argument("--seed", type=int, default=1, help="the same seed gives the same files")
    parser.add_argument("--overwrite", action="store_true", help="write into a folder that is not empty")
    return parser


def main(arguments: Sequence[str] | None = None) -> None:
    """Make the corpus that the arguments ask for and print what it is like."""
    options = _parser().parse_args(arguments)
    folder: Path = options.output
    try:
        if folder.is_dir() and any(folder.iterdir()) and not options.overwrite:
            raise ValueError(f"--output {folder}: not empty; name another folder, or add --overwrite")
        splits = _files(options.train, options.valid, options.test, options.challenge, options.seed, options.deeper)
        for name, content in _contents(splits):
            with written(str(folder / name)) as file:
                file.write(content)
    except (ValueError, OSError) as error:
        sys.exit(f"generate.py: {error}")
    print(statistics(splits))


if __name__ == "__main__":
    main()
