"""fairseq-syntax preprocess: binarize text as fairseq-preprocess does, together with its trees.

It takes all options of fairseq-preprocess. For a prefix P and source language s, tokens are read from P.s and their
trees from P.s.conllu or P.s.conllu.gz; the two must agree word for word.

With --raw DIR, the text is raw: it is normalised, tokenised, cut into subwords and parsed in DIR first. text.json in
--destdir records how, so that fairseq-interactive, from_pretrained and the verbs take raw text, too. To resume an
interrupted run, repeat the command.

--check verifies an existing directory: checksums and shapes of all files, dictionaries, that heads form trees, that
parents and distances agree with the heads, and that every sentence has a tree of its length. Training runs the fast
part of these checks. It prints a line per split on stdout and a line per fault on stderr; the exit status is 1 if there
are faults.

examples:
  fairseq-syntax preprocess --source-lang en --target-lang de --trainpref bpe/train --validpref bpe/valid \\
      --testpref bpe/test --destdir data-bin --joined-dictionary --workers 2
  fairseq-syntax preprocess --only-syntax --source-lang en --target-lang de --testpref bpe/test --destdir data-bin
  fairseq-syntax preprocess --check data-bin
  fairseq-syntax preprocess --raw text --source-lang en --target-lang sw --trainpref raw/train --validpref raw/dev \\
      --testpref raw/test --destdir data-bin --joined-dictionary --parser spacy --parser-model en_core_web_sm
"""

import argparse
import json
from contextlib import suppress
from pathlib import Path

from ..trees.alignment import find_trees
from ..trees.subwords import SubwordType
from .verb import Verb, add_parsers, add_shared, parser_options, positive


def add_arguments(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("Syntax")
    add = group.add_argument
    add_shared(
        group,
        "--subword-type",
        help="segmentation of the text: subword_nmt (@@; also fits plain words), sentencepiece (▁) or none (default: "
        "subword_nmt; with --raw, sentencepiece for languages written without spaces)",
    )
    add("--only-syntax", action="store_true", help="add trees to a --destdir that is binarized already")
    add("--no-distances", action="store_true", help="compute tree distances on loading instead of storing them")
    add(
        "--syntax-dicts",
        metavar="DIR",
        help="take the dictionaries of labels and tags from this data directory (default: build them from --trainpref; "
        "without it, use those in --destdir)",
    )
    add(
        "--allow-unparsed",
        action="store_true",
        help="accept sentences without a parse (HEAD is _), to be translated without syntax",
    )
    add("--check", metavar="DATA", help="write nothing: verify this data directory")
    add_shared(group, "--max-words", "--overwrite")
    _add_raw_text(parser)


def _add_raw_text(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("Raw text")
    add = group.add_argument
    add("--raw", metavar="DIR", help="the text is raw; make tokens, pieces and trees in this folder")
    add(
        "--source-tokenizer",
        metavar="NAME",
        help="words (of Unicode), spacy, spacy:PIPELINE, stanza, mecab, moses, or none for tokenised text (default: "
        "the parser's, if it is spaCy, or Stanza with its own models, so that it knows the words; otherwise words)",
    )
    add("--target-tokenizer", metavar="NAME", help="likewise (default: words, or none for sentencepiece)")
    add("--lowercase", nargs="+", choices=["source", "target"], default=[], help="sides to lowercase")
    add(
        "--subword-size",
        type=positive,
        default=8000,
        metavar="N",
        help="merges of subword_nmt, or pieces of sentencepiece, as --subword-type says (default: 8000)",
    )
    add_parsers(group, with_model=False)


def check(parser: argparse.ArgumentParser, args: argparse.Namespace) -> None:
    if args.check:
        if bool(args.source_lang) != bool(args.target_lang):
            parser.error("--source-lang and --target-lang go together")
        return
    if not args.source_lang or not args.target_lang:
        parser.error("give --source-lang and --target-lang")
    if args.source_lang == args.target_lang:
        parser.error(f"--source-lang and --target-lang are both {args.source_lang}: give two languages")
    if not _splits(args):
        parser.error("give at least one of --trainpref, --validpref, --testpref")
    if args.dict_only:
        parser.error("--dict-only: no trees are made; run fairseq-preprocess --dict-only")
    if args.dataset_impl not in ("mmap", "raw"):
        parser.error(f"--dataset-impl {args.dataset_impl}: choose mmap or raw")
    if args.workers < 1:
        parser.error(f"--workers {args.workers}: give 1 or more")
    if args.joined_dictionary and args.srcdict and args.tgtdict:
        parser.error("--joined-dictionary: give --srcdict or --tgtdict, not both")
    if args.only_source or (args.raw and args.only_syntax):
        parser.error("trees are made for parallel text: leave out --only-source, and --only-syntax with --raw")
    if args.raw and args.parser in ("checkpoint", "conllu", "spacy") and not args.parser_model:
        parser.error(f"--parser {args.parser}: needs --parser-model")
    if not args.raw and (args.lowercase or args.source_tokenizer or args.target_tokenizer or args.parser_model):
        parser.error("--lowercase, tokenizers and parsers are for raw text: give --raw")
    dictionaries = [args.srcdict, args.tgtdict]
    if not (args.trainpref or args.only_syntax or (any if args.joined_dictionary else all)(dictionaries)):
        parser.error("without --trainpref, give the dictionaries of the training data: --srcdict and --tgtdict")


def _splits(args: argparse.Namespace) -> dict[str, str]:
    """Name of each split in fairseq-preprocess -> prefix of its text."""
    splits = {"train": args.trainpref} if args.trainpref else {}
    for name, prefixes in (("valid", args.validpref), ("test", args.testpref)):
        splits |= {f"{name}{k or ''}": prefix for k, prefix in enumerate(prefixes.split(",") if prefixes else [])}
    return splits


def run(args: argparse.Namespace) -> None:
    if args.check:
        languages = (args.source_lang, args.target_lang) if args.source_lang else None
        lines, faults = check_data(args.check, languages)
        print(*lines, sep="\n", end="\n" if lines else "")
        if faults:
            raise ValueError("\nfairseq-syntax preprocess: ".join(faults))
        print(f"{args.check}: all right")
        return
    from ..preparation.data import preprocess
    from ..preparation.text import text_preparation

    splits, text = _splits(args), None
    if args.raw:
        text = text_preparation(
            splits,
            args.source_lang,
            args.target_lang,
            source_tokenizer=args.source_tokenizer,
            target_tokenizer=args.target_tokenizer,
            lowercase=args.lowercase,
            subword_type=args.subword_type,
            subword_size=args.subword_size,
            joined=args.joined_dictionary,
            parser=args.parser,
            options=parser_options(args),
            max_words=args.max_words,
        )
    preprocess(
        vars(args),
        splits,
        text,
        args.raw and Path(args.raw),
        subword_type=args.subword_type,
        distances=not args.no_distances,
        allow_unparsed=args.allow_unparsed,
        only_syntax=args.only_syntax,
        syntax_dicts=args.syntax_dicts,
        max_words=args.max_words,
        overwrite=args.overwrite,
    )


def check_data(data: str, languages: tuple[str, str] | None = None) -> tuple[list[str], list[str]]:
    """Verify a data directory, for one or all of its language pairs.

    Returns lines about the splits, and messages about faults. Raises FileNotFoundError: the directory does not
    exist or has no trees.
    """
    from ..data.checking import check_pair

    path = Path(data)
    if not path.is_dir():
        raise FileNotFoundError(f"{path}: no such data directory; name the one that preprocessing wrote")
    pairs = [languages] if languages else [_languages(manifest) for manifest in sorted(path.glob("syntax-*-*.json"))]
    if not pairs:
        raise FileNotFoundError(
            f"{path}: no syntax-*.json: not a directory that fairseq-syntax preprocess wrote, or one that it has not "
            "finished"
        )
    lines, faults = [], []
    for pair in pairs:
        pair_lines, pair_faults = check_pair(path, *pair)
        lines += pair_lines
        faults += pair_faults
    return lines, faults


def _languages(manifest: Path) -> tuple[str, str | None]:
    """Languages of a manifest, from its content, because language names may contain hyphens."""
    source, target = manifest.stem.split("-", 2)[1:]
    with suppress(ValueError, KeyError, TypeError, RecursionError):
        content = json.loads(manifest.read_text(encoding="utf-8"))
        languages = content["source_lang"], content["target_lang"]
        if manifest.stem == f"syntax-{languages[0]}-{languages[1]}":
            return languages
    return source, target


def refuse_missing(argv: list[str] | None) -> None:
    """Raise FileNotFoundError if data, text or trees are missing, before fairseq is imported, which takes seconds."""
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False, exit_on_error=False)
    for option in ("-s --source-lang", "-t --target-lang", "--trainpref", "--validpref", "--testpref", "--check"):
        parser.add_argument(*option.split())
    parser.add_argument("--raw")
    parser.add_argument("--only-syntax", action="store_true")
    parser.add_argument("--subword-type", default=SubwordType.subword_nmt)
    try:
        args, _ = parser.parse_known_args(argv)
    except argparse.ArgumentError:
        return  # the complete parser prints the error
    if args.check and not Path(args.check).is_dir():
        raise FileNotFoundError(f"{args.check}: no such data directory; name the one that preprocessing wrote")
    for prefix in _splits(args).values() if args.source_lang and args.target_lang else ():
        languages = (args.source_lang, *([] if args.only_syntax else [args.target_lang]))
        for path in (f"{prefix}.{language}" for language in languages):
            if not Path(path).exists() and not (args.raw and Path(f"{path}.gz").exists()):
                raise FileNotFoundError(f"{path}: no such text; check the prefixes and languages")
        if not args.raw:
            text = f"{prefix}.{args.source_lang}"
            advice = f"make them with fairseq-syntax parse --input {text} --subword-type {args.subword_type} --output"
            advice += f" {text}.conllu; for models that need no trees, run fairseq-preprocess"
            find_trees(f"{text}.conllu", advice)


def _new_parser() -> argparse.ArgumentParser:
    from fairseq.options import get_preprocessing_parser

    return get_preprocessing_parser()


main = Verb(__doc__, add_arguments, run, check, _new_parser, quiet=False, before=refuse_missing)
