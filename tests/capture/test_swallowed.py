"""What the trace cannot do is told, also where the model has an `except` for it: eager did not need that."""

from __future__ import annotations

import contextlib

import pytest
import torch

from tests.capture.helpers import assert_exported
from tests.control_flow.kept_alive import ROWS, refused

X = torch.arange(6.0).reshape(3, 2) + 1


def _read_by_numpy(x):
    try:
        y = float(x.numpy().sum())
    except Exception:  # noqa: BLE001
        y = 0.0
    return x + y


def _axis_by_value(x):
    try:
        return x.sum(dim=int(x.sum() > 0))
    except RuntimeError:
        return x


def _suppressed(x):
    y = x
    with contextlib.suppress(Exception):
        y = x + float(x.numpy().sum())
    return y


def _guess(x):
    try:
        return x.numpy().copy()[0, 0].item()
    except:  # noqa: E722
        return 3.0


def _in_a_helper(x):
    return x + _guess(x)


@pytest.mark.parametrize(
    ("model", "code"),
    [(_read_by_numpy, "TP204"), (_axis_by_value, "TP101"), (_suppressed, "TP204"), (_in_a_helper, "TP204")],
)
def test_the_fallback_is_not_taken_for_the_model(model, code):
    found = refused(model, (X,), dynamic_shapes=ROWS)
    assert found.code == code
    assert found.place.where.file == __file__


def test_a_write_in_place_below_an_except():
    def model(x):
        try:
            y = x.clone()
            y.add_(1)
        except Exception:  # noqa: BLE001
            y = x - 5
        return y

    assert_exported(model, (X,), [(torch.randn(5, 2),)], dynamic_shapes=ROWS)


def test_an_error_of_eagers_is_the_models_own_matter():
    def model(x):
        try:
            return x @ x
        except RuntimeError:
            return x * 2

    assert_exported(model, (X,))
