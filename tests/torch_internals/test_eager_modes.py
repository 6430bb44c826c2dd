"""Our modes set torch's compiler aside, on any number of threads, and it is back when the last has ended."""

from __future__ import annotations

import threading

import torch
from torch import nn

import trueport
from tests.global_state import torch_state
from trueport.torch_internals.eager_modes import EagerMode


def test_threads_that_come_and_go_in_any_order_leave_the_compiler_as_it_was():
    before = torch_state()
    second_is_in, first_is_out = threading.Event(), threading.Event()

    def second():
        with EagerMode():
            second_is_in.set()
            first_is_out.wait()

    worker = threading.Thread(target=second)
    with EagerMode():
        worker.start()
        second_is_in.wait()
    assert torch_state() != before  # the second still needs it aside
    first_is_out.set()
    worker.join()
    assert torch_state() == before


def test_what_the_user_had_set_is_set_again():
    with torch.compiler.set_stance("eager_on_recompile"):
        before = torch_state()
        with EagerMode(), EagerMode():
            assert torch_state() != before
        assert torch_state() == before


class _Waits(nn.Module):
    """Long enough in eager for the exports of two threads to overlap."""

    def __init__(self, meeting):
        super().__init__()
        self.meeting = meeting

    def forward(self, x):
        self.meeting()
        return x + 1 if x.sum() > 0 else x - 1


def test_exports_that_overlap_leave_torch_as_it_was():
    before = torch_state()
    barrier = threading.Barrier(2)

    def meeting():
        try:
            barrier.wait(0.05)
        except threading.BrokenBarrierError:
            barrier.reset()

    workers = [
        threading.Thread(target=lambda: trueport.export(_Waits(meeting), (torch.ones(3),), verify=False))
        for _ in range(2)
    ]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert torch_state() == before
