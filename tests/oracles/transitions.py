"""What was legal at each step of given trees, by taking the steps one after the other."""

import numpy as np

from fairseq_syntax.systems.latent_tree.transitions import Transitions


def legal_actions(actions, lengths, limits):
    """(B, T, 3) bool for (B, T) actions of sentences of `lengths`; GEN alone for NOP.

    Raises:
        AssertionError: an action was not legal.
    """
    state = Transitions(lengths, limits)
    result = []
    for taken in actions.T:
        nt, reduce = state.structure().T
        result.append(np.stack((nt, np.ones_like(nt), reduce), axis=1))
        allowed = np.column_stack((result[-1] & state.live[:, None], ~state.live))
        assert np.take_along_axis(allowed, taken[:, None], 1).all()
        state.step(taken)
    assert not state.live.any()
    return np.stack(result, axis=1)
