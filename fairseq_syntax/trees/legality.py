"""What could have been done at each step of trees that are known; all steps at once."""

import numpy as np

from .transitions import Action, Limits


def legality(actions: np.ndarray, limits: Limits) -> tuple[np.ndarray, np.ndarray]:
    """Which actions were legal when each was taken; the same as `Transitions.legal` says step by step.

    Args:
        actions: (B, T) of `Action`, filled up with NOP.
        limits: how large a tree may be.

    Returns:
        (B, T, 3) bool, GEN alone for NOP; and (B,) bool, the sentences in which NT was forbidden somewhere by nothing
        but the budget of actions.

    Raises:
        ValueError: an action was not legal, or a sentence has no end; row and step are named.
    """
    rows, steps = actions.shape
    nt, gen, reduce = (actions == action for action in (Action.NT, Action.GEN, Action.REDUCE))
    real = actions != Action.NOP
    length = gen.sum(1) - 1
    opened = 1 + _before(nt) - _before(reduce)
    step = np.arange(steps)
    last_other = np.maximum.accumulate(np.where(nt, -1, step), axis=1)
    consecutive = np.concatenate((np.zeros((rows, 1), dtype=int), (step - last_other)[:, :-1]), axis=1)
    to_come = length[:, None] + 1 - _before(gen)
    room = (opened < limits.max_open) & (consecutive < limits.max_consecutive) & real
    affordable = limits.max_actions(length)[:, None] - step >= to_come + opened + 2
    # nothing is in the innermost constituent only right after it was opened
    filled = np.concatenate((np.zeros((rows, 1), dtype=bool), ~nt[:, :-1]), axis=1)
    legal = np.stack((room & affordable, np.ones_like(nt), (opened > 1) & filled & real), axis=2)

    taken = np.where(real, actions, Action.GEN)
    wrong = ~np.take_along_axis(legal, taken[:, :, None], axis=2).squeeze(2)
    wrong |= real & ((to_come < 1) | np.logical_or.accumulate(~real, axis=1))
    if wrong.any():
        row, column = (int(index[0]) for index in wrong.nonzero())
        raise ValueError(
            f"row {row}, step {column}: {Action(actions[row, column]).name} is not legal there "
            f"({opened[row, column]} constituents open, {consecutive[row, column]} NTs before it, "
            f"{max(to_come[row, column], 0)} of {length[row] + 1} symbols to come, the end among them)"
        )
    ended = real.sum(1) - 1
    if ((ended < 0) | (actions[np.arange(rows), ended] != Action.GEN)).any():
        row = int(((ended < 0) | (actions[np.arange(rows), ended] != Action.GEN)).nonzero()[0][0])
        raise ValueError(f"row {row}: the actions do not end with GEN of the end of the sentence")
    return legal, (room & ~affordable).any(1)


def _before(which: np.ndarray) -> np.ndarray:
    """(B, T) how many there are before each step."""
    return which.cumsum(1) - which
