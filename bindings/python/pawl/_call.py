"""A request under way, perhaps over several nodes."""

from __future__ import annotations

import asyncio
import os
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Tuple

from . import _clock
from ._errors import (
    BadRequestError, DeniedError, HeldError, MismatchError, PawlError, QuotaError, TooLargeError,
    TooLongError, WaitTimeoutError,
)

# What a repeat could undo (an update) or misread (a transfer), or would do to the next node as
# well.
NEVER_REPEATED = frozenset(("update", "transfer", "unwatch", "drain", "kick", "cluster_force"))
# Answered when something has come about, and not at once.
LONG = frozenset(("wait", "drain", "cluster_add_replica", "cluster_promote", "cluster_demote",
                  "cluster_remove", "cluster_replace", "cluster_set_nodes", "cluster_set_timing",
                  "cluster_force"))
UNSURE_AFTERWARDS = frozenset(("update", "transfer"))
# These come before any commit, and say that there is none.
REFUSALS = (HeldError, WaitTimeoutError, BadRequestError, DeniedError, TooLongError, TooLargeError,
            QuotaError)


class Answer(NamedTuple):
    """What a node said, when it was asked (`valid_ms` counts from there), and over which
    connection."""

    result: Dict[str, Any]
    sent_at: _clock.Instant
    connection: int = 0


def new_lock_id() -> str:
    return os.urandom(16).hex()


class Call:
    def __init__(self, method: str, params: Dict[str, Any], wait_name: str = "",
                 wait_ms: int = 0) -> None:
        self.method, self.params = method, params
        # The parameter that says how long the node may wait; what is left of it is sent.
        self.wait_name = wait_name
        self.wait_end = _clock.now().plus(wait_ms * _clock.MS)
        # The node may let it wait for what others do.
        self.waits = wait_ms > 0 or method in LONG
        self.internal = False  # never moves on to another node by itself
        self.drawn = False  # the lock_ids are this package's own: others may take their place
        self.connection = 0  # the only connection that it may go over; 0: any
        # Before any later message is looked at.
        self.on_answer: Optional[Callable[[Dict[str, Any]], None]] = None
        self.future: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self.timer: Optional[asyncio.TimerHandle] = None
        self.msgid = 0  # of the last time that it was sent
        self.before = 0  # of the time before, on a connection that was left
        self.sends = 0
        self.moves = 0
        self.sent_at = _clock.NEVER
        self.refusal: Optional[PawlError] = None  # what a node said that could not help

    @property
    def repeatable(self) -> bool:
        return self.method not in NEVER_REPEATED and not self.connection

    @property
    def binds(self) -> bool:
        """It asks for a lock that ends with the connection."""
        return bool(self.params.get("release_on_disconnect"))

    def ids(self) -> List[Tuple[bytes, str]]:
        """The keys and lock_ids of an acquire."""
        locks = self.params.get("locks", [self.params])
        return [(lock["key"], lock["lock_id"]) for lock in locks]

    def draw_anew(self) -> None:
        """Other lock_ids: the present ones are spent, their release may be on its way."""
        locks = []
        for lock in self.params.get("locks", [self.params]):
            locks.append(dict(lock, lock_id=new_lock_id()))
        self.params = dict(self.params, locks=locks) if "locks" in self.params else locks[0]

    def body(self, at: _clock.Instant, connection: int) -> Dict[str, Any]:
        said = dict(self.params)
        if self.wait_name:
            said[self.wait_name] = _clock.left(self.wait_end, at) // _clock.MS
        # Repeated: by then the end of an earlier connection is not to end the lock.
        if said.get("release_on_disconnect"):
            said["bond"] = connection
        return said

    def in_doubt(self, error: Optional[BaseException], answered: bool) -> bool:
        """Whether an acquire that failed could have taken the key all the same."""
        # Of a connection: for a lock that is held.
        if self.method != "acquire" or self.sends == 0 or self.connection:
            return False
        # It is held under this lock_id in another mode: not to be taken from its holder.
        if answered and isinstance(error, MismatchError):
            return False
        return not (answered and self.sends == 1 and isinstance(error, REFUSALS))

    def finish(self, answer: Optional[Answer], error: Optional[PawlError]) -> None:
        if self.timer is not None:
            self.timer.cancel()
        if self.future.done():
            return
        if error is not None:
            self.future.set_exception(error)
        else:
            assert answer is not None
            self.future.set_result(answer)
