"""A request under way, which may be sent to several nodes in turn."""

from __future__ import annotations

import asyncio
import os
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Tuple

from .._env import clock
from .._env.errors import (
    BadRequestError, DeadlockError, DeniedError, HeldError, MismatchError, MovedError, PawlError,
    QuotaError, TooLargeError, TooLongError, WaitTimeoutError,
)

# Methods that are never repeated: a repeat could undo what others did since (an update), misread
# the outcome of the first try (a transfer), or act on the next node as well.
NEVER_REPEATED = frozenset(("update", "transfer", "unwatch", "drain", "kick", "cluster_force"))
# Methods that a node answers when something has happened, and not at once.
LONG = frozenset(("wait", "drain", "cluster_add_replica", "cluster_promote", "cluster_demote",
                  "cluster_remove", "cluster_replace", "cluster_set_nodes", "cluster_set_timing",
                  "cluster_force"))
UNSURE_AFTERWARDS = frozenset(("update", "transfer"))
# Methods that take something from whoever trusts in the lock that they name.
TAKES_AWAY = frozenset(("release", "transfer", "downgrade"))
# Errors that a node returns before any commit: the acquire has taken nothing.
REFUSALS = (HeldError, WaitTimeoutError, BadRequestError, DeniedError, TooLongError, TooLargeError,
            QuotaError, DeadlockError, MovedError)


class Answer(NamedTuple):
    """What a node answered, when the request was sent (`valid_ms` counts from then), and the number
    of the connection."""

    result: Dict[str, Any]
    sent_at: clock.Instant
    connection: int = 0


def new_lock_id() -> str:
    return os.urandom(16).hex()


def _locks_of(params: Dict[str, Any]) -> List[Dict[str, Any]]:
    """Returns the locks of an acquire. (What is no lock in the call of a program, nodes refuse.)"""
    locks = params.get("locks", [params])
    return [lock for lock in locks if isinstance(lock, dict)] if isinstance(locks, list) else []


def name_locks(params: Dict[str, Any]) -> Dict[str, Any]:
    """Draws the lock_ids that an acquire leaves out, so that it is the same acquire if it is
    repeated at another node, and can be released if it is given up."""
    named = [{"lock_id": new_lock_id(), **lock} for lock in _locks_of(params)]
    if "locks" not in params:
        return named[0]
    return dict(params, locks=named) if named and len(named) == len(params["locks"]) else params


class Call:
    def __init__(self, method: str, params: Dict[str, Any], wait_name: str = "",
                 wait_ms: int = 0) -> None:
        self.method, self.params = method, params
        # The parameter that says how long the node may wait. Each time the call is sent, the
        # parameter is what is left of that time.
        self.wait_name = wait_name
        self.wait_end = clock.now().plus(wait_ms * clock.MS)
        # The node may let the call wait for what others do.
        self.waits = wait_ms > 0 or method in LONG
        # The package itself makes the call. An error does not move it to another node.
        self.internal = False
        # The package has drawn the lock_ids, so it may draw others.
        self.drawn = False
        # The number of the only connection on which the call may be sent; 0: on any.
        self.connection = 0
        # The lock in whose name a transfer is made; it looks after its own trust.
        self.holder: Optional[object] = None
        # Called with the result, before any later message is handled.
        self.on_answer: Optional[Callable[[Dict[str, Any]], None]] = None
        self.future: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self.timer: Optional[asyncio.TimerHandle] = None
        # The msgid with which the call was sent last; and the one before on a connection that was
        # left, where an answer counts as well. 0: none.
        self.msgid = 0
        self.before = 0
        self.sends = 0
        # The number of the last connection whose node has refused the parameter `trace`.
        self.untraced = 0
        self.moves = 0
        # Another cluster serves the call, and its nodes were asked.
        self.moved = False
        self.sent_at = clock.NEVER
        # The refusal of a node that has too few masters or no memory yet.
        self.refusal: Optional[PawlError] = None

    @property
    def repeatable(self) -> bool:
        return self.method not in NEVER_REPEATED and not self.connection

    @property
    def may_still_wait(self) -> bool:
        """Returns whether the caller lets the call wait for longer."""
        if self.method == "wait" and not self.wait_name:
            return True  # It ends when it is canceled.
        return (self.method in ("acquire", "wait")
                and clock.left(self.wait_end, clock.now()) > 0)

    @property
    def binds(self) -> bool:
        """Returns whether the call asks for a lock that ends with the connection."""
        return bool(self.params.get("release_on_disconnect"))

    def ids(self) -> List[Tuple[bytes, str]]:
        """Returns the keys and lock_ids of an acquire."""
        return [(lock["key"], lock["lock_id"]) for lock in self.locks()
                if "key" in lock and "lock_id" in lock]

    def locks(self) -> List[Dict[str, Any]]:
        """Returns what an acquire or an extend says of each of its locks."""
        return _locks_of(self.params)

    def draw_anew(self) -> None:
        """Draws other lock_ids. The present ones are used up: their release may be under way."""
        locks = []
        for lock in self.params.get("locks", [self.params]):
            locks.append(dict(lock, lock_id=new_lock_id()))
        self.params = dict(self.params, locks=locks) if "locks" in self.params else locks[0]

    def body(self, at: clock.Instant, connection: int) -> Dict[str, Any]:
        said = dict(self.params)
        if self.wait_name:
            said[self.wait_name] = clock.left(self.wait_end, at) // clock.MS
        # After a repeat over another connection the end of the earlier one must not end the lock.
        if said.get("release_on_disconnect"):
            said["bond"] = connection
        return said

    def in_doubt(self, error: Optional[BaseException], answered: bool) -> bool:
        """Returns whether an acquire that failed could have taken the key nevertheless."""
        # An acquire that is tied to one connection is for a lock that is held already.
        if self.method != "acquire" or self.sends == 0 or self.connection:
            return False
        # The key is held under this lock_id in another mode; do not take it from its holder.
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
