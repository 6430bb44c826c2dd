"""What one thread prints during its check is left out; others are heard, and nothing is left behind."""

from __future__ import annotations

import sys
import threading

from trueport.examine.unheard import unheard


def test_two_threads_that_come_and_go_in_turn(capsys):
    before, second_is_in, first_is_out = sys.stdout, threading.Event(), threading.Event()

    def second() -> None:
        with unheard():
            second_is_in.set()
            assert first_is_out.wait(60)
            print("hidden")
        print("second")

    other = threading.Thread(target=second)
    with unheard():
        other.start()
        assert second_is_in.wait(60)
        print("hidden")
    print("first")
    first_is_out.set()
    other.join()
    assert sys.stdout is before
    assert capsys.readouterr().out == "first\nsecond\n"


def test_it_may_be_nested(capsys):
    with unheard():
        with unheard():
            print("hidden")
        print("hidden")
    print("heard")
    assert capsys.readouterr().out == "heard\n"
