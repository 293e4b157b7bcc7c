"""The recurrent neural network grammar as the papers describe it: a sentence at a time, an action at a time."""

import torch

NT, GEN, REDUCE, NOP = range(4)


def cell(weights_input, bias, weights_hidden, entry, state):
    """One step of an LSTM on vectors."""
    hidden, cells = state
    g, i, f, o = (weights_input @ entry + bias + weights_hidden @ hidden).chunk(4)
    cells = torch.sigmoid(f) * cells + torch.sigmoid(i) * torch.tanh(g)
    return torch.sigmoid(o) * torch.tanh(cells), cells


def compose(composition, children):
    """tanh(W [fwd; bwd] + b)."""
    ends = []
    for direction, ordered in enumerate((children, children[::-1])):
        state = (composition.output_bias.new_zeros(composition.size),) * 2
        for child in ordered:
            state = cell(
                composition.input_weight[direction],
                composition.input_bias[direction],
                composition.recurrent_weight[direction],
                child,
                state,
            )
        ends.append(state[0])
    return torch.tanh(composition.output_weight @ torch.cat(ends) + composition.output_bias)


class Node:
    """An open constituent, and later a closed one."""

    def __init__(self, place, state):
        self.place = place  # of its nonterminal on the stack
        self.key = state
        self.children = []
        self.phrase = None
        self.attention = None
        self.dropped = False


def run(grammar, limits, actions, text, keys=None, values=None):
    """One sentence.

    Args:
        grammar: an `RNNG`, whose weights are used one by one.
        limits: of trees.
        actions: list of actions, the last one the GEN of the end.
        text: list of symbols, the end included.
        keys, values: (I, H), of a decoder, whose root is pushed as the first value.

    Returns:
        dict: states (list of (H,)), policies (what `log_policy` takes), both for each action; symbol_loss (list); keys
        and values (I, H) and attention (list of (I,)) of constituents that are not dropped, in the order of opening.
    """
    stack_lstm = grammar.stack
    zero = grammar.embed.weight.new_zeros(grammar.size)
    stack = []  # of (entry, state)

    def push(entry):
        below = stack[-1][1] if stack else (zero, zero)
        state = cell(stack_lstm.input_weight, stack_lstm.bias, stack_lstm.recurrent_weight, entry, below)
        stack.append((entry, state))

    def top():
        return stack[-1][1][0]

    push(grammar.nonterminal if keys is None else values[0])
    nodes = [Node(0, top())]
    open_nodes = [nodes[0]]
    result = {name: [] for name in ("states", "policies", "symbol_loss")}
    place = in_a_row = 0
    for action in actions:
        state = top()
        result["states"].append(state)
        left = limits.max_actions(len(text) - 1) - len(result["policies"])
        room = len(open_nodes) < limits.max_open and in_a_row < limits.max_consecutive
        affordable = left >= len(text) - place + len(open_nodes) + 2
        legal = [room and affordable, True, len(open_nodes) > 1 and bool(open_nodes[-1].children)]
        in_a_row = in_a_row + 1 if action == NT else 0
        result["policies"].append((grammar.policy.weight @ state + grammar.policy.bias, legal, action))
        if action == NT:
            attention = None
            if keys is None:
                entry = grammar.nonterminal
            else:
                attention = torch.softmax(keys @ state, dim=0)
                entry = attention @ values
            push(entry)
            nodes.append(Node(len(stack) - 1, top()))
            nodes[-1].attention = attention
            open_nodes.append(nodes[-1])
        elif action == GEN:
            symbol = text[place]
            logits = grammar.output.weight @ state + grammar.output.bias
            result["symbol_loss"].append(torch.logsumexp(logits, 0) - logits[symbol])
            place += 1
            if place < len(text):
                push(grammar.embed.weight[symbol])
                open_nodes[-1].children.append(grammar.embed.weight[symbol])
        elif action == REDUCE:
            node = open_nodes.pop()
            node.phrase = compose(grammar.composition, node.children)
            open_nodes[-1].children.append(node.phrase)
            del stack[node.place :]
            push(node.phrase)
    while open_nodes:
        node = open_nodes.pop()
        if not node.children and open_nodes:
            node.dropped = True
            continue
        node.phrase = compose(grammar.composition, node.children)
        if open_nodes:
            open_nodes[-1].children.append(node.phrase)
    kept = [node for node in nodes if not node.dropped]
    result["values"] = torch.stack([node.phrase for node in kept])
    result["keys"] = torch.stack([node.key for node in kept])
    result["attention"] = [node.attention for node in kept[1:]]
    return result


def log_policy(scores, legal, action):
    """Log probability of an action, for legal actions alone."""
    kept = torch.stack([score for score, allowed in zip(scores, legal, strict=True) if allowed])
    normalized = kept - torch.logsumexp(kept, 0)
    return normalized[sum(legal[:action])]
