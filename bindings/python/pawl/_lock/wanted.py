"""What the loop holds in the name of a thread, for as long as the thread wants it."""

from __future__ import annotations

from typing import Callable


class Wanted:
    """Says whether a thread still wants what the loop acquires, or has acquired, in its name. An
    interrupt (Ctrl-C) may stop the thread anywhere, also where it was about to say so. So until it
    has taken over what was acquired, it is wanted for as long as an object of the thread exists
    that ends with the call, or with the block."""

    def __init__(self, lives: Callable[[], object]) -> None:
        # A weak reference to the object.
        self._lives = lives
        # The thread sets this once it has taken over: it looks after the release from then on.
        self.taken = False

    def __bool__(self) -> bool:
        return self.taken or self._lives() is not None
