"""Which inputs a model is tried on. Nothing here asks whether a model accepts them; eager does."""

from __future__ import annotations

import itertools
import random

import torch

from tests.verify.onnx_models import BATCH, job, leaf
from trueport.load.job import AxisSize, FreeSize, Leaf
from trueport.load.values import LeafKind
from trueport.verify.inputs.draw import Drawn, draw
from trueport.verify.inputs.moves import Candidate, Move, Mover, What
from trueport.verify.inputs.named import Named
from trueport.verify.inputs.sizes import groups_of

TIME = AxisSize.of(FreeSize("time", minimum=1, maximum=20))


SINGLE = "one number that the model names among zeros"


def drawn(*leaves: Leaf, count: int = 120, seed: int = 0, **options) -> list[Drawn]:
    return list(itertools.islice(draw(job(*leaves), [each.value for each in leaves], seed, **options), count))


def column(sets: list[Drawn], at: int, family: str | None = None) -> list:
    return [each.values[at] for each in sets if family in (None, each.family)]


def test_every_free_size_is_seen_at_zero_one_two_a_prime_and_both_sides_of_the_example():
    sets = drawn(leaf("x", torch.randn(4, 7), {0: BATCH, 1: TIME}), count=250)
    for name, example in (("batch", 4), ("time", 7)):
        sizes = {each.sizes[name] for each in sets}
        assert {1, 2, 5} <= sizes
        assert any(size > example for size in sizes)
        assert any(size < example for size in sizes)
    assert 0 in {each.sizes["batch"] for each in sets}


def test_large_inputs_are_never_taken_for_ones_that_were_tried_and_are_gone():
    """Which are tried would depend on which memory is used again."""
    large = (torch.randn(4, 1_000),)
    contents = {Drawn(lambda: large, {}, "normal").content for _ in range(50)}  # each goes before the next is made
    assert len(contents) == 50
    small = (torch.randn(4, 3),)
    assert len({Drawn(lambda: small, {}, "normal").content for _ in range(50)}) == 1


def test_declared_ends_are_tried_and_never_passed():
    sizes = {each.sizes["time"] for each in drawn(leaf("x", torch.randn(7), {0: TIME}))}
    assert {1, 20} <= sizes
    assert min(sizes) == 1
    assert max(sizes) == 20


def test_the_first_drawn_input_changes_every_size_and_keeps_them_distinct():
    first = drawn(leaf("x", torch.randn(4, 7), {0: BATCH, 1: TIME}))[0]
    assert first.sizes["batch"] != 4
    assert first.sizes["time"] != 7
    assert first.sizes["batch"] != first.sizes["time"]
    assert first.values[0].shape == (first.sizes["batch"], first.sizes["time"])


def test_one_size_has_one_value_in_all_inputs_and_derived_axes_follow_it():
    twice = AxisSize("2*batch + 1", BATCH.sizes)
    for each in drawn(leaf("x", torch.randn(4), {0: BATCH}), leaf("y", torch.randn(9, 2), {0: twice})):
        batch = each.sizes["batch"]
        assert each.values[0].shape == (batch,)
        assert each.values[1].shape == (2 * batch + 1, 2)


def test_sizes_that_must_be_tried_come_first():
    wanted = [{"batch": 33}, {"batch": 6, "time": 3}]
    sets = [
        each
        for each in drawn(leaf("x", torch.randn(4, 7), {0: BATCH, 1: TIME}), extra_sizes=wanted)
        if not each.fallback
    ]
    assert [dict(each.sizes) for each in sets[:2]] == [{"batch": 33, "time": 7}, {"batch": 6, "time": 3}]


def test_tied_sizes_move_together_and_held_ones_do_not_move():
    other = AxisSize.of(FreeSize("other"))
    sets = drawn(leaf("x", torch.randn(4), {0: BATCH}), leaf("y", torch.randn(4, 7), {0: other, 1: TIME}))
    assert any(each.sizes["batch"] != each.sizes["other"] for each in sets)
    sets = drawn(
        leaf("x", torch.randn(4), {0: BATCH}),
        leaf("y", torch.randn(4, 7), {0: other, 1: TIME}),
        tied=[{"batch", "other"}],
        held={"time"},
    )
    assert all(each.sizes["batch"] == each.sizes["other"] for each in sets)
    assert {each.sizes["time"] for each in sets} == {7}
    assert len({each.sizes["batch"] for each in sets}) > 5


def test_the_same_seed_draws_the_same_and_another_seed_draws_others():
    x = leaf("x", torch.randn(4, 3), {0: BATCH})
    one, same, other = drawn(x), drawn(x), drawn(x, seed=1)
    assert all(torch.equal(a.values[0], b.values[0]) for a, b in zip(one, same, strict=True))
    assert not torch.equal(one[0].values[0], other[0].values[0])


def test_floats_come_in_families():
    sets = drawn(leaf("x", torch.randn(4, 3), {0: BATCH}), count=80)
    assert all((value == 0).all() for value in column(sets, 0, "zeros"))
    assert all((value == 1).all() for value in column(sets, 0, "ones"))
    assert all((value < 0).all() for value in column(sets, 0, "negated"))
    assert max(float(value.abs().max()) for value in column(sets, 0, "large") if value.numel()) > 100
    assert max(float(value.abs().max()) for value in column(sets, 0, "tiny") if value.numel()) < 1e-2


def test_boxes_keep_their_corners_in_order_at_other_sizes():
    boxes = torch.tensor([[0.0, 0.0, 4.0, 4.0], [1.0, 2.0, 9.0, 8.0]])
    sets = drawn(leaf("boxes", boxes, {0: BATCH}))
    found = [each for each in column(sets, 0, "the example's rows, moved a little") if len(each) > 12]
    assert found
    assert all((each[:, :2] < each[:, 2:]).all() and len(each.unique(dim=0)) == len(each) for each in found)


def test_the_numbers_that_a_model_names_come_with_a_step_to_both_sides():
    names = Named(values=(0.37, 6.0), sizes=(40,), rows=(90,))
    sets = drawn(leaf("x", torch.randn(8, 7), {0: BATCH}), leaf("ids", torch.tensor([3, 5])), named=names, count=200)
    mixed = torch.cat([value.reshape(-1) for value in column(sets, 0) if value.numel()])
    threshold = torch.tensor(0.37)
    near = [threshold, torch.nextafter(threshold, torch.tensor(1.0)), torch.nextafter(threshold, torch.tensor(0.0))]
    assert all(bool((mixed == value).any()) for value in near)
    assert any(bool((value == 6.0).all()) for value in column(sets, 0) if value.numel())
    assert {39, 40, 41, 90} <= {each.sizes["batch"] for each in sets}
    assert {89, 5, 6, 7} <= {int(value[0]) for value in column(sets, 1)}


def test_more_rows_than_a_table_of_64_and_more_elements_than_a_kernel_takes_at_once():
    sets = drawn(leaf("x", torch.randn(4, 7), {0: BATCH}))
    assert max(each.values[0].numel() for each in sets) > 4096
    assert {8, 16, 17, 64, 67} <= {each.sizes["batch"] for each in sets}


def test_many_free_sizes_do_not_ask_for_more_memory_than_there_is():
    axes = {at: AxisSize.of(FreeSize(f"n{at}")) for at in range(8)}
    sets = drawn(leaf("x", torch.randn(*[2] * 8), axes), count=300)
    assert max(each.values[0].numel() for each in sets) <= 1 << 20


def test_large_floats_also_meet_masks_that_are_partly_on():
    sets = drawn(leaf("x", torch.randn(4, 6)), leaf("mask", torch.ones(4, 6, dtype=torch.bool)))
    large = [each for each in sets if float(each.values[0].abs().max()) > 100]
    assert any(0 < int(each.values[1].sum()) < 24 for each in large)


def test_rows_with_one_on_all_the_same_and_in_order():
    sets = drawn(leaf("x", torch.randn(3, 4)))
    hot, same, ordered = (column(sets, 0, family)[0] for family in ("one hot", "all the same", "sorted"))
    assert hot.sum(1).tolist() == [1, 1, 1]
    assert len(same.unique()) == 1
    assert bool((ordered.diff() >= 0).all())


def test_an_example_between_zero_and_one_is_drawn_from_there_and_from_outside():
    sets = drawn(leaf("image", torch.rand(2, 3)))
    like, normal = torch.cat(column(sets, 0, "like the example's")), torch.cat(column(sets, 0, "normal"))
    assert 0 <= float(like.min()) <= float(like.max()) <= 1
    assert float(normal.min()) < 0


NAMED = ("numbers that the model names", "all a number that the model names")


def test_integers_stay_in_the_range_of_the_example_but_for_the_family_that_leaves_it():
    sets = drawn(leaf("ids", torch.tensor([[3, 9, 5]])))
    leaving = ("integers beyond the example's", "ends of the dtype", "all below -1", "all far above", SINGLE, *NAMED)
    inside = torch.cat([each.values[0] for each in sets if each.family not in leaving])
    assert (int(inside.min()), int(inside.max())) == (3, 9)
    outside = torch.cat(column(sets, 0, "integers beyond the example's"))
    assert int(outside.min()) < 0
    assert int(outside.max()) > 9
    ends = torch.cat([value.reshape(-1) for each in range(8) for value in column(wide(each), 0, "ends of the dtype")])
    assert {torch.iinfo(torch.int64).max, torch.iinfo(torch.int64).min, 2**24 + 1, -(2**31)} <= set(ends.tolist())


def wide(seed: int) -> list[Drawn]:
    return drawn(leaf("ids", torch.arange(60).reshape(6, 10)), seed=seed)


def test_a_declared_range_is_never_left_and_both_its_ends_are_reached():
    sets = drawn(leaf("ids", torch.tensor([3, 4]), value_range=(0, 999)), leaf("x", torch.rand(5), value_range=(2, 3)))
    ids, floats = torch.cat(column(sets, 0)), torch.cat(column(sets, 1))
    assert (int(ids.min()), int(ids.max())) == (0, 999)
    assert 2 <= float(floats.min()) <= float(floats.max()) <= 3


def test_masks_of_bools_and_of_zeros_and_ones_are_all_on_all_off_ragged_and_random():
    for mask in (torch.ones(2, 6, dtype=torch.bool), torch.ones(2, 6, dtype=torch.int64)):
        sets = drawn(leaf("mask", mask))
        assert all(value.dtype == mask.dtype for value in column(sets, 0))
        assert all((value == 1).all() for value in column(sets, 0, "masks all on"))
        assert all((value == 0).all() for value in column(sets, 0, "masks all off"))
        for value in column(sets, 0, "masks ragged"):
            assert (value[:, 0] == 1).all()
            assert (value[:, :-1].long() >= value[:, 1:].long()).all()
        assert any(0 < float(value.float().mean()) < 1 for value in column(sets, 0, "like the example's"))


def test_numbers_move_to_their_neighbours_zero_one_and_below():
    sets = drawn(leaf("n", 3), leaf("rate", 0.5), leaf("flag", True))
    assert {2, 4, 0, 1, -3} <= set(column(sets, 0))
    assert {0.0, 1.0, -0.5} <= set(column(sets, 1))
    assert set(column(sets, 2)) == {True, False}
    assert {type(value) for value in column(sets, 0)} == {int}
    assert {type(value) for value in column(sets, 1)} == {float}


def test_a_tensor_of_one_integer_moves_like_a_number():
    assert {0, 2, 3, 4} <= {int(value) for value in column(drawn(leaf("n", torch.tensor(3))), 0)}


def test_constants_are_left_alone():
    constant = Leaf("mode", LeafKind.CONSTANT, "bilinear")
    assert set(column(drawn(leaf("x", torch.randn(2)), constant), 1)) == {"bilinear"}


def test_new_sizes_have_tamer_values_to_fall_back_on():
    """Positions must be smaller than the length; the example's own, cut off, still are."""
    sets = drawn(leaf("positions", torch.arange(7), {0: TIME}))
    repeated = [each for each in sets if each.family == "the example's repeated" and each.sizes["time"] == 5]
    assert repeated[0].fallback
    assert repeated[0].values[0].tolist() == [0, 1, 2, 3, 4]


def test_every_dtype_can_be_drawn():
    for dtype in (torch.float16, torch.bfloat16, torch.float8_e4m3fn, torch.complex64, torch.int16, torch.uint16):
        for each in drawn(leaf("x", torch.ones(4, 3).to(dtype), {0: BATCH}), count=60):
            assert each.values[0].dtype == dtype


def test_an_example_at_the_ends_of_its_dtype_can_be_drawn_from():
    for dtype in (torch.int8, torch.uint8, torch.int16, torch.int32, torch.int64):
        ends = torch.iinfo(dtype)
        for example in ([ends.min, ends.max], [ends.max, ends.max], [ends.min, ends.min]):
            assert all(each.values for each in drawn(leaf("x", torch.tensor(example, dtype=dtype))))
    for dtype in (torch.float32, torch.float64, torch.float16, torch.bfloat16):
        ends = torch.finfo(dtype)
        for example in ([ends.min, ends.max], [ends.tiny, -ends.tiny], [float("inf"), float("nan")]):
            assert all(each.values for each in drawn(leaf("x", torch.tensor(example, dtype=dtype))))


def test_offsets_stay_in_order_and_within_what_they_are_of():
    """Eager trusts them, and would read memory that is not its own."""
    rows = leaf("rows", torch.randn(5, 2), {0: BATCH})
    starts = leaf("starts", torch.tensor([0, 2, 2, 5]), {0: TIME})
    given = (rows, starts)
    sets = [each.values for each in drawn(*given)]
    mover = Mover(job(*given), groups_of(job(*given).free_sizes, {"batch": 5, "time": 4}), [7.0])
    base = Candidate((rows.value, starts.value), {"batch": 5, "time": 4})
    dice = random.Random(0)
    moves = [*mover.first(base, 3.0), *(mover.chance(base, 3.0, dice) for _ in range(100))]
    moved = [mover.apply(move, base) for move in moves]
    sets += [each.values for each in moved if each is not None]
    assert len({len(found) for found, _ in sets}) > 5
    for found, at in sets:
        assert bool((at.diff() >= 0).all())
        assert at.numel() < 2 or (int(at[0]), int(at[-1])) == (0, len(found))


def test_offsets_of_each_row():
    rows = leaf("rows", torch.randn(2, 5), {1: BATCH})
    starts = leaf("starts", torch.tensor([[0, 2, 5], [0, 4, 5]]))
    for found, at in (each.values for each in drawn(rows, starts)):
        assert bool((at.diff() >= 0).all())
        assert at[:, [0, -1]].tolist() == [[0, found.shape[1]]] * 2


def test_positions_are_no_offsets():
    """0, 1, 2 may be indices of anything, and a search may have to make a 7 of one."""
    ids = leaf("ids", torch.arange(3))
    base = Candidate((ids.value,), {})
    moved = [Mover(job(ids), (), [7.0]).apply(Move(What.ONE, 7.0, 0, 0), base)]
    assert [each.values[0].tolist() for each in moved] == [[7, 1, 2]]


def test_offsets_are_kept_in_order_only_for_operators_that_trust_them():
    index = leaf("index", torch.tensor([0, 2, 4]))
    x = leaf("x", torch.randn(6, 2), {0: BATCH})
    free = [value for value in column(drawn(x, index, named=Named(trusts_offsets=False)), 1) if value.numel()]
    assert any(int(value[0]) != 0 for value in free)
    assert any(bool((value.diff() < 0).any()) for value in free)


def test_integers_may_be_lengths_along_another_input():
    x = leaf("x", torch.randn(4, 6), {0: BATCH, 1: TIME})
    lengths = leaf("lengths", torch.tensor([2, 5, 3, 1]), {0: BATCH})
    full = [each for each in drawn(x, lengths) if each.values[1].numel() and each.sizes["time"] > 6]
    assert any(int(each.values[1].max()) == each.sizes["time"] for each in full)
    assert all(int(each.values[1].max()) <= each.sizes["time"] for each in full if "lengths" in each.family)


def test_zero_comes_with_both_signs_and_tiny_numbers_underflow():
    values = column(drawn(leaf("x", torch.randn(8))), 0)
    assert any(bool((value.signbit() & (value == 0)).any()) for value in values)
    assert any(bool(((value.abs() < 1e-25) & (value != 0)).any()) for value in values)


def test_what_an_example_has_of_nan_comes_at_other_places():
    values = column(drawn(leaf("x", torch.tensor([1.0, float("nan"), 3.0]))), 0)
    assert any(bool(value[0].isnan()) for value in values)
    assert not any(bool(value.isinf().any()) for value in values)


def test_a_python_number_is_also_far_from_the_example():
    numbers = column(drawn(Leaf("n", LeafKind.NUMBER, 2)), 0)
    assert {302, -300} <= set(numbers)
