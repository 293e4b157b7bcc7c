"""Trees of the transition system NT, GEN, REDUCE, one sentence and one action at a time, from the definitions.

Actions are numbers: 0 opens a constituent, 1 generates a symbol, or after the last one the end of the sentence,
2 closes a constituent, 3 does nothing. A tree is what the root has in it: a tuple of children, each of them the number
of a symbol or likewise a tuple.
"""

import math

import numpy as np

NT, GEN, REDUCE, NOP = range(4)


def actions_of(tree: tuple) -> list[int]:
    """The actions that build a tree and close all of it but the root before the end."""

    def build(node) -> list[int]:
        if isinstance(node, int):
            return [GEN]
        return [NT, *(action for child in node for action in build(child)), REDUCE]

    return [action for child in tree for action in build(child)] + [GEN]


def legal_sets(actions: list[int], symbols: int, max_open: int, max_consecutive: int, budget: int) -> list[set[int]]:
    """What was legal before each of some actions, and after the last; nothing once a sentence has ended.

    Args:
        actions: the first ones of a sentence, or all.
        symbols: in the sentence, without its end.
        budget: actions it may take.
    """
    children = [0]  # of every open constituent
    in_a_row = taken = generated = 0
    result = []
    for action in [*actions, None]:
        legal = set()
        if generated <= symbols:
            legal.add(GEN)
            if len(children) > 1 and children[-1]:
                legal.add(REDUCE)
            # room for this NT, a symbol in it and its closing, for all that is to come, and for all open closings
            needed = 3 + (symbols + 1 - generated) + (len(children) - 1)
            if len(children) < max_open and in_a_row < max_consecutive and budget - taken >= needed:
                legal.add(NT)
        result.append(legal)
        if action is None or action == NOP:
            continue
        taken += 1
        in_a_row = in_a_row + 1 if action == NT else 0
        if action == NT:
            children.append(0)
        elif action == REDUCE:
            children.pop()
            children[-1] += 1
        else:
            generated += 1
            children[-1] += generated <= symbols
    return result


def all_action_rows(symbols: int, max_open: int, max_consecutive: int, budget: int) -> list[list[int]]:
    """Every legal sequence of actions, to the end of the sentence; some of them build the same tree."""
    finished, growing = [], [[]]
    while growing:
        row = growing.pop()
        legal = legal_sets(row, symbols, max_open, max_consecutive, budget)[-1]
        if not legal:
            finished.append(row)
        growing += [[*row, action] for action in legal]
    return finished


def random_actions(random, symbols: int, max_open: int, max_consecutive: int, budget: int, weights) -> list[int]:
    """A sentence's actions, drawn one by one among the legal ones with weights of NT, GEN and REDUCE."""
    row: list[int] = []
    while legal := sorted(legal_sets(row, symbols, max_open, max_consecutive, budget)[-1]):
        row += random.choices(legal, [weights[action] for action in legal])
    return row


def padded(rows: list[list[int]], more: int = 0) -> np.ndarray:
    """(B, T) of rows of different lengths, and some steps more."""
    steps = max(map(len, rows)) + more
    return np.array([[*row, *[NOP] * (steps - len(row))] for row in rows])


def build(actions: list[int]) -> dict:
    """The constituents of a sentence, by a stack.

    Returns:
        `constituents`: a dictionary each, in the order of opening: parent (a number in this list), opened, closed
        (steps), start, end, children ("t" and numbers in this list), automatic (whether the end closed it), depth,
        height; the root first, whose parent and opened are None; closed is None where it was automatic. `innermost`,
        `closes`, `opens`: numbers in this list or None, one for each action. `empty`: how many constituents were
        dropped. `symbols`: without the end.
    """
    symbols = actions.count(GEN) - 1
    nodes = [_node(None, None, 0)]
    stack = [0]
    innermost, closes, opens = [], [], []
    generated = empty = 0
    for step, action in enumerate(actions):
        innermost.append(None if action == NOP else stack[-1])
        closes.append(None)
        opens.append(None)
        if action == NT:
            opens[-1] = len(nodes)
            nodes.append(_node(stack[-1], step, generated))
            stack.append(len(nodes) - 1)
        elif action == GEN and generated < symbols:
            generated += 1
            nodes[stack[-1]]["children"].append("t")
        elif action == REDUCE:
            done = stack.pop()
            closes[-1] = done
            nodes[done]["closed"] = step
            nodes[done]["end"] = generated
            nodes[stack[-1]]["children"].append(done)
    while stack:
        done = stack.pop()
        nodes[done]["end"] = generated
        nodes[done]["automatic"] = True
        if done and not nodes[done]["children"]:
            empty += 1
            assert done == len(nodes) - 1  # what was opened in it has gone before
            nodes.pop()
            innermost = [None if number == done else number for number in innermost]
            opens = [None if number == done else number for number in opens]
        elif stack:
            nodes[stack[-1]]["children"].append(done)
    for node in nodes:
        node["height"] = _height(nodes, node)
        node["depth"] = _depth(nodes, node)
    return {
        "constituents": nodes,
        "innermost": innermost,
        "closes": closes,
        "opens": opens,
        "empty": empty,
        "symbols": symbols,
    }


def _node(parent, opened, start) -> dict:
    return {"parent": parent, "opened": opened, "closed": None, "start": start, "children": [], "automatic": False}


def _height(nodes, node) -> int:
    return 1 + max((_height(nodes, nodes[child]) for child in node["children"] if child != "t"), default=0)


def _depth(nodes, node) -> int:
    return 0 if node["parent"] is None else 1 + _depth(nodes, nodes[node["parent"]])


def tree_of(actions: list[int]) -> tuple:
    """The tree that actions build."""
    nodes = build(actions)["constituents"]
    numbers = iter(range(len(actions)))

    def write(node) -> tuple:
        return tuple(next(numbers) if child == "t" else write(nodes[child]) for child in node["children"])

    return write(nodes[0])


def brackets(actions: list[int], symbols: list[str]) -> str:
    """The bracketed tree that actions and symbols make."""

    def write(node) -> str:
        if isinstance(node, int):
            return "".join({"(": "-LRB-", ")": "-RRB-"}.get(letter, letter) for letter in symbols[node])
        return " ".join(["(X", *map(write, node), ")"])

    return write(tree_of(actions))


def rewards(actions: list[int], c_t: float, c_n: float, additive: bool) -> tuple[list, float]:
    """The tree reward of every action, and of what the end closes and drops, from the order of the closings."""
    built = build(actions)
    nodes = built["constituents"]

    def closing(node, after_closing: bool) -> float:
        children = node["children"]
        faults = (len(children) == 1) + after_closing
        terminals = children.count("t")
        earned = c_t * terminals if terminals == len(children) else c_n * math.sqrt(len(children) - terminals)
        if additive:
            return earned - faults
        return -1.0 if faults else earned

    result = []
    previous = None
    for action, closes in zip(actions, built["closes"], strict=True):
        if action == NT:
            result.append(-1.0 if previous == NT else 0.0)
        elif action == REDUCE:
            result.append(closing(nodes[closes], previous == REDUCE))
        else:
            result.append(0.0)
        previous = action
    # the end is no child, and what was dropped has gone: neither comes between two closings
    end = max(step for step, action in enumerate(actions) if action == GEN)
    before = end - 1 - built["empty"]
    after_closing = before >= 0 and actions[before] == REDUCE
    final = -1.0 * built["empty"]
    for node in reversed(nodes[1:]):
        if node["automatic"]:
            final += closing(node, after_closing)
            after_closing = True
    return result, final
