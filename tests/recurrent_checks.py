"""What holds of every recurrent model, whatever it attends to; see tests/unit/systems/conftest.py for models."""

import torch

EOS = 2


def assert_words_one_by_one_are_all_at_once(model, tokens, syntax=None, steps=7) -> None:
    """As in beam search: three hypotheses a sentence, reordered within it, then anywhere, then some finished.

    Args:
        tokens: of the source, (B, T).
        syntax: what the model reads beside them, name -> (B, …), or None.
    """

    def given(rows):
        return {} if syntax is None else {"src_syntax": {name: values[rows] for name, values in syntax.items()}}

    sources = torch.arange(len(tokens)).repeat_interleave(3)
    encoded = model.encoder.reorder_encoder_out(model.encoder(tokens, **given(slice(None))), sources)
    generator = torch.Generator().manual_seed(3)
    words = torch.randint(4, 11, (len(sources), steps), generator=generator)
    words[:, 0] = EOS
    incremental: dict = {}
    for step in range(steps):
        order = None
        if step in (2, 3):  # within sentences, some hypotheses twice
            order = torch.arange(len(sources)) // 3 * 3 + torch.randint(3, (len(sources),), generator=generator)
        elif step == 4:  # any row anywhere
            order = torch.randperm(len(sources), generator=generator)
        elif step == 5:  # some are finished
            order = torch.randperm(len(sources), generator=generator)[:7]
        if order is not None:
            kept, encoded = encoded, model.encoder.reorder_encoder_out(encoded, order)
            # nothing is copied where every row's sentence is as before
            assert (encoded is kept) == (step in (2, 3))
            model.decoder.reorder_incremental_state_scripting(incremental, order)
            sources, words = sources[order], torch.cat((words[order, :step], words[: len(order), step:]), dim=1)
        found, extra = model.decoder(words[:, : step + 1], encoder_out=encoded, incremental_state=incremental)
        expected, whole = model(tokens[sources], None, words[:, : step + 1], **given(sources))
        assert found.shape[1] == 1 and extra.keys() == whole.keys()
        torch.testing.assert_close(found[:, 0], expected[:, -1], atol=1e-12, rtol=0)
        for name in extra:
            mine, other = (values[name][0] if name == "attn" else values[name] for values in (extra, whole))
            torch.testing.assert_close(mine[:, 0], other[:, -1], atol=1e-12, rtol=0)
    assert len(sources) == 7 and sources.unique().numel() > 2


def assert_gradients_reach_everything(model, batches, idle=()) -> None:
    """Finite gradients of every parameter, and of the first of the batches none that is zero.

    Args:
        batches: arguments of the model; further ones may leave it nothing to choose.
        idle: ends of names of parameters that no logit feels.
    """
    for number, batch in enumerate(batches):
        model.zero_grad()
        torch.manual_seed(0)
        model(*batch)[0].logsumexp(-1).sum().backward()
        for name, parameter in model.named_parameters():
            assert parameter.grad is not None and torch.isfinite(parameter.grad).all(), name
            assert number or parameter.grad.any() or name.endswith(tuple(idle)), name
