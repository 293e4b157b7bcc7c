"""Training with latent trees, one sentence and one action at a time, from the definitions.

Actions are numbers: 0 opens a constituent, 1 generates a symbol, or after the last one the end of the sentence,
2 closes a constituent, 3 does nothing.
"""

NT, GEN, REDUCE, NOP = range(4)


def coverage(attention: list[list[float]], sources: int) -> float:
    """The coverage loss of a sentence.

    Args:
        attention: a list for each target constituent but the root, of what it gives to each source constituent.
        sources: how many of these there are; the first is the root, to which none should go.
    """
    loss = 0.0
    for i in range(sources):
        wanted = 0.0 if i == 0 else 1.0
        loss += (wanted - sum(row[i] for row in attention)) ** 2 / sources
    for i in range(1, sources):
        loss += (1 - max([0.0, *(row[i] for row in attention)])) ** 2 / (sources - 1)
    if sources > 1:
        for row in attention:
            loss += (1 - max(row[1:])) ** 2 / len(attention)
    return loss


def counts(actions: list[int], inclusive: bool = False) -> list[int]:
    """How many symbols have been generated before each action (with its own, if inclusive), and at the end."""
    result, generated = [], 0
    for action in actions:
        own = action == GEN
        result.append(generated + (own if inclusive else 0))
        generated += own
    return [*result, generated]


def to_go(rewards: list[float], generated: list[int], discount: float) -> list[float]:
    """The discounted sum of the rewards from each action on."""
    result = []
    for i in range(len(rewards)):
        result.append(sum(discount ** (generated[k] - generated[i]) * rewards[k] for k in range(i, len(rewards))))
    return result


def rewards(
    actions: list[int],
    losses: list[float],
    tree: list[float],
    at_end: float,
    weight: float,
    of_symbols=None,
    of_tree=0.0,
) -> list[float]:
    """The rewards of the actions of a sentence less baselines, and last that at the end.

    Args:
        losses: of what each action generates, 0 if nothing.
        tree: tree rewards of actions.
        at_end: tree reward after the last.
        weight: of losses.
        of_symbols: baselines of the losses, one for each action.
        of_tree: baseline of the tree reward, subtracted wherever a symbol is generated.
    """
    result = []
    for step, action in enumerate(actions):
        reward = tree[step]
        if action == GEN:
            reward -= weight * losses[step]
            if of_symbols is not None:
                reward += weight * of_symbols[step] - of_tree
        result.append(reward)
    return [*result, at_end]


def move(averages: dict, batch: list[tuple], decay: float) -> dict:
    """Averages after a batch of (key, number): moved to the batch's mean of the key, or set to it."""
    result = dict(averages)
    for key in {key for key, _ in batch}:
        numbers = [number for other, number in batch if other == key]
        mean = sum(numbers) / len(numbers)
        result[key] = decay * averages[key] + (1 - decay) * mean if key in averages else mean
    return result
