"""The requests of a client, one method each."""

from __future__ import annotations

from typing import Any, AsyncIterator, Dict, List, Optional

from .._env.arguments import Bytes, check_text, check_whole, to_bytes, to_ms
from .call import Call, name_locks
from .calls import Calls
from .result import Entry, Explanation, Page, Waiter, entry_of, explanation_of, waiter_of

# The parameter of each method that says how long the node itself may wait before it answers.
WAITS = {"acquire": "wait_ms", "wait": "timeout_ms"}
WAIT_LONGEST = 366 * 86400.0
# For how many seconds a cluster_... method may take: a node that is promoted first copies the
# records of the masters.
CHANGES_TAKE = 600.0


class Requests:
    """owner: the owner of what gives none."""

    def __init__(self, calls: Calls, owner: bytes) -> None:
        self._calls, self.owner = calls, owner

    async def call(self, method: str, /, **params: Any) -> Dict[str, Any]:
        """Calls any method of the client protocol and returns its result map. The parameters have
        the names of the protocol, and durations are in ms. A request that is to wait says so in its
        wait_ms or timeout_ms."""
        wait_name = WAITS.get(check_text(method, "method"), "")
        wait_ms = check_whole(params.pop(wait_name, 0), wait_name) if wait_name else 0
        if method == "acquire":
            params = name_locks(params)
        timeout = CHANGES_TAKE if method.startswith("cluster_") else None
        answer = await self._calls.run(Call(method, params, wait_name, wait_ms), timeout)
        return answer.result

    async def ping(self) -> Dict[str, Any]:
        """Asks the node for its name and version."""
        return await self.call("ping")

    async def status(self) -> Dict[str, Any]:
        """Returns the status of the node that is asked: its role, state, masters, peers and
        counters; see docs/client-protocol.md."""
        return await self.call("status")

    async def get(self, key: Bytes, *, quorum: bool = False) -> Entry:
        """Reads the key from the node's memory; with quorum=True, from a quorum of the masters."""
        params = {"consistency": "quorum"} if quorum else {}
        return entry_of(await self.call("get", key=to_bytes(key, "key"), **params),
                        to_bytes(key, "key"))

    async def list(self, prefix: Bytes = b"", *, limit: int = 100, after: Bytes = b"") -> Page:
        """Returns a page of the held keys that begin with the prefix: the first `limit` (at most
        1000) that follow `after`, in order."""
        params: Dict[str, Any] = {"prefix": to_bytes(prefix, "prefix"),
                                  "limit": check_whole(limit, "limit")}
        if after:
            params["after"] = to_bytes(after, "after")
        said = await self.call("list", **params)
        found = said.get("keys")
        entries = (tuple(entry_of(item, held=True) for item in found if isinstance(item, dict))
                   if isinstance(found, list) else ())
        return Page(entries, bool(said.get("more")))

    async def keys(self, prefix: Bytes = b"") -> AsyncIterator[Entry]:
        """Yields all held keys that begin with the prefix, in order. They are read in pages."""
        after = b""
        while True:
            page = await self.list(prefix, limit=1000, after=after)
            for entry in page.entries:
                yield entry
            if not page.more or not page.entries:
                return
            after = page.entries[-1].key

    async def wait(self, key: Bytes, until: str = "free", *,
                   timeout: Optional[float] = None) -> Entry:
        """Waits until the key is `free` or `held` at the node that is asked. WaitTimeoutError: the
        time is over."""
        if until not in ("free", "held"):
            raise ValueError("until: %r is neither free nor held" % (until,))
        params = {"key": to_bytes(key, "key"), "for": until}
        if timeout is None:
            answer = await self._calls.run(Call("wait", params), WAIT_LONGEST)
        else:
            answer = await self._calls.run(Call("wait", params, "timeout_ms",
                                                   to_ms(timeout, "timeout")))
        return entry_of(answer.result, to_bytes(key, "key"))

    async def waiters(self, key: Optional[Bytes] = None, *, prefix: Optional[Bytes] = None,
                      limit: int = 100) -> List[Waiter]:
        """Returns those that wait for the key, in the order of its queue; or those that wait for
        any key with the prefix, in the order of the keys."""
        if (key is None) == (prefix is None):
            raise ValueError("waiters: give either a key or a prefix")
        params: Dict[str, Any] = ({"prefix": to_bytes(prefix, "prefix"),
                                   "limit": check_whole(limit, "limit")} if prefix is not None
                                  else {"key": to_bytes(b"" if key is None else key, "key")})
        found = (await self.call("waiters", **params)).get("waiters")
        return ([waiter_of(item, to_bytes(b"" if key is None else key, "key"))
                 for item in found if isinstance(item, dict)] if isinstance(found, list) else [])

    async def explain(self, key: Bytes) -> Explanation:
        """Explains the state of the key: its holder, and the reports of the masters."""
        return explanation_of(await self.call("explain", key=to_bytes(key, "key")),
                              to_bytes(key, "key"))

    async def ask_release(self, key: Bytes, *, to: Bytes = b"", priority: int = 0,
                          owner: Optional[Bytes] = None) -> int:
        """Asks the holder to let go, in favour of the waiter `to` if one is named. The holder
        decides. Returns how many watchers were told."""
        params: Dict[str, Any] = {"key": to_bytes(key, "key"),
                                  "owner": to_bytes(self.owner if owner is None else owner,
                                                    "owner")}
        if to:
            params["to"] = to_bytes(to, "to")
        if priority:
            params["priority"] = check_whole(priority, "priority")
        reached = (await self.call("ask_release", **params)).get("reached")
        return reached if isinstance(reached, int) else 0

    async def release(self, key: Bytes, lock_id: str) -> bool:
        """Releases a lock by its lock_id, wherever it was acquired. False: it was not held any
        more. If a Lock of this client has this lock_id, it is lost from the moment of the call."""
        release = self._calls.let_go(to_bytes(key, "key"), check_text(lock_id, "lock_id"), 0.0)
        return bool((await self._calls.outcomes([release]))[0].result.get("released"))

    async def break_lock(self, key: Bytes, token: int, *, now: bool = False) -> bool:
        """For administrators: bars the holder with this token from extending, so that the key is
        free when its lease ends. With `now` the key is free at once, although the holder may still
        believe that it holds it."""
        return bool((await self.call("break", key=to_bytes(key, "key"),
                                     token=check_whole(token, "token"),
                                     **({"now": True} if now else {}))).get("broken"))
