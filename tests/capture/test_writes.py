"""Writes in place become values: through views, aliases, masks, `out=`, and to the arguments themselves."""

from __future__ import annotations

import pytest
import torch
from torch import nn

import trueport
from tests.capture.helpers import FREE, assert_captured, assert_exported

ROWS = ({0: FREE},)


def x(*sizes: int) -> torch.Tensor:
    return torch.randn(*sizes)


def rows(model, *, export: bool = True) -> None:
    """Traced on 4 rows, right on any number of them."""
    others = [(x(n, 3),) for n in (7, 2, 3)]
    assert_captured(model, (x(4, 3),), others, dynamic_shapes=ROWS)
    if export:
        assert_exported(model, (x(4, 3),), [(x(7, 3),)], dynamic_shapes=ROWS)


def test_operators_with_an_underscore():
    def model(y):
        z = y * 2
        z.add_(1).relu_()
        z *= 3
        return z

    rows(model)


def test_a_slice_that_is_added_to():
    def model(y):
        z = y.clone()
        z[1:] += 1
        z[:, 0] = 5.0
        return z

    rows(model)


def test_a_mask_that_is_written():
    def model(y):
        z = y.clone()
        z[z < 0] = 0.0
        z[z > 1] += 2
        return z

    rows(model)


def test_an_index_tensor_that_is_written():
    def model(y):
        z = y.clone()
        z[torch.tensor([0, 1])] = y[:2] * 10
        z[1] = y[0]
        z[..., 2] = z.sum(-1)
        return z

    rows(model)


def test_a_write_reaches_every_alias():
    def model(y):
        base = y + 1
        view, same = base[1:], base
        transposed = base.t()
        view.mul_(3)
        same[0] -= 1
        transposed[2] = 7.0
        return base, view, transposed.sum(0)

    rows(model)


def test_a_view_of_a_view_is_written():
    def model(y):
        z = y.clone()
        inner = z.view(-1, 3)[1:].unsqueeze(0)[0, :, 1:]
        inner.zero_()
        return z

    rows(model)


def test_a_chunk_and_an_unbound_row_are_written():
    def model(y):
        z = y.clone()
        left, _ = z.split([1, 2], dim=1)
        left.fill_(4.0)
        z.unbind(1)[2].neg_()
        return z

    rows(model)


def test_out_arguments():
    def model(y):
        into = torch.empty_like(y)
        torch.add(y, 1, out=into)
        torch.mul(into, y, out=into)
        return into

    rows(model)


def test_copies_and_fills_of_fresh_tensors():
    def model(y):
        padded = torch.zeros(y.shape[0] + 2, 3)
        padded[1:-1].copy_(y)
        padded[0] = padded[-2]
        return padded

    rows(model)


def test_index_put_with_accumulation_and_scatter():
    def model(y):
        z = torch.zeros(2, 3)
        which = (y[:, 0] > 0).long()
        z.index_put_((which,), y, accumulate=True)
        z.index_add_(0, which, y)
        return z.scatter_add_(0, which.unsqueeze(1).expand(-1, 3), y)

    rows(model)


def test_masked_fill_and_masked_scatter_in_place():
    def model(y):
        z = y.clone().masked_fill_(y > 1, 0.5)
        return z.masked_scatter_(y < 0, y.flatten())

    rows(model)


def test_an_input_that_the_model_writes():
    """The caller's tensor is written, too, in eager; in ONNX the result alone counts, and reads after the write."""

    def model(y):
        before = y.sum()
        y[1:] += 1
        y.mul_(2)
        return y, before, y.sum()

    rows(model)


def test_a_write_to_an_input_is_seen_through_its_views():
    def model(y):
        view = y[1:]
        y.add_(1)
        return view * 2

    rows(model)


def test_a_weight_used_as_a_start_is_not_written():
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.start = nn.Parameter(x(3))

        def forward(self, y):
            z = self.start.expand(y.shape[0], -1).clone()
            z[:, 1] += y[:, 1]
            return z

    rows(Model())


def test_set_data_of_a_local_tensor():
    def model(y):
        z = y.clone()
        z.data[0] = 1.0
        z.data = z * 2
        return z

    rows(model)


class Router(nn.Module):
    def __init__(self):
        super().__init__()
        self.router, self.other = nn.Linear(3, 3), nn.Linear(3, 3)
        self.register_buffer("scale", torch.ones(3))


def test_set_data_of_a_weight_to_itself():
    """`module.to(dtype)` in forward, as routers of transformers have it: it sets the `.data` of each weight."""

    class Model(Router):
        def forward(self, y):
            self.router = self.router.to(y.dtype)
            self.scale.data = self.scale.data
            return self.router(y).mul_(self.scale)

    rows(Model())


@pytest.mark.parametrize(
    "new",
    [
        lambda self: self.router.weight.data * 2,
        lambda self: self.router.weight.data.T,
    ],
)
def test_set_data_of_a_weight_to_something_else(new):
    class Model(Router):
        def forward(self, y):
            y = self.router(y)
            self.router.weight.data = new(self)
            return y * self.router.weight.sum()

    with pytest.raises(trueport.ExportError) as refused:
        trueport.export(Model().eval(), (x(4, 3),), verify=False)
    assert refused.value.diagnostics[0].where is not None


def test_a_list_of_tensors_is_written_in_place():
    def model(y):
        parts = [y.clone(), y * 2]
        for part in parts:
            part[0] = 0.0
        torch._foreach_add_(parts, 1.0)
        return torch.stack(parts)

    rows(model, export=False)


def test_diagonals_are_written():
    def model(y):
        z = y @ y.t()
        z.diagonal().mul_(2)
        return z.fill_diagonal_(1.0), y.clone().fill_diagonal_(0.0)

    rows(model)


def test_resized_and_swapped_views():
    def model(y):
        z = (y * 2).transpose_(0, 1)
        z.unsqueeze_(0)
        return z.squeeze_(0)

    rows(model)


def test_an_operator_that_returns_its_argument():
    """`conj_physical` of real numbers gives the very tensor back: its value must not become its own argument."""

    def model(y):
        z = torch.conj_physical(y * 2)
        return z + torch.conj_physical(z), y

    rows(model, export=False)
