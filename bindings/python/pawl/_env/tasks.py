"""Tasks of the package itself."""

from __future__ import annotations

import asyncio
from typing import Any, Coroutine, TypeVar

T = TypeVar("T")


def background(work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
    """Runs the coroutine in the background. A program that ends its loop without closing its client
    leaves such tasks behind, and asyncio would print a warning about each of them, of which the
    program knows nothing."""
    task = asyncio.get_running_loop().create_task(work)
    setattr(task, "_log_destroy_pending", False)
    return task
