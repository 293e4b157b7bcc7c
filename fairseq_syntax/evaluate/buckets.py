"""Sentences put together by a number that each has, length or depth of the tree, or by labels that the user gives.

Buckets with fewer sentences than a minimum are put together with a neighbour, and say so.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ..trees.conllu import ROOT, Sentence, read_conllu
from ..trees.text import quoted, read_lines
from .comparison import Evaluation
from .corpus import Corpus, check_count

RELATION = "relation:"
LABEL = "label:"
KINDS = {
    "length": "source words",
    "depth": "tree depth",
    "longest-dependency": "longest dependency",
    RELATION + "NAME": "NAME",
}
"""What sentences can be put together by -> how tables call it."""


@dataclass
class Source:
    """What is known of N source sentences; None where it is not.

    Attributes:
        words: N numbers of them.
        parses: N trees.
    """

    words: Sequence[int] | None = None
    parses: list[Sentence] | None = None


@dataclass(frozen=True)
class Bucket:
    """Sentences of similar values.

    Attributes:
        label: their values: "11-20"; ">50" of the last one, where it is open.
        sentences: (n,) their indices, ascending.
        merged: what was put together, as (label, sentences) each; empty if nothing was.
    """

    label: str
    sentences: np.ndarray
    merged: tuple[tuple[str, int], ...] = ()

    def __len__(self) -> int:
        return len(self.sentences)


@dataclass(frozen=True)
class Scale:
    """Where buckets begin, and what they are called.

    Attributes:
        edges: ascending whole numbers; bucket i holds the values from edge i to below edge i + 1.
        names: of buckets that are not ranges, each with its edge; empty otherwise.
        open: whether the last bucket has no end.
    """

    edges: tuple[int, ...]
    names: tuple[str, ...] = ()
    open: bool = False

    def label(self, first: int, last: int) -> str:
        """Of the buckets first to last together."""
        if self.names:
            together = self.names[first : last + 1]
            return "all" if 1 < len(together) == len(self.names) else ", ".join(together)
        low = self.edges[first]
        if self.open and last == len(self.edges) - 1:
            return "all" if first == 0 else f">{low - 1}"
        high = self.edges[last + 1] - 1
        return str(low) if low == high else f"{low}-{high}"


def make_buckets(values: Sequence[float] | np.ndarray, scale: Scale, minimum: int) -> list[Bucket]:
    """Put sentences into buckets, and buckets with fewer than `minimum` together with their smaller neighbour.

    Args:
        values: N numbers; sentences with NaN are left out.
        scale: whose first edge is not above any value.
        minimum: sentences of a bucket; only a single bucket may have fewer.
    """
    array = np.asarray(values, dtype=np.float64)
    known = np.flatnonzero(~np.isnan(array))
    numbers = np.searchsorted(np.array(scale.edges), array[known], side="right") - 1
    # runs of the scale's buckets: (first, last, sentences)
    runs = [(i, i, known[numbers == i]) for i in np.unique(numbers).tolist()]
    parts = {i: len(sentences) for i, _, sentences in runs}
    while len(runs) > 1 and min(len(run[2]) for run in runs) < minimum:
        small = min(range(len(runs)), key=lambda i: len(runs[i][2]))
        other = min((i for i in (small - 1, small + 1) if 0 <= i < len(runs)), key=lambda i: len(runs[i][2]))
        left, right = sorted((small, other))
        together = (runs[left][0], runs[right][1], np.sort(np.concatenate([runs[left][2], runs[right][2]])))
        runs[left : right + 1] = [together]
    return [
        Bucket(
            scale.label(first, last),
            sentences,
            tuple((scale.label(i, i), parts[i]) for i in range(first, last + 1) if i in parts) if first < last else (),
        )
        for first, last, sentences in runs
    ]


def steps(values: np.ndarray, width: int, start: int, longest: int | None = None) -> Scale:
    """Buckets of one width from `start`, up to the largest value; above `longest` there is one, which is open."""
    top = int(np.nanmax(values, initial=start)) if longest is None else longest
    edges = tuple(range(start, top + 1 + (width if longest is None else 0), width))
    return Scale(edges) if longest is None else Scale((*edges, longest + 1), open=True)


# --- what sentences are put together by ---------------------------------------------------------------------------


def labelled(path: str, numbers: Sequence[int]) -> tuple[np.ndarray, Scale]:
    """A bucket for each label.

    Args:
        path: of a text: the label of every sentence, one a line.
        numbers: of N sentences, from 0.

    Returns:
        Which label each sentence has, (N,), and the labels, in alphabetical order.

    Raises:
        ValueError: there are other than one line for each sentence.
        OSError: the file is missing.
    """
    lines = [line.strip() for line in read_lines(path)]
    check_count(len(lines), numbers, path, "labels", "give each one, on a line")
    names, places = np.unique([lines[number] or "none" for number in numbers], return_inverse=True)
    return places.astype(np.float64), Scale(tuple(range(len(names))), names=tuple(names.tolist()))


def read_parses(path: str | Path, numbers: Sequence[int], sources: Sequence[str] | None) -> list[Sentence]:
    """The trees of some sentences of a CoNLL-U file.

    Args:
        path: of the file, plain or .gz.
        numbers: of N sentences, from 0.
        sources: their N texts, of which the words must be those of the trees; None does without.

    Raises:
        ValueError: there are other than one tree for each sentence, or of other words; see also `read_conllu`.
    """
    trees = list(read_conllu(path))
    check_count(len(trees), numbers, str(path), "trees", "give each one")
    if sources is not None:
        for number, source in zip(numbers, sources, strict=True):
            _check_words(trees[number], source.split(), f"{path}:{trees[number].line}: sentence {number + 1}")
    return [trees[number] for number in numbers]


def _check_words(sentence: Sentence, words: list[str], place: str) -> None:
    """Raise ValueError if the words of a tree are not those of the source; unknown ones (<unk>) may be any."""
    for forms in (sentence.forms, sentence.collapse_ranges().forms):
        pairs = zip(words, forms, strict=False)
        same = all(word.lower() == form.lower() or "<unk>" in word + form for word, form in pairs)
        if same and len(words) == len(forms):
            return
    if "<unk>" in "".join(words) and len(words) < len(sentence):
        return  # in the output of fairseq, an unknown piece of sentencepiece sticks to the word before it
    raise ValueError(
        f"{place} is {quoted(' '.join(sentence.forms))} in the tree, but {quoted(' '.join(words))} in the source; give "
        "the trees of the source, and see --remove-bpe"
    )


def depth(tree: Sentence) -> int:
    """Words on the longest way down from a root."""
    return max(tree.depths(), default=0)


def longest_dependency(tree: Sentence) -> int:
    """Words from a word to its head at most; roots and punctuation, which hangs anywhere, are left out. 0 of none."""
    lengths = (
        abs(head - word)
        for word, (head, deprel) in enumerate(zip(tree.heads, tree.deprels, strict=True))
        if head != ROOT and deprel.split(":")[0] != "punct"
    )
    return max(lengths, default=0)


def has_relation(tree: Sentence, relation: str) -> int:
    """1 if a word has this label, or a subtype of it (`acl` is also `acl:relcl`); else 0."""
    return int(any(deprel == relation or deprel.startswith(f"{relation}:") for deprel in tree.deprels))


def known_source(corpus: Corpus, parse: str | None) -> Source:
    """What is known of the source of a corpus: its lengths, and its trees, from a file (CoNLL-U)."""
    parses = read_parses(parse, corpus.numbers, corpus.sources) if parse else None
    if corpus.sources is not None:
        return Source([len(text.split()) for text in corpus.sources], parses)
    # as in a text, "im" is one word
    return Source([len(tree.collapse_ranges()) for tree in parses] if parses else None, parses)


def title(kind: str) -> str:
    """How tables call a kind: by the name of the relation, or of the file of labels up to its first dot."""
    if kind.startswith(LABEL):
        return Path(kind.removeprefix(LABEL)).name.partition(".")[0]
    return kind.removeprefix(RELATION) if kind.startswith(RELATION) else KINDS[kind]


def measure(kind: str, source: Source) -> np.ndarray:
    """The number of each sentence, (N,); NaN where it has none.

    Args:
        kind: among `KINDS`.
        source: what is known of the sentences.

    Raises:
        ValueError: what is needed is not known.
    """
    if kind == "length":
        if source.words is None:
            raise ValueError("--by length: the source is not known; give --source or --parse")
        return np.maximum(np.array(source.words), 1.0)
    if source.parses is None:
        raise ValueError(f"--by {kind}: trees are needed; give --parse FILE.conllu")
    measures = {"depth": depth, "longest-dependency": longest_dependency}
    function = measures.get(kind) or (lambda tree: has_relation(tree, kind.removeprefix(RELATION)))
    found = [function(tree) if tree.is_parsed else np.nan for tree in source.parses]
    if np.isnan(found).all():
        raise ValueError(f"--by {kind}: no sentence has one; see docs/evaluation.md for what the trees must say")
    return np.array(found, dtype=np.float64)


def scale_of(kind: str, values: np.ndarray, width: int = 10, longest: int = 50) -> Scale:
    """The buckets of a kind.

    Args:
        kind: among `KINDS`.
        values: (N,), see `measure`.
        width, longest: of lengths: words of a bucket, and words after which all are in one.
    """
    if kind == "length":
        return steps(values, width, 1, longest=longest)
    if kind == "longest-dependency":
        return steps(values, 5, 0)
    if kind.startswith(RELATION):
        return Scale((0, 1), names=("absent", "present"))
    return steps(values, 1, 0)


def bucket_scores(
    evaluation: Evaluation, baseline: str, kind: str, buckets: Sequence[Bucket], values: np.ndarray, minimum: int
) -> dict:
    """Scores of all systems by bucket, as docs/evaluation.md describes them, ready for JSON."""
    corpus = evaluation.corpus
    one = corpus.system(baseline)

    def scores(metric: str, bucket: Bucket) -> dict:
        found = {system.name: evaluation.summary(metric, system.name, bucket.sentences) for system in corpus.systems}
        return {
            name: {"runs": each.runs, "mean": each.mean, "sd": each.sd, "interval": each.interval}
            for name, each in found.items()
        }

    def deltas(metric: str, bucket: Bucket) -> dict:
        others = [system for system in corpus.systems if system is not one]
        found = {system.name: evaluation.delta(metric, one, system, bucket.sentences) for system in others}
        return {name: {"mean": mean, "interval": ends} for name, (mean, ends) in found.items()}

    return {
        "by": kind,
        "title": title(kind),
        "minimum": minimum,
        "left_out": int(np.isnan(values).sum()),
        "groups": [
            {
                "label": bucket.label,
                "size": len(bucket),
                "merged": [{"label": label, "size": size} for label, size in bucket.merged],
                "sentences": [corpus.numbers[i] for i in bucket.sentences],
                "scores": {name: scores(name, bucket) for name in evaluation.metrics},
                "deltas": {name: deltas(name, bucket) for name in evaluation.metrics},
            }
            for bucket in buckets
        ],
    }


def breakdown(
    evaluation: Evaluation,
    baseline: str,
    by: Sequence[str] | None,
    source: Source,
    width: int,
    longest: int,
    minimum: int,
) -> list[dict]:
    """The buckets of each kind of `by`, or of the length of the source, if it is known; see `bucket_scores`."""
    found = []
    for kind in dict.fromkeys(by or (["length"] if source.words is not None else [])):
        if kind.startswith(LABEL):
            values, scale = labelled(kind.removeprefix(LABEL), evaluation.corpus.numbers)
        else:
            values = measure(kind, source)
            scale = scale_of(kind, values, width, longest)
        buckets = make_buckets(values, scale, minimum)
        found.append(bucket_scores(evaluation, baseline, kind, buckets, values, minimum))
    return found
