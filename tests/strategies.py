"""Hypothesis strategies: dependency trees, the words and subwords they stand over, sentences.

Use: `from strategies import forests` (tests/conftest.py puts this folder on the path).
"""

from hypothesis import strategies as st

from fairseq_syntax.trees.conllu import ROOT, UNPARSED, Sentence

# Control characters cannot stand in a column, but these line ends of Unicode can and do.
_COLUMN_TEXT = st.text(
    st.characters(codec="utf-8", exclude_categories=["Cc"]) | st.sampled_from("\x85\u2028\xa0#_"),
    min_size=1,
    max_size=6,
)
# tags hold no whitespace
_TAG = st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Zs", "Zl", "Zp"]), min_size=1, max_size=6)


@st.composite
def forests(draw, min_words: int = 1, max_words: int = 12, roots: int | None = None) -> list[int]:
    """Heads (0-based, -1 = root) of any forest, mostly non-projective.

    With `roots`, exactly so many words are roots (fewer in a shorter sentence).
    """
    size = draw(st.integers(min_words, max_words))
    order = draw(st.permutations(range(size)))  # heads stand before their dependents
    heads = [ROOT] * size
    for rank, word in enumerate(order):
        if roots is None:
            above = draw(st.integers(-1, rank - 1))
        else:
            above = draw(st.integers(0, rank - 1)) if rank >= roots else -1
        heads[word] = order[above] if above >= 0 else ROOT
    return heads


@st.composite
def projective_trees(draw, min_words: int = 1, max_words: int = 12) -> list[int]:
    """Heads of a tree with one root in which every subtree is an unbroken stretch of words."""
    size = draw(st.integers(min_words, max_words))
    heads = [ROOT] * size

    def attach(first: int, end: int, head: int) -> None:
        top = draw(st.integers(first, end - 1))
        heads[top] = head
        for start, stop in ((first, top), (top + 1, end)):
            while start < stop:
                cut = draw(st.integers(start + 1, stop))
                attach(start, cut, top)
                start = cut

    if size:
        attach(0, size, ROOT)
    return heads


def trees(min_words: int = 1, max_words: int = 12, projective: bool | None = None) -> st.SearchStrategy[list[int]]:
    """Heads of a tree with one root: projective, drawn without regard to that, or (None) either."""
    anything = forests(min_words, max_words, roots=1)
    only = projective_trees(min_words, max_words)
    if projective is None:
        return anything | only
    return only if projective else anything


@st.composite
def word_maps(draw, words: int, max_pieces: int = 4) -> list[int]:
    """Word of each token of a sentence of so many words, EOS (word number `words`) last."""
    counts = draw(st.lists(st.integers(1, max_pieces), min_size=words, max_size=words))
    return [word for word, count in enumerate(counts) for _ in range(count)] + [words]


@st.composite
def split_forests(draw, min_words: int = 0, max_words: int = 10, unparsed: bool = False) -> tuple[list[int], list[int]]:
    """(heads, word of each token): a forest whose words are cut into pieces.

    With `unparsed`, sometimes a sentence without a parse (all heads -2).
    """
    heads = draw(forests(min_words, max_words) | trees(max(1, min_words), max_words))
    if unparsed and draw(st.integers(0, 3)) == 0:
        heads = [UNPARSED] * len(heads)
    return heads, draw(word_maps(len(heads)))


@st.composite
def cut_words(draw, alphabet: str = "ab@é語'", max_words: int = 8) -> list[list[str]]:
    """Words as lists of non-empty pieces: the words are drawn first, then cut at random.

    No word ends in `@@`: the text of subword-nmt cannot tell such a word from an unfinished one.
    """
    words = st.text(alphabet, min_size=1, max_size=8).filter(lambda word: not word.endswith("@@"))
    cut = []
    for word in draw(st.lists(words, max_size=max_words)):
        marks = draw(st.lists(st.booleans(), min_size=len(word) - 1, max_size=len(word) - 1))
        pieces = [word[0]]
        for letter, new in zip(word[1:], marks, strict=True):
            if new:
                pieces.append(letter)
            else:
                pieces[-1] += letter
        cut.append(pieces)
    return cut


@st.composite
def sentences(draw, min_words: int = 1, max_words: int = 8) -> Sentence:
    """A CoNLL-U sentence: a forest, or no parse, with odd words, ranges and comments."""
    heads = draw(forests(min_words, max_words))
    size = len(heads)
    if draw(st.integers(0, 4)) == 0:
        heads = [UNPARSED] * size
    words, tags = (st.lists(text, min_size=size, max_size=size) for text in (_COLUMN_TEXT, _TAG))
    bounds = sorted(draw(st.sets(st.integers(0, size), max_size=6)))
    ranges = [(first, end - 1, draw(_COLUMN_TEXT)) for first, end in zip(bounds[::2], bounds[1::2], strict=False)]
    comments = ["#" + text for text in draw(st.lists(_COLUMN_TEXT, max_size=2))]
    return Sentence(draw(words), heads, draw(tags), draw(tags), ranges, comments)
