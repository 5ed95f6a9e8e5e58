from __future__ import annotations

import contextlib
import threading
import time

import pytest

from kdsl.runtime.threads import AT_ONCE, Progress, in_threads


def test_results_come_in_the_order_of_the_items() -> None:
    def work(item: int, say: Progress) -> int:
        time.sleep(0.02 * (3 - item))
        return item * item

    assert list(in_threads(work, [0, 1, 2], lambda text: None)) == [0, 1, 4]


def test_work_goes_on_at_the_same_time() -> None:
    meeting = threading.Barrier(AT_ONCE, timeout=10)
    assert sorted(in_threads(lambda item, say: meeting.wait(), range(AT_ONCE), lambda text: None)) == [0, 1]


@pytest.mark.parametrize("raised", [KeyboardInterrupt, ValueError])
def test_if_one_fails_the_others_end_at_their_next_word_and_swallow_nothing(raised: type[BaseException]) -> None:
    ended, talking = threading.Event(), threading.Event()

    def work(item: int, say: Progress) -> None:
        if item == 0:
            talking.wait(10)
            raise raised
        try:
            while True:
                talking.set()
                time.sleep(0.01)
                with contextlib.suppress(Exception):  # as code does that makes a row of every failure
                    say("still here")
        finally:
            ended.set()

    with pytest.raises(raised):
        list(in_threads(work, [0, 1, 2, 3], lambda text: None))
    assert ended.wait(10)
