"""Languages by their codes: ISO 639-1 and -3, BCP 47, and those of FLORES, NLLB and mBART."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

import langcodes
import regex

UNSPACED = frozenset(
    "Hani Hans Hant Jpan Hira Kana Bopo Thai Laoo Khmr Mymr Tibt Lana Tale Talu Tavt Java Bali".split()
)
"""Scripts, by their codes of ISO 15924, that are written without spaces between words."""
_PARTS = {"Hans": ["Hani"], "Hant": ["Hani"], "Jpan": ["Hani", "Hira", "Kana"], "Kore": ["Hang", "Hani"]}
_WIDE = regex.compile("[" + "".join(rf"\p{{Script={name}}}" for name in sorted(UNSPACED - _PARTS.keys())) + "]")
_LETTER = regex.compile(r"\p{L}")
_RAW, _TOKENISED = (regex.compile(rf"{before}[.,;:!?…।。](?=[\s\"'”’»)\]]|$)") for before in (r"\w", r"\s"))
_UNSEGMENTED = 6  # letters between two spaces, from which on they do not separate words

_OWN = {"ku": "kmr", "bua": "bxr", "se": "sme", "fil": "tl"}


@dataclass(frozen=True)
class Language:
    """A language and its script.

    Attributes:
        code: the shortest one: zh for zh_CN, zho_Hans and cmn.
        script: the one in the code, or else the usual one of the language; ISO 15924.
    """

    code: str
    script: str

    @property
    def spaced(self) -> bool:
        """True if words are separated by spaces."""
        return self.script not in UNSPACED

    @property
    def own(self) -> str:
        """The code in spaCy."""
        return _OWN.get(self.code, self.code)

    @property
    def stanza(self) -> str:
        """The code in Stanza."""
        return "zh-hant" if (self.code, self.script) == ("zh", "Hant") else self.own

    @property
    def scoring(self) -> str:
        """The tokenizer of sacrebleu for BLEU of raw text."""
        known = {"ja": "ja-mecab", "ko": "ko-mecab"}.get(self.code)
        return known or (
            "zh" if self.script.startswith("Han") and not self.spaced else "13a" if self.spaced else "char"
        )

    def letters(self, text: str) -> float:
        """The share of the letters of a text that are in the script."""
        names = "".join(rf"\p{{Script={name}}}" for name in _PARTS.get(self.script, [self.script]))
        return len(regex.findall(rf"(?=\p{{L}})[{names}]", text)) / max(len(_LETTER.findall(text)), 1)


@lru_cache
def language_of(code: str) -> Language:
    """The language of a code. Latin script is assumed for unknown codes, such as `src`."""
    try:
        tag = langcodes.Language.get(langcodes.standardize_tag(code, macro=True))
    except ValueError:
        return Language(code, "Latn")
    return Language(tag.language or code, tag.maximize().script or "Latn")


def scoring_of(lines: Iterable[str]) -> str:
    """Tokenizer of sacrebleu for a text of unknown language; `none` if its marks have spaces before them."""
    lines = list(lines)
    text = "".join(lines)
    wide = _WIDE.findall(text)
    if (
        not wide
        or 2 * len(wide) < len(_LETTER.findall(text))
        or len(wide) < _UNSEGMENTED * sum(len(line.split()) for line in lines)
    ):
        raw, tokenised = (sum(len(mark.findall(line)) for line in lines) for mark in (_RAW, _TOKENISED))
        return "13a" if raw > tokenised else "none"
    shares = {script: Language("und", script).letters(text) for script in sorted(UNSPACED - _PARTS.keys())}
    script = "Kana" if shares["Kana"] + shares["Hira"] > 0.05 else max(shares, key=lambda script: shares[script])
    return Language("ja" if script == "Kana" else "und", script).scoring
