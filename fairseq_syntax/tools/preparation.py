"""Text on its way to a model: how its words are made and cut."""

from argparse import Namespace
from collections.abc import Callable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Preparation:
    """How text becomes the pieces that a model reads; the default leaves it as it is.

    Attributes:
        tokenizer: `moses`, or None for text that is tokenised.
        lowercase: whether case is dropped.
        bpe: what cuts words, by its name in fairseq; None for text that is cut.
        bpe_codes, sentencepiece_model: its files: one for both sides, or one for each.
    """

    tokenizer: str | None = None
    lowercase: bool = False
    bpe: str | None = None
    bpe_codes: Sequence[str] = ()
    sentencepiece_model: Sequence[str] = ()

    def build_bpe(self, side: int = 0):
        """What cuts text of a side, 0 for the source, 1 for the target; None without `bpe`.

        Raises ValueError: a package is missing, or a file is not what it reads; OSError: there is no such file.
        """
        from fairseq.data import encoders

        codes, model = (
            files[-side] if files else None for files in (list(self.bpe_codes), list(self.sentencepiece_model))
        )
        try:
            return encoders.build_bpe(Namespace(bpe=self.bpe, bpe_codes=codes, sentencepiece_model=model))
        except ImportError as error:
            raise ValueError(f"--bpe {self.bpe}: {error}") from None
        except (RuntimeError, ValueError, SystemExit) as error:
            # subword-nmt says on stderr what is wrong, and exits
            why = "" if isinstance(error, SystemExit) else f" ({error})"
            path = model if self.bpe == "sentencepiece" else codes
            raise ValueError(f"{path}: not what --bpe {self.bpe} reads{why}; give the file of the training") from None

    def of_side(self, side: int, language: str) -> Callable[[str], str]:
        """A function from text to pieces, of the source (0) or of the target (1); raises as `build_bpe` does."""
        steps: list[Callable[[str], str]] = []
        if self.tokenizer:
            try:
                import sacremoses
            except ImportError:
                raise ValueError(
                    "--tokenizer moses: needs sacremoses, which is not installed; pip install it"
                ) from None
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

        return prepare
