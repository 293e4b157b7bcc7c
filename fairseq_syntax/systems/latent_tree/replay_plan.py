"""In which order the networks of a recurrent neural network grammar run when all trees of a batch are known.

Two facts make replaying a tree much cheaper than building it action by action. A phrase is composed of its children
alone, so all phrases of one height are composed at once, whatever sentence they are in. A state of the stack is made
from the one below it alone, so all states at one place of the stack are computed at once. Depths count, not lengths.

Integers only, and no loop over sentences or actions.
"""

from dataclasses import dataclass

import numpy as np

from .constituents import NONE, Constituents
from .transitions import Action


@dataclass(frozen=True)
class CompositionPlan:
    """How C phrases are composed, in the order of their height and, within it, of falling numbers of children.

    M children in all are packed by height, by step (the how-manieth child it is) and by phrase, as in a PackedSequence:
    at each step of a height, the phrases that still have a child are the first ones.
    """

    slot: np.ndarray  # (constituents,) place of each constituent in this order; `NONE` for those that are not composed
    phrases: list[int]  # number of phrases of each height, lowest first
    steps: list[list[int]]  # for each height, how many phrases have a child at each step
    # (M,) codes of the children from the first on: a symbol, or the number of symbols plus the slot of a phrase
    forward: np.ndarray
    backward: np.ndarray  # (M,) the same from the last child on
    previous: np.ndarray  # (M,) where the child before each one is packed; M for first ones
    last: np.ndarray  # (C,) where the last child of each phrase is packed; M for a phrase without children
    used_forward: np.ndarray  # (C,) where each phrase is packed as a child; M for those that are nobody's
    used_backward: np.ndarray  # (C,) the same backwards


@dataclass(frozen=True)
class StackPlan:
    """How the N states of the stack are computed, in the order of their place on the stack.

    There is one state for each action: the one on which it was decided. The first of a sentence is that of its root.
    """

    state: np.ndarray  # (B, T) number of the state before each action; `NONE` for NOP
    sizes: list[int]  # number of states at each place of the stack, the roots' first
    below: np.ndarray  # (N,) number of the state below; 0 for roots, which have none
    # (N,) what is pushed: a symbol, the number of symbols for a new nonterminal, or that number plus 1 plus the
    # slot of a phrase
    code: np.ndarray
    # numbers of the states that new nonterminals have pushed (without roots), for each place of the stack
    attending: list[np.ndarray]
    row: list[np.ndarray]  # their sentences
    column: list[np.ndarray]  # which nonterminal of its sentence each is, in the order of opening
    nonterminals: int  # the most that a sentence has


def composition_plan(
    trees: Constituents, actions: np.ndarray, symbols: np.ndarray, vocabulary: int, complete: bool
) -> CompositionPlan:
    """Plan the composition of phrases of B sentences, of (B, T) actions and the symbols that each GEN generates.

    `complete`: compose all constituents, and not only those that a REDUCE has closed: no state of the stack sees the
    others.
    """
    composed = np.full(len(trees), True) if complete else trees.closed != NONE
    children = trees.terminals + trees.nonterminals
    order = np.lexsort((-children, trees.height))
    order = order[composed[order]]
    slot = np.full(len(trees), NONE)
    slot[order] = np.arange(len(order))
    heights = np.bincount(trees.height[order], minlength=1)[1:]

    # all children, with the constituent they are in and the time when they joined it
    ends = trees.lengths[:, None] + 1 == (actions == Action.GEN).cumsum(1)
    row, time = ((actions == Action.GEN) & ~ends).nonzero()
    inner = (trees.parent != NONE).nonzero()[0]
    parent = np.concatenate((trees.innermost[row, time], trees.parent[inner]))
    code = np.concatenate((symbols[row, time], vocabulary + slot[inner]))
    # of the children that join when the sentence ends, a constituent has one at most
    time = np.concatenate((time, np.where(trees.closed[inner] == NONE, actions.shape[1], trees.closed[inner])))
    child = np.concatenate((np.full(len(row), NONE), slot[inner]))
    kept = composed[parent]
    parent, code, time, child = slot[parent[kept]], code[kept], time[kept], child[kept]

    in_time = np.lexsort((time, parent))
    parent, code, child = parent[in_time], code[in_time], child[in_time]
    number = children[order]
    first = np.concatenate(([0], number.cumsum()[:-1])) if len(number) else number
    step = np.arange(len(parent)) - first[parent]
    height = trees.height[order][parent]
    packed = np.lexsort((parent, step, height))
    reverse = (number[parent] - 1 - step).astype(int)
    packed_reverse = np.lexsort((parent, reverse, height))
    place = np.empty(len(parent), dtype=int)
    place[packed] = np.arange(len(parent))
    last = np.full(len(order), len(parent))
    last[parent[reverse == 0]] = place[reverse == 0]
    return CompositionPlan(
        slot=slot,
        phrases=heights.tolist(),
        steps=[np.bincount(step[height == level + 1]).tolist() for level in range(len(heights))],
        forward=code[packed],
        backward=code[packed_reverse],
        previous=np.where(step > 0, np.roll(place, 1), len(parent))[packed],
        last=last,
        used_forward=_where_used(child[packed], len(order)),
        used_backward=_where_used(child[packed_reverse], len(order)),
    )


def _where_used(child: np.ndarray, count: int) -> np.ndarray:
    """(count,) where each number stands in `child`; its length for those that do not."""
    result = np.full(count, len(child))
    places = (child != NONE).nonzero()[0]
    result[child[places]] = places
    return result


def stack_plan(
    trees: Constituents, actions: np.ndarray, symbols: np.ndarray, vocabulary: int, slot: np.ndarray
) -> StackPlan:
    """Plan the states of the stack; as `composition_plan`, with the `slot` (constituents,) of its plan."""
    rows, steps = actions.shape
    row, step = (actions != Action.NOP).nonzero()
    before = np.where(step == 0, Action.NT, actions[row, step - 1])  # the action that has pushed the state
    closed = trees.closes[row, step - 1] * (step > 0)
    is_phrase = before == Action.REDUCE
    # What a REDUCE pushes stands where its nonterminal stood, which stood on the state before the NT.
    below = np.where(is_phrase, trees.opened[closed], step - 1)
    children = trees.terminals + trees.nonterminals
    place = np.where(is_phrase, -children[closed], 1)
    height = np.zeros((rows, steps), dtype=int)
    height[row, step] = place
    place = (height.cumsum(1) - 1)[row, step]

    order = np.lexsort((step, row, place))
    state = np.full((rows, steps), NONE)
    state[row[order], step[order]] = np.arange(len(order))
    code = np.where(is_phrase, vocabulary + 1 + slot[closed], vocabulary)
    code = np.where((before == Action.GEN) & (step > 0), symbols[row, step - 1], code)
    sizes = np.bincount(place)

    opening = ((before == Action.NT) & (step > 0))[order].nonzero()[0]
    column = (actions == Action.NT).cumsum(1)[row[order], step[order] - 1] - 1
    cuts = np.searchsorted(opening, sizes.cumsum()[:-1])
    return StackPlan(
        state=state,
        sizes=sizes.tolist(),
        below=np.where(step > 0, state[row, below], 0)[order],
        code=code[order],
        attending=np.split(opening, cuts),
        row=np.split(row[order][opening], cuts),
        column=np.split(column[opening], cuts),
        nonterminals=int((actions == Action.NT).sum(1).max(initial=0)),
    )
