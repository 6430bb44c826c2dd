"""Torch's attention layers, as eager inference runs them: its fast path zeroes padding, and a masked row is NaN."""

from __future__ import annotations

import warnings

import pytest
import torch
from torch import nn

from tests.capture.helpers import assert_captured, assert_exported

pytestmark = pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")

FREE = {0: "batch", 1: "time"}


def x(batch: int = 3, time: int = 4) -> torch.Tensor:
    return torch.randn(batch, time, 8)


def padding(*rows: str) -> torch.Tensor:
    """`"..xx"`: two tokens, then two of padding."""
    return torch.tensor([[letter == "x" for letter in row] for row in rows])


AT_THE_END = padding("...x", "..xx", "....")
WITH_AN_EMPTY_ONE = padding("...x", "xxxx", "....")
IN_FRONT = padding("xx..", "...x", "....")
IN_FRONT_WITH_AN_EMPTY_ONE = padding("xx..", "xxxx", "....")
CAUSAL = torch.triu(torch.ones(4, 4, dtype=torch.bool), 1)
ONE_ROW_MASKED = CAUSAL.clone()
ONE_ROW_MASKED[1] = True


def encoder(**options) -> nn.TransformerEncoder:
    norm = options.pop("norm", None)
    layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=options.pop("batch_first", True), **options)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return nn.TransformerEncoder(layer, 2, norm=norm).eval()


ENCODERS = {
    "plain": dict(),
    "norm at the end": dict(norm=nn.LayerNorm(8)),
    "norm first": dict(norm_first=True),
    "gelu": dict(activation="gelu"),
    "no fast path for an own activation": dict(activation=torch.tanh),
    "no fast path with time first": dict(batch_first=False),
}


@pytest.mark.parametrize("options", ENCODERS.values(), ids=ENCODERS)
def test_an_encoder_without_padding(options):
    assert_captured(encoder(**options), (x(),), [(x(2, 7),), (x(1, 1),)], dynamic_shapes=(FREE,))


@pytest.mark.parametrize("options", [o for o in ENCODERS.values() if o.get("batch_first", True)])
def test_an_encoder_with_padding(options):
    model = encoder(**options)
    others = [
        (x(), None, mask)
        for mask in (AT_THE_END, WITH_AN_EMPTY_ONE, IN_FRONT, IN_FRONT_WITH_AN_EMPTY_ONE, padding(*["...."] * 3))
    ]
    others.append((x(2, 5), None, padding("....x", ".....")))
    assert_captured(model, (x(), None, AT_THE_END), others, dynamic_shapes=(FREE, None, FREE))


def test_an_encoder_with_padding_the_whole_way():
    model = encoder(norm=nn.LayerNorm(8))
    others = [(x(), None, mask) for mask in (WITH_AN_EMPTY_ONE, IN_FRONT)]
    assert_exported(model, (x(), None, AT_THE_END), others, dynamic_shapes=(FREE, None, FREE))


def test_an_encoder_with_a_causal_mask_and_padding():
    others = [(x(), CAUSAL, mask) for mask in (AT_THE_END, IN_FRONT)]
    assert_captured(encoder(), (x(), CAUSAL, IN_FRONT), others)
    assert_captured(encoder(), (x(), CAUSAL), [(x(), ONE_ROW_MASKED)])


def test_a_mask_of_numbers_is_read_as_the_fast_path_reads_it():
    bias = torch.zeros(4, 4)
    bias[0, 1] = bias[2, 3] = -0.5
    assert_captured(encoder(), (x(), bias), [(x(), bias * 2), (x(), torch.zeros(4, 4))])


def test_a_mask_of_numbers_is_added_where_there_is_no_fast_path():
    bias = torch.randn(4, 4)
    assert_captured(encoder(activation=torch.tanh), (x(), bias), [(x(), bias * 2)])


def test_an_encoder_that_promises_its_padding_is_at_the_end():
    model = encoder()
    model.mask_check = False
    assert_captured(model, (x(), None, AT_THE_END), [(x(), None, WITH_AN_EMPTY_ONE)])


def test_an_encoder_whose_nested_tensors_are_switched_off():
    layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
    model = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False).eval()
    assert_captured(model, (x(), None, AT_THE_END), [(x(), None, WITH_AN_EMPTY_ONE), (x(), None, IN_FRONT)])


@pytest.mark.parametrize("need_weights", [True, False])
@pytest.mark.parametrize("batch_first", [True, False])
def test_multi_head_attention(need_weights, batch_first):
    class Attends(nn.Module):
        def __init__(self):
            super().__init__()
            self.attention = nn.MultiheadAttention(8, 2, batch_first=batch_first)

        def forward(self, y, padded=None, mask=None):
            return self.attention(y, y, y, key_padding_mask=padded, need_weights=need_weights, attn_mask=mask)

    model = Attends().eval()

    def args():
        return x() if batch_first else x().transpose(0, 1)

    assert_captured(model, (args(),), [(args(),)])
    assert_captured(model, (args(), AT_THE_END), [(args(), m) for m in (WITH_AN_EMPTY_ONE, IN_FRONT)])
    assert_captured(model, (args(), AT_THE_END, CAUSAL), [(args(), IN_FRONT, CAUSAL)])
    assert_captured(model, (args(), None, CAUSAL), [(args(), None, ONE_ROW_MASKED)])
    assert_captured(model, (args(), None, torch.randn(4, 4)), [(args(), None, torch.randn(4, 4))])


@pytest.mark.parametrize("average", [True, False])
def test_the_weights_of_attention(average):
    class Attends(nn.Module):
        def __init__(self):
            super().__init__()
            self.attention = nn.MultiheadAttention(8, 2, batch_first=True)

        def forward(self, y, z):
            return self.attention(y, z, z, average_attn_weights=average)

    free = ({0: "batch", 1: "queries"}, {0: "batch", 1: "keys"})
    assert_captured(Attends().eval(), (x(2, 3), x(2, 5)), [(x(4, 1), x(4, 2))], dynamic_shapes=free)
    assert_exported(Attends().eval(), (x(2, 3), x(2, 5)), [(x(4, 1), x(4, 2))], dynamic_shapes=free)


def test_a_decoder_with_all_its_masks():
    layer = nn.TransformerDecoderLayer(8, 2, 16, batch_first=True)
    model = nn.TransformerDecoder(layer, 2).eval()
    memory = torch.randn(3, 5, 8)
    empty = padding(".....", "xxxxx", "...xx")
    args = (x(), memory, CAUSAL, None, AT_THE_END, padding(".....", "....x", "...xx"))
    assert_captured(model, args, [(x(), memory, ONE_ROW_MASKED, None, IN_FRONT, empty)])


def test_a_whole_transformer():
    model = nn.Transformer(8, 2, 1, 1, 16, batch_first=True).eval()
    free = ({0: "batch", 1: "source"}, {0: "batch", 1: "target"})
    assert_captured(model, (x(2, 3), x(2, 5)), [(x(4, 6), x(4, 2))], dynamic_shapes=free)


def test_the_layers_are_as_they_were():
    model = encoder()
    before = [dict(vars(module)) for module in model.modules()]
    assert_captured(model, (x(), None, AT_THE_END))
    assert [dict(vars(module)) for module in model.modules()] == before
