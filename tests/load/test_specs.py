"""The little language of `-i` and `--dim`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

from trueport.errors import UsageError
from trueport.load.request import make_job
from trueport.load.specs import ParsedInputs, parse_inputs


class Net(torch.nn.Module):
    def forward(self, x: Any, ids: Any = None, n: Any = 1, *rest: Any, **more: Any) -> Any:
        return x


class Strict(torch.nn.Module):
    def forward(self, image: Any, mask: Any) -> Any:
        return image


def parse(*specs: str, dims: Any = None, model: torch.nn.Module | None = None) -> ParsedInputs:
    return parse_inputs(specs, dims, model or Net())


def one(spec: str, dims: Any = None) -> Any:
    return parse(spec, dims=dims).args[0]


class TestTensors:
    def test_sizes_and_dtype(self) -> None:
        assert one("x:2x3").shape == (2, 3)
        assert one("x:2x3").dtype is torch.float32
        assert one("x:2x3:f16").dtype is torch.float16
        assert one("x:4:bool").dtype is torch.bool
        assert one("x:4:torch.int32").dtype is torch.int32
        assert one("x:4:c64").dtype is torch.complex64

    def test_a_range_of_values_holds_at_both_ends_and_travels_on(self) -> None:
        parsed = parse("x:1000:i64@3..5")
        assert set(parsed.args[0].tolist()) == {3, 4, 5}
        assert parsed.value_ranges == {"x": (3.0, 5.0)}
        floats = one("x:1000@-2..0.5")
        assert floats.min() >= -2
        assert floats.max() <= 0.5
        assert floats.min() < -1.9, "the whole range is used"

    def test_without_axes(self) -> None:
        assert one("x:i64").shape == ()
        assert one("x:f64=2.5").item() == 2.5

    def test_the_same_specs_give_the_same_example(self) -> None:
        assert torch.equal(one("x:5x5"), one("x:5x5"))


class TestFreeSizes:
    def test_capitals_are_free_and_a_name_is_one_size(self) -> None:
        parsed = parse("x:BatchxSeqx3", "ids:BatchxSeq:i64")
        x, ids = parsed.args
        assert x.shape[:2] == ids.shape
        job = make_job(Net(), parsed.args, parsed.kwargs, dynamic_shapes=parsed.dynamic_shapes)
        assert [size.name for size in job.free_sizes] == ["Batch", "Seq"]

    def test_a_name_may_hold_an_x(self) -> None:
        assert set(parse("x:MaxxBoxesx4").dynamic_shapes["x"]) == {0, 1}  # type: ignore[index]

    def test_examples_are_distinct_small_and_not_a_fixed_size_by_chance(self) -> None:
        x = one("x:BxSx2x3xT")
        assert len(set(x.shape)) == 5
        assert min(x.shape) >= 2

    def test_pictures_get_room_for_strides(self) -> None:
        x = one("x:2x3xHxW")
        assert min(x.shape[2:]) >= 32
        assert x.shape[2] != x.shape[3]

    def test_a_range_bounds_the_size_and_its_example(self) -> None:
        parsed = parse("x:BxS", dims={"B": (100, 101), "S": (None, 2)})
        b, s = parsed.args[0].shape
        assert 100 <= b <= 101
        assert s <= 2
        [first, second] = make_job(Net(), parsed.args, dynamic_shapes=parsed.dynamic_shapes).free_sizes
        assert (first.minimum, first.maximum) == (100, 101)
        assert (second.minimum, second.maximum) == (0, 2)

    def test_a_range_of_one_is_a_fixed_size(self) -> None:
        parsed = parse("x:BxS", dims={"B": (4, 4)})
        assert parsed.args[0].shape[0] == 4
        assert list(parsed.dynamic_shapes["x"]) == [1]  # type: ignore[index]

    def test_a_range_for_a_size_that_is_not_there(self) -> None:
        with pytest.raises(UsageError, match="--dim names 'W', which is no free size"):
            parse("x:BxH", dims={"W": (1, 2)})


class TestOtherValues:
    @pytest.mark.parametrize(
        ("text", "value"),
        [("3", 3), ("-2", -2), ("0.5", 0.5), ("1e-3", 1e-3), ("true", True), ("False", False), ("none", None),
         ("nearest", "nearest"), ("'a b'", "a b")],
    )  # fmt: skip
    def test_python_values(self, text: str, value: object) -> None:
        found = parse("x:2", f"n={text}").kwargs["n"]
        assert found == value
        assert type(found) is type(value)

    def test_from_files(self, tmp_path: Path) -> None:
        array = np.arange(6, dtype=np.float32).reshape(2, 3)
        np.save(tmp_path / "a.npy", array)
        np.savez(tmp_path / "a.npz", x=array, other=array + 1)
        save_file({"ids": torch.ones(4)}, tmp_path / "a.safetensors")
        torch.save({"k": [torch.ones(1)]}, tmp_path / "a.pt")
        assert torch.equal(one(f"x=@{tmp_path}/a.npy"), torch.from_numpy(array))
        assert torch.equal(one(f"@{tmp_path}/a.npy"), torch.from_numpy(array)), "without a name: the next parameter"
        assert one(f"x=@{tmp_path}/a.npz")[0, 0] == 0, "the array of the parameter's name"
        assert one(f"x=@{tmp_path}/a.npz:other")[0, 0] == 1
        assert one(f"x=@{tmp_path}/a.safetensors").shape == (4,), "the only one"
        assert isinstance(one(f"x=@{tmp_path}/a.pt"), list), "what the only key holds"
        assert one(f"x:f16=@{tmp_path}/a.npz").dtype is torch.float16

    def test_a_file_with_named_sizes(self, tmp_path: Path) -> None:
        np.save(tmp_path / "a.npy", np.ones((4, 3), np.float32))
        parsed = parse(f"x:Bx3=@{tmp_path}/a.npy", "ids:BxS:i64")
        assert parsed.args[1].shape[0] == 4, "B is what the file has"
        with pytest.raises(UsageError, match=r"5 is 5, but the file holds \[4, 3\]"):
            parse(f"x:Bx5=@{tmp_path}/a.npy")
        with pytest.raises(UsageError, match=r"the file holds a tensor of shape \[4, 3\]"):
            parse(f"x:B=@{tmp_path}/a.npy")

    def test_which_of_several(self, tmp_path: Path) -> None:
        np.savez(tmp_path / "a.npz", p=np.ones(1), q=np.ones(1))
        with pytest.raises(UsageError, match="holds p, q; which one is x"):
            one(f"x=@{tmp_path}/a.npz")

    def test_a_numpy_file_of_objects_is_refused(self, tmp_path: Path) -> None:
        np.save(tmp_path / "a.npy", np.array([{"a": 1}], dtype=object), allow_pickle=True)
        with pytest.raises(UsageError, match="cannot be read"):
            one(f"x=@{tmp_path}/a.npy")


class TestMatchingForward:
    def test_without_names_by_position(self) -> None:
        parsed = parse("2x3", "4:i64", "=5", "7", "8")
        assert [getattr(value, "shape", value) for value in parsed.args] == [(2, 3), (4,), 5, (7,), (8,)]

    def test_named_ones_first_then_the_gaps(self) -> None:
        parsed = parse("2x3", "x:5")
        assert [value.shape for value in parsed.args] == [(5,), (2, 3)]

    def test_after_a_gap_by_name(self) -> None:
        parsed = parse("x:2", "n=4")
        assert (len(parsed.args), parsed.kwargs) == (1, {"n": 4})

    def test_a_capital_may_be_a_parameter(self) -> None:
        class Capital(torch.nn.Module):
            def forward(self, N: Any) -> Any:
                return N

        assert parse("N:i64", model=Capital()).args[0].shape == ()
        assert one("N:i64").dim() == 1, "forward has no N: a free size of the next parameter"

    @pytest.mark.parametrize(
        ("specs", "said"),
        [
            (["image:2", "mask:2", "masc:2"], "no parameter 'masc'"),
            (["image:2"], "forward needs mask"),
            ([], "forward needs image, mask"),
            (["image:2", "image:3", "mask:1"], "says twice what image is"),
            (["2", "3", "4"], "forward has only 2 parameters"),
            (["image:2y3", "mask:2"], "'2y3' is neither a shape nor a dtype"),
            (["image:2:f99", "mask:2"], "'f99' is neither a shape nor a dtype"),
            (["image:2@9..1", "mask:2"], "the range is empty"),
            (["image:2@a..b", "mask:2"], "not a range of values"),
            (["image:2:f32=3", "mask:2"], "cannot be given as one value"),
            (["image:f32=abc", "mask:2"], "'abc' is not a number"),
            (["image=float32[3,4]", "mask:2"], "looks like the kind of a tensor"),
            (["image=[1, 3]", "mask:2"], "looks like the kind of a tensor"),
            (["image=2x3xH", "mask:2"], "looks like the kind of a tensor"),
            (["image=@nowhere.npy", "mask:2"], "there is no file nowhere.npy"),
            (["image=@notes.txt", "mask:2"], "there is no file notes.txt"),
        ],
    )
    def test_refused(self, specs: list[str], said: str) -> None:
        with pytest.raises(UsageError, match=said):
            parse(*specs, model=Strict())
