"""Seeds of everything that tests train. `pytest --seed-shift N` adds N to each of them.

No test may depend on what a brief training happens to learn: weights that a test needs are set by hand
(`commands.scatter`), or it asserts what holds for any. Other processors round differently, which makes another model of
a brief training, and so do other seeds: the whole suite must pass with `--seed-shift 1` and `--seed-shift 2`.
"""

SHIFT = 0  # set by tests/conftest.py


def seed(number: int) -> int:
    """The seed to train with, where a test would take this one."""
    return number + SHIFT
