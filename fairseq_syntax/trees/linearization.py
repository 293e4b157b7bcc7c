"""Trees as sequences of brackets, for models that learn to parse by translating."""

from .conllu import UNPARSED, Sentence, TreeFormatError, quoted

CLOSE = ")"


def linearize(sentence: Sentence) -> list[str]:
    """The dependency tree as brackets named by label, words left out, children in sentence order.

    "the cat sleeps" with sleeps(cat(the)) -> (root (nsubj (det ) ) )

    Currey & Heafield (2019) let a Transformer produce linearised constituency parses; this is the
    same for dependencies. Where a head stands among its children is not in the sequence.

    Args:
        sentence: a tree or forest over J words.

    Returns:
        2J tokens: `(label` opens a word and `)` closes it. Several roots stand one after the other.

    Raises:
        TreeFormatError: the sentence has no parse, or a label is empty or has a space in it.

    Cost: O(J).
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
        word = stack.pop()
        if word is None:
            tokens.append(CLOSE)
            continue
        label = sentence.deprels[word]
        if not label or label.split() != [label]:
            raise TreeFormatError(
                f"{place}: label {quoted(label)} of word {quoted(sentence.forms[word])} cannot be a token; "
                "labels are not empty and have no spaces; correct the tree"
            )
        tokens.append("(" + label)
        stack.append(None)
        stack.extend(reversed(children[word]))
    return tokens


def parse_brackets(tokens: list[str]) -> list[tuple]:
    """The shape that `linearize` wrote: its inverse up to the words.

    ["(root", "(nsubj", ")", ")"] -> [("root", [("nsubj", [])])]

    Args:
        tokens: `(label` and `)`.

    Returns:
        The roots, each a pair (label, its children likewise).

    Raises:
        TreeFormatError: a bracket that is not closed or was never opened, or another token.
    """
    roots: list[tuple] = []
    open_nodes: list[tuple] = []
    for position, token in enumerate(tokens, 1):
        if token == CLOSE:
            if not open_nodes:
                raise TreeFormatError(f"token {position}: {token!r} closes nothing; '(label' must come before")
            open_nodes.pop()
        elif len(token) > 1 and token[0] == "(":
            node = (token[1:], [])
            (open_nodes[-1][1] if open_nodes else roots).append(node)
            open_nodes.append(node)
        else:
            raise TreeFormatError(f"token {position}: {token!r} is no bracket; '(label' or ')' was expected")
    if open_nodes:
        raise TreeFormatError(
            f"the tokens end with {len(open_nodes)} open brackets (innermost "
            f"'({open_nodes[-1][0]}'); every '(label' needs a ')'; was the line cut off?"
        )
    return roots
