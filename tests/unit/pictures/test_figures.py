"""Pictures as files: text in any script, formats, and what is left when the disk is full."""

import errno
import re
import warnings
import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest
from fontTools.ttLib import TTFont
from matplotlib import font_manager
from matplotlib import pyplot as plt

from fairseq_syntax.pictures import figures
from fairseq_syntax.pictures.attention_maps import draw_annotations, draw_attention, draw_heat_map, draw_positions
from fairseq_syntax.pictures.dependency_trees import draw_tree
from fairseq_syntax.pictures.figures import save_figure
from fairseq_syntax.pictures.gates import GatedSentence, draw_gates
from fairseq_syntax.pictures.graphs import draw_graph
from fairseq_syntax.pictures.tree_variants import Variant, draw_variants
from fairseq_syntax.systems.latent_tree.drawing import draw_trees
from fairseq_syntax.systems.latent_tree.transitions import Action
from fairseq_syntax.systems.latent_tree.tree_files import Tree, TreeRecord

SVG = "{http://www.w3.org/2000/svg}"


def flat_tree(symbols):
    return Tree(list(symbols), [Action.GEN] * (len(symbols) + 1))


def square(words):
    return np.full((len(words), len(words)), 1 / len(words))


def chain(words):
    return [-1, *range(len(words) - 1)]


def named(words):
    return {"tags": words, "labels": words, "gold": chain(words), "gold_labels": words}


# kind -> function: two or more words -> a picture with them
KINDS = {
    "tree": lambda words: draw_tree(words, chain(words), **named(words)),
    "variants": lambda words: draw_variants(words, [Variant("given", chain(words), words, words)]),
    "graph": lambda words: draw_graph(words, np.pad(square(words), [(0, 0), (1, 0)]), **named(words)),
    "map": lambda words: draw_heat_map(square(words), words, words, row_name="r", column_name="c"),
    "heads": lambda words: draw_attention(square(words)[None], words, None),
    "positions": lambda words: draw_positions(square(words)[None], np.ones((1, len(words))), words, words),
    "annotations": lambda words: draw_annotations(square(words), words),
    "gates": lambda words: draw_gates([GatedSentence(words, np.arange(len(words)), words)]),
    "constituents": lambda words: draw_trees(TreeRecord(0, flat_tree(words), flat_tree(words), np.zeros((0, 1)))),
}


def texts_of(path):
    return ["".join(element.itertext()) for element in ElementTree.parse(path).getroot().iter(f"{SVG}text")]


# what XML cannot hold, and what ends lines; what text in tokens escapes; and what is neither
SHOWN = {
    **{"a\x01b": "a\u2401b", "\x00": "\u2400", "\x1b[31m": "\u241b[31m", "x\ufffey": "x\ufffdy", "\ud800": "\ufffd"},
    **{"\x85\u2028\n": "\ufffd\ufffd\u240a", "&apos;s": "'s", "R&amp;D": "R&D", "&#91;": "[", "&lt;b&gt;": "<b>"},
    "good": "good",
}


@pytest.mark.parametrize("kind", KINDS)
def test_text_stays_text(tmp_path, kind):
    """In valid SVG, and in the fonts of PDF."""
    path = tmp_path / "picture.svg"
    save_figure(KINDS[kind]([*SHOWN]), path)
    assert {*SHOWN.values()} <= set(texts_of(path))
    save_figure(KINDS[kind](["Wort", "zwei"]), tmp_path / "picture.pdf")
    pdf = (tmp_path / "picture.pdf").read_bytes()
    assert re.search(rb"/CIDFontType2\b", pdf) and not re.search(rb"/Type3\b", pdf)


@pytest.fixture
def fonts(monkeypatch):
    """Function: names of the families that are installed, beside matplotlib's own."""

    def only(*families):
        installed = ["DejaVu Sans", *families]
        monkeypatch.setattr(figures, "_INSTALLED", installed)
        monkeypatch.setitem(plt.rcParams, "font.family", installed)
        figures._find_font.cache_clear()

    yield only
    figures._find_font.cache_clear()


WORDS = ["日本語", "の", "한국어", "שלום", "كتاب", "a\u0301"]


@pytest.mark.parametrize("kind", ["tree", "map"])
def test_one_message_names_missing_glyphs(tmp_path, caplog, fonts, kind):
    fonts()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        save_figure(KINDS[kind](WORDS), tmp_path / "picture.svg")
    (record,) = caplog.records
    assert "(7 characters in all)" in record.message and "\u306e (U+306E)" in record.message


def make_font(path, family, text):
    """DejaVu Sans with another name, and with a letter for each character."""
    font = TTFont(font_manager.findfont("DejaVu Sans"))
    for table in font["cmap"].tables:
        if table.isUnicode():
            table.cmap.update(dict.fromkeys(map(ord, text), "A"))
    font["name"].names = []
    for number, name in ((1, family), (2, "Regular")):
        font["name"].setName(name, number, 3, 1, 0x409)
    font.save(path)


def test_a_font_that_was_installed_later_is_found_and_used(tmp_path, caplog, fonts, monkeypatch):
    family = figures.FAMILIES[-1]
    make_font(tmp_path / "font.ttf", family, WORDS[0])
    known = list(font_manager.fontManager.ttflist)
    monkeypatch.setattr(font_manager.fontManager, "ttflist", known)
    monkeypatch.setattr(
        font_manager, "findSystemFonts", lambda: [str(tmp_path / "font.ttf"), str(tmp_path / "none.ttf")]
    )
    assert figures._choose_fonts()[0] == "DejaVu Sans" and figures._choose_fonts()[-1] == family
    fonts(family)
    save_figure(draw_tree([WORDS[0], "a"], [-1, 0]), tmp_path / "tree.svg")
    assert caplog.records == []
    assert f"'DejaVu Sans', '{family}'" in (tmp_path / "tree.svg").read_text()
    # a picture that does not need the font does not name it
    save_figure(draw_tree(["b", "a"], [-1, 0]), tmp_path / "plain.svg")
    assert family not in (tmp_path / "plain.svg").read_text()


@pytest.mark.parametrize("suffix", ["png", "svg", "pdf"])
def test_the_same_picture_is_the_same_file(tmp_path, suffix):
    files = []
    for name in ("one", "two"):
        save_figure(KINDS["heads"](["a", "b"]), tmp_path / f"{name}.{suffix}")
        files.append((tmp_path / f"{name}.{suffix}").read_bytes())
    assert files[0] == files[1]


def pixels(path):
    """(width, height) and pixels an inch of a PNG."""
    content = path.read_bytes()
    size = int.from_bytes(content[16:20], "big"), int.from_bytes(content[20:24], "big")
    at = content.index(b"pHYs")
    return size, int.from_bytes(content[at + 4 : at + 8], "big") * 0.0254


def test_resolution_is_coarser_for_a_picture_too_wide(tmp_path):
    save_figure(draw_tree(["a", "b"], [-1, 0]), tmp_path / "tree.png")
    assert pixels(tmp_path / "tree.png")[1] == pytest.approx(300, abs=0.1)
    save_figure(plt.figure(figsize=(400, 0.1)), tmp_path / "wide.png")
    (width, _), resolution = pixels(tmp_path / "wide.png")
    assert 50_000 < width < 2**16 and resolution < 200


def test_a_full_disk_leaves_nothing_and_is_one_message(tmp_path):
    def fail(path, **_):
        path.write_bytes(b"half a pict")
        raise OSError(errno.ENOSPC, "No space left on device")

    (tmp_path / "tree.png").write_text("old")
    figure = draw_tree(["a"], [-1])
    figure.savefig = fail
    with pytest.raises(OSError, match=r"No space left on device: '.*tree\.png'") as caught:
        save_figure(figure, tmp_path / "tree.png")
    assert caught.value.errno == errno.ENOSPC
    assert [path.name for path in tmp_path.iterdir()] == ["tree.png"]
    assert (tmp_path / "tree.png").read_text() == "old"
    assert not plt.get_fignums()
