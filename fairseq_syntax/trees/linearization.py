"""Trees as sequences of brackets, for models that learn to parse by translating."""

from .conllu import UNPARSED, Sentence, TreeFormatError, quoted

CLOSE = ")"


def linearize(sentence: Sentence) -> list[str]:
    """The dependency tree as brackets named by label, words left out, children in sentence order.

    "the cat sleeps" with sleeps(cat(the)) -> (root (nsubj (det ) ) )

    Currey & Heafield (2019) let a Transformer produce linearised constituency parses; this is the
    same for dependencies. Where a head stands among its children is not in the sequence.

    Returns 2J tokens: `(label` opens a word and `)` closes it. Several roots stand one after the other. Raises
    TreeFormatError: the sentence has no parse, or a label is empty or has a space in it.
    """
    place = f"sentence at line {sentence.line}" if sentence.line else "sentence"
    if not sentence.is_parsed:
        raise TreeFormatError(f"{place}: has no parse (head {UNPARSED}); a tree was expected; parse the text first")
    children: list[list[int]] = [[] for _ in sentence.forms]
    roots: list[int] = []
    for word, head in enumerate(sentence.heads):
        (children[head] if head >= 0 else roots).append(word)
    tokens: list[str] = []
    # no recursion, as chains can be long; None closes a word
    stack: list[int | None] = list(reversed(roots))
    while stack:
        opened = stack.pop()
        if opened is None:
            tokens.append(CLOSE)
            continue
        label = sentence.deprels[opened]
        if not label or label.split() != [label]:
            raise TreeFormatError(
                f"{place}: label {quoted(label)} of word {quoted(sentence.forms[opened])} cannot be a token; "
                "labels are not empty and have no spaces; correct the tree"
            )
        tokens.append("(" + label)
        stack.append(None)
        stack.extend(reversed(children[opened]))
    return tokens
