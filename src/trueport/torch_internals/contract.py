"""Every private name and behaviour of torch that we stand on, as checks that can be run: the canary.

`trueport doctor` runs them, so that on a new torch one sees in a second what has moved. Each check is a function whose
docstring says what we rely on; it raises where that does not hold. What differs between releases is in `releases.py`,
and a check takes each of its forms.

This file imports nothing of ours, and is loaded by itself (`trueport/versions.py`): on a torch with which its room
cannot be imported, it is what tells why.
"""

from __future__ import annotations

import contextlib
import importlib
import re
import threading
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import sympy
import torch

NAMES = """
torch.Tensor._make_subclass
torch.Tensor._version
torch._C.DisableTorchFunction
torch._C.DispatchKey.CompositeExplicitAutograd
torch._C.DispatchKey.CompositeImplicitAutograd
torch._C._AutoDispatchBelowAutograd
torch._C._TorchDispatchModeKey.PROXY
torch._C._conv_determine_backend_memory_format
torch._C._onnx.OperatorExportTypes.ONNX
torch._C._onnx.TrainingMode.EVAL
torch._C._dispatch_has_kernel_for_dispatch_key
torch._C._ensureCUDADeviceGuardSet
torch._C._functorch.is_functorch_wrapped_tensor
torch._C._nn.pad_sequence
torch._C._select_conv_backend
torch._C._set_grad_enabled
torch._check
torch._compile
torch._disable_dynamo
torch._decomp.decomposition_table
torch._dispatch.python.enable_python_dispatcher
torch._dynamo.eval_frame.OptimizedModule
torch._from_functional_tensor
torch._functionalize_commit_update
torch._functionalize_replace
torch._functionalize_sync
torch._guards.GuardSource.CONSTANT
torch._guards.SLoc
torch._guards.Source
torch._higher_order_ops.associative_scan
torch._higher_order_ops.cond.cond_op
torch._higher_order_ops.flex_attention.math_attention
torch._higher_order_ops.map
torch._higher_order_ops.scan
torch._higher_order_ops.scan.generic_scan
torch._higher_order_ops.scan.scan_op
torch._higher_order_ops.while_loop
torch._library.custom_ops.CustomOpDef
torch._logging.trace_structured
torch._numpy.dtype
torch._numpy.ndarray.astype
torch._ops.HigherOrderOperator
torch._ops.OpOverload._can_decompose
torch._ops.OpOverload.decompose
torch._ops.OpOverloadPacket
torch._pad_packed_sequence
torch._subclasses.fake_tensor.DataDependentOutputException
torch._subclasses.fake_tensor.DynamicOutputShapeException
torch._subclasses.fake_tensor.FakeTensor
torch._subclasses.fake_tensor.FakeTensorMode._dispatch_impl
torch._subclasses.fake_tensor.UnsupportedOperatorException
torch._subclasses.functional_tensor.FunctionalTensor.metadata_fns
torch._subclasses.functional_tensor.FunctionalTensor.to_functional
torch._subclasses.functional_tensor.FunctionalTensor.tolist
torch._subclasses.functional_tensor.FunctionalTensorMode
torch._sym_sqrt
torch._sync
torch._to_functional_tensor
torch.ao.quantization.fx._decomposed
torch.backends.opt_einsum.enabled
torch.compiler._is_compiling_flag
torch.compiler._is_exporting_flag
torch.compiler.set_stance
torch.distributions.Distribution._validate_args
torch.fx.experimental._config.backed_size_oblivious
torch.fx.experimental.sym_node.SymNode._add
torch.fx.experimental.sym_node.SymNode._int_floordiv
torch.fx.experimental.sym_node.SymNode._mod
torch.fx.experimental.sym_node.SymNode._mul
torch.fx.experimental.sym_node.SymNode._sub
torch.fx.experimental.sym_node.SymNode.expect_true
torch.fx.experimental.sym_node.SymNode.has_hint
torch.fx.experimental.sym_node.SymNode.wrap_float
torch.fx.experimental.symbolic_shapes.DimDynamic.DYNAMIC
torch.fx.experimental.symbolic_shapes.GuardOnDataDependentSymNode
torch.fx.experimental.symbolic_shapes.ShapeEnv._constrain_range_for_size
torch.fx.experimental.symbolic_shapes.ShapeEnv._get_stack_summary
torch.fx.experimental.symbolic_shapes.ShapeEnv._init
torch.fx.experimental.symbolic_shapes.ShapeEnv._inner_evaluate_expr.cache_clear
torch.fx.experimental.symbolic_shapes.ShapeEnv._maybe_evaluate_static.cache_clear
torch.fx.experimental.symbolic_shapes.ShapeEnv._refine_ranges
torch.fx.experimental.symbolic_shapes.ShapeEnv.bound_sympy
torch.fx.experimental.symbolic_shapes.ShapeEnv.create_symfloatnode
torch.fx.experimental.symbolic_shapes.ShapeEnv.create_symintnode
torch.fx.experimental.symbolic_shapes.ShapeEnv.create_unbacked_symbool
torch.fx.experimental.symbolic_shapes.ShapeEnv.create_unbacked_symfloat
torch.fx.experimental.symbolic_shapes.ShapeEnv.create_unbacked_symint
torch.fx.experimental.symbolic_shapes.ShapeEnv.create_unspecified_symbol
torch.fx.experimental.symbolic_shapes.ShapeEnv.evaluate_expr
torch.fx.experimental.symbolic_shapes.ShapeEnv.guarding_hint_or_throw.cache_clear | torch.fx.experimental.symbolic_shapes.ShapeEnv.size_hint.cache_clear
torch.fx.experimental.symbolic_shapes.ShapeEnv.has_guarding_hint.cache_clear | torch.fx.experimental.symbolic_shapes.ShapeEnv.has_hint.cache_clear
torch.fx.experimental.symbolic_shapes.ShapeEnv.is_unbacked_symint
torch.fx.experimental.symbolic_shapes.guard_or_false
torch.fx.experimental.symbolic_shapes.statically_known_true
torch.fx.experimental.symbolic_shapes.sym_and
torch.nn.attention.flex_attention._FLEX_ATTENTION_DISABLE_COMPILE_DEBUG
torch.nn.attention.flex_attention.flex_attention_hop
torch.utils._mode_utils.no_dispatch
torch.utils._python_dispatch.TorchDispatchMode
torch.utils._python_dispatch._disable_current_modes
torch.utils._pytree.SUPPORTED_NODES
torch.utils._sympy.functions.FloorDiv
torch.utils._sympy.functions.IntTrueDiv
torch.utils._sympy.functions.Mod
torch.utils._sympy.functions.Min
torch.utils._sympy.functions.PythonMod
torch.utils._sympy.printers.PythonPrinter
torch.utils._sympy.value_ranges.ValueRanges
"""  # noqa: E501
"""One in each line; ` | ` stands between the names that one thing has in different releases."""

_OF_A_SHAPE_ENV = (
    "var_to_range replacements axioms deferred_runtime_asserts divisible guards _resimplify_floor_div_axioms "
    "_version_counter unbacked_symint_counter pending_fresh_unbacked_symbols"
).split()

Check = Callable[[], None]
CHECKS: list[Check] = []


def check(function: Check) -> Check:
    CHECKS.append(function)
    return function


def names() -> list[str]:
    return NAMES.strip().splitlines()


def count() -> int:
    """How many things are looked at."""
    return len(names()) + len(CHECKS)


def broken() -> list[str]:
    """What does not hold in this torch, one sentence each. Nothing of what is tried is left behind."""
    found = [f"{name} is missing" for name in names() if not any(map(_exists, name.split(" | ")))]
    for function in CHECKS:
        try:
            with torch.no_grad():
                function()
        except Exception as failure:  # noqa: BLE001 - whatever torch raises is why the check fails
            said = str(failure).strip().partition("\n")[0][:200]
            found.append(f"{function.__name__}: {function.__doc__} ({type(failure).__name__}: {said})")
    return found


def _exists(name: str) -> bool:
    """A module's name is tried before an attribute of that name: `scan` is a function, and the module it stands in.

    Torch imports some modules when they are asked for, and what they import may be what is gone.
    """
    parts = name.split(".")
    return any(_leads_somewhere(".".join(parts[:end]), parts[end:]) for end in range(len(parts), 0, -1))


def _leads_somewhere(module: str, attributes: list[str]) -> bool:
    try:
        value: Any = importlib.import_module(module)
        for attribute in attributes:
            value = getattr(value, attribute)
    except Exception:  # noqa: BLE001 - whatever torch raises, we would not get further
        return False
    return True


def _must(holds: object, seen: object = "it does not") -> None:
    """Not an assertion, which `python -O` leaves out."""
    if not holds:
        raise AssertionError(seen)


def _from(module: str, name: str) -> Any:
    return getattr(importlib.import_module(f"torch.{module}"), name)


# Tensors


@contextlib.contextmanager
def _traced() -> Iterator[tuple[Any, list[str]]]:
    """What makes a functional tensor of a real one, and the operators that a mode in the proxy's slot hears of."""
    fakes = _from("_subclasses.fake_tensor", "FakeTensorMode")()
    functional = _from("_subclasses.functional_tensor", "FunctionalTensor")
    heard: list[str] = []

    class Listener(torch.utils._python_dispatch.TorchDispatchMode):
        _mode_key = torch._C._TorchDispatchModeKey.PROXY
        enable_tracing, pre_dispatch = True, False
        tracer = SimpleNamespace(tensor_tracker=_AnyProxy())

        def __sym_dispatch__(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
            return func(*args, **(kwargs or {}))

        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            heard.append(str(func))
            return func(*args, **(kwargs or {}))

    with fakes, Listener(), _from("_subclasses.functional_tensor", "FunctionalTensorMode")():  # type: ignore[no-untyped-call]
        yield lambda real: functional.to_functional(fakes.from_tensor(real)), heard


class _AnyProxy(dict[Any, Any]):
    def __missing__(self, _tensor: Any) -> Any:
        return SimpleNamespace(proxy=SimpleNamespace(node=None))


@check
def a_mode_below_functionalisation_hears_no_writes() -> None:
    """A mode in the slot of the proxy tracer hears of values only, where a tensor was written through a view."""
    with _traced() as (functional, heard):
        x = functional(torch.zeros(4))
        x[:2].add_(1)
        _ = x * 2
    _must("aten.add.Tensor" in heard and "aten.mul.Tensor" in heard, heard)
    _must(not [name for name in heard if re.search(r"\w_\.", name)], heard)


@check
def a_functional_tensor_takes_another_value() -> None:
    """The value of a functional tensor is `elem`; it can be replaced, and read after a sync."""
    with _traced() as (functional, _):
        x, other = functional(torch.zeros(4)), functional(torch.zeros(4))
        torch._sync(other)  # type: ignore[attr-defined,no-untyped-call]
        value = torch._from_functional_tensor(other.elem)
        with _from("utils._python_dispatch", "_disable_current_modes")():
            torch._functionalize_replace(x.elem, value)
            torch._functionalize_commit_update(x.elem)
            torch._functionalize_sync(x.elem)
        torch._sync(x)  # type: ignore[attr-defined,no-untyped-call]
        _must(torch._from_functional_tensor(x.elem) is value)


@check
def views_share_their_storage() -> None:
    """A functional tensor and its views have one storage."""
    with _traced() as (functional, _):
        x = functional(torch.zeros(4))
        view = x[1:]
        with _from("utils._mode_utils", "no_dispatch")():
            _must(x.elem.untyped_storage()._cdata == view.elem.untyped_storage()._cdata)


@check
def a_fake_tensor_is_made_of_a_meta_tensor() -> None:
    """`FakeTensor(mode, meta, device)` is a fake tensor of that device, and copies as one."""
    fake_tensor, mode = (
        _from("_subclasses.fake_tensor", "FakeTensor"),
        _from("_subclasses.fake_tensor", "FakeTensorMode")(),
    )
    with _from("utils._mode_utils", "no_dispatch")():
        fake = fake_tensor(mode, torch.empty(2, 3, device="meta"), torch.device("cpu"))
        again = fake_tensor(mode, torch.ops.aten.detach.default(fake), fake.device)
    _must(isinstance(again, fake_tensor) and again.device.type == "cpu" and again.shape == (2, 3))


@check
def composite_operators_reach_modes_whole() -> None:
    """Below autograd, a mode hears of a composite operator before it is taken apart."""
    heard: list[str] = []

    class Listener(torch.utils._python_dispatch.TorchDispatchMode):
        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            heard.append(func.name())
            return func(*args, **(kwargs or {}))

    x, weight = torch.ones(1, 2), torch.ones(2, 2)
    guard = torch._C._AutoDispatchBelowAutograd()
    try:
        with Listener():  # type: ignore[no-untyped-call]
            torch.nn.functional.linear(x, weight)
    finally:
        del guard
    _must(heard == ["aten::linear"], heard)


@check
def operators_say_what_they_are() -> None:
    """Composite operators decompose; schemas tell writes and views; the table has decompositions."""
    table, aten = _from("_decomp", "decomposition_table"), torch.ops.aten
    has = torch._C._dispatch_has_kernel_for_dispatch_key
    _must(has("aten::linear", torch._C.DispatchKey.CompositeImplicitAutograd) and aten.linear.default._can_decompose())
    _must(has("aten::add.Tensor", "CPU"))
    written, viewed = aten.add_.Tensor._schema.arguments[0].alias_info, aten.view.default._schema.returns[0].alias_info
    _must(aten.add_.Tensor._schema.is_mutable and written is not None and written.is_write)
    _must(viewed is not None and not viewed.is_write)
    _must(table.get(aten.addcmul.default) is not None)


@check
def the_items_of_a_fake_tensor_are_remembered() -> None:
    """`.item()` of a fake tensor is a new symbol once `item_memo` is cleared."""
    shapes = _from("fx.experimental.symbolic_shapes", "ShapeEnv")()
    with _from("_subclasses.fake_tensor", "FakeTensorMode")(shape_env=shapes) as mode:
        fake = mode.from_tensor(torch.ones(3, dtype=torch.int64)).sum()
        first = fake.item()
        _must(fake.item().node.expr == first.node.expr)
        fake.item_memo = None
        _must(fake.item().node.expr != first.node.expr)


# Sizes


def _shape_env() -> tuple[Any, list[str]]:
    """A ShapeEnv whose overridden methods tell that they were called."""
    called: list[str] = []
    base = _from("fx.experimental.symbolic_shapes", "ShapeEnv")

    class Shapes(base):  # type: ignore[misc,valid-type]
        def evaluate_expr(self, orig_expr: Any, *args: Any, **kwargs: Any) -> Any:
            called.append("evaluate_expr")
            return super().evaluate_expr(orig_expr, *args, **kwargs)

        def _maybe_evaluate_static(self, expr: Any, *args: Any, **kwargs: Any) -> Any:
            called.append("_maybe_evaluate_static")
            return super()._maybe_evaluate_static(expr, *args, **kwargs)

        _maybe_evaluate_static.cache_clear = base._maybe_evaluate_static.cache_clear  # type: ignore[attr-defined]

        def _refine_ranges(self, expr: Any) -> None:
            called.append("_refine_ranges")
            super()._refine_ranges(expr)

    return Shapes(specialize_zero_one=False, duck_shape=False), called


def _named(name: str) -> Any:
    class _Named(_from("_guards", "Source")):  # type: ignore[misc]
        guard_source = _from("_guards", "GuardSource").CONSTANT
        _name_template = name

    return _Named()


def _free_size(shapes: Any, hint: int = 5) -> Any:
    dynamic = _from("fx.experimental.symbolic_shapes", "DimDynamic").DYNAMIC
    return shapes.create_symintnode(shapes.create_unspecified_symbol(hint, _named("n"), dynamic), hint=hint)


@check
def questions_about_sizes_go_through_our_methods() -> None:
    """A test of a free size asks `evaluate_expr`, which asks the other two, and leaves a guard with its `expr`."""
    shapes, called = _shape_env()
    size = _free_size(shapes)
    _must(bool(size > 3))
    _must({"evaluate_expr", "_maybe_evaluate_static", "_refine_ranges"} <= set(called), called)
    _must([guard.expr.free_symbols for guard in shapes.guards] == [size.node.expr.free_symbols])


@check
def a_source_needs_a_name_only() -> None:
    """Torch asks a source of ours for `name`, which is its `_name_template`."""
    _must(_named("n").name == "n")


@check
def what_disables_the_compiler_asks_getattr() -> None:
    """A function behind `torch._disable_dynamo` looks up `getattr` by name, so that its module can have another."""
    _must("getattr" in torch._disable_dynamo(lambda: None).__code__.co_names)  # type: ignore[attr-defined]


@check
def a_shape_env_keeps_what_it_learned_where_we_look() -> None:
    """What is known of sizes is in these attributes, and the example's sizes are in one of two."""
    shapes, _ = _shape_env()
    size = _free_size(shapes)
    missing = [name for name in _OF_A_SHAPE_ENV if not hasattr(shapes, name)]
    _must(not missing, missing)
    known = getattr(shapes, "backed_var_to_val", None) or shapes.var_to_val
    _must(known[size.node.expr] == 5)
    _must(size.node.expr in shapes.var_to_range and shapes.var_to_range[size.node.expr].lower is not None)
    _must(isinstance(shapes.unbacked_symint_counter, int))


@check
def evaluate_expr_takes_the_hint_first_and_the_fallback_fourth() -> None:
    """The arguments of `evaluate_expr` after the expression: `hint`, two others, `fallback_value`."""
    import inspect

    base = _from("fx.experimental.symbolic_shapes", "ShapeEnv")
    parameters = list(inspect.signature(base.evaluate_expr).parameters)
    _must((parameters[2], parameters[5]) == ("hint", "fallback_value"), parameters)


@check
def sizes_of_the_run_are_numbered() -> None:
    """A size that only the run tells is `u0`, then `u1`; to test it raises GuardOnDataDependentSymNode."""
    shapes, _ = _shape_env()
    first, second = shapes.create_unbacked_symint(), shapes.create_unbacked_symint()
    _must([str(size.node.expr) for size in (first, second)] == ["u0", "u1"] and shapes.unbacked_symint_counter == 2)
    _must(len(shapes.pending_fresh_unbacked_symbols) == 2)
    try:
        bool(first > 3)
    except _from("fx.experimental.symbolic_shapes", "GuardOnDataDependentSymNode"):
        return
    raise AssertionError("it was decided")


@check
def sizes_may_be_0_or_1_where_torch_is_told_so() -> None:
    """With `backed_size_oblivious`, torch does not take a free size of the example's for 1."""
    config = importlib.import_module("torch.fx.experimental._config")
    shapes, _ = _shape_env()
    mode = _from("_subclasses.fake_tensor", "FakeTensorMode")(shape_env=shapes)
    with config.patch(backed_size_oblivious=True), mode, _from("_dispatch.python", "enable_python_dispatcher")():
        rows = _free_size(shapes)
        shapes.var_to_range[rows.node.expr] = _from("utils._sympy.value_ranges", "ValueRanges")(
            sympy.Integer(0), shapes.var_to_range[rows.node.expr].upper
        )
        made = torch.empty(rows, 3) + torch.empty(rows, 1)
    _must(str(made.shape[0].node.expr) == str(rows.node.expr))  # type: ignore[attr-defined]


@check
def methods_of_symbolic_numbers_can_be_replaced() -> None:
    """Arithmetic of a SymFloat goes through the methods `_add` and others of its node's class, looked up each time."""
    node, shapes = _from("fx.experimental.sym_node", "SymNode"), _shape_env()[0]
    dynamic = _from("fx.experimental.symbolic_shapes", "DimDynamic").DYNAMIC
    number = shapes.create_symfloatnode(shapes.create_unspecified_symbol(1.5, _named("x"), dynamic), hint=1.5)
    used: list[str] = []
    steps: dict[str, Callable[[], Any]] = {
        "_add": lambda: number + 1.0,
        "_sub": lambda: number - 1.0,
        "_mul": lambda: number * 2.0,
    }
    for name, step in steps.items():
        itself = getattr(node, name)

        def listening(left: Any, right: Any, name: str = name, itself: Any = itself) -> Any:
            used.append(name)
            return itself(left, right)

        setattr(node, name, listening)
        try:
            step()
        finally:
            setattr(node, name, itself)
    _must(used == ["_add", "_sub", "_mul"], used)
    _must(node(number.node.expr, shapes, float, 1.5).hint == 1.5)


@check
def expressions_are_printed_as_python() -> None:
    """Torch's printer writes a floor division as Python does."""
    functions = importlib.import_module("torch.utils._sympy.functions")
    printed = _from("utils._sympy.printers", "PythonPrinter")().doprint(functions.FloorDiv(sympy.Symbol("n"), 2))
    _must(eval(printed, {"n": 7}) == 3, printed)


@check
def a_convolution_asks_for_its_kernel_where_we_listen() -> None:
    """The fake kernel of a convolution calls `torch._C._select_conv_backend`, looked up each time."""
    asked: list[int] = []
    itself = torch._C._select_conv_backend

    def listening(*args: Any, **kwargs: Any) -> Any:
        asked.append(1)
        return itself(*args, **kwargs)

    mode = _from("_subclasses.fake_tensor", "FakeTensorMode")()
    mode.cache_enabled = False  # or a second call would not ask
    torch._C._select_conv_backend = listening
    try:
        with mode:
            torch.nn.functional.conv1d(torch.ones(1, 1, 4), torch.ones(1, 1, 2))
    finally:
        torch._C._select_conv_backend = itself
    _must(asked)


# Control flow, the compiler, and the rest


@check
def control_flow_runs_in_python() -> None:
    """Torch's while_loop has a kernel in Python, and scan one that compiles nothing."""
    loop = importlib.import_module("torch._higher_order_ops.while_loop").while_loop_op
    kernel = loop.py_kernels[torch._C.DispatchKey.CompositeExplicitAutograd]
    done = kernel(lambda n: n < 3, lambda n: (n + 1,), (torch.tensor(0),), ())
    _must(done[0].item() == 3)
    generic = importlib.import_module("torch._higher_order_ops.scan").generic_scan
    carried = generic(lambda c, x: [c + x, c + x], [torch.zeros(2)], [torch.ones(3, 2)], additional_inputs=())
    _must(carried[0].tolist() == [3.0, 3.0], carried)


@check
def the_compiler_can_be_set_aside_and_taken_back() -> None:
    """`set_stance` acts at once, and its `__exit__` takes it back."""
    torch.compiler.set_stance("force_eager").__exit__(None, None, None)


@check
def the_flags_of_the_compiler_are_read() -> None:
    """`is_compiling` and `is_exporting` say what the two flags say."""
    for name, said in (("compiling", torch.compiler.is_compiling), ("exporting", torch.compiler.is_exporting)):
        flag = f"_is_{name}_flag"
        before = getattr(torch.compiler, flag)
        setattr(torch.compiler, flag, True)
        try:
            _must(said(), name)
        finally:
            setattr(torch.compiler, flag, before)


@check
def arrays_of_numpy_are_tensors() -> None:
    """`torch._numpy.ndarray` holds a `tensor`, and the functions of numpy take it."""
    numpy = importlib.import_module("torch._numpy")
    _must(numpy.sum(numpy.ndarray(torch.ones(3))).tensor.item() == 3)
    _must(numpy.dtype("float32").torch_dtype is torch.float32)


@check
def modes_are_of_one_thread() -> None:
    """What is fake on one thread is real on another."""
    made: list[torch.Tensor] = []
    with _from("_subclasses.fake_tensor", "FakeTensorMode")():
        other = threading.Thread(target=lambda: made.append(torch.ones(1)))
        other.start()
        other.join()
    _must(type(made[0]) is torch.Tensor)


@check
def messages_say_what_we_read_in_them() -> None:
    """An index that is too large names the size."""
    said = ""
    try:
        torch.ones(3)[7]
    except IndexError as failure:
        said = str(failure)
    _must("with size 3" in said, said)
