"""The client for asyncio."""

from __future__ import annotations

import asyncio
import os
import socket
import ssl
from types import TracebackType
from typing import Any, AsyncIterator, Callable, Dict, List, Optional, Sequence, Type, Union

from . import _endpoint
from ._acquire import Options
from ._call import Call
from ._election import Election, ElectionAskedFn
from ._errors import TlsError
from ._keeper import Keeper
from ._lock import AskedFn, Lock, LockSet, LostFn
from ._failover import Failover
from ._types import (
    EXCLUSIVE, Bytes, Entry, Explanation, Page, Waiter, Want, check_text, check_trace, check_whole,
    entry_of, explanation_of, to_bytes, to_ms, waiter_of,
)
from ._watch import Watch, Watches

# The parameter of each method that says how long the node itself may wait before it answers.
WAITS = {"acquire": "wait_ms", "wait": "timeout_ms"}
WAIT_LONGEST = 366 * 86400.0
# For how many seconds a cluster_... method may take: a node that is promoted first copies the
# records of the masters.
CHANGES_TAKE = 600.0


def _use_file(file: str, what: str, use: Callable[[], None]) -> None:
    try:
        use()
    except OSError as error:
        why = error.reason if isinstance(error, ssl.SSLError) else error.strerror
        raise TlsError("%s: the %s cannot be used: %s" % (file, what, why or error),
                       file=file) from error


def _tls_context(ca_file: Optional[str], cert_file: Optional[str],
                 key_file: Optional[str]) -> ssl.SSLContext:
    if ca_file is None:
        raise TlsError("tls:// endpoints need a ca_file with the authorities that may sign node "
                       "certificates")
    if (cert_file is None) != (key_file is None):
        raise TlsError("a certificate and its key must be given together")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)  # checks certificates and names
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    _use_file(ca_file, "authorities", lambda: context.load_verify_locations(ca_file))
    if cert_file is not None and key_file is not None:
        cert, key = cert_file, key_file
        _use_file(key, "private key", lambda: open(key, "rb").close())
        _use_file(cert, "certificate, with the private key %s," % key,
                  lambda: context.load_cert_chain(cert, key))
    return context


class Client:
    """A client talks to one of its endpoints at a time. When that one fails, it goes on to the next
    and repeats there what was under way, with the same lock_id, which is safe. A client belongs to
    one event loop.

    endpoints: one or more of "host:port", "tls://host:port" and "unix:/path" (IPv6 as
    "[::1]:7000"), as a list or separated by commas. The client begins with one of
    them by chance, and tries them in this order.
    prefer_first: the client begins with the first endpoint instead, and returns to it some time
    after it had to leave it.
    ca_file, cert_file, key_file: PEM files for tls:// endpoints, which use TLS 1.3. ca_file has the
    authorities that may vouch for nodes; the other two are the client's own certificate and key.
    server_name: the name that a node's certificate must carry; by default the endpoint's host.
    owner: the owner of acquisitions that give none; others see it. The default is "host:pid".
    label: the label of acquisitions that give none, a free text of at most 128 bytes.
    timeout: for how many seconds a request may take, over all nodes that are tried, in addition to
    the time that it may wait.
    connect_timeout: for how many seconds the client tries to connect to one endpoint.
    silence: for how many seconds a node that owes an answer may be silent before the client gives
    it up. While locks are held, connect_timeout and silence are at most a sixth of the shortest
    lease. If there are several endpoints, a node that answers neither a request nor a ping is left
    much sooner: after a few times as long as its answers take.
    trace: the traceparent (W3C Trace Context) of the client's requests, which nodes write into
    their logs and audit files. A node of a release before 0.2.0 refuses requests that have one.

    The client connects with its first request and not before. ValueError, TlsError: an endpoint or
    a certificate cannot be used.
    """

    def __init__(
        self,
        endpoints: _endpoint.Endpoints,
        *,
        ca_file: Optional[str] = None,
        cert_file: Optional[str] = None,
        key_file: Optional[str] = None,
        server_name: Optional[str] = None,
        owner: Optional[Bytes] = None,
        label: str = "",
        timeout: float = 5.0,
        connect_timeout: float = 1.0,
        silence: float = 2.0,
        prefer_first: bool = False,
        trace: Optional[str] = None,
    ) -> None:
        found = _endpoint.parse(endpoints)
        tls = _tls_context(ca_file, cert_file, key_file) if any(e.tls for e in found) else None
        self.owner: bytes = (to_bytes(owner, "owner") if owner is not None
                             else ("%s:%d" % (socket.gethostname(), os.getpid())).encode())
        self.label = check_text(label, "label")
        # Names the client when nodes look for deadlocks.
        self._party = os.urandom(16)
        for seconds, what in ((timeout, "timeout"), (connect_timeout, "connect_timeout"),
                              (silence, "silence")):
            to_ms(seconds, what)
        self._loop = asyncio.get_running_loop()
        self._failover = Failover(found, tls, server_name, timeout, connect_timeout, silence,
                                  prefer_first)
        self._failover.trace = check_trace(trace) if trace is not None else None
        self._keeper = Keeper(self._failover)
        # The longest lease that the cluster allows, in milliseconds, if it has said so.
        self._lease_most: Optional[int] = None
        self._watches = Watches()
        self._failover.lease_share = self._keeper.share
        self._failover.bound = self._keeper.bound
        self._failover.listening = self._watches.listening
        self._failover.on_event = self._watches.deliver
        self._failover.on_up = self._keeper.connection_up
        self._failover.on_break = self._keeper.connection_lost
        self._failover.on_left = self._watches.broken
        self._failover.needed = self._keeper.needs

    def _callback(self, function: Callable[..., None], *arguments: Any) -> None:
        """Calls a callback of the program from the loop: the loop reports what it raises, and
        nothing here is disturbed."""
        self._loop.call_soon(function, *arguments)

    @property
    def endpoint(self) -> str:
        """The endpoint that the client is connected to; empty if there is none."""
        return self._failover.endpoint

    async def close(self, release: bool = True) -> None:
        """Releases the locks that are still held, ends the watches and closes the connection. With
        release=False the locks are not released; their leases run out by themselves."""
        if self._failover.closed:
            return
        self._watches.close()
        # A lock that is released below must not go to a waiter of this client.
        self._failover.end_acquires()
        held = [lock for lock in self._keeper.locks() if isinstance(lock, Lock)]
        if release and held:
            releases = [asyncio.ensure_future(lock.release()) for lock in held]
            await asyncio.wait(releases, timeout=1.0)
            for one in releases:
                one.cancel()
            await asyncio.gather(*releases, return_exceptions=True)
        for lock in held:
            lock._forget()
        self._keeper.close()
        await self._failover.close()

    async def __aenter__(self) -> Client:
        return self

    async def __aexit__(self, kind: Optional[Type[BaseException]], error: Optional[BaseException],
                        trace: Optional[TracebackType]) -> None:
        await self.close()

    # ---- requests ----

    async def call(self, method: str, /, **params: Any) -> Dict[str, Any]:
        """Calls any method of the client protocol and returns its result map. The parameters have
        the names of the protocol, and durations are in ms. A request that is to wait says so in its
        wait_ms or timeout_ms."""
        wait_name = WAITS.get(check_text(method, "method"), "")
        wait_ms = check_whole(params.pop(wait_name, 0), wait_name) if wait_name else 0
        timeout = CHANGES_TAKE if method.startswith("cluster_") else None
        answer = await self._failover.run(Call(method, params, wait_name, wait_ms), timeout)
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
            answer = await self._failover.run(Call("wait", params), WAIT_LONGEST)
        else:
            answer = await self._failover.run(Call("wait", params, "timeout_ms",
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
        """Explains the state of the key: its holder, and what each master says."""
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
        more. For a Lock use Lock.release instead."""
        return bool((await self.call("release", key=to_bytes(key, "key"),
                                     lock_id=check_text(lock_id, "lock_id"))).get("released"))

    async def break_lock(self, key: Bytes, token: int, *, now: bool = False) -> bool:
        """For administrators: bars the holder with this token from extending, so that the key is
        free when its lease ends. With `now` the key is free at once, although the holder may still
        believe that it holds it."""
        return bool((await self.call("break", key=to_bytes(key, "key"),
                                     token=check_whole(token, "token"),
                                     **({"now": True} if now else {}))).get("broken"))

    # ---- locks, watches, elections ----

    def lock(
        self,
        key: Bytes,
        *,
        lease: Optional[float] = None,
        wait: Optional[float] = 0.0,
        owner: Optional[Bytes] = None,
        value: Bytes = b"",
        mode: str = EXCLUSIVE,
        permits: int = 0,
        of: int = 0,
        priority: int = 0,
        lock_delay: float = 0.0,
        release_on_disconnect: bool = False,
        label: Optional[str] = None,
        warn: Optional[float] = None,
        renew: bool = True,
        on_lost: Optional[LostFn] = None,
        on_asked: Optional[AskedFn] = None,
    ) -> Lock:
        """Returns a lock that is not acquired yet: `async with client.lock("key") as lock:`, or
        `lock = await client.lock("key")`.

        lease: in seconds. The client extends it whenever a third of it has passed. The default is
        30, or the cluster's max_lease if that is less.
        wait: for how many seconds to wait in the queue. 0, the default, tries once; None waits
        without an end.
        owner, label: others see them, and they see the host and the process id in any case.
        value: the value of the key, which others can read.
        mode: `exclusive` or `shared` (for readers).
        permits, of: instead of a mode, how many permits of a semaphore, and how many it has in all
        (at most 128).
        priority: waiters with a higher priority are served first.
        lock_delay: for how many seconds the key stays closed after a loss without a release.
        release_on_disconnect: the key is free milliseconds after the death of this process. The
        death or the hang of a node does not end the lock.
        warn: how many seconds before the deadline the client gives up if no extension has
        succeeded; choose the time that your program needs to stop. The default is a sixth of the
        lease.
        renew: False lets the lease run out by itself.
        on_lost(lock, error): is called when the lock cannot be kept, or is gone.
        on_asked(lock, asked): is called when somebody asks the holder to let go.
        """
        options = Options(lease, wait, owner, value, mode, permits, of, priority, lock_delay,
                          release_on_disconnect, label, warn, renew)
        return Lock(self, key, options, on_lost, on_asked)

    def locks(
        self,
        keys: Sequence[Union[Bytes, Want]],
        *,
        lease: Optional[float] = None,
        wait: Optional[float] = 0.0,
        owner: Optional[Bytes] = None,
        value: Bytes = b"",
        priority: int = 0,
        lock_delay: float = 0.0,
        release_on_disconnect: bool = False,
        label: Optional[str] = None,
        warn: Optional[float] = None,
        on_lost: Optional[LostFn] = None,
    ) -> LockSet:
        """Returns locks that are acquired together, all or none, in one request and without
        deadlock, in whatever order clients name the keys. At most 64 keys are allowed; a `Want`
        instead of a key asks for another mode than exclusive. The other parameters are those of
        `lock`. on_lost gets the lock that is lost."""
        options = Options(lease, wait, owner, value, EXCLUSIVE, 0, 0, priority, lock_delay,
                          release_on_disconnect, label, warn)
        return LockSet(self, keys, options, on_lost)

    def watch(self, key: Optional[Bytes] = None, *, prefix: Optional[Bytes] = None,
              since: Optional[bytes] = None) -> Watch:
        """Watches a key, or all keys with a prefix: `async for event in client.watch("key")`. With
        `since` the watch goes on after the event that has this position."""
        return Watch(self, key, prefix, since)

    def election(
        self,
        name: Bytes,
        *,
        candidate: Optional[Bytes] = None,
        value: Bytes = b"",
        lease: Optional[float] = None,
        warn: Optional[float] = None,
        priority: int = 0,
        lock_delay: float = 0.0,
        release_on_disconnect: bool = False,
        takeover: bool = False,
        label: Optional[str] = None,
        on_asked: Optional[ElectionAskedFn] = None,
    ) -> Election:
        """Returns the part that one program has in the election `name`: as a candidate, an
        observer, or both.

        candidate: its name, which no other candidate may have. The default is the client's owner.
        value: what the leader proclaims.
        priority: the candidate with the highest priority is the next leader.
        takeover: while this candidate waits, it asks each leader to yield; a leader with a lower
        priority does.
        on_asked(leadership, asked): decides when somebody asks this leader to let go. True yields
        and False stays. None does what is usual: the leader yields to a named successor, or to one
        that asks with a higher priority.
        The other parameters are those of `lock`.
        """
        if candidate is not None:
            to_bytes(candidate, "candidate")
        options = Options(
            lease, None, candidate, value, EXCLUSIVE, 0, 0, priority, lock_delay,
            release_on_disconnect, label, warn, election=True
        )
        return Election(self, name, options, takeover, on_asked)

