"""Checkpoints: from and to fairseq's own Transformer, averaged, in ensembles, damaged."""

import ast
import shutil
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from fairseq import checkpoint_utils, options, tasks, utils
from integration import commands
from integration.commands import OPTIONS, PACKAGE, assert_same_hypotheses

STOCK = "transformer_tiny"
PASCAL = "pascal_transformer_tiny"
LISA = "lisa_transformer_tiny"
SYNTAX = [PASCAL, LISA, "tag_transformer_tiny"]
RECURRENT = "sa_nmt_shared_tiny"


@pytest.fixture
def build(data_bin):
    """Function: architecture, options -> a freshly made model, its task and criterion, in namespace fields."""

    def get(arch: str, *more: str) -> SimpleNamespace:
        utils.set_torch_seed(3)
        parser = options.get_training_parser()
        arguments = [str(data_bin), "--arch", arch, *commands.TRAINING, *OPTIONS[arch], "--dropout", "0", *more]
        from fairseq.dataclass.utils import convert_namespace_to_omegaconf

        cfg = convert_namespace_to_omegaconf(options.parse_args_and_arch(parser, input_args=arguments))
        task = tasks.setup_task(cfg.task)
        model = task.build_model(cfg.model)
        return SimpleNamespace(model=model, task=task, criterion=task.build_criterion(cfg.criterion))

    return get


def loss_and_gradients(built, batch, training: bool = True):
    built.model.train(training)
    built.model.zero_grad()
    loss, _, _ = built.criterion(built.model, batch)
    loss.backward()
    return loss.detach(), {name: parameter.grad for name, parameter in built.model.named_parameters()}


@pytest.mark.parametrize("more", [["--pascal-heads", "1", "2"], ["--pascal-heads", "0"]], ids=["on", "off"])
def test_pascal_has_the_parameters_of_the_stock_transformer(build, more):
    stock, pascal = build(STOCK).model.state_dict(), build(PASCAL, *more).model.state_dict()
    assert {name: value.shape for name, value in pascal.items()} == {name: value.shape for name, value in stock.items()}


@pytest.mark.parametrize(
    ("more", "equal"),
    [
        (["--pascal-heads", "1", "2", "--pascal-parent-ignoring", "1"], True),
        (["--pascal-heads", "0"], True),
        (["--pascal-heads", "1", "2"], False),
    ],
    ids=["all parents ignored", "no heads", "control"],
)
def test_pascal_without_parents_is_the_stock_transformer_bit_for_bit(build, more, equal):
    stock, pascal = build(STOCK), build(PASCAL, *more)
    pascal.model.load_state_dict(stock.model.state_dict())
    pascal.task.load_dataset("test")
    dataset = pascal.task.dataset("test")
    batch = dataset.collater([dataset[i] for i in range(20)])
    plain = {**batch, "net_input": {key: v for key, v in batch["net_input"].items() if key != "src_syntax"}}
    loss, gradients = loss_and_gradients(pascal, batch)
    stock_loss, stock_gradients = loss_and_gradients(stock, plain)
    same = [torch.equal(gradients[name], value) for name, value in stock_gradients.items()]
    assert gradients.keys() == stock_gradients.keys()
    assert (torch.equal(loss, stock_loss), all(same)) == (equal, equal)


@pytest.mark.parametrize("arch", [PASCAL, LISA])
def test_stock_checkpoint_warm_starts(trained, data_bin, tmp_path, arch):
    """An update with learning rate 0, so that the parameters are those that were loaded."""
    stock = trained(STOCK) / "checkpoint_last.pt"
    start = ["--finetune-from-model", stock, "--lr", 0, "--max-update", 1]
    log = commands.train(data_bin, tmp_path, arch, *OPTIONS[arch], *start)
    expected, found = commands.parameters(stock), commands.parameters(tmp_path / "checkpoint_last.pt")
    own = found.keys() - expected.keys()
    assert all("self_attn.parser." in name for name in own)
    assert bool(own) == (arch == LISA) == ("these parameters start afresh" in log)
    assert expected.keys() <= found.keys()
    assert all(torch.equal(found[name], value) for name, value in expected.items())


def test_the_folder_of_another_system_is_refused(trained, data_bin, tmp_path):
    """Whatever fairseq would accept, or advise; the checkpoint stays as it is."""
    last = Path(shutil.copy(trained(STOCK) / "checkpoint_last.pt", tmp_path))
    before = last.read_bytes()
    aligned = "label_smoothed_cross_entropy_with_alignment"
    for arch, *more, message in (
        (PASCAL, *OPTIONS[PASCAL], f"--arch {STOCK}, not {PASCAL}"),
        (LISA, *OPTIONS[LISA], "--reset-optimizer", f"--arch {STOCK}, not {LISA}"),
        (STOCK, *OPTIONS[STOCK], "--criterion", aligned, "--reset-optimizer", f"_cross_entropy, not {aligned}"),
    ):
        with pytest.raises(ValueError, match=message):
            commands.train(data_bin, tmp_path, arch, *more, "--max-update", "91")
    assert last.read_bytes() == before
    # the same system goes on, whatever its task is called; and who names a checkpoint gets it
    for task in ("translation", "syntax_translation"):
        goes_on = ["--task", task, "--max-update", "90"]
        assert "Loaded checkpoint" in commands.train(data_bin, tmp_path, STOCK, *OPTIONS[STOCK], *goes_on)
    start = ["--restore-file", last, "--max-update", "91"]
    assert "Loaded checkpoint" in commands.train(data_bin, tmp_path / "new", PASCAL, *OPTIONS[PASCAL], *start)


def test_nothing_loads_unsafely():
    """No `weights_only=False`, no pickle, no other `torch.load` put in the place of torch's."""
    for path in sorted(PACKAGE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            place = f"{path.name}:{getattr(node, 'lineno', 0)}"
            if isinstance(node, ast.keyword) and node.arg == "weights_only":
                assert getattr(node.value, "value", None) is True, place
            if isinstance(node, ast.Import | ast.ImportFrom):
                names = {alias.name for alias in node.names} | {getattr(node, "module", None)}
                if names == {"pickle", "UnpicklingError"}:
                    continue  # an exception to catch loads nothing
                assert not names & {"pickle", "dill", "cloudpickle", "joblib"}, place
            if isinstance(node, ast.Assign):
                assert "torch.load" not in {ast.unparse(target) for target in node.targets}, place


@pytest.mark.parametrize("arch", [*SYNTAX, STOCK, RECURRENT])
def test_checkpoints_load_under_weights_only(trained, arch):
    state = torch.load(trained(arch) / "checkpoint_last.pt", weights_only=True)
    assert state["optimizer_history"][-1]["num_updates"] == 2


def test_checkpoints_from_before_an_option_compute_what_they_did(trained, tmp_path):
    """They have its default, not what --arch sets for the trainings of today."""
    path = trained("tag_transformer_tiny") / "checkpoint_last.pt"
    state = torch.load(path, weights_only=True)
    del state["cfg"]["model"].tag_embed_scale
    torch.save(state, tmp_path / "old.pt")
    for checkpoint, scale in ((path, "none"), (tmp_path / "old.pt", "token")):
        (model,), _ = checkpoint_utils.load_model_ensemble([str(checkpoint)])
        assert model.encoder.cfg.tag_embed_scale == scale


def test_averaged_checkpoint_generates(trained, data_bin, tmp_path):
    paths = [*trained(PASCAL).glob("checkpoint_1_1.pt"), trained(PASCAL) / "checkpoint_last.pt"]
    states = [checkpoint_utils.load_checkpoint_to_cpu(str(path)) for path in paths]
    assert len(states) == 2
    average = {name: (value + states[1]["model"][name]) / 2 for name, value in states[0]["model"].items()}
    torch.save({**states[1], "model": average}, tmp_path / "average.pt")
    found = commands.generate(data_bin, tmp_path / "average.pt", "--gen-subset", "valid")
    single = commands.generate(data_bin, paths[1], "--gen-subset", "valid")
    assert found.keys() == single.keys() and found != single


def test_checkpoint_of_training_with_bleu_generates(data_bin, tmp_path):
    arguments = [part for part in commands.TRAINING if part != "--disable-validation"]
    bleu = ["--eval-bleu", "--eval-bleu-args", '{"beam": 1, "max_len_a": 0, "max_len_b": 5}']
    best = ["--best-checkpoint-metric", "bleu", "--maximize-best-checkpoint-metric", "--eval-bleu-remove-bpe"]
    model = ["--arch", PASCAL, *OPTIONS[PASCAL], "--save-dir", tmp_path, "--max-update", 12]
    log = commands.run("fairseq-train", data_bin, *arguments, *model, *bleu, *best)
    assert any("valid_bleu" in record for record in commands.records(log))
    found = commands.generate(data_bin, tmp_path / "checkpoint_best.pt", "--gen-subset", "valid", "--max-len-b", 4)
    assert len(found) == 61


@pytest.mark.parametrize(
    "arch", [SYNTAX[0], RECURRENT, *(pytest.param(arch, marks=pytest.mark.slow) for arch in SYNTAX[1:])]
)
def test_ensemble_of_one_model_twice_is_the_model(trained, data_bin, arch):
    path = trained(arch) / "checkpoint_last.pt"
    single, twice = (commands.generate(data_bin, paths, "--gen-subset", "valid") for paths in (path, f"{path}:{path}"))
    assert_same_hypotheses(twice, single)


def test_ensemble_of_different_models_with_syntax(trained, data_bin):
    paths = [str(trained(arch) / "checkpoint_last.pt") for arch in SYNTAX]
    found = commands.generate(data_bin, ":".join(paths), "--gen-subset", "valid")
    single = [commands.generate(data_bin, path, "--gen-subset", "valid") for path in paths]
    assert len(found) == 61
    # beam search over an average: no member's own result
    assert all(found != other for other in single)


def test_ensemble_with_a_stock_model_is_an_error(trained, data_bin):
    paths = ":".join(str(trained(arch) / "checkpoint_last.pt") for arch in (PASCAL, STOCK))
    with pytest.raises(ValueError, match="mixes models with syntax and fairseq's own"):
        commands.generate(data_bin, paths)


def test_damaged_lisa_checkpoint_is_an_error(trained, data_bin, tmp_path):
    """One missing parameter of the parser must not start afresh, silently."""
    state = torch.load(trained(LISA) / "checkpoint_last.pt", weights_only=True)
    missing = [name for name in state["model"] if name.endswith("self_attn.parser.weight")]
    assert len(missing) == 1
    del state["model"][missing[0]]
    torch.save(state, tmp_path / "damaged.pt")
    with pytest.raises(ValueError, match=r"damaged\.pt: .*Missing key.*parser\.weight"):
        commands.generate(data_bin, tmp_path / "damaged.pt")
