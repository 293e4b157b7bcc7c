"""fairseq-syntax gates: when a model's decoder asks for syntax (Tran & Bisk 2018, eq. 23, Figure 6)."""

import argparse
import logging
import sys
from collections.abc import Sequence

import torch
from tqdm import tqdm

from ..evaluate.tables import TableFormat, format_table
from ..inspection.checkpoints import Loaded, add_checkpoint_arguments, load, positive
from ..inspection.gates import GatedSentence, count_highest, draw_gates, gates_page, relative_entropy
from ..pictures.figures import check_finite, save_figure
from ..trees.conllu import Sentence, TreeFormatError, quoted, read_conllu
from ..trees.subwords import SubwordType, join_subwords
from .outputs import STDIO, exit_status, picture, refuse_existing, written

_EPILOG = """\
The model reads the reference translation (teacher forcing). Of every token that it is about to predict, the end of the
sentence (</s>) included, the norm z of its gate is written: how much syntax goes into that prediction.

With --target-conllu, a table says which tags have the highest norm of their sentence, beside how often they occur among
all tokens, which is what to expect of a gate that does not look at tags. Every piece has the tag of its word; </s> is a
tag of its own.

example:
  fairseq-syntax gates data-bin --path checkpoint_best.pt --subset test --output gates.tsv --html gates.html \\
      --target-conllu test.de.conllu"""

_WITH_GATE = "fa_nmt, fa_nmt_shared, sa_nmt, sa_nmt_shared, sa_nmt_hard"
_EOS = "</s>"


def build_parser() -> argparse.ArgumentParser:
    """The program's options."""
    parser = argparse.ArgumentParser(
        prog="fairseq-syntax gates",
        description="The norm of the decoder's gate on syntax for every target token, and which words open it most.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_checkpoint_arguments(parser)
    add = parser.add_argument
    add("--subset", default="test", help="split (default: test)")
    add("--output", metavar="FILE", help="norms as TSV: sentence, position, token, norm; also .gz; - is stdout")
    add("--html", metavar="FILE", help="page of the sentences coloured by norm; give - for stdout")
    add("--draw", type=picture, metavar="PICTURE", help="the same as a picture (.svg, .png or .pdf)")
    add(
        "--sentences",
        type=int,
        nargs="+",
        metavar="N",
        help="numbers, from 0, of the sentences on the page and in the picture (default: all on the page, the first 10 "
        "in the picture)",
    )
    add(
        "--target-conllu", metavar="FILE", help="tags (UPOS) of the target words, CoNLL-U, plain or .gz; heads not used"
    )
    add(
        "--subword-type",
        choices=[str(kind) for kind in SubwordType],
        help="how the target is cut (default: as the data directory says of the source, else subword_nmt)",
    )
    add("--batch-size", type=positive, default=64, metavar="N", help="sentences a batch (default: 64)")
    add(
        "--format",
        choices=[str(form) for form in TableFormat],
        default=str(TableFormat.text),
        help="of the table of tags: text (aligned), tsv or markdown (default: text)",
    )
    add("--overwrite", action="store_true", help="replace the output if it exists")
    return parser


def main(argv: list[str] | None = None) -> int:
    """Entry point. Exit status: 0, 1 for bad data, 2 for bad usage."""
    parser = build_parser()
    args = parser.parse_args(argv)
    logging.basicConfig(level="WARNING", force=True)
    if not (args.output or args.html or args.draw or args.target_conllu):
        parser.error("give --output, --html, --draw or --target-conllu: there is nothing to make")
    if args.sentences and not (args.html or args.draw):
        parser.error("--sentences is of use with --html or --draw only")
    if args.output == STDIO and args.html == STDIO:
        parser.error("--output and --html cannot both be stdout")
    return exit_status(parser.prog, lambda: run(args))


def run(args: argparse.Namespace) -> None:
    """Compute the norms and write what is asked for.

    Raises:
        ValueError: the model has no gate, the split no such targets, or the tags are not of its words.
        OSError: a file is missing.
    """
    refuse_existing([args.output, args.html, args.draw], args.overwrite)
    loaded = load(args.path, args.data, args.cpu)
    split = loaded.load_split(args.subset)
    for number in args.sentences or ():
        if not 0 <= number < len(split):
            raise ValueError(f"--sentences {number}: {args.subset} has sentences 0 to {len(split) - 1}")
    trees = list(read_conllu(args.target_conllu)) if args.target_conllu else None
    if trees is not None and len(trees) != len(split):
        raise TreeFormatError(
            f"{args.target_conllu}: {len(trees)} sentences, but {args.subset} has {len(split)}; tag the target side of "
            "this very split"
        )
    sentences = gate_norms(loaded, split, args.subset, args.batch_size)
    # before anything is written: the tags may not fit
    table = None
    if trees is not None:
        table = _table(sentences, trees, loaded.subword_type(args.subword_type), args)
    if args.output:
        with written(args.output) as out:
            out.write("sentence\tposition\ttoken\tnorm\n")
            for sentence in sentences:
                for position, (token, norm) in enumerate(zip(sentence.tokens, sentence.norms.tolist(), strict=True)):
                    out.write(f"{sentence.number}\t{position}\t{token}\t{norm:.6f}\n")
    title = f"Gate norms: {loaded.name}, {args.subset}"
    if args.html:
        with written(args.html) as out:
            out.write(gates_page([sentences[i] for i in args.sentences or range(len(sentences))], title))
    if args.draw:
        chosen = args.sentences or range(min(10, len(sentences)))
        save_figure(draw_gates([sentences[i] for i in chosen], title), args.draw)
    if table is not None:
        # not among TSV or HTML
        print(table, file=sys.stderr if STDIO in (args.output, args.html) else sys.stdout)


@torch.no_grad()
def gate_norms(
    loaded: Loaded, split, subset: str, batch_size: int, numbers: Sequence[int] | None = None
) -> list[GatedSentence]:
    """The norms z (eq. 23) of sentences of a split with its reference translations.

    Args:
        loaded: the model.
        split: of its data.
        subset: what the split is called.
        batch_size: sentences at once.
        numbers: of the sentences, in the order of which they come out; None for all.

    Raises:
        ValueError: the model has no gate or one of NaN, or the split no target side.
    """
    dictionary = loaded.task.target_dictionary
    if split.tgt is None:
        raise ValueError(f"--subset {subset}: has no target side; preprocess it with both languages")
    found: dict[int, GatedSentence] = {}
    numbers = range(len(split)) if numbers is None else numbers
    order = sorted(set(numbers), key=lambda i: -int(split.tgt_sizes[i]))
    with tqdm(total=len(order), unit="sent", disable=len(order) <= batch_size) as bar:
        for start in range(0, len(order), batch_size):
            batch = loaded.to_device(split.collater([split[i] for i in order[start : start + batch_size]]))
            extra = loaded.model(**batch["net_input"])[1]
            norms = extra.get("gate_norm") if isinstance(extra, dict) else None
            if norms is None:
                raise ValueError(
                    f"{loaded.path}: the architecture {loaded.architecture} has no gate on syntax; "
                    f"those that have are {_WITH_GATE}"
                )
            real = batch["target"] != dictionary.pad()
            check_finite(norms[real].float().cpu().numpy(), f"{loaded.path}: the norms of the gate")
            for b, number in enumerate(batch["id"].tolist()):
                ids = batch["target"][b][real[b]].tolist()
                tokens = [_EOS if i == dictionary.eos() else dictionary[i] for i in ids]
                source = [loaded.task.source_dictionary[i] for i in split.src[number].tolist()[:-1]]
                found[number] = GatedSentence(number, tokens, norms[b][real[b]].float().cpu().numpy(), source)
            bar.update(len(batch["id"]))
    return [found[number] for number in numbers]


def _table(sentences: list[GatedSentence], trees: list[Sentence], subword_type: str, args: argparse.Namespace) -> str:
    """Which tags have the highest norms. Sentences in which unknown pieces hide where words end are left out."""
    used, tags, hidden = [], [], 0
    for sentence, tree in zip(sentences, trees, strict=True):
        of_tokens = tags_of_tokens(sentence.tokens[:-1], tree, subword_type)
        if of_tokens is not None:
            used.append(sentence)
            tags.append([*of_tokens, _EOS])
        elif "<unk>" in sentence.tokens:
            hidden += 1
        else:
            raise TreeFormatError(
                f"{args.target_conllu}:{tree.line}: the words are {quoted(' '.join(tree.forms))}, but sentence "
                f"{sentence.number} of {args.subset} is {quoted(' '.join(sentence.tokens[:-1]))}; tag the target side "
                "of this very split, and see --subword-type"
            )
    if hidden:
        print(
            f"fairseq-syntax gates: {hidden} of {len(sentences)} sentences are not counted: unknown pieces hide where "
            "their words end",
            file=sys.stderr,
        )
    if not used:
        raise ValueError("no sentence is left to count")
    counts = count_highest(used, tags)
    total = sum(number for _, number in counts.values())
    rows = [(tag, high, 100 * high / len(used), 100 * number / total) for tag, (high, number) in counts.items()]
    lines = format_table(["tag", "highest", "% of highest", "% of tokens"], rows, args.format)
    return f"{lines}\n\n{len(used)} sentences; the two shares are {relative_entropy(counts):.3f} bits apart"


def tags_of_tokens(pieces: list[str], tree: Sentence, subword_type: str) -> list[str] | None:
    """The tag of each piece's word; None if the tree is not of these words.

    Letter case does not matter, and a word with an unknown piece may be any word.
    """
    try:
        words, word_of_token = join_subwords(pieces, subword_type)
    except ValueError:  # ends inside a word
        return None
    for candidate in (tree, tree.collapse_ranges()):
        if len(candidate) == len(words) and all(
            "<unk>" in word or word.lower() == form.lower() for word, form in zip(words, candidate.forms, strict=True)
        ):
            return [candidate.upos[word] for word in word_of_token]
    return None


if __name__ == "__main__":
    sys.exit(main())
