"""Trees as bracket sequences, for models that learn to parse as a translation task."""

from .conllu import Sentence

CLOSE = ")"


def linearize(sentence: Sentence) -> list[str]:
    """The dependency tree as labelled brackets without words, children in sentence order.

    "the cat sleeps" with sleeps(cat(the)) -> (root (nsubj (det ) ) )

    Currey & Heafield (2019) train a Transformer to produce linearised constituency parses; these are dependencies. The
    position of a head among its children is lost.

    Returns 2J tokens, `(label` and `)` for each word.
    """
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
        tokens.append("(" + sentence.deprels[opened])
        stack.append(None)
        stack.extend(reversed(children[opened]))
    return tokens
