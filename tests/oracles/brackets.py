"""The tree that a sequence of brackets writes."""


def read(tokens: list[str]) -> list[tuple]:
    """["(root", "(nsubj", ")", ")"] -> [("root", [("nsubj", [])])], by a stack."""
    roots: list[tuple] = []
    opened = [("", roots)]
    for token in tokens:
        if token == ")":
            opened.pop()
        else:
            assert token[0] == "(" and len(token) > 1
            node = (token[1:], [])
            opened[-1][1].append(node)
            opened.append(node)
    assert len(opened) == 1
    return roots
