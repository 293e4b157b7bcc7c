"""The latent graph parser as Hashimoto & Tsuruoka (2017) write it: one sentence, one word, one arc at a time.

Vectors and scores are tensors, so that gradients flow to the parameters.
"""

import torch
from oracles.syntax_translation import part


def lstm(net, inputs):
    """States of an LSTM over `inputs`, by torch's names of weights, whose rows are the gates i, f, g, o."""
    return [hidden for hidden, _ in lstm_steps(net, inputs)]


def lstm_steps(net, inputs):
    """(hidden, cell) after each input."""
    size = len(net["bias_hh_l0"]) // 4
    hidden = cell = torch.zeros_like(net["bias_hh_l0"][:size])
    states = []
    for x in inputs:
        gates = net["weight_ih_l0"] @ x + net["bias_ih_l0"] + net["weight_hh_l0"] @ hidden + net["bias_hh_l0"]
        take, keep, new, show = gates.chunk(4)
        cell = torch.sigmoid(keep) * cell + torch.sigmoid(take) * torch.tanh(new)
        hidden = torch.sigmoid(show) * torch.tanh(cell)
        states.append((hidden, cell))
    return states


def softmax(scores):
    """Of a list of numbers, those that are None left out and 0 in the result."""
    total = sum(torch.exp(score) for score in scores if score is not None)
    zero = torch.zeros_like(total)
    return [zero if score is None else torch.exp(score) / total for score in scores]


def classify(net, vector):
    scores = [row @ vector + bias for row, bias in zip(net["output.weight"], net["output.bias"], strict=True)]
    return torch.stack(softmax(scores))


def head_states(heads, states):
    """sum over j != i of p(j | i) h_j, for every word i."""
    found = []
    for i, row in enumerate(heads):
        mean = torch.zeros_like(states[0])
        for j, probability in enumerate(row):
            if j != i:
                mean = mean + probability * states[j]
        found.append(mean)
    return found


def parse(parameters, xs, *, graph="latent", heads=None, labels=None, num_labels=None, teacher=None):
    """(p1, p, l, h2) of one sentence.

    Args:
        parameters: by name.
        xs: the N words and EOS, (2 d1,) each.
        heads, labels: N integers each, for `dep`; N stands for the root.
        teacher: N heads that labels are predicted from.

    Returns:
        N + 1 distributions over tags, N over the N + 1 possible heads and N over labels (both None for `seq`), and
        N + 1 states.
    """
    words = len(xs) - 1
    ahead = lstm(part(parameters, "layer1.left_to_right."), xs)
    back = lstm(part(parameters, "layer1.right_to_left."), xs[::-1])[::-1]
    tagger = part(parameters, "pos_classifier.")
    tags = [classify(tagger, torch.cat((f, b))) for f, b in zip(ahead, back, strict=True)]
    embedded = [parameters["pos_input.weight"] @ tag for tag in tags]
    ahead = lstm(
        part(parameters, "layer2.left_to_right."),
        [torch.cat((x, y, h)) for x, y, h in zip(xs, embedded, ahead, strict=True)],
    )
    back = lstm(
        part(parameters, "layer2.right_to_left."),
        [torch.cat((x, y, h)) for x, y, h in zip(xs, embedded, back, strict=True)][::-1],
    )[::-1]
    states = [torch.cat((f, b)) for f, b in zip(ahead, back, strict=True)]
    one, zero = torch.ones_like(states[0][0]), torch.zeros_like(states[0][0])

    if graph == "seq":
        return tags, None, None, states
    if graph == "dep":
        found = [[one if k == heads[i] else zero for k in range(words + 1)] for i in range(words)]
        named = [torch.stack([one if k == labels[i] else zero for k in range(num_labels)]) for i in range(words)]
        return tags, found, named, states
    found = []
    for i in range(words):
        if graph == "uni":
            found.append([zero if k == i else one / words for k in range(words + 1)])
            continue
        scores = []
        for k in range(words + 1):
            scores.append(None if k == i else states[k] @ (parameters["head_scorer.weight"] @ states[i]))
        found.append(softmax(scores))
    above = head_states(found, states)
    if teacher is not None:
        above = [states[head] for head in teacher]
    labeller = part(parameters, "label_classifier.")
    named = [classify(labeller, torch.cat((states[i], above[i]))) for i in range(words)]
    return tags, found, named, states
