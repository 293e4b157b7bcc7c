"""General attention of long sentences and of large scores; its equations: tests/unit/systems/sa_nmt/test_model.py."""

import pytest
import torch

from fairseq_syntax.systems.recurrent.source_attention import attend, attention_bias

H = 6


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_of_a_long_sentence(dtype):
    """Its weights are those of the full precision, rounded once."""
    length = 2000
    query = torch.ones(1, H, dtype=dtype)
    keys = torch.randint(-2, 3, (1, length, H)).to(dtype)  # sums of six such are exact
    padding = torch.zeros(1, length, dtype=torch.bool)
    padding[0, 1500:] = True
    weights = attend(query, keys, attention_bias(padding, keys))
    assert weights.dtype == dtype and weights.shape == (1, 1, length)
    expected = torch.softmax(keys[0, :1500].double().sum(-1), dim=0)
    torch.testing.assert_close(weights[0, 0, :1500].double(), expected, atol=1e-7, rtol=torch.finfo(dtype).eps)
    assert not weights[0, 0, 1500:].any()
