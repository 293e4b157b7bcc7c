"""Binarized data, fairseq-interactive and the hub make the same translations, wherever the trees come from."""

import math
from pathlib import Path

import pytest
from fairseq.models import ARCH_MODEL_REGISTRY
from integration import commands
from integration.commands import assert_same_hypotheses, binarize, cut

from fairseq_syntax.trees.conllu import Sentence, TreeFormatError, format_sentence, read_conllu, without_parse
from fairseq_syntax.trees.subwords import join_subwords

PASCAL = "pascal_transformer_tiny"
# fairseq's option is the other way round in its own task: there it switches left padding off
SIDES = {"right": (), "left": ("--left-pad-source",)}
# sentence without a parse
MISSING = 2
# of more than 16 rows of one length, torch's sort keeps no order: equal ids would get each other's trees
EQUAL = 40
# the settings of DECODING for the hub
SEARCH = {"beam": 3, "max_len_a": 0, "max_len_b": 25}


def chain(words: list[str]) -> Sentence:
    """A tree unlike any natural one: every word hangs on the word before, all labels are the same."""
    return Sentence(words, [i - 1 for i in range(len(words))], ["dep"] * len(words), ["X"] * len(words))


@pytest.fixture(scope="session")
def raw(corpus, data_bin, tmp_path_factory) -> Path:
    """Prefix of a text with all that is awkward; the folder `data` beside it holds the same binarized."""
    lines = (corpus / "test.en").read_text(encoding="utf-8").splitlines()[:12]
    trees = [tree for tree, _ in zip(read_conllu(corpus / "test.en.conllu"), lines, strict=False)]
    unknown = [cut(f"the {word} saw some birds near the {word} .") for word in ("zyxw", "qqqq", "qwertyuiop")]
    # twice the same line with other trees, twice the same ids with other words and other trees
    lines += [lines[3], "", unknown[0], cut("dogs"), unknown[1], "", unknown[2], *[lines[3]] * EQUAL]
    # of the many sentences of one length, none may get the tree of another
    words = [join_subwords(line.split(), "subword_nmt")[0] for line in lines]
    star = Sentence(words[14], [4] * 4 + [-1] + [4] * 4, ["obj"] * 9, ["NOUN"] * 9)
    # in turns of no period that a sort could hit by luck
    kinds = [trees[3], chain(words[12])]
    trees += [chain(words[12]), chain([]), star, *map(chain, words[15:19])]
    trees += [kinds[i * i % 3 % 2] for i in range(EQUAL)]
    assert [tree.forms for tree in trees] == words
    folder = tmp_path_factory.mktemp("raw")
    (folder / "text.en").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    (folder / "text.de").write_text("ein vogel\n" * len(lines), encoding="utf-8")
    trees[MISSING] = without_parse(words[MISSING])
    (folder / "text.en.conllu").write_text("".join(map(format_sentence, trees)), encoding="utf-8")
    dictionaries = ["--srcdict", data_bin / "dict.en.txt", "--tgtdict", data_bin / "dict.de.txt"]
    options = [*dictionaries, "--syntax-dicts", data_bin, "--allow-unparsed"]
    binarize({"test": folder / "text"}, folder / "data", *options)
    return folder / "text"


def hub_hypotheses(hub, found) -> dict[int, tuple[float, str]]:
    """What `generate` of the hub returned, in the form of `commands.hypotheses`."""
    best = [beam[0] for beam in found]
    return {i: (float(h["score"]) / math.log(2), hub.decode(h["tokens"])) for i, h in enumerate(best)}


def open_hub(arch: str, directory: Path, data: Path, **options):
    return ARCH_MODEL_REGISTRY[arch].from_pretrained(str(directory), "checkpoint_last.pt", str(data), **options).eval()


# one that reads heads, one that reads tags; what others read: tests/unit/data/test_dataset.py
@pytest.mark.parametrize(("arch", "side"), [(PASCAL, "right"), ("tag_transformer_tiny", "left")])
def test_generate_interactive_and_hub_agree(trained, data_bin, raw, arch, side):
    padding = SIDES[side]
    model = trained(arch, *padding)
    checkpoint = model / "checkpoint_last.pt"
    trees = {"parser": "conllu", "parser_model": f"{raw}.en.conllu"}
    lines = Path(f"{raw}.en").read_text(encoding="utf-8").splitlines()
    expected = commands.generate(raw.parent / "data", checkpoint, "--batch-size", 5, *padding)
    assert sorted(expected) == list(range(len(lines)))
    for i, kind in enumerate(i * i % 3 % 2 for i in range(EQUAL)):
        assert expected[19 + i][0] == pytest.approx(expected[12 if kind else 3][0], abs=1e-4)
    # the two trees of one line, and of one line of ids, make a difference: a mix-up would be seen
    assert abs(expected[3][0] - expected[12][0]) > 1e-3
    assert abs(expected[14][0] - expected[16][0]) > 1e-3

    given = [part for name, value in trees.items() for part in (f"--{name.replace('_', '-')}", value)]
    for size in (7, 60):
        batches = ["--buffer-size", 100, "--batch-size", size]
        found = commands.interactive(data_bin, checkpoint, f"{raw}.en", *given, *batches, *padding)
        assert_same_hypotheses(found, expected)
    hub = open_hub(arch, model, data_bin, max_tokens=300, **trees)
    found = hub.generate([hub.encode(line) for line in lines], **SEARCH)
    assert_same_hypotheses(hub_hypotheses(hub, found), expected)
    hub = open_hub(arch, model, data_bin, **trees)
    assert hub.translate(lines, **SEARCH) == [expected[i][1] for i in range(len(lines))]


def test_words_spelled_like_symbols_are_unknown(trained, data_bin):
    hub = open_hub("nmt_lstm_tiny", trained("nmt_lstm_tiny"), data_bin)
    ids = hub.encode("<pad> dogs </s> <s> <unk>").tolist()
    assert ids == [3, hub.src_dict.index("dogs"), 3, 3, 3, hub.src_dict.eos()]


def test_a_failed_translation_leaves_no_tree_for_the_next(trained, data_bin, raw):
    """Regression: trees of sentences that were never translated went to others with the same token ids."""
    lines = Path(f"{raw}.en").read_text(encoding="utf-8").splitlines()
    expected = commands.generate(raw.parent / "data", trained(PASCAL) / "checkpoint_last.pt")
    model, trees = trained(PASCAL), f"{raw}.en.conllu"
    hub = open_hub(PASCAL, model, data_bin, parser="conllu", parser_model=trees)
    assert hub.encode(lines[14]).equal(hub.encode(lines[16]))  # other words, unknown both
    with pytest.raises(TreeFormatError):
        hub.translate([lines[14], "never parsed"], **SEARCH)
    hub.max_positions = (4, 4)
    with pytest.raises(Exception, match="is invalid"):
        hub.translate([lines[14]], **SEARCH)
    hub.max_positions = (1024, 1024)
    ids = hub.encode(lines[16])
    for _ in range(2):  # and the same ids may be translated again
        assert_same_hypotheses(hub_hypotheses(hub, [hub.generate(ids, **SEARCH)]), {0: expected[16]})
