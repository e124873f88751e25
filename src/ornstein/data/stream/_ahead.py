"""Reading in a thread beside the one that works."""

import contextlib
import queue
import threading
from collections.abc import Callable, Iterator
from typing import Any, Generic, TypeVar

_T = TypeVar("_T")
_POLL_SECONDS = 0.1


class _End:
    """That nothing follows, and why.

    Attributes:
        error: that the thread met, or `None`.
    """

    def __init__(self, error: BaseException | None):
        self.error = error


class Ahead(Generic[_T]):
    """An iterator whose next items are made by a thread while others are used.

    Close it, or use it in `with`: the thread then ends after the item it is making.

    Args:
        make: gives the iterator that the thread runs.
        depth: items that wait, at most; one more is being made.
    """

    def __init__(self, make: Callable[[], Iterator[_T]], *, depth: int = 1):
        self._items: queue.Queue[Any] = queue.Queue(depth)
        self._is_closed = threading.Event()
        self._thread = threading.Thread(
            target=self._run, args=(make,), name="ornstein-read-ahead", daemon=True
        )
        self._thread.start()

    def __iter__(self) -> "Ahead[_T]":
        return self

    def __next__(self) -> _T:
        item = self._items.get()
        if isinstance(item, _End):
            self._items.put(item)  # for whoever asks again
            if item.error is not None:
                raise item.error
            raise StopIteration
        return item

    def __enter__(self) -> "Ahead[_T]":
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """End the thread, and forget what it made."""
        self._is_closed.set()
        while self._thread.is_alive():
            with contextlib.suppress(queue.Empty):
                self._items.get(timeout=_POLL_SECONDS)
        self._thread.join()

    def _run(self, make: Callable[[], Iterator[_T]]) -> None:
        end = _End(None)
        try:
            for item in make():
                if not self._put(item):
                    return
        except BaseException as error:  # raised where the items are asked for
            end = _End(error)
        self._put(end)

    def _put(self, item: Any) -> bool:
        """Wait for room; whether there was some before all was closed."""
        while not self._is_closed.is_set():
            with contextlib.suppress(queue.Full):
                self._items.put(item, timeout=_POLL_SECONDS)
                return True
        return False
