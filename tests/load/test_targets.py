"""`file.py:attr`: what the command line names becomes a model, and the user's own mistakes are shown at their line."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import torch

from trueport.errors import UsageError
from trueport.load.targets import as_call, load_target

NET = """
import torch

class Net(torch.nn.Module):
    def __init__(self, depth=2):
        super().__init__()
        self.fc = torch.nn.Linear(3, depth)
        self.drop = torch.nn.Dropout()

    def forward(self, x):
        return self.drop(self.fc(x))
"""
Write = Callable[[str], str]


@pytest.fixture(autouse=True)
def _imports_are_forgotten() -> Iterator[None]:
    path = list(sys.path)
    yield
    sys.path[:] = path
    for name in [name for name in sys.modules if name.startswith(("some_net", "some_package"))]:
        del sys.modules[name]


@pytest.fixture
def file(tmp_path: Path) -> Write:
    def write(text: str) -> str:
        (tmp_path / "some_net.py").write_text(text)
        return str(tmp_path / "some_net.py")

    return write


class TestWhatATargetMayBe:
    def test_a_class_is_made_and_ready_for_inference(self, file: Write) -> None:
        target = load_target(f"{file(NET)}:Net")
        assert type(target.model).__name__ == "Net"
        assert not target.model.training
        assert target.where.endswith("some_net.py:Net")

    def test_a_function_that_makes_one_leaves_it_as_its_author_did(self, file: Write) -> None:
        model = load_target(file(NET + "\ndef deep(): return Net(depth=7)") + ":deep").model
        assert model.fc.out_features == 7  # type: ignore[union-attr]
        assert model.training

    def test_an_instance_and_a_dotted_name(self, file: Write) -> None:
        text = NET + "\nmodel = Net()\nclass Zoo:\n    small = Net(1)"
        assert load_target(f"{file(text)}:model").model.fc.out_features == 2  # type: ignore[union-attr]
        assert load_target(f"{file(text)}:Zoo.small").model.fc.out_features == 1  # type: ignore[union-attr]

    def test_a_function_of_tensors_is_a_model_itself(self, file: Write) -> None:
        model = load_target(file("def double(x): return 2 * x") + ":double").model
        assert model(torch.ones(1)).item() == 2

    def test_the_only_module_of_a_file_needs_no_name(self, file: Write) -> None:
        assert type(load_target(file("from torch.nn import Linear" + NET)).model).__name__ == "Net"

    def test_an_installed_module(self) -> None:
        assert isinstance(load_target("torch.nn:ReLU").model, torch.nn.ReLU)

    def test_a_file_inside_a_package_may_import_its_neighbours(self, tmp_path: Path) -> None:
        package = tmp_path / "some_package"
        package.mkdir()
        (package / "__init__.py").write_text("")
        (package / "blocks.py").write_text("WIDTH = 5")
        (package / "net.py").write_text("from .blocks import WIDTH" + NET.replace("depth=2", "depth=WIDTH"))
        assert load_target(f"{package / 'net.py'}:Net").model.fc.out_features == 5  # type: ignore[union-attr]

    def test_a_program_brings_its_example(self, tmp_path: Path) -> None:
        path = tmp_path / "net.pt2"
        torch.export.save(torch.export.export(torch.nn.Linear(3, 2), (torch.ones(4, 3),)), path)
        target = load_target(str(path))
        assert target.example_inputs is not None
        assert target.model(*target.example_inputs[0]).shape == (4, 2)


class TestExampleInputs:
    @pytest.mark.parametrize(
        "text", ["example_inputs = (torch.ones(2, 3),)", "def example_inputs(): return (torch.ones(2, 3),)"]
    )
    def test_from_a_function_or_a_tuple(self, file: Write, text: str) -> None:
        args, kwargs = load_target(f"{file(NET + text)}:Net").example_inputs or ((), {})
        assert args[0].shape == (2, 3)
        assert kwargs == {}

    def test_a_file_need_not_have_any(self, file: Write) -> None:
        assert load_target(f"{file(NET)}:Net").example_inputs is None

    def test_forms(self) -> None:
        assert as_call((1, 2)) == ((1, 2), {})
        assert as_call({"x": 1}) == ((), {"x": 1})
        assert as_call(((1,), {"n": 2})) == ((1,), {"n": 2})
        assert as_call(5) == ((5,), {})

    def test_it_is_not_asked_unless_it_is_needed(self, file: Write) -> None:
        target = load_target(file(NET + "\ndef example_inputs(): raise OSError('no data here')") + ":Net")
        with pytest.raises(UsageError, match=r"example_inputs\(\) failed: OSError: no data here"):
            _ = target.example_inputs


class TestRefused:
    def test_a_call_is_not_evaluated_and_the_factory_way_is_shown(self, file: Write) -> None:
        with pytest.raises(UsageError, match="targets are never evaluated") as caught:
            load_target(f"{file(NET)}:Net(depth=3)")
        assert "`def make_net(): return Net(depth=3)`" in caught.value.diagnostics[0].fix

    def test_a_wrong_name_is_guessed(self, file: Write) -> None:
        with pytest.raises(UsageError, match="has no 'Nett'") as caught:
            load_target(f"{file(NET)}:Nett")
        assert caught.value.diagnostics[0].fix == "did you mean 'Net'?"

    def test_several_models_without_a_name(self, file: Write) -> None:
        with pytest.raises(UsageError, match="several models: Net, Other"):
            load_target(file(NET + "\nclass Other(Net): pass"))

    def test_a_class_that_needs_arguments(self, file: Write) -> None:
        with pytest.raises(UsageError, match="it needs depth"):
            load_target(file(NET.replace("depth=2", "depth")) + ":Net")

    @pytest.mark.parametrize(
        ("text", "said", "line"),
        [
            ("import torch\nimport no_such_thing\n", "ModuleNotFoundError: No module named 'no_such_thing'", 2),
            ("x = 1\ny = (\n", "was never closed", 2),
            ("def build():\n    raise ValueError('bad width')\nmodel = build()\n", "ValueError: bad width", 2),
            ("import sys\nsys.exit(3)\n", "SystemExit: 3", 2),
        ],
    )
    def test_an_error_in_the_file_is_shown_at_its_line(self, file: Write, text: str, said: str, line: int) -> None:
        path = file(text)
        with pytest.raises(UsageError) as caught:
            load_target(f"{path}:Net")
        [diagnostic] = caught.value.diagnostics
        assert said in diagnostic.message
        assert diagnostic.where is not None
        assert (diagnostic.where.file, diagnostic.where.line) == (path, line)

    @pytest.mark.parametrize("target", ["no_such_file.py:Net", "no_such_package:Net", "missing.pt2", "a b:Net"])
    def test_what_is_not_there(self, target: str) -> None:
        with pytest.raises(UsageError):
            load_target(target)

    def test_a_function_that_makes_no_model(self, file: Write) -> None:
        with pytest.raises(UsageError, match="gives a int, not a model"):
            load_target(file("def make(): return 3") + ":make")
