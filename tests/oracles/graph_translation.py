"""LGP-NMT as Hashimoto & Tsuruoka (2017) write it: one sentence, one target word, one source word at a time."""

import torch
from oracles.latent_graph import lstm_steps, parse
from oracles.syntax_translation import _cell, part, softmax, weighted


def translate(model, source, previous, *, graph="latent", heads=None, labels=None, num_labels=None):
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
    steps = lstm_steps(encoder, inputs)
    states = [hidden for hidden, _ in steps]
    words = len(source) - 1
    dep = []
    for i in range(words if graph != "seq" else 0):
        hbar = weighted(p[i], states)
        net = part(parameters, "encoder.graph_projection.")
        dep.append(torch.tanh(net["weight"] @ torch.cat((states[i], hbar, l[i])) + net["bias"]))

    state = steps[-1]
    feed = torch.zeros_like(states[0])
    decoder = part(parameters, "decoder.")
    logs, attention = [], []
    for step, word in enumerate(previous):
        if step:
            state = _cell(part(decoder, "cell."), torch.cat((decoder["embed_tokens.weight"][word], feed)), state)
        a = softmax([state[0] @ vector for vector in states])
        parts = [state[0], weighted(a, states)]
        if graph != "seq":
            shares = softmax([state[0] @ vector for vector in dep])
            parts.append(weighted(shares, dep) if words else torch.zeros_like(state[0]))
        feed = torch.tanh(decoder["output_state.weight"] @ torch.cat(parts) + decoder["output_state.bias"])
        logits = decoder["embed_tokens.weight"] @ feed + decoder["output_projection.bias"]
        logs.append(logits - torch.logsumexp(logits, 0))
        attention.append(torch.stack(a))
    return logs, attention
