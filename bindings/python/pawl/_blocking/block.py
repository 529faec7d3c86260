"""The end of a `with` block, for programs that block."""

from __future__ import annotations

import functools
import threading
import weakref
from types import TracebackType
from typing import Callable, Dict, Optional, Type

Lives = Callable[[], object]


class Exit:
    """The method `__exit__`. Even its first step may be interrupted (Ctrl-C), and then nothing of
    it has run. But a `with` statement looks the method up before it calls `__enter__`, and keeps
    what it gets until the block has been left in whatever way. So each statement gets an object of
    its own, and what was entered is kept only while that object exists."""

    def __get__(self, entered: Optional[Block], kind: Type[Block]) -> Callable[..., None]:
        if entered is None:  # contextlib.ExitStack asks the class.
            return kind._exit
        block = functools.partial(entered._exit)
        entered._blocks[threading.get_ident()] = weakref.ref(block)
        return block


class Block:
    """What can be the subject of a `with`. The derived classes define `__enter__` and `_exit`."""

    def __init__(self) -> None:
        # For each thread the object that lives as long as the block which it is about to enter.
        self._blocks: Dict[int, Lives] = {}

    def _begun(self) -> Optional[Lives]:
        """Returns a weak reference to the object that lives as long as the block that this thread
        enters; None if it is not entered by a `with` statement."""
        block = self._blocks.pop(threading.get_ident(), None)
        return None if block is None or block() is None else block

    __exit__ = Exit()

    def _exit(self, kind: Optional[Type[BaseException]], error: Optional[BaseException],
              trace: Optional[TracebackType]) -> None:
        raise NotImplementedError
