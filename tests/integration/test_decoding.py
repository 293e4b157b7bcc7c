"""Batches, beams and padding sides change nothing: models are compared with themselves, one sentence at a time."""

import pytest
import torch
from fairseq import checkpoint_utils
from integration.commands import PACKAGE

ARCHITECTURES = ["pascal_transformer_tiny", "lisa_transformer_tiny", "tag_transformer_tiny"]
RECURRENT = ["sa_nmt_shared_tiny"]  # all others: tests/unit/systems/sa_nmt/test_model.py
BATCH = 13
SIDES = {"left": True, "right": False}


@pytest.fixture
def loaded(trained, data_bin):
    """Function: architecture, whether to pad on the left -> (model, task, its test set)."""

    def get(arch, left_pad):
        models, _, task = checkpoint_utils.load_model_ensemble_and_task(
            [str(trained(arch) / "checkpoint_last.pt")],
            arg_overrides={"data": str(data_bin), "left_pad_source": left_pad, "user_dir": str(PACKAGE)},
        )
        task.load_dataset("test")
        models[0].eval()
        return models[0], task, task.dataset("test")

    return get


def examples(dataset):
    """Sentences of clearly different lengths, so that all but one are padded."""
    chosen = sorted(range(len(dataset)), key=dataset.size)[:: len(dataset) // BATCH][:BATCH]
    assert len({dataset.size(i) for i in chosen}) > 6
    return [dataset[i] for i in chosen]


@pytest.mark.parametrize("side", SIDES)
@pytest.mark.parametrize("arch", ARCHITECTURES + RECURRENT)
def test_beam_search_scores_are_those_of_teacher_forcing(loaded, arch, side):
    model, task, dataset = loaded(arch, SIDES[side])
    sentences = {example["id"]: example for example in examples(dataset)}
    batch = dataset.collater(list(sentences.values()))
    settings = {"beam": 4, "max_len_a": 1, "max_len_b": 5, "nbest": 4}
    generator = task.build_generator([model], _Settings(**settings))
    found = task.inference_step(generator, [model], batch)
    compared = 0
    for number, beam in zip(batch["id"].tolist(), found, strict=True):
        alone = dataset.collater([sentences[number]])
        for hypothesis in beam:
            tokens = hypothesis["tokens"]
            previous = torch.cat([torch.tensor([task.target_dictionary.eos()]), tokens[:-1]])
            with torch.no_grad():
                output = model(**{**alone["net_input"], "prev_output_tokens": previous[None]})
                log_probabilities = model.get_normalized_probs(output, log_probs=True)[0]
            scores = log_probabilities.gather(1, tokens[:, None]).squeeze(1)
            torch.testing.assert_close(hypothesis["positional_scores"], scores, atol=1e-5, rtol=1e-5)
            compared += 1
    assert compared == 4 * BATCH


@pytest.mark.parametrize("arch", ARCHITECTURES + RECURRENT)
def test_half_precision_runs_and_stays_near(loaded, arch):
    model, _, dataset = loaded(arch, True)
    batch = dataset.collater(examples(dataset))
    with torch.no_grad():
        for parameter in model.parameters():
            parameter /= 2  # logits of the size that half precision is for
        full = model(**batch["net_input"])[0]
        half = model.half()(**batch["net_input"])[0]
    assert half.dtype == torch.float16
    real = batch["target"].ne(dataset.tgt_dict.pad())
    torch.testing.assert_close(half.float()[real], full[real], atol=0.05, rtol=0.05)


class _Settings:
    """Generation options, every other one as fairseq's command line has it."""

    def __init__(self, **settings):
        from fairseq.dataclass.configs import GenerationConfig

        self.__dict__.update({**vars(GenerationConfig()), **settings})


def encode(model, batch):
    """Sentence number -> its encoder output, padding cut off."""
    net_input = {key: value for key, value in batch["net_input"].items() if key != "prev_output_tokens"}
    with torch.no_grad():
        encoded = model.encoder(**net_input)
    output = encoded["encoder_out"][0].transpose(0, 1)
    tokens = net_input["src_tokens"] != model.encoder.padding_idx
    return {number: output[row][tokens[row]] for row, number in enumerate(batch["id"].tolist())}


@pytest.mark.parametrize("arch", ARCHITECTURES)
def test_encoding_depends_on_neither_neighbours_nor_padding_side(loaded, arch):
    batches = {}
    for side, left_pad in SIDES.items():
        model, _, dataset = loaded(arch, left_pad)
        chosen = examples(dataset)
        batches[f"{side}, together"] = encode(model, dataset.collater(chosen))
        batches[f"{side}, alone"] = {e["id"]: encode(model, dataset.collater([e]))[e["id"]] for e in chosen}
    expected = batches.pop("right, alone")
    for name, encoded in batches.items():
        for number, value in expected.items():
            torch.testing.assert_close(encoded[number], value, atol=1e-5, rtol=0, msg=f"{name}: sentence {number}")


@pytest.mark.parametrize(
    ("arch", "name"), [("pascal_transformer_tiny", "parents"), ("tag_transformer_tiny", "deprels")]
)
def test_encoding_depends_on_the_tree(loaded, arch, name):
    """Without this, the comparisons above would say nothing about the trees."""
    model, _, dataset = loaded(arch, False)
    batch = dataset.collater([max(examples(dataset), key=lambda example: len(example["source"]))])
    before = encode(model, batch)
    syntax = batch["net_input"]["src_syntax"]
    syntax[name] = syntax[name].roll(1, dims=1)
    after = encode(model, batch)
    assert all((after[number] - value).abs().max() > 1e-3 for number, value in before.items())
