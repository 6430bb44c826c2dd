"""Many models: each is a row, whatever it does, and nothing that was finished is run again."""

from __future__ import annotations

import json
import os
import signal
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import CancelledError, Executor, Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from trueport.errors import UsageError
from trueport.sweeping import Entry, Outcome, SweepRow, engine, read_entries, sweep
from trueport.sweeping.differences import differences
from trueport.sweeping.entries import part_of
from trueport.sweeping.ledger import Ledger
from trueport.sweeping.page import sweep_page
from trueport.sweeping.work import run_entry

MODELS = """
import os, torch
from torch import nn

class Good(nn.Module):
    def forward(self, x):
        return x.relu()

class Frozen(nn.Module):
    def forward(self, x):
        return x.view(2, 4)

class Dies(nn.Module):
    def forward(self, x):
        os.kill(os.getpid(), 11)

def example_inputs():
    return (torch.ones(2, 4),)
"""


def toml(folder: Path, text: str) -> Path:
    path = folder / "zoo.toml"
    path.write_text(text)
    return path


def entries(count: int) -> list[Entry]:
    return [Entry(target=f"models.py:Net{number}", name=f"net {number}") for number in range(count)]


def a_row(name: str = "net", outcome: Outcome = Outcome.FAITHFUL, **more: Any) -> SweepRow:
    return SweepRow(name=name, key=f"key of {name}", target="models.py:Net", outcome=outcome, **more)


class Counted:
    """Stands for the processes: which entries were run, and a row for each."""

    def __init__(self, outcome: Callable[[Entry], Outcome] = lambda entry: Outcome.FAITHFUL) -> None:
        self.runs: list[str] = []
        self._outcome, self._lock = outcome, threading.Lock()

    def __call__(self, entry: Entry, versions: dict[str, str], peers: Sequence[str] = ()) -> tuple[SweepRow, str]:
        with self._lock:
            self.runs.append(entry.name)
        key = entry.key(versions, peers)
        return SweepRow(name=entry.name, key=key, target=entry.target, outcome=self._outcome(entry)), "{}"


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> Counted:
    stand_in = Counted()
    monkeypatch.setattr(engine, "run_entry", stand_in)
    return stand_in


def test_a_glob_is_one_model_for_each_file(tmp_path: Path) -> None:
    for name in ("a.py", "b.py", "old_a.py"):
        (tmp_path / name).touch()
    text = 'timeout = 9\n[[model]]\ntarget = "*.py:Net"\ninputs = ["x:Nx4"]\nexclude = ["old_*.py"]\nmemory = "2GB"\n'
    found = read_entries(toml(tmp_path, text))
    assert [entry.target for entry in found] == ["a.py:Net", "b.py:Net"]
    assert {(entry.timeout, entry.memory) for entry in found} == {(9, 2 << 30)}
    assert found[0].flags() == ["-i", "x:Nx4"]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "names no model"),
        ("[[model]]\ninputs = []", "has no target"),
        ('[[model]]\ntarget = "a.py:A"\ninput = ["x"]', "the key 'input'"),
        ('[[model]]\ntarget = "a.py:A"\ninputs = "x"', "no list of texts"),
        ('[[model]]\ntarget = "a.py:A"\n[[model]]\ntarget = "a.py:A"', "two models called"),
        ('[[model]]\ntarget = "*.py:A"', "no file is called"),
        ('[[model]]\ntarget = "a.py:A"\nmemory = "much"', "no amount of memory"),
        ('[[model]]\ntarget = "a.py:A"\ntimeout = -1', "no number of seconds"),
        ('[[model]]\ntarget = "a.py:A"\noptions = ["--report=x.html"]', "given by the sweep itself"),
        ("[[model", "cannot be read"),
    ],
)
def test_a_file_that_says_something_else_is_refused_by_name(tmp_path: Path, text: str, told: str) -> None:
    with pytest.raises(UsageError, match=told):
        read_entries(toml(tmp_path, text))


def test_shards_are_all_models_and_none_twice() -> None:
    all_of_them = entries(10)
    parts = [part_of(all_of_them, f"{number}/3") for number in (1, 2, 3)]
    assert sorted(entry.name for part in parts for entry in part) == sorted(entry.name for entry in all_of_them)
    for wrong in ("0/3", "4/3", "x", "1"):
        with pytest.raises(UsageError, match="no shard"):
            part_of(all_of_them, wrong)


def test_an_edited_model_and_another_version_are_other_rows(tmp_path: Path) -> None:
    (tmp_path / "net.py").write_text("a = 1")
    entry = Entry(target="net.py:Net", folder=str(tmp_path))
    first = entry.key({"torch": "2.13"})
    assert entry.key({"torch": "2.13"}) == first != entry.key({"torch": "2.14"})
    assert entry.key({"torch": "2.13"}, ["dynamo"]) != first
    (tmp_path / "net.py").write_text("a = 2")
    assert entry.key({"torch": "2.13"}) != first


def test_a_run_that_was_stopped_goes_on(tmp_path: Path, counted: Counted) -> None:
    class Stop(BaseException):
        pass

    def stop(told: engine.SweepProgress) -> None:
        if len(told.done) == 3:
            raise Stop

    with pytest.raises(Stop):
        sweep(entries(6), tmp_path, jobs=1, tell=stop)
    done = len(counted.runs)
    rows = sweep(entries(6), tmp_path, jobs=1)
    assert [row.name for row in rows] == [f"net {number}" for number in range(6)]
    assert sorted(counted.runs) == sorted(set(counted.runs)) and 3 <= done < 6
    sweep(entries(6), tmp_path, jobs=1, resume=False)
    assert len(counted.runs) == 6  # the rows are there: who runs a model looks first


def test_two_shards_are_the_whole(tmp_path: Path, counted: Counted) -> None:
    for shard in ("1/2", "2/2"):
        sweep(entries(5), tmp_path / "parts", shard=shard)
    merged = sweep(entries(5), tmp_path / "parts")
    whole = sweep(entries(5), tmp_path / "whole")
    assert merged == whole
    assert len(counted.runs) == 10


class Losing(Executor):
    """Loses each model's worker so many times."""

    def __init__(self, times: int) -> None:
        self._times, self._pool, self._lost = times, ThreadPoolExecutor(2), {}

    def submit(self, function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        name = args[0].name
        self._lost[name] = self._lost.get(name, 0) + 1
        if self._lost[name] > self._times:
            return self._pool.submit(function, *args, **kwargs)
        future: Future[Any] = Future()
        future.set_exception(CancelledError())
        return future


def test_a_lost_worker_loses_nothing(tmp_path: Path, counted: Counted) -> None:
    rows = sweep(entries(4), tmp_path, executor=Losing(2))
    assert {row.outcome for row in rows} == {Outcome.FAITHFUL}
    assert sorted(counted.runs) == [f"net {number}" for number in range(4)]


def test_a_model_that_always_loses_its_worker_is_a_row(tmp_path: Path, counted: Counted) -> None:
    rows = sweep(entries(2), tmp_path, executor=Losing(99))
    assert {row.outcome for row in rows} == {Outcome.CRASHED}
    assert "lost 3 times" in rows[0].message


def test_a_half_written_row_is_no_row(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path)
    ledger.add(a_row(), "")
    assert ledger.find("key of net") == a_row()
    (tmp_path / "rows" / "key of net.json").write_text('{"name": "net", ')
    assert ledger.find("key of net") is None
    assert not list((tmp_path / "rows").glob("*.new"))


def test_the_ledger_is_kept_at_any_url(counted: Counted) -> None:
    rows = sweep(entries(3), "memory://sweep-of-a-test")
    assert Ledger("memory://sweep-of-a-test").rows() == rows
    with pytest.raises(UsageError, match="no place for results"):
        Ledger("nothing-known://x")


def test_the_ledger_as_parquet(tmp_path: Path, counted: Counted) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    sweep(entries(3), tmp_path)
    table = parquet.read_table(tmp_path / "ledger.parquet").to_pylist()
    assert [row["outcome"] for row in table] == ["faithful"] * 3


def test_what_changed() -> None:
    before = [
        a_row("kept"),
        a_row("broke"),
        a_row("healed", Outcome.REFUSED, code="TP301"),
        a_row("other", Outcome.REFUSED, code="TP301"),
        a_row("slow", cpu_seconds=10.0),
        a_row("large", size=1000),
        a_row("gone"),
    ]
    now = [
        a_row("kept"),
        a_row("broke", Outcome.REFUSED, code="TP805", message="differs"),
        a_row("healed"),
        a_row("other", Outcome.OUT_OF_TIME),
        a_row("slow", cpu_seconds=12.1),
        a_row("large", size=2000),
        a_row("new"),
    ]
    assert differences(before, now).lines() == [
        "regressed: broke: faithful, now refused TP805 (differs)",
        "mended: healed: refused TP301, now faithful",
        "otherwise: other: refused TP301, now out of time",
        "slower: slow: 10 s of the processor, now 12.1 s",
        "larger: large: 1000 bytes, now 2000",
        "only before: gone",
        "only now: new",
    ]


def test_names_are_no_markup_on_the_page() -> None:
    page = sweep_page([a_row("<script>alert(1)</script>", Outcome.REFUSED, message="<b>\u202e", where="<i>:3")])
    assert "<script>alert" not in page and "<b>" not in page and "<i>" not in page and "\u202e" not in page
    assert "http" not in page.replace("http-equiv", "")


def test_each_way_a_model_can_end(tmp_path: Path) -> None:
    """Three real processes: what is faithful, what is refused at its line, and what kills its process."""
    (tmp_path / "models.py").write_text(MODELS)
    found = {
        name: run_entry(Entry(target=f"models.py:{name}", name=name, inputs=given, folder=str(tmp_path)), {})
        for name, given in {"Good": ("x:Nx4",), "Frozen": ("x:Nx4",), "Dies": ()}.items()
    }
    good, report = found["Good"]
    assert good.outcome is Outcome.FAITHFUL and good.inputs > 5 and good.size and good.nodes and good.cpu_seconds
    assert json.loads(report)["verified"] is True
    frozen = found["Frozen"][0]
    assert (frozen.outcome, frozen.code) == (Outcome.REFUSED, "TP301")
    assert frozen.where.endswith("models.py:11")
    assert found["Dies"][0].outcome is Outcome.CRASHED and signal.SIGSEGV.name in found["Dies"][0].message
    assert not [name for name in os.listdir(tmp_path) if name.endswith(".onnx")]
