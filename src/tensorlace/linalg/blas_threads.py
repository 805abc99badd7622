"""BLAS held to one thread while threads of our own are at work."""

from threading import Lock
from typing import final

from threadpoolctl import ThreadpoolController

__all__ = ["one_blas_thread"]


@final
class _OneBlasThread:
    """Hold BLAS to one thread while anybody fits or predicts: the threads are ours, bits stay."""

    def __init__(self) -> None:
        self._lock, self._inside = Lock(), 0
        self._controller: ThreadpoolController | None = None

    def __enter__(self) -> None:
        with self._lock:
            if self._inside == 0:
                self._controller = self._controller or ThreadpoolController()
                self._limit = self._controller.limit(limits=1, user_api="blas")
            self._inside += 1

    def __exit__(self, *exception: object) -> None:
        with self._lock:
            self._inside -= 1
            if self._inside == 0:
                self._limit.restore_original_limits()


one_blas_thread = _OneBlasThread()
