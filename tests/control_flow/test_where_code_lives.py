"""Decisions in functions of every kind: wherever the trace meets one, that function is rewritten."""

from __future__ import annotations

import functools
import importlib.util
import logging
import sys
from dataclasses import dataclass, field
from typing import ClassVar

import pytest
import torch
from torch import nn

import trueport
from tests.control_flow import helpers_elsewhere
from tests.control_flow.helpers_elsewhere import Base, accumulated, early, pairs, scaled, shouted
from tests.control_flow.kept_alive import DOWN, ROWS, UP, assert_kept_alive, refused, rows


def both(model, **options):
    return assert_kept_alive(model, (UP,), [(DOWN,), (torch.zeros(4, 3),)], **options)


def test_a_method():
    class Net(nn.Module):
        def pick(self, x, scale):
            if x.sum() > 0:
                return x * scale
            return x - scale

        def forward(self, x):
            return self.pick(x, 2.0) + self.pick(-x, 3.0)

    both(Net().eval(), ifs=2)


def test_helpers_of_another_module():
    def model(x):
        return scaled(x) + scaled(x, 5.0, by=4.0) + helpers_elsewhere.accumulated(x) + early(x)

    both(model)


def test_a_loop_in_a_helper():
    example, *others = rows(4, 1, 7, 0)
    assert_kept_alive(lambda x: accumulated(x) * 2, example, others, dynamic_shapes=ROWS, loops=1)


def installed(tmp_path, monkeypatch, source):
    """A module of this source, below a folder called site-packages."""
    folder = tmp_path / "site-packages"
    folder.mkdir()
    (folder / "some_library.py").write_text(source)
    monkeypatch.syspath_prepend(str(folder))
    spec = importlib.util.spec_from_file_location("some_library", folder / "some_library.py")
    library = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "some_library", library)
    spec.loader.exec_module(library)
    return library


def test_an_installed_library(tmp_path, monkeypatch):
    """Code below site-packages is rewritten like the user's own."""
    source = "def pick(x):\n    if x.sum() > 0:\n        return x * 2\n    return x - 1\n"
    library = installed(tmp_path, monkeypatch, source)
    program = both(lambda x: library.pick(x), ifs=1)
    places = [node.place.where for node in program.captured.root.walk()]
    assert any(where.is_installed and where.line == 3 for where in places)


def test_a_library_that_loops_over_a_free_size(tmp_path, monkeypatch):
    source = "def total(x):\n    s = 0\n    for i in range(len(x)):\n        s = s / 2 + x[i].sum()\n    return s\n"
    library = installed(tmp_path, monkeypatch, source)
    example, *others = rows(4, 1, 7, 0)
    assert_kept_alive(lambda x: x + library.total(x), example, others, dynamic_shapes=ROWS, loops=1)


def test_a_library_that_branches_on_a_free_size_for_speed(tmp_path, monkeypatch):
    """Both sides give the same: one is enough, and the report tells."""
    source = "def double(x):\n    if x.shape[0] > 3:\n        return x * 2\n    return x + x\n"
    library = installed(tmp_path, monkeypatch, source)
    example, *others = rows(4, 1, 7, 0)
    program = assert_kept_alive(lambda x: library.double(x), example, others, dynamic_shapes=ROWS, ifs=0, verify=True)
    assert [found.code for found in program.report.diagnostics] == ["TP305"]


def test_a_library_whose_branch_on_a_free_size_matters(tmp_path, monkeypatch):
    """Verification says that the two sides differ: then both are kept, as in the user's own code."""
    source = "def pick(x):\n    if x.shape[0] > 3:\n        return x * 2\n    return x - 1\n"
    library = installed(tmp_path, monkeypatch, source)
    example, *others = rows(4, 1, 7, 0)
    kept = tmp_path / "kept"
    program = assert_kept_alive(
        lambda x: library.pick(x), example, others, dynamic_shapes=ROWS, ifs=1, verify=True, counterexample=kept
    )
    assert not program.report.diagnostics
    assert not kept.exists()  # the counterexample was one of the first attempt


def test_a_library_that_keeps_a_dict_and_is_the_whole_model(tmp_path, monkeypatch):
    """No line of the user's is on the stack when the dict is made (ViT, DINOv2, MobileViT)."""
    source = """
from torch import nn
class Net(nn.Module):
    def forward(self, x):
        sizes = {"rows": x.shape[0]}
        if sizes["rows"] == 4:
            return x * 2
        return x - sizes["rows"]
"""
    library = installed(tmp_path, monkeypatch, source)
    example, *others = rows(4, 1, 7, 0)
    assert_kept_alive(library.Net(), example, others, dynamic_shapes=ROWS, ifs=1, verify=True)


def test_what_the_second_attempt_fails_with_is_told(tmp_path, monkeypatch):
    source = (
        "def pick(x):\n    if x.shape[0] > 3:\n        return x * 2\n    return x - 1\n"
        "def kinds(x):\n    y = x\n    if x.shape[0] > 5:\n        y = [x]\n    return y[0] * 2\n"
    )
    library = installed(tmp_path, monkeypatch, source)
    with pytest.raises(trueport.ExportError) as caught:
        trueport.export(lambda x: (library.pick(x), library.kinds(x)), *rows(4), dynamic_shapes=ROWS)
    found = [each for each in caught.value.diagnostics if each.is_error]
    assert "TP103" in {each.code for each in found}
    differs = next(each for each in found if each.code in ("TP803", "TP805"))
    assert any(fact.startswith("smallest: ") for fact in differs.seen)  # both were no better, so it was looked into


def test_functions_of_a_library_that_the_first_attempt_met_are_not_looked_for_again(tmp_path, monkeypatch, caplog):
    source = (
        "def pick(x):\n    if x.shape[0] > 3:\n        return x * 2\n    return x - 1\n"
        "def turn(x):\n    if x.shape[0] % 2:\n        x = -x\n    return x\n"
        "def both(x):\n    return [pick(y) for y in [turn(x) if x.shape[0] != 5 else x]][0]\n"
    )
    library = installed(tmp_path, monkeypatch, source)
    example, *others = rows(4, 1, 7, 0, 5, 6)
    with caplog.at_level(logging.DEBUG, logger="trueport.capture"):
        assert_kept_alive(lambda x: library.both(x), example, others, dynamic_shapes=ROWS, ifs=3, verify=True)
    assert not [each for each in caplog.records if each.name == "trueport.capture"]  # no trace was begun anew


def test_nested_functions_and_closures():
    def model(x):
        scale = 2.0

        def pick(y):
            if y.sum() > 0:
                return y * scale
            return deeper(y)

        def deeper(y):
            return y - scale if y.sum() < -5 else y + scale

        scale = 3.0
        return pick(x)

    both(model)


def test_nonlocal():
    def model(x):
        count, total = 0, x.sum() * 0

        def add(y):
            nonlocal count, total
            if y.sum() > 0:
                count += 1
                total = total + y.sum()
            else:
                count -= 1

        add(x)
        add(-x + 0.5)
        return total, count

    both(model)


def test_a_name_that_a_block_binds_and_an_inner_function_reads():
    def model(x):
        if x.sum() > 0:
            factor = x.max() * 2
        else:
            factor = x.min() * 3

        def scale(y):
            return y * factor

        return scale(x)

    both(model, ifs=1)


_calls = 0


def test_global():
    def model(x):
        global _calls
        _calls += 1
        return x * 2 if x.sum() > 0 else x - 1

    both(model, ifs=1)
    assert _calls > 0


def test_lambdas():
    pick = lambda y: y * 2 if y.sum() > 0 else y - 1  # noqa: E731
    both(lambda x: pick(x) + (lambda y, by=3: y if y.sum() > 0 else y * by)(x), ifs=2)


def test_two_lambdas_on_one_line():
    first, second = (lambda y: y * 2 if y.sum() > 0 else y), (lambda y: y - 1 if y.sum() > 0 else y * 5)
    both(lambda x: first(x) + second(x), ifs=2)


def test_super_forward():
    class Net(Base):
        def forward(self, x):
            if x.max() > 0.5:
                x = super().forward(x) * 2
            else:
                x = super().forward(x) * 3
            return x

    both(Net().eval())


def test_private_names_of_a_class():
    both(Base().eval(), ifs=1)


def test_decorated_functions():
    @torch.no_grad()
    def quietly(x):
        return x * 2 if x.sum() > 0 else x - 1

    @shouted
    def loudly(x):
        if x.sum() > 0:
            return x * 3
        return x - 3

    both(lambda x: quietly(x) + loudly(x), ifs=2)


def test_a_decorated_forward():
    class Net(nn.Module):
        @torch.no_grad()
        @shouted
        def forward(self, x):
            if x.sum() > 0:
                return x * 3
            return x - 3

    both(Net().eval(), ifs=1)


def test_property_staticmethod_classmethod():
    class Net(nn.Module):
        limit: ClassVar[float] = 1.0

        @property
        def scaled(self):
            if self.seen.sum() > 0:
                return self.seen * 2
            return self.seen

        @staticmethod
        def lifted(x):
            return x + 1 if x.sum() > 0 else x

        @classmethod
        def limited(cls, x):
            if x.max() > cls.limit:
                return x * 0.1
            return x

        def forward(self, x):
            self.seen = x
            return self.limited(self.lifted(self.scaled))

    both(Net().eval(), ifs=3)


def test_a_cached_or_partial_function():
    both(functools.partial(scaled, limit=3.0, by=5.0), ifs=1)


@functools.lru_cache(maxsize=8)
def steps_up_to(count, scale=1.0):
    return torch.arange(count) * scale


class Cached(nn.Module):
    @staticmethod
    @functools.cache
    def table(count):
        return torch.arange(count) * 2.0

    def forward(self, x):
        both = steps_up_to(x.shape[0], scale=2.0) + self.table(x.shape[0])
        return (x if x.sum() > 0 else x * self.table(3)) + both[:, None]


def test_caches_asked_for_a_free_size():
    """What is below them is called, and they hold nothing of the trace afterwards."""
    assert_kept_alive(Cached(), *rows(5), [(-torch.ones(2, 3),), *rows(0, 1, 9)], dynamic_shapes=ROWS)
    assert isinstance(Cached.table, functools._lru_cache_wrapper)
    assert type(Cached.table(3)) is torch.Tensor
    assert steps_up_to(4).tolist() == [0, 1, 2, 3]


def test_sequential_of_user_modules():
    class Gate(nn.Module):
        def __init__(self, scale):
            super().__init__()
            self.scale = scale

        def forward(self, x):
            if x.sum() > 0:
                return x * self.scale
            return x - self.scale

    program = both(nn.Sequential(Gate(2.0), nn.ReLU(), Gate(3.0)).eval(), ifs=2)
    assert {node.place.module for node in program.captured.root.walk() if node.regions} == {"0", "2"}


def test_recursion_of_a_static_depth():
    def fold(x, depth):
        if depth == 0:
            return x
        if x.sum() > 0:
            return fold(x - 1, depth - 1)
        return fold(x * 2, depth - 1)

    both(lambda x: fold(x, 3))


def doubled_until_large(x, tries):
    if x.sum() > 3 or tries == 0:
        return x + 1
    return doubled_until_large(x * 2, tries - 1)


def test_recursion_of_a_function_of_the_module():
    both(lambda x: doubled_until_large(x, 3))


class NamesItself(nn.Module):
    """Old code: the class is named in its own methods, by `super` and for its constants."""

    limit = 2.0

    def extra_repr(self):
        return "by name"

    def forward(self, x):
        if x.sum() > NamesItself.limit:
            x = x - NamesItself.limit
        return x if super(NamesItself, self).extra_repr() else x * 2  # noqa: UP008


def test_a_class_that_its_methods_name():
    both(NamesItself().eval(), ifs=1)


def test_a_generator_gone_through_by_for():
    def model(x):
        total = x.sum() * 0
        for a, b in pairs([x[0], x[1], x[2], x[3]]):
            if a.sum() > b.sum() - 1:
                total = total + (a * b).sum()
        return total

    both(model)


def test_a_generator_expression():
    def model(x):
        return sum(row.sum() if row.sum() > 0 else row.max() for row in (x[0], x[1]))

    both(model, ifs=2)


def test_keyword_only_arguments_and_defaults():
    class Net(nn.Module):
        def helper(self, x, /, scale=2.0, *rest, offset=1.0, **named):
            if x.sum() > 0:
                x = x * scale + sum(rest)
            return x + offset + named.get("more", 0.0)

        def forward(self, x):
            return self.helper(x) + self.helper(x, 3.0, 1.0, 2.0, offset=5.0, more=7.0)

    both(Net().eval(), ifs=2)


def test_a_forward_hook():
    layer = nn.Identity()
    layer.register_forward_hook(lambda module, given, result: result * 2 if result.sum() > 0 else result)
    both(nn.Sequential(layer).eval(), ifs=1)


def test_a_callable_object():
    class Pick:
        def __init__(self, scale):
            self.scale = scale

        def __call__(self, x):
            if x.sum() > 0:
                return x * self.scale
            return x

    pick = Pick(4.0)
    both(lambda x: pick(x), ifs=1)


class Stack:
    """Its list is made in `__init__`, and changed by traced values."""

    def __init__(self):
        self.items = []

    def push(self, item):
        self.items.append(item)

    def __len__(self):
        return len(self.items)


@dataclass
class Kept:
    total: torch.Tensor
    rows: list = field(default_factory=list)

    def add(self, row):
        if row.sum() > 0:
            self.total = self.total + row
            self.rows.append(row)


def test_lists_that_objects_are_made_with():
    def model(x):
        stack, kept = Stack(), Kept(torch.zeros(3))
        stack.push(torch.zeros(3))
        for row in x:
            kept.add(row)
            if row[0] > 0:
                stack.push(row)
            elif len(stack) > 1:
                stack.items.pop()
        return stack.items[-1] * len(stack), torch.stack([*kept.rows, kept.total])

    assert_kept_alive(model, *rows(5), rows(0, 1, 9), dynamic_shapes=ROWS)
    assert Kept(torch.zeros(3)).rows == [] and type(Kept(torch.zeros(3)).rows) is list


class Box:
    """What Python asks of an object, which must be a plain bool there, is asked in a trace as it is."""

    def __init__(self, low, high):
        self.low, self.high = low, high

    def __contains__(self, point):
        return bool(((point >= self.low) & (point <= self.high)).all())

    def __bool__(self):
        return bool((self.high > self.low).any())

    def __iter__(self):
        for i in range(3):
            if self.low[i] >= 0:
                yield self.low[i]


def test_special_methods():
    def model(x):
        box = Box(x.mean(0), x.amax(0))
        y = x * 2 if x[0] in box else x
        return y if box else -y, sum(box, torch.zeros(()))

    both(model)
    assert_kept_alive(model, (UP,), rows(1, 3), dynamic_shapes=ROWS)


def test_a_class_defined_inside_the_function():
    def model(x):
        class Local:
            def go(self, y):
                return y * 2 if y.sum() > 0 else y - 1

        return Local().go(x)

    both(model, ifs=1)


@pytest.mark.parametrize("library", ["torchvision", "transformers"])
def test_libraries_are_not_needed(library):
    """The rewriter knows no library by name."""
    import trueport.rewrite

    folder = trueport.rewrite.__path__[0]
    for file in __import__("pathlib").Path(folder).glob("*.py"):
        assert library not in file.read_text()


class FilledElsewhere(nn.Module):
    """A list that one method makes and another fills, as decoders keep what they gave."""

    def __init__(self):
        super().__init__()
        self.cell, self.given, self.state = nn.GRUCell(3, 3), [], None

    def reset(self):
        self.given, self.state = [], torch.zeros(1, 3)

    def step(self, row):
        self.state = self.cell(row, self.state)
        if self.state.sum() > 0:
            self.given.append(self.state)

    def forward(self, x):
        self.reset()
        self.given.append(self.state)
        for t in range(x.size(0)):
            self.step(x[t : t + 1])
        return torch.cat(self.given), len(self.given)


def test_a_list_that_another_method_makes():
    assert_kept_alive(FilledElsewhere(), *rows(4), rows(1, 2, 9), dynamic_shapes=ROWS)


def _halved(x):
    if x.shape[0] < 2:
        return x
    return _halved(x[: x.shape[0] // 2]) * 2


def test_a_function_that_calls_itself_until_a_size_is_small_is_refused_soon():
    """As scans in pure torch do. With a bound on the size it is written out."""
    found = refused(_halved, (torch.randn(9),), dynamic_shapes=ROWS)
    assert found.code == "TP102"
    assert "calls itself" in found.message
    others = [(torch.randn(n),) for n in (1, 2, 5, 15)]
    assert_kept_alive(_halved, (torch.randn(9),), others, dynamic_shapes=({0: torch.export.Dim("n", max=15)},))
