"""Text on its way to a model: how its words are made and cut, and what parses it."""

from argparse import Namespace
from collections.abc import Callable
from dataclasses import fields

from fairseq.data import encoders

from ..data.parsers import ParserOptions
from .loaded_model import Loaded


def choose_parser(loaded: Loaded, args: Namespace) -> None:
    """Have the model's task parse raw text as the options of `cli.common.arguments.add_parsers` say."""
    if hasattr(loaded.task, "attach_syntax"):
        # the checkpoint has the parser of its training, if any
        loaded.task.cfg.parser = args.parser
        for option in fields(ParserOptions):
            setattr(loaded.task.cfg, option.name, getattr(args, option.name))


def of_source(args: Namespace) -> Namespace:
    """The options of `cli.common.arguments.add_preparation` with the files of the source's side alone."""
    files = {name: (getattr(args, name) or [None])[0] for name in ("bpe_codes", "sentencepiece_model")}
    return Namespace(**{**vars(args), **files})


def preparation(args: Namespace, side: int, language: str) -> Callable[[str], str]:
    """Text -> pieces as the model reads them; side 0 is the source's, 1 the target's."""
    steps: list[Callable[[str], str]] = []
    if getattr(args, "tokenizer", None):
        try:
            import sacremoses
        except ImportError:
            raise ValueError("--tokenizer moses: needs sacremoses, which is not installed; pip install it") from None
        normal, tokens = sacremoses.MosesPunctNormalizer(language), sacremoses.MosesTokenizer(language)
        steps += [normal.normalize, lambda text: tokens.tokenize(text, escape=False, return_str=True)]
    if args.lowercase:
        steps.append(str.lower)
    if args.bpe:
        given = {
            name: (getattr(args, name) or [None])[-1 if side else 0] for name in ("bpe_codes", "sentencepiece_model")
        }
        try:
            steps.append(encoders.build_bpe(Namespace(bpe=args.bpe, **given)).encode)
        except (RuntimeError, ValueError) as error:
            raise ValueError(f"--bpe {args.bpe}: {error}; give the files of the training") from None

    def prepare(text: str) -> str:
        for step in steps:
            text = step(text)
        return text

    return prepare
