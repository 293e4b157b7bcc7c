"""Setup of matplotlib without a screen, fonts for all scripts, and saving of figures."""

import html
import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

import numpy as np

logger = logging.getLogger(__name__)
# because fairseq shows log messages of all libraries, even about the search for fonts
for _name in ("matplotlib", "fontTools"):
    logging.getLogger(_name).setLevel(logging.ERROR)

import matplotlib  # noqa: E402

matplotlib.use("Agg")

import matplotlib.pyplot as plt  # noqa: E402
from matplotlib import font_manager  # noqa: E402
from matplotlib.text import Text  # noqa: E402

from ..files import staged  # noqa: E402

FAMILIES = (
    "DejaVu Sans",  # comes with matplotlib: Latin, Greek, Cyrillic, Hebrew, Arabic, …
    *("Noto Sans CJK JP", "Noto Sans JP", "IPAexGothic", "Hiragino Sans", "Yu Gothic", "MS Gothic"),
    *("Noto Sans CJK SC", "Noto Sans SC", "WenQuanYi Zen Hei", "PingFang SC", "Microsoft YaHei", "SimHei"),
    *("Noto Sans CJK KR", "Noto Sans KR", "NanumGothic", "Apple SD Gothic Neo", "Malgun Gothic"),
    *("Noto Sans", "Noto Sans Hebrew", "Noto Sans Arabic", "Noto Sans Armenian", "Noto Sans Georgian"),
    *(f"Noto Sans {script}" for script in "Devanagari Bengali Gurmukhi Gujarati Oriya Tamil Telugu".split()),
    *(f"Noto Sans {script}" for script in "Kannada Malayalam Sinhala Thai Lao Myanmar Khmer Ethiopic".split()),
    *("Noto Sans Symbols", "Noto Sans Symbols2", "Noto Sans Math", "Arial Unicode MS"),
)
"""Fonts of the pictures, if installed; the first one with a glyph is used."""

# characters that XML forbids or that would end a line
_VISIBLE = {code: 0x2400 + code for code in range(0x20)} | {0x7F: 0x2421}
_VISIBLE |= dict.fromkeys((*range(0x80, 0xA0), *range(0xD800, 0xE000), 0x2028, 0x2029, 0xFFFE, 0xFFFF), 0xFFFD)


def _choose_fonts() -> list[str]:
    """Installed families of `FAMILIES`, including those that matplotlib's cached list lacks."""
    manager = font_manager.fontManager
    for path in set(font_manager.findSystemFonts()) - {str(entry.fname) for entry in manager.ttflist}:
        try:
            manager.addfont(path)
        except (OSError, RuntimeError, NotImplementedError):  # a font that cannot be read or drawn
            continue
    installed = set(manager.get_font_names())
    return [family for family in FAMILIES if family in installed]


_INSTALLED = _choose_fonts()
plt.rcParams.update(
    {
        "font.family": _INSTALLED,
        "font.sans-serif": FAMILIES[:1],
        "axes.labelsize": 8,
        "axes.titlesize": 8,
        "xtick.labelsize": 8,
        "ytick.labelsize": 8,
        # keeps text searchable and editable
        "pdf.fonttype": 42,
        "svg.fonttype": "none",
        # equal pictures give equal files
        "svg.hashsalt": "fairseq-syntax",
    }
)

_DPI = 300
_PIXELS = 60_000  # matplotlib draws fewer than 2^16 in each direction
NO_DATE = {".svg": {"Date": None}, ".pdf": {"CreationDate": None}}


def drawable(text: str) -> str:
    """A text with visible signs for control characters and for characters that file formats forbid."""
    return text.translate(_VISIBLE)


def shown(text: str) -> str:
    """A token as drawn in pictures: `drawable`, without HTML escapes such as &apos;."""
    return drawable(html.unescape(text))


@contextmanager
def without_glyph_warnings() -> Iterator[None]:
    """Silence matplotlib's warnings about missing glyphs, of which `set_fonts` gives a single one."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", r"Glyph \d+ .*missing from", UserWarning)
        yield


@cache
def _find_font(character: str) -> str | None:
    """The first installed family with a glyph for a character, or None."""
    for family in _INSTALLED:
        if font_manager.get_font(font_manager.findfont(family)).get_char_index(ord(character)):
            return family
    return None


def set_fonts(figure) -> None:
    """Restrict the font families of all texts to those that the figure needs; warn about missing glyphs."""
    texts = figure.findobj(Text)
    used = {character for text in texts for character in text.get_text() if not character.isspace()}
    families = {character: _find_font(character) for character in sorted(used)}
    for text in texts:
        # the first family is needed for boxes; sans-serif is for viewers of SVG without these fonts
        text.set_fontfamily([name for name in _INSTALLED if name in (FAMILIES[0], *families.values())] + ["sans-serif"])
    missing = [character for character, family in families.items() if family is None]
    if missing:
        logger.warning(
            "no installed font has %s (%d characters in all), which are drawn as boxes; install a font (Debian: "
            "fonts-noto-cjk, or fonts-noto-core for what is not Chinese, Japanese or Korean)",
            ", ".join(f"{character} (U+{ord(character):04X})" for character in missing[:3]),
            len(missing),
        )


def check_finite(weights: np.ndarray, name: str) -> None:
    """Raise ValueError if values to be drawn are NaN or infinite."""
    if not np.isfinite(weights).all():
        raise ValueError(
            f"{name}: NaN or infinite, so there is nothing to draw; the training of the model has failed, give an "
            "earlier checkpoint"
        )


def save_figure(figure, path: str | Path) -> None:
    """Save a figure atomically in the format of the suffix (.png, .svg, .pdf), and close it."""
    path = Path(path)
    dpi = min(_DPI, _PIXELS / max(figure.get_size_inches()))
    try:
        set_fonts(figure)
        with without_glyph_warnings(), staged(path) as partial:
            figure.savefig(partial, bbox_inches="tight", dpi=dpi, metadata=NO_DATE.get(path.suffix.lower()))
    except OSError as error:
        raise OSError(error.errno, error.strerror or str(error), str(path)) from None
    finally:
        plt.close(figure)
