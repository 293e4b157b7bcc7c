"""A treebank, and the trees that are held against it: those of a file, or those that a model has found."""

from argparse import Namespace
from collections.abc import Iterable
from dataclasses import dataclass

from tqdm import tqdm

from ..trees.conllu import Sentence, TreeFormatError, quoted, read_conllu


@dataclass(frozen=True)
class Compared:
    """A treebank, and trees over its words: heads of each sentence, or None if there is nothing to compare with it."""

    gold: list[Sentence]
    predicted: list[list[int]] | None
    system: str
    note: str = ""


def read_compared(args: Namespace) -> Compared:
    """The treebank and the trees that the options name.

    Raises ValueError, OSError: files are missing or do not fit; see `load_with_trees` and `TreeInducer`.
    """
    gold = list(read_conllu(args.gold))
    if args.collapse_ranges:
        gold = [sentence.collapse_ranges() for sentence in gold]
    if args.predicted:
        return Compared(gold, _read_predicted(args.predicted, gold, args.gold), args.predicted)
    if not args.path:
        return Compared(gold, None, "")
    from .latent_trees import Cutter, TreeInducer, load_with_trees  # fairseq, which trees of a file do not need

    loaded = load_with_trees(args)
    inducer = TreeInducer(loaded, args.decoder, args.evidence, args.batch_size)
    cutter = Cutter(args, loaded)
    sources = [cutter.of_words(sentence.forms, f"{args.gold}:{sentence.line}") for sentence in gold]
    with tqdm(total=len(gold), unit="sent") as bar:
        trees = inducer(sources, bar)
    return Compared(gold, trees, loaded.architecture, inducer.note(args))


def _read_predicted(path: str, gold: list[Sentence], gold_path: str) -> list[list[int]]:
    trees = list(read_conllu(path))
    if len(trees) != len(gold):
        raise TreeFormatError(f"{path}: {len(trees)} sentences, but {gold_path} has {len(gold)}; parse this very text")
    heads = []
    for given, reference in zip(trees, gold, strict=True):
        candidates = (given, given.collapse_ranges())
        tree = next((tree for tree in candidates if _same_words(tree.forms, reference.forms)), None)
        if tree is None:
            raise TreeFormatError(
                f"{path}:{given.line}: the words are {quoted(' '.join(given.forms))}, but at "
                f"{gold_path}:{reference.line} {quoted(' '.join(reference.forms))}; parse the words of the treebank"
            )
        if reference.is_parsed and not tree.is_parsed:
            raise TreeFormatError(f"{path}:{tree.line}: the sentence has no tree (HEAD is _); parse it")
        heads.append(tree.heads)
    return heads


def _same_words(one: Iterable[str], other: Iterable[str]) -> bool:
    return [word.lower() for word in one] == [word.lower() for word in other]
