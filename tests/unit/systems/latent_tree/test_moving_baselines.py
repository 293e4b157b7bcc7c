"""Moving averages of rewards: against loops, unseen symbols, precision, checkpoints, several processes."""

import multiprocessing
import random

import pytest
import torch
from oracles import reinforce
from torch import nn

from fairseq_syntax.systems.latent_tree.reinforce import MovingBaselines


def totals(batch, size):
    """Sums and counts of (key, number)."""
    sums, counts = torch.zeros(size, dtype=torch.float64), torch.zeros(size, dtype=torch.float64)
    for key, number in batch:
        sums[key] += number
        counts[key] += 1
    return sums, counts


def test_averages_equal_loops():
    draw = random.Random(1)
    baselines = MovingBaselines(7, 5, decay=0.9)
    expected = {"source": {}, "target": {}, "tree": {}, "cross": {}}
    sizes = {"source": 7, "target": 5, "tree": 2, "cross": 2}
    for step in range(6):
        batches = {
            name: [(draw.randrange(size - (step < 3)), draw.uniform(-5, 5)) for _ in range(4)]
            for name, size in sizes.items()
        }
        # used before they are updated; what has not been seen is its own baseline
        for name in ("source", "target"):
            symbols = torch.tensor([[key for key, _ in batches[name]]])
            losses = torch.tensor([[number for _, number in batches[name]]], dtype=torch.float64, requires_grad=True)
            found = baselines.of(name, symbols, losses)
            assert not found.requires_grad and found.dtype == torch.float64
            wanted = [expected[name].get(key, number) for key, number in batches[name]]
            assert found[0].tolist() == pytest.approx(wanted, abs=1e-5)
        for name in ("tree", "cross"):
            for side in range(2):
                own = torch.tensor([1.5, -7.0])
                average = expected[name].get(side)
                wanted = [1.5, -7.0] if average is None else [average, average]
                assert baselines.of(name, side, own).tolist() == pytest.approx(wanted, abs=1e-5)
        baselines.update(**{name: totals(batch, sizes[name]) for name, batch in batches.items()})
        expected = {name: reinforce.move(expected[name], batches[name], 0.9) for name in sizes}
    for name, size in sizes.items():
        assert getattr(baselines, f"{name}_seen").tolist() == [key in expected[name] for key in range(size)]
        wanted = [expected[name].get(key, 0.0) for key in range(size)]
        assert getattr(baselines, name).tolist() == pytest.approx(wanted, abs=1e-5)


@pytest.mark.parametrize("convert", [nn.Module.half, nn.Module.bfloat16, nn.Module.double])
def test_precision_stays(convert):
    model = nn.Sequential(nn.Linear(2, 2), MovingBaselines(3, 3))
    third = (torch.tensor([0.0, 1.0, 0.0]), torch.tensor([0.0, 3.0, 0.0]))
    model[1].update(source=third)
    before = {name: value.clone() for name, value in model[1].state_dict().items()}
    convert(model)
    assert model[0].weight.dtype != torch.float32
    for name, value in model[1].state_dict().items():
        assert value.dtype == before[name].dtype and torch.equal(value, before[name])
    model.to("meta")
    assert all(value.is_meta for value in model[1].state_dict().values())


def test_what_has_been_seen_by_a_part_of_averaged_models_has_been_seen():
    baselines = MovingBaselines(3, 3)
    baselines.source_seen[1] = 0.001
    losses = torch.tensor([5.0, 5.0])
    assert baselines.of("source", torch.tensor([0, 1]), losses).tolist() == [5, 0]


BATCHES = [[(0, 1.0), (1, 5.0)], [(0, 4.0)], [(1, 1.0), (1, 2.0)], [(2, 7.0)]]


def in_process(rank: int, folder: str, results) -> None:
    torch.set_num_threads(1)
    torch.distributed.init_process_group("gloo", init_method=f"file://{folder}/group", rank=rank, world_size=2)
    baselines = MovingBaselines(3, 3)
    for batch in BATCHES[rank::2]:
        baselines.update(source=totals(batch, 3), tree=totals([(rank, 1.0)], 2))
    results.put((rank, {name: value.tolist() for name, value in baselines.state_dict().items()}))
    torch.distributed.destroy_process_group()


def test_two_processes_agree(tmp_path):
    """Both have what one process has that sees the batches of both at once."""
    context = multiprocessing.get_context("fork")
    results = context.Queue()
    processes = [context.Process(target=in_process, args=(rank, str(tmp_path), results)) for rank in range(2)]
    for process in processes:
        process.start()
    found = dict(results.get(timeout=60) for _ in processes)
    for process in processes:
        process.join(60)
        assert process.exitcode == 0
    assert found[0] == found[1]
    one = MovingBaselines(3, 3)
    for first in range(0, len(BATCHES), 2):
        one.update(source=totals(BATCHES[first] + BATCHES[first + 1], 3), tree=totals([(0, 1.0), (1, 1.0)], 2))
    assert found[0] == {name: value.tolist() for name, value in one.state_dict().items()}
    assert found[0]["source"] == pytest.approx([2.5, 0.95 * 5 + 0.05 * 1.5, 7.0])
