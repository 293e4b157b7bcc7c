"""SA-NMT as Tran & Bisk (2018) write it: one sentence, one word, one tree at a time.

Vectors and scores are tensors, so that gradients flow to the parameters; sums over trees are sums over an enumeration.
"""

import torch
from torch import nn
from torch.func import functional_call

from .dependency_trees import all_trees


def tree_heads(phi, barred=()):
    """beta (eqs. 10, 11): `phi[i][j]` scores i as the head of j, `phi[j][j]` j as the root. (n, n), head first.

    Args:
        barred: words that may be neither head nor root.
    """
    size = len(phi)
    beta = [[torch.zeros_like(phi[0][0]) for _ in range(size)] for _ in range(size)]
    total = torch.zeros_like(phi[0][0])
    for heads in all_trees(size):
        cells = [(word if head < 0 else head, word) for word, head in enumerate(heads)]
        if any(head in barred for head, _ in cells):
            continue
        weight = torch.exp(sum(phi[i][j] for i, j in cells))
        total = total + weight
        for i, j in cells:
            beta[i][j] = beta[i][j] + weight
    return torch.stack([torch.stack(row) for row in beta]) / total


def flat_heads(phi, barred=()):
    """Each word by itself: a softmax over the words, without those that are barred. (n, n), head first."""
    size = len(phi)
    allowed = [i for i in range(size) if i not in barred]
    columns = []
    for j in range(size):
        weights = {i: torch.exp(phi[i][j]) for i in allowed}
        columns.append(
            torch.stack([weights.get(i, torch.zeros_like(phi[0][0])) / sum(weights.values()) for i in range(size)])
        )
    return torch.stack(columns, dim=1)


def head_scores(states, query, key, root=None, scaled=False):
    """phi (eqs. 6, 9) of the words' annotations; `root` takes the place of the head's query on the diagonal."""
    scale = len(states[0]) ** -0.5 if scaled else 1.0
    size = range(len(states))
    phi = [[(query @ states[i]) @ (key @ states[j]) * scale for j in size] for i in size]
    if root is not None:
        for j in size:
            phi[j][j] = root @ (key @ states[j]) * scale
    return phi


def straight_through(beta):
    """Eq. 21: one in every column where beta is largest; its gradient is that of beta."""
    hard = torch.zeros_like(beta)
    for j in range(len(beta)):
        hard[max(range(len(beta)), key=lambda i: float(beta[i, j])), j] = 1.0
    return hard + beta - beta.detach()


def syntactic_annotations(states, is_word, selection, *, tree=True, hard=False, scaled=False, barred=()):
    """M (eq. 8): m_j = sum over i of beta[i, j] W_v s_i; what is no word has its own value.

    Args:
        states: (T, C) annotations of one sentence, EOS among them.
        is_word: T truth values.
        selection: parameters of the head selection by name.
        barred: positions that may be neither head nor root, unless there is nothing else.
    """
    places = [t for t, word in enumerate(is_word) if word]
    values = [selection["value.weight"] @ state for state in states]
    result = list(values)
    if places:
        weights = [selection[f"{name}.weight"] for name in ("head_query", "dependent_key")]
        root = selection.get("root_query")
        phi = head_scores([states[t] for t in places], *weights, root, scaled)
        never = {places.index(t) for t in barred}
        if len(never) == len(places):
            never = set()
        beta = (tree_heads if tree else flat_heads)(phi, never)
        if hard:
            beta = straight_through(beta)
        for j, place in enumerate(places):
            result[place] = sum(beta[i, j] * values[head] for i, head in enumerate(places))
    return result


def softmax(scores):
    weights = [torch.exp(score) for score in scores]
    return [weight / sum(weights) for weight in weights]


def weighted(weights, vectors):
    return sum(weight * vector for weight, vector in zip(weights, vectors, strict=True))


def part(parameters, prefix):
    return {name.removeprefix(prefix): value for name, value in parameters.items() if name.startswith(prefix)}


def translate(parameters, sentence, previous, *, layers, context, eos, **options):
    """Scores (S, V) of the next word after each of `previous`, and what the gate and attention were.

    Args:
        parameters: of the model by name, shared ones under each of their names.
        sentence: ids of one source sentence, EOS included.
        previous: S ids of target words.
        context: "none" (eqs. 1-5), "shared" (16), "separate" (19, 20) or "one-set" (22).
        options: of `syntactic_annotations`.
    """
    encoder = parameters["encoder.embed_tokens.weight"]
    weights = part(parameters, "encoder.rnn.")
    hidden = weights["weight_hh_l0"].shape[1]
    stack = nn.LSTM(encoder.shape[1], hidden, layers, bidirectional=True)
    # (T, 1, 2H): eq. 1
    annotations, final = functional_call(stack, weights, (encoder[torch.tensor(sentence)].unsqueeze(1),))
    annotations = list(annotations[:, 0])

    states = annotations
    memory = part(parameters, "encoder.memory.")
    if context != "none":
        words = [token != eos for token in sentence]
        syntax = syntactic_annotations(annotations, words, part(memory, "head_selection."), **options)
        if context == "one-set":  # eq. 22
            states = [
                s + torch.sigmoid(memory["gate.weight"] @ s) * m for s, m in zip(annotations, syntax, strict=True)
            ]

    decoder = part(parameters, "decoder.")
    state = []
    for layer in range(layers):
        both = [torch.cat((direction[2 * layer, 0], direction[2 * layer + 1, 0])) for direction in final]
        if "bridges.0.weight" in decoder:
            both = [decoder[f"bridges.{n}.weight"] @ v + decoder[f"bridges.{n}.bias"] for n, v in enumerate(both)]
        state.append(both)
    u = torch.zeros_like(decoder["output_state.weight"][:, 0])
    logits, gates, attention = [], [], []
    for word in previous:
        x = torch.cat((decoder["embed_tokens.weight"][word], u))
        for layer in range(layers):
            state[layer] = _cell(part(decoder, f"cells.{layer}."), x, state[layer])
            x = state[layer][0]
        alpha = softmax([x @ (memory["keys.weight"] @ s) for s in states])  # eq. 3
        found = [x, weighted(alpha, states)]  # eq. 4
        if context in ("shared", "separate"):
            gamma = alpha
            if context == "separate":  # eq. 19
                gamma = softmax([x @ (memory["syntax_keys.weight"] @ m) for m in syntax])
            gate = torch.sigmoid(decoder["attention.gate.weight"] @ x)
            found.append(weighted(gamma, syntax) * gate)  # eqs. 16 or 20, 17
            gates.append(gate.square().sum().sqrt())  # eq. 23
        u = torch.tanh(decoder["output_state.weight"] @ torch.cat(found))  # eqs. 2, 18
        logits.append(decoder["output_projection.weight"] @ u)  # eq. 5
        attention.append(torch.stack(alpha))
    return torch.stack(logits), gates, attention


def _cell(weights, x, state):
    """A step of an LSTM whose gates are i, f, o, g."""
    own, first = weights["recurrent.weight"], weights.get("ahead.weight")
    hidden, cell = state
    size = own.shape[1] - len(hidden)
    inputs = own[:, :size] if first is None else torch.cat((first, own[:, :size]), dim=1)
    take, keep, show, new = (inputs @ x + own[:, size:] @ hidden + weights["recurrent.bias"]).chunk(4)
    cell = torch.sigmoid(keep) * cell + torch.sigmoid(take) * torch.tanh(new)
    return [torch.sigmoid(show) * torch.tanh(cell), cell]
