"""`is_causal=x.shape[1] > 1`: flags of torch's operators that are true or false only when the model runs."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F

from tests.control_flow.kept_alive import ROWS, assert_kept_alive, rows

MANY_ROWS = [*rows(1, 3, 9), (-torch.ones(4, 3),)]
FLAGS = {
    "a causal mask": lambda x: F.scaled_dot_product_attention(x[None], x[None], x[None], is_causal=x.shape[0] > 3),
    "by a value": lambda x: F.scaled_dot_product_attention(x[None], x[None], x[None], is_causal=bool(x.sum() > 0)),
    "a method": lambda x: x.var(0, unbiased=x.shape[0] > 1),
    "one by its place": lambda x: x.topk(2, -1, x.shape[0] > 4),
    "two at once": lambda x: torch.topk(x, 2, largest=bool(x.sum() > 0), sorted=x.shape[0] > 2).values.sum(-1),
    "Python of torch's": lambda x: F.interpolate(
        x[None, None], size=(7, 5), mode="bilinear", align_corners=x.shape[0] > 4
    ),
}


@pytest.mark.parametrize("name", FLAGS)
def test_each_way_of_a_flag_is_an_arm(name):
    torch.manual_seed(0)
    assert_kept_alive(FLAGS[name], (torch.randn(5, 3),), MANY_ROWS, dynamic_shapes=ROWS)


def test_a_flag_in_a_loop():
    def model(x):
        for i in range(x.shape[0]):
            x = x.sort(0, descending=i % 2 == 0).values * 0.5 + x
        return x

    torch.manual_seed(0)
    assert_kept_alive(model, (torch.randn(5, 3),), MANY_ROWS, dynamic_shapes=ROWS, loops=1)
