"""What was legal at each step of given trees, by taking the steps one after the other."""

import torch

from fairseq_syntax.systems.latent_tree.transitions import Transitions


def legal_actions(actions, lengths, limits):
    """(B, T, 3) bool for (B, T) actions of sentences of `lengths`; GEN alone for NOP.

    Raises:
        AssertionError: an action was not legal.
    """
    state = Transitions(lengths, limits)
    result = []
    for taken in actions.unbind(1):
        legal = state.legal()
        result.append(legal)
        allowed = torch.cat((legal & state.live[:, None], ~state.live[:, None]), dim=1)
        assert allowed.gather(1, taken[:, None]).all()
        state.step(taken)
    assert not state.live.any()
    return torch.stack(result, dim=1)
