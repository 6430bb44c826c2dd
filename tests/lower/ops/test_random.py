"""Random numbers are refused, or drawn by the exported model itself and compared by their distribution."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch import nn

import trueport
from trueport.report import Verdict

FREE = ({0: torch.export.Dim.DYNAMIC},)


def codes(findings):
    return [found.code for found in findings]


def test_they_are_refused_at_their_line_unless_they_are_asked_for():
    def forward(x):
        return x + torch.randn_like(x)

    with pytest.raises(trueport.ExportError) as refused:
        trueport.export(forward, (torch.randn(3),))
    (found,) = refused.value.diagnostics
    assert found.code == "TP004"
    assert found.where.line == forward.__code__.co_firstlineno + 1
    assert 'random="onnx"' in found.fix


def test_an_unknown_choice_is_a_fault_of_usage():
    with pytest.raises(trueport.UsageError, match="random='torch'"):
        trueport.export(nn.ReLU(), (torch.randn(3),), random="torch")


DRAWS = {
    "normal": lambda x: (
        x + torch.randn_like(x) + torch.empty_like(x).normal_(1, 2),
        torch.normal(x, x.abs()),
        torch.normal(x, 2.0),
        torch.normal(1.0, x.abs()),
        x.half() + torch.randn_like(x.half()),
        torch.randn(x.shape[0], dtype=torch.complex64),
        torch.distributions.Normal(x, 1.0).rsample((2,)),
    ),
    "uniform": lambda x: (torch.rand(x.shape[0], 3), torch.empty_like(x).uniform_(-1, 2), x + torch.rand(())),
    "whole numbers": lambda x: (
        torch.randint(2, 7, (x.shape[0],)),
        torch.randint_like(x, 5),
        torch.bernoulli(x.sigmoid()),
        torch.empty_like(x).bernoulli_(0.2),
        torch.multinomial(x.softmax(-1), 2, replacement=True),
        x[torch.randperm(x.shape[0])],
    ),
    "others": lambda x: (
        torch.empty_like(x).exponential_(2.0),
        torch.empty_like(x).log_normal_(),
        F.gumbel_softmax(x, tau=0.7, dim=0),
        F.rrelu(x, training=True),
    ),
    "dropout": lambda x: (
        F.dropout(x, 0.3),
        F.dropout1d(x.expand(2, 4, -1), 0.3),
        F.alpha_dropout(x, 0.3, training=True),
        F.feature_alpha_dropout(x.expand(2, 4, -1), 0.3, training=True),
    ),
    "a decision": lambda x: x * 2 if torch.rand(()) > 0.3 else x - 1,
}


@pytest.mark.parametrize("forward", DRAWS.values(), ids=DRAWS)
def test_the_exported_model_is_distributed_as_eager_is(forward):
    program = trueport.export(forward, (torch.randn(4),), dynamic_shapes=FREE, random="onnx")
    assert "TP006" in codes(program.report.diagnostics)
    assert {check.verdict for check in program.report.checks} == {Verdict.ALIKE}
    assert "distributed as eager" in program.report.text()


def test_two_runs_differ():
    program = trueport.export(lambda x: x + torch.rand(100), (torch.zeros(100),), random="onnx")
    assert not torch.equal(program(torch.zeros(100)), program(torch.zeros(100)))


def test_attention_with_dropout():
    def forward(q):
        return F.scaled_dot_product_attention(q, q, q, dropout_p=0.3)

    assert trueport.check(forward, (torch.randn(1, 2, 4, 3),), random="onnx").verified


def test_dropout_that_was_left_on_purposely():
    model = nn.Sequential(nn.Linear(3, 8), nn.Dropout(0.5), nn.Linear(8, 2)).eval()
    model[1].train()
    assert trueport.check(model, (torch.randn(2, 3),), random="onnx").verified


WRONG = {
    "another distribution": lambda op, x, **_: op.RandomUniformLike(x),
    "another spread": lambda op, x, **_: op.RandomNormalLike(x, scale=1.5),
    "another mean": lambda op, x, **_: op.RandomNormalLike(x, mean=0.5),
    "no randomness": lambda op, x, **_: op.Mul(x, 0.0),
    "one number for all": lambda op, x, **_: op.Expand(op.RandomNormal(shape=[1]), op.Shape(x)),
}


@pytest.mark.parametrize("translation", WRONG.values(), ids=WRONG)
def test_a_wrong_distribution_is_found(translation):
    table = {torch.ops.aten.randn_like.default: translation}
    found = trueport.check(
        lambda x: x + torch.randn_like(x), (torch.randn(16),), custom_translation_table=table, random="onnx"
    )
    assert [finding.code for finding in found.errors] == ["TP811"]


def test_what_is_not_random_is_still_compared():
    table = {torch.ops.aten.mul.Tensor: lambda op, x, y: op.Mul(x, 1.01)}
    found = trueport.check(
        lambda x: (x * 1.0, torch.rand(2)), (torch.randn(4),), custom_translation_table=table, random="onnx"
    )
    assert [finding.code for finding in found.errors] == ["TP811"]
    assert "`output_0`" in found.errors[0].message


def test_a_generator_of_its_own_cannot_be_followed():
    def forward(x):
        return x + torch.randn(3, generator=torch.Generator().manual_seed(1))

    with pytest.raises(trueport.ExportError, match="generator of their own"):
        trueport.export(forward, (torch.randn(3),))
