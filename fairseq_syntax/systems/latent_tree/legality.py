"""What could have been done at each step of trees that are known; all steps at once."""

import numpy as np

from .transitions import Action, Limits


def legality(
    actions: np.ndarray, lengths: np.ndarray, limits: Limits, most: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Which actions were legal when each was taken; the same as `Transitions.legal` says step by step.

    Args:
        actions: (B, T) of `Action`, filled up with NOP.
        lengths: (B,) symbols of each sentence without its end.
        most: (B,) symbols that the sentences might have had when the trees were built, if not `lengths`.

    Returns (B, T, 3) bool, GEN alone for NOP; and (B,) bool, the sentences in which NT was forbidden somewhere by
    nothing but the budget of actions. Raises ValueError: an action was not legal, or a sentence ends too early or not
    at all; row and step are named.
    """
    unknown = (actions < Action.NT) | (actions > Action.NOP)
    if unknown.any():
        row, step = (int(index[0]) for index in unknown.nonzero())
        names = ", ".join(f"{action.value} ({action.name})" for action in Action)
        raise ValueError(f"row {row}, step {step}: {actions[row, step]} is not an action; {names} are")
    rows, steps = actions.shape
    nt, gen, reduce = (actions == action for action in (Action.NT, Action.GEN, Action.REDUCE))
    real = actions != Action.NOP
    opened = 1 + _before(nt) - _before(reduce)
    step = np.arange(steps)
    last_other = np.maximum.accumulate(np.where(nt, -1, step), axis=1)
    consecutive = np.concatenate((np.zeros((rows, 1), dtype=int), (step - last_other)[:, :-1]), axis=1)
    most = lengths if most is None else most
    generated = _before(gen)
    to_come = most[:, None] + 1 - generated
    room = (opened < limits.max_open) & (consecutive < limits.max_consecutive) & real
    affordable = limits.max_actions(most)[:, None] - step >= to_come + opened + 2
    # nothing is in the innermost constituent only right after it was opened
    filled = np.concatenate((np.zeros((rows, 1), dtype=bool), ~nt[:, :-1]), axis=1)
    legal = np.stack((room & affordable, np.ones_like(nt), (opened > 1) & filled & real), axis=2)

    taken = np.where(real, actions, Action.GEN)
    wrong = ~np.take_along_axis(legal, taken[:, :, None], axis=2).squeeze(2)
    wrong |= real & ((generated > lengths[:, None]) | np.logical_or.accumulate(~real, axis=1))
    if wrong.any():
        row, column = (int(index[0]) for index in wrong.nonzero())
        raise ValueError(
            f"row {row}, step {column}: {Action(actions[row, column]).name} is not legal there "
            f"({opened[row, column]} constituents open, {consecutive[row, column]} NTs right before it, "
            f"{generated[row, column]} of {lengths[row] + 1} symbols generated, the end among them)"
        )
    short = gen.sum(1) != lengths + 1
    if short.any():
        row = int(short.nonzero()[0][0])
        raise ValueError(
            f"row {row}: the actions generate {gen[row].sum()} of {lengths[row] + 1} symbols, the end among them"
        )
    return legal, (room & ~affordable).any(1)


def _before(which: np.ndarray) -> np.ndarray:
    """(B, T) how many there are before each step."""
    return which.cumsum(1) - which
