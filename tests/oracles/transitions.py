"""What was legal at each step of given trees, by taking the steps one after the other."""

import torch

from fairseq_syntax.systems.latent_tree.transitions import Transitions


def legal(state):
    """(B, 3) bool: which of NT, GEN and REDUCE each row may take now; GEN alone for sentences that have ended."""
    nt, reduce = state.structure().unbind(1)
    return torch.stack((nt, torch.ones_like(nt), reduce), dim=1)


def legal_actions(actions, lengths, limits):
    """(B, T, 3) bool for (B, T) actions of sentences of `lengths`; GEN alone for NOP.

    Raises:
        AssertionError: an action was not legal.
    """
    state = Transitions(lengths, limits)
    result = []
    for taken in actions.unbind(1):
        result.append(legal(state))
        allowed = torch.cat((result[-1] & state.live[:, None], ~state.live[:, None]), dim=1)
        assert allowed.gather(1, taken[:, None]).all()
        state.step(taken)
    assert not state.live.any()
    return torch.stack(result, dim=1)
