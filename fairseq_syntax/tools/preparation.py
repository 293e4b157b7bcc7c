"""Tokenisation and segmentation of text for a model."""

from argparse import Namespace
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from ..data.text.recipe import Recipe, Side
from ..trees.subwords import encode_words


@dataclass(frozen=True)
class Preparation:
    """The steps from text to the pieces that a model reads; none by default.

    Attributes:
        tokenizer: `moses`, or None for tokenised text.
        lowercase: whether to lower-case the text.
        bpe: name of a segmentation in fairseq; None for segmented text.
        bpe_codes, sentencepiece_model: files for `bpe`, one for both sides or one for each.
        recipe: that of the data, instead of all of these.
        control_tokens: tokens at the beginning of source sentences that are left as they are.
    """

    tokenizer: str | None = None
    lowercase: bool = False
    bpe: str | None = None
    bpe_codes: Sequence[str] = ()
    sentencepiece_model: Sequence[str] = ()
    recipe: Recipe | None = None
    control_tokens: Sequence[str] = ()

    def build_bpe(self, side: int = 0):
        """The segmentation for the source (0) or the target (1); None without `bpe`.

        Raises ValueError: a package is missing, or a file is invalid; OSError: a file is missing.
        """
        if self.recipe is not None:
            return _Words((self.recipe.source, self.recipe.target)[side])
        from fairseq.data import encoders

        codes, model = (
            files[-side] if files else None for files in (list(self.bpe_codes), list(self.sentencepiece_model))
        )
        try:
            return encoders.build_bpe(Namespace(bpe=self.bpe, bpe_codes=codes, sentencepiece_model=model))
        except ImportError as error:
            raise ValueError(f"--bpe {self.bpe}: {error}") from None
        except (RuntimeError, ValueError, SystemExit) as error:
            # subword-nmt prints the error to stderr and exits
            why = "" if isinstance(error, SystemExit) else f" ({error})"
            path = model if self.bpe == "sentencepiece" else codes
            raise ValueError(
                f"{path}: not a file that --bpe {self.bpe} reads{why}; give the one used in training"
            ) from None

    def of_side(self, side: int, language: str) -> Callable[[str], str]:
        """A function from text to pieces for the source (0) or the target (1). Raises as `build_bpe` does."""
        steps: list[Callable[[str], str]] = []
        if self.recipe is not None:
            steps.append((self.recipe.source, self.recipe.target)[side].encode)
        if self.tokenizer:
            import sacremoses

            normal, tokens = sacremoses.MosesPunctNormalizer(language), sacremoses.MosesTokenizer(language)
            steps += [normal.normalize, lambda text: tokens.tokenize(text, escape=False, return_str=True)]
        if self.lowercase:
            steps.append(str.lower)
        if self.bpe:
            steps.append(self.build_bpe(side).encode)

        def prepare(text: str) -> str:
            for step in steps:
                text = step(text)
            return text

        return prepare if side else partial(encode_words, control=self.control_tokens, encode=prepare)


class _Words:
    """The subwords of a side of a recipe, of words."""

    def __init__(self, side: Side):
        self._side = side

    def encode(self, words: str) -> str:
        return self._side.cut(words.split())
