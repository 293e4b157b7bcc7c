"""LGP-NMT as Hashimoto & Tsuruoka (2017) write it: one sentence, one target word, one source word at a time."""

import torch
from oracles.latent_graph import lstm, parse, part


def cell_step(net, inputs, state):
    """A step of our cell, whose gates are in the order i, f, o, g; `inputs` are [embedding; feed]."""
    hidden, cell = state
    size = len(hidden)
    embedding, feed = inputs
    take, keep, show, new = (
        net["ahead.weight"][rows] @ embedding
        + net["recurrent.weight"][rows] @ torch.cat((feed, hidden))
        + net["recurrent.bias"][rows]
        for rows in (slice(gate * size, (gate + 1) * size) for gate in range(4))
    )
    cell = torch.sigmoid(keep) * cell + torch.sigmoid(take) * torch.tanh(new)
    return torch.sigmoid(show) * torch.tanh(cell), cell


def weights(query, vectors):
    """exp(h . v), normalised."""
    scores = [torch.exp(query @ vector) for vector in vectors]
    return [score / sum(scores) for score in scores]


def mean(shares, vectors):
    return sum(share * vector for share, vector in zip(shares, vectors, strict=True))


def translate(model, source, previous, *, graph="latent", heads=None, labels=None, num_labels=None, bos=False):
    """Log probabilities and attention of every target word.

    Args:
        model: `LatentGraphModel`, of which only parameters and the representation of words are used.
        source: N words and EOS, ids.
        previous: what comes before each target word: EOS, then words.
        heads, labels: N integers each for `dep`; N stands for the root.

    Returns:
        two lists of tensors: (V,) natural logarithms and (N + 1,) weights of the source.
    """
    parameters = dict(model.named_parameters())
    row = model.encoder.words.word_row.tolist()
    xs = list(model.encoder.words(torch.tensor([source]))[0])
    _, p, l, h2 = parse(  # noqa: E741
        part(parameters, "encoder.parser."), xs, graph=graph, heads=heads, labels=labels, num_labels=num_labels
    )
    embedding = parameters["encoder.embed_tokens.weight"]
    inputs = [torch.cat((embedding[row[word]], state)) for word, state in zip(source, h2, strict=True)]
    encoder = part(parameters, "encoder.rnn.")
    states = lstm(encoder, inputs)
    words = len(source) - 1
    dep = []
    for i in range(words if graph != "seq" else 0):
        hbar = mean(p[i], states)
        net = part(parameters, "encoder.graph_projection.")
        dep.append(torch.tanh(net["weight"] @ torch.cat((states[i], hbar, l[i])) + net["bias"]))

    state = states[-1], last_cell(encoder, inputs)
    feed = torch.zeros_like(states[0])
    decoder = part(parameters, "decoder.")
    logs, attention = [], []
    for step, word in enumerate(previous):
        if step or bos:
            state = cell_step(part(decoder, "cell."), (decoder["embed_tokens.weight"][word], feed), state)
        a = weights(state[0], states)
        parts = [state[0], mean(a, states)]
        if graph != "seq":
            parts.append(mean(weights(state[0], dep), dep) if words else torch.zeros_like(state[0]))
        feed = torch.tanh(decoder["output_state.weight"] @ torch.cat(parts) + decoder["output_state.bias"])
        logits = decoder["embed_tokens.weight"] @ feed + decoder["output_projection.bias"]
        logs.append(logits - torch.logsumexp(logits, 0))
        attention.append(torch.stack(a))
    return logs, attention


def last_cell(net, inputs):
    """Cell state of an LSTM after all inputs, by torch's names of weights."""
    size = len(net["bias_hh_l0"]) // 4
    hidden = cell = torch.zeros_like(net["bias_hh_l0"][:size])
    for x in inputs:
        gates = net["weight_ih_l0"] @ x + net["bias_ih_l0"] + net["weight_hh_l0"] @ hidden + net["bias_hh_l0"]
        take, keep, new, show = gates.chunk(4)
        cell = torch.sigmoid(keep) * cell + torch.sigmoid(take) * torch.tanh(new)
        hidden = torch.sigmoid(show) * torch.tanh(cell)
    return cell
