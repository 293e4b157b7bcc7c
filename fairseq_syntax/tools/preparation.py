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


def build_bpe(bpe: str | None, codes: str | None, model: str | None):
    """What cuts text into pieces, as fairseq has it; None without --bpe.

    Raises:
        ValueError: a package is missing, or a file is not what it reads.
        OSError: there is no such file.
    """
    try:
        return encoders.build_bpe(Namespace(bpe=bpe, bpe_codes=codes, sentencepiece_model=model))
    except ImportError as error:
        raise ValueError(f"--bpe {bpe}: {error}") from None
    except (RuntimeError, ValueError, SystemExit) as error:
        # subword-nmt says on stderr what is wrong, and exits
        why = "" if isinstance(error, SystemExit) else f" ({error})"
        path = model if bpe == "sentencepiece" else codes
        raise ValueError(f"{path}: not what --bpe {bpe} reads{why}; give the file of the training") from None


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
        codes, model = ((files or [None])[-1 if side else 0] for files in (args.bpe_codes, args.sentencepiece_model))
        steps.append(build_bpe(args.bpe, codes, model).encode)

    def prepare(text: str) -> str:
        for step in steps:
            text = step(text)
        return text

    return prepare
