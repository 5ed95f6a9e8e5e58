"""Several pieces of work at once, in threads: most of the time they wait for worker processes."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from kdsl.runtime.worker import close_all

Item = TypeVar("Item")
Result = TypeVar("Result")
Progress = Callable[[str], None]
AT_ONCE = 2


class _Abandoned(BaseException):
    """Ends work that nobody waits for any more. No `except Exception` on the way makes a result of it."""


def in_threads(work: Callable[[Item, Progress], Result], items: Sequence[Item], progress: Progress) -> Iterator[Result]:
    """`work(item, progress)` for each item, in their order.

    If one raises, or the owner is interrupted, the others are abandoned: their workers are killed, and they end when
    they next say how far they are.
    """
    stop = threading.Event()

    def say(text: str) -> None:
        if stop.is_set():
            raise _Abandoned
        progress(text)

    pool = ThreadPoolExecutor(AT_ONCE)
    try:
        for future in [pool.submit(work, item, say) for item in items]:
            yield future.result()
    except BaseException:
        stop.set()
        close_all()
        raise
    finally:
        pool.shutdown(wait=False, cancel_futures=True)
