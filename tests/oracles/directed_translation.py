"""The systems of Chen et al. (2018) as their equations are written: one sentence, one word, one position at a time.

Scores and weights are lists of scalar tensors, so that gradients flow to the parameters.
"""

import math

import torch
from oracles.forests import distances
from oracles.syntax_translation import part, softmax, weighted


def tree_paths(heads):
    """Arcs between any two tokens of a sentence of whole words and EOS, which is above the roots; -2: no parse."""
    size = len(heads) + 1
    return [[0] * size for _ in range(size)] if -2 in heads else distances(heads)


def predicted(net, query, length):
    """Eq. 5: p = L sigmoid(v . tanh(W_p s))."""
    return length * torch.sigmoid(net["output.weight"][0] @ torch.tanh(net["hidden.weight"] @ query))


def some_softmax(scores, inside):
    """Softmax over the positions inside, 0 elsewhere."""
    total = sum(torch.exp(score) for score, use in zip(scores, inside, strict=True) if use)
    return [torch.exp(score) / total if use else score * 0 for score, use in zip(scores, inside, strict=True)]


def local(scores, query, net, **options):
    """Eqs. 5-8; (weights, p)."""
    place = predicted(part(net, "position."), query, len(scores))
    return around(scores, place, **options), place


def around(scores, place, window=10.0, softmax="window"):
    """Eqs. 6-8 around a position."""
    length = len(scores)
    if softmax == "sentence":  # to the letter: tokens 1, 2, … stand at their numbers
        centres = list(range(1, length + 1))
        inside = [place - window <= j <= place + window for j in centres]
        weights = some_softmax(scores, [True] * length)
    else:
        row = min(math.floor(place), length - 1)
        centres = [j + 0.5 for j in range(length)]
        inside = [abs(j - row) <= window for j in range(length)]
        weights = some_softmax(scores, inside)
    return [
        weight * torch.exp(-((centre - place) ** 2) / (2 * (window / 2) ** 2)) if near else weight * 0
        for centre, weight, near in zip(centres, weights, inside, strict=True)
    ]


def flexible(scores, query, net, centre, **options):
    """(weights, gate, the new centre)."""
    gate = predicted(part(net, "gate."), query, 1)
    weights, centre = penalized(scores, gate, centre, **options)
    return weights, gate, centre


def penalized(scores, gate, centre, sigma=3.0):
    """(weights, the new centre)."""
    weights = softmax([e - gate * (j - centre) ** 2 / (2 * sigma**2) for j, e in enumerate(scores)])
    return weights, sum(j * weight for j, weight in enumerate(weights))


def row_weights(scores, distances, window, sigma):
    """Eqs. 10 and 11 of words at these distances from the centre."""
    exponents = [-(d**2) / (2 * sigma**2) for d in distances]
    inside = [d <= window for d in distances]
    scores = [e * math.exp(x) for e, x in zip(scores, exponents, strict=True)]
    return torch.stack(some_softmax(scores, inside))


def directed(scores, query, net, distances, *, window=4.0, sigma=None, gradient="smooth"):
    """Eqs. 5, 9-11; (weights, p)."""
    length = len(scores)
    sigma = window / 2 if sigma is None else sigma

    def of_row(scores, row):
        return row_weights(scores, distances[row], window, sigma)

    place = predicted(part(net, "position."), query, length)
    weights = of_row(scores, min(math.floor(place), length - 1))
    fixed = [score.detach() for score in scores]
    if gradient == "smooth":
        # of the mixture, its gradient to the position only
        heights = [torch.exp(-((j + 0.5 - place) ** 2) / (2 * 3.0**2)) for j in range(length)]
        mixed = sum(height / sum(heights) * of_row(fixed, j) for j, height in enumerate(heights))
        weights = weights + mixed - mixed.detach()
    return list(weights), place


def unit_of(word, heads):
    """Words in the dependency unit of a word: parent, siblings, children; no more than 10."""
    if heads[word] == -2:
        return []
    parent = [heads[word]] if heads[word] >= 0 else []
    siblings = [other for other, head in enumerate(heads) if head == heads[word] and other != word]
    children = [other for other, head in enumerate(heads) if head == word]
    others = siblings + children
    while len(parent + others) > 10:
        others.remove(max(others, key=lambda other: (abs(other - word), other)))
    return parent + others


def unit_vectors(net, table, sentence, heads, words=None):
    """V_U of every token; `words` are the words of tokens, each a token of its own if they are not given."""
    words = list(range(len(sentence))) if words is None else words
    pieces = [[table[i] for i, word in zip(sentence, words, strict=True) if word == j] for j in range(len(heads))]
    vectors = [sum(some) / len(some) for some in pieces]

    def vector(members):
        rows = [vectors[word] for word in members]
        rows += [net["filler"]] * (10 - len(rows))
        for layer in range(2):
            weight, bias = net[f"convolutions.{layer}.weight"], net[f"convolutions.{layer}.bias"]
            found = []
            for start in range(len(rows) - 2):
                total = bias
                for k, row in enumerate(rows[start : start + 3]):
                    total = total + weight[:, :, k] @ row
                found.append(torch.tanh(total))
            rows = [torch.maximum(found[i], found[i + 1]) for i in range(0, len(found) - 1, 2)]
        return sum(rows) / len(rows)

    units = [vector(unit_of(word, heads)) for word in range(len(heads))] + [vector([])]
    return [units[word] for word in words]


def gru(inputs, recurrent, x, hidden, masks=(1, 1)):
    """The GRU of Nematus: the candidate's recurrent part is reset after its product; gates r, z, n.

    `masks` drop components of the state before the products of the gates and of the candidate.
    """
    given = (inputs["weight"] @ x + inputs["bias"]).chunk(3)
    matrices, biases = recurrent["weight"].chunk(3), recurrent["bias"].chunk(3)
    states = hidden * masks[0], hidden * masks[0], hidden * masks[1]
    own = [matrix @ state + bias for matrix, state, bias in zip(matrices, states, biases, strict=True)]
    reset, update = torch.sigmoid(given[0] + own[0]), torch.sigmoid(given[1] + own[1])
    return (1 - update) * torch.tanh(given[2] + reset * own[2]) + update * hidden


def run(weights, rows, layers=1, masks=None):
    """Annotations (T, E) of one sentence by a GRU, a list; `masks`: two for each direction of one layer, see `gru`."""
    masks = masks or [1] * 4
    for layer in range(layers):
        both = []
        for suffix, own in ((f"l{layer}", masks[:2]), (f"l{layer}_reverse", masks[2:])):
            inputs, recurrent = (
                {"weight": weights[f"weight_{kind}_{suffix}"], "bias": weights[f"bias_{kind}_{suffix}"]}
                for kind in ("ih", "hh")
            )
            hidden, states = torch.zeros_like(recurrent["weight"][0]), []
            for row in reversed(rows) if "reverse" in suffix else rows:
                hidden = gru(inputs, recurrent, row, hidden, own)
                states.append(hidden)
            both.append(states[::-1] if "reverse" in suffix else states)
        rows = [torch.cat(pair) for pair in zip(*both, strict=True)]
    return rows


def additive(net, keys, query, annotations):
    """Scores v . tanh(W_q s + W_k h + b) + c of annotations h."""
    return [
        net["score.weight"][0] @ torch.tanh(net["query.weight"] @ query + keys["weight"] @ h + keys["bias"])
        + net["score.bias"][0]
        for h in annotations
    ]


def next_word(decoder, *given):
    """Scores (V,) from the word before, states and contexts, whose matrices L_w, L_d, L_c stand in one."""
    output = torch.tanh(decoder["deep_output.weight"] @ torch.cat(given) + decoder["deep_output.bias"])
    scores = decoder["output_projection.weight"] @ output
    return scores + decoder["output_projection.bias"] if "output_projection.bias" in decoder else scores


def translate_with_two_sequences(parameters, words, units, previous, masks=None):
    """SDRNMT-2: annotations h over words and d over units, a conditional GRU over each, one distribution."""
    decoder = part(parameters, "decoder.")
    sequences, states = [], []
    kept = masks or ([None, None], [[1] * 5, [1] * 5])
    for rnn, rows, initial, own in zip(
        ("rnn", "unit_rnn"), (words, units), ("initial", "unit_initial"), kept[0], strict=True
    ):
        annotations = run(part(parameters, f"encoder.{rnn}."), rows, masks=own)
        sequences.append(annotations)
        mean = sum(annotations) / len(annotations)
        states.append(torch.tanh(decoder[f"{initial}.weight"] @ mean + decoder[f"{initial}.bias"]))
    logits, everything = [], []
    for word in previous:
        y = decoder["embed_tokens.weight"][word]
        queries, scores = [], []
        for name, prefix, annotations, state, own in zip(
            ("words", "units"), ("", "unit_"), sequences, states, kept[1], strict=True
        ):
            cells = part(decoder, f"{prefix}before.")
            queries.append(gru(part(cells, "ahead."), part(cells, "recurrent."), y, state, own[:2]))
            keys, net = part(parameters, f"encoder.memory.{name}.keys."), part(decoder, f"attention.{name}.")
            scores.append(additive(net, keys, queries[-1] * own[2], annotations))
        weights = softmax([(e + f) / 2 for e, f in zip(*scores, strict=True)])
        contexts = [weighted(weights, annotations) for annotations in sequences]
        states = []
        for prefix, query, context, own in zip(("", "unit_"), queries, contexts, kept[1], strict=True):
            cells = part(decoder, f"{prefix}after.")
            states.append(gru(part(cells, "input."), part(cells, "recurrent."), context, query, own[3:]))
        logits.append(next_word(decoder, y, *states, *contexts))
        everything.append({"attn": torch.stack(weights)})
    return torch.stack(logits), everything


def translate(
    parameters,
    sentence,
    heads,
    previous,
    *,
    attention="global",
    double_context=False,
    layers=1,
    sdr=0,
    masks=None,
    **options,
):
    """Scores (S, V) of the next word after each of `previous`; per step: what attention found.

    Args:
        parameters: of the model by name, shared ones under each of their names.
        sentence: ids of one source sentence, EOS included.
        heads: of its words, each of one token.
        previous: ids of target words.
        sdr: 1: the encoder reads vectors of dependency units beside the words; 2: see `translate_with_two_sequences`.
        masks: dropout of states: per sequence of annotations those of the encoder, see `run`, and of the decoder: for
            gates and candidate of the first GRU, for the attention, for gates and candidate of the second.
        options: of the weights.
    """
    table = parameters["encoder.embed_tokens.weight"]
    read = table[torch.tensor(sentence)]
    if sdr:
        units = torch.stack(unit_vectors(part(parameters, "encoder.units."), table, sentence, heads))
        if sdr == 2:
            return translate_with_two_sequences(parameters, read, units, previous, masks)
        read = torch.cat((read, units), dim=1)
    (of_encoder,), (own,) = masks or ([None], [[1] * 5])
    annotations = run(part(parameters, "encoder.rnn."), read, layers, of_encoder)
    memory, decoder = part(parameters, "encoder.memory."), part(parameters, "decoder.")
    net = part(decoder, "attention.weights.")
    paths = tree_paths(heads)
    centre = torch.zeros_like(annotations[0][0])

    def attend(query):
        nonlocal centre
        scores = additive(part(decoder, "attention."), part(memory, "keys."), query, annotations)
        plain, found = softmax(scores), {}
        if attention == "local":
            special, found["position"] = local(scores, query, net, **options)
        elif attention == "flexible":
            special, found["gate"], centre = flexible(scores, query, net, centre, **options)
        elif attention == "sdatt":
            special, found["position"] = directed(scores, query, net, paths, **options)
        else:
            special = plain
        contexts = [weighted(special, annotations)]
        found["attn"] = torch.stack(special)
        if double_context:
            contexts.insert(0, weighted(plain, annotations))
            found |= {"attn": torch.stack(plain), "syntax_attn": torch.stack(special)}
        return contexts, found

    logits, everything = [], []
    mean = sum(annotations) / len(annotations)
    state = torch.tanh(decoder["initial.weight"] @ mean + decoder["initial.bias"])
    for word in previous:
        y = decoder["embed_tokens.weight"][word]
        query = gru(part(decoder, "before.ahead."), part(decoder, "before.recurrent."), y, state, own[:2])
        contexts, found = attend(query * own[2])
        context = torch.cat(contexts)
        state = gru(part(decoder, "after.input."), part(decoder, "after.recurrent."), context, query, own[3:])
        logits.append(next_word(decoder, y, state, *contexts))
        everything.append(found)
    return torch.stack(logits), everything
