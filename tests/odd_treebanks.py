"""Valid treebanks that are unlike most: name -> a CoNLL-U file, made up after what real treebanks have.

Use: `from odd_treebanks import ODD` (tests/conftest.py puts this folder on the path).
"""


def row(number, form, head, deprel="dep", upos="NOUN", deps="_", misc="_"):
    return "\t".join([str(number), form, "_", upos, "_", "_", str(head), deprel, deps, misc]) + "\n"


def extra(number, form="_", deps="_", misc="_"):
    """A row that is not a word: a range, an empty node."""
    return "\t".join([number, form, *"______", deps, misc]) + "\n"


PLAIN = row(1, "dogs", 2, "nsubj") + row(2, "bark", 0, "root", "VERB") + row(3, ".", 2, "punct", "PUNCT") + "\n"
# "10 000", "ça va", and Vietnamese words of two syllables
SPACES = (
    row(1, "10 000", 2, "nummod", "NUM") + row(2, "dogs", 3, "nsubj") + row(3, "bark", 0, "root", "VERB") + "\n"
    + row(1, "học sinh", 2, "nsubj") + row(2, "đọc\u00a0sách", 0, "root", "VERB") + row(3, ".", 2, "punct", "PUNCT")
    + "\n"
)  # fmt: skip
RANGES = (
    extra("1-2", "im", misc="SpaceAfter=No") + row(1, "in", 3, "case", "ADP") + row(2, "dem", 3, "det", "DET")
    + row(3, "Haus", 0, "root") + "\n"
    + row(1, "damos", 0, "root", "VERB") + extra("2-4", "dárnoslo") + row(2, "dar", 1, "xcomp", "VERB")
    + row(3, "nos", 2, "iobj", "PRON") + row(4, "lo", 2, "obj", "PRON") + "\n"
)  # fmt: skip
# ellipsis: "Mary won gold and Peter bronze"; a copy of the verb is an empty node, in front of the first word another
EMPTY_NODES = (
    extra("0.1", "it", deps="2:nsubj")
    + row(1, "Mary", 2, "nsubj", "PROPN", "2:nsubj") + row(2, "won", 0, "root", "VERB", "0:root")
    + row(3, "gold", 2, "obj", deps="2:obj") + row(4, "and", 5, "cc", "CCONJ", "5.1:cc")
    + row(5, "Peter", 2, "conj", "PROPN", "5.1:nsubj")
    + extra("5.1", "won", deps="2:conj:and", misc="CopyOf=2") + extra("5.2", deps="5.1:obj")
    + row(6, "bronze", 5, "orphan", deps="5.1:obj") + "\n"
)  # fmt: skip
ENHANCED = (
    row(1, "dogs", 2, "nsubj", deps="2:nsubj|4:nsubj") + row(2, "bark", 0, "root", "VERB", "0:root|4:conj")
    + row(3, "and", 4, "cc", "CCONJ", "4:cc") + row(4, "run", 2, "conj", "VERB", "2:conj:and") + "\n"
)  # fmt: skip
SEVERAL_ROOTS = row(1, "yes", 0, "root") + row(2, "dogs", 3, "nsubj") + row(3, "bark", 0, "root", "VERB") + "\n"
RIGHT_TO_LEFT = (
    row(1, "הכלב", 2, "nsubj") + row(2, "נובח", 0, "root", "VERB") + row(3, "،", 2, "punct", "PUNCT")
    + row(4, "والقط\u200f", 2, "obj") + "\n"
)  # fmt: skip
COMMENTS = (
    "# newdoc id = a\n# newpar\n# sent_id = 1\n# text = dogs bark .\n# global.columns = ID FORM\n#no space\n#\n" + PLAIN
    + "\n\n \n" + "# sent_id = 2\n# text =\n\n" + PLAIN + "# a comment at the end\n"
)  # fmt: skip
SYMBOLS = (
    row(1, "#", 2, "det", "SYM") + row(2, "_", 0, "root", "SYM") + row(3, "(a)", 2, "dep:x") + row(4, "&", 2, "<&>")
    + row(5, "``", 2, "punct", "PUNCT") + "\n"
)  # fmt: skip
LONG = "".join(
    row(number, f"w{number % 7}", number // 2, "root" if number == 1 else "dep") for number in range(1, 1101)
)

ODD = {
    "spaces in words": SPACES,
    "ranges": RANGES,
    "empty nodes, copies and ellipsis": EMPTY_NODES,
    "enhanced graphs": ENHANCED,
    "several roots": SEVERAL_ROOTS,
    "right to left": RIGHT_TO_LEFT,
    "comments and blank lines": COMMENTS,
    "CRLF": (PLAIN + ENHANCED).replace("\n", "\r\n"),
    "no empty line at the end": PLAIN.rstrip("\n"),
    "symbols": SYMBOLS,
    "no parse": row(1, "dogs", "_", "_") + row(2, "bark", "_", "_") + "\n" + PLAIN,
    "1,100 words": LONG + "\n",
}
