"""spaCy as a parser: a pipeline trained here, its trees made ours."""

import pytest

from fairseq_syntax.data.parsers import spacy as ours
from fairseq_syntax.data.parsers.spacy import SpacyParser
from fairseq_syntax.trees.conllu import find_cycle

spacy = pytest.importorskip("spacy")
TREES = [
    ("the dog runs .", [1, 2, -1, 2], "det nsubj root punct", "DET NOUN VERB PUNCT"),
    ("the cat sees a dog .", [1, 2, -1, 4, 2, 2], "det nsubj root det obj punct", "DET NOUN VERB DET NOUN PUNCT"),
    ("dogs run in the park", [1, -1, 4, 4, 1], "nsubj root case det obl", "NOUN VERB ADP DET NOUN"),
] * 4
TEXT = [text.split() for text, *_ in TREES]
AWKWARD = [["a\u00a0b", "don't", "U.S.A.", "."], [], ["One", ".", "Two", "dogs", "run", "."], ["\u2028", " "], ["."]]


def document(nlp, text, heads, labels, tags):
    words = text.split()
    heads = [i if head < 0 else head for i, head in enumerate(heads)]
    return spacy.tokens.Doc(nlp.vocab, words, heads=heads, deps=labels.split(), pos=tags.split())


@pytest.fixture(scope="module")
def pipeline(tmp_path_factory):
    """Folder of a pipeline that has seen TREES a few times."""
    spacy.util.fix_random_seed(0)
    nlp = spacy.blank("en")
    nlp.add_pipe("morphologizer")
    nlp.add_pipe("parser", config={"min_action_freq": 1})
    nlp.add_pipe("sentencizer")
    given = [document(nlp, *tree) for tree in TREES]
    examples = [spacy.training.Example(spacy.tokens.Doc(nlp.vocab, [t.text for t in doc]), doc) for doc in given]
    optimizer = nlp.initialize(lambda: examples)
    for _ in range(8):
        nlp.update(examples, sgd=optimizer)
    folder = tmp_path_factory.mktemp("pipeline")
    nlp.to_disk(folder)
    return folder


def test_trees_are_those_of_spacy(pipeline):
    parser = SpacyParser(str(pipeline))
    trees = parser.parse(TEXT)
    nlp = spacy.load(pipeline, exclude=["sentencizer"])
    for words, tree in zip(TEXT, trees, strict=True):
        starts = [True] + [False] * (len(words) - 1)
        found = nlp(spacy.tokens.Doc(nlp.vocab, words, sent_starts=starts))
        assert [head if head >= 0 else i for i, head in enumerate(tree.heads)] == [token.head.i for token in found]
        assert [label.replace("root", "ROOT") for label in tree.deprels] == [token.dep_ for token in found]
        assert tree.upos == [token.pos_ for token in found]
    parser.without_tags()
    for tree, bare in zip(trees, parser.parse(TEXT), strict=True):
        assert (bare.heads, bare.deprels, set(bare.upos)) == (tree.heads, tree.deprels, {"_"})


def test_trees_are_trees_over_the_words_as_they_are(pipeline):
    trees = SpacyParser(str(pipeline)).parse(AWKWARD + TEXT)
    assert [tree.forms for tree in trees] == AWKWARD + TEXT
    for tree in filter(len, trees):
        assert tree.heads.count(-1) == 1 and find_cycle(tree.heads) is None
        assert [label == "root" for label in tree.deprels] == [head == -1 for head in tree.heads]
        assert set(tree.upos) <= {*ours._UPOS, "_"}


def test_later_roots_hang_on_the_first():
    nlp = spacy.blank("en")
    found = document(nlp, "go on . he stays", [-1, 0, 0, 4, -1], "ROOT ROOT punct nsubj ROOT", "VERB SPACE X PRON VERB")
    tree = ours._tree(found, "go on . he stays".split())
    assert tree.heads == [-1, 0, 0, 4, 0]
    assert tree.deprels == ["root", "dep", "punct", "nsubj", "parataxis"]
    assert tree.upos == ["VERB", "X", "X", "PRON", "VERB"]
