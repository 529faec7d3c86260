"""The client for asyncio."""

from __future__ import annotations

import asyncio
import os
import socket
from types import TracebackType
from typing import Optional, Sequence, Type, Union

from ._election.election import Election, ElectionAskedFn
from ._env.arguments import EXCLUSIVE, Bytes, check_text, check_trace, to_bytes, to_ms
from ._env.tasks import background
from ._link.endpoint import Endpoints
from ._link.endpoint_list import EndpointList
from ._link.failover import Failover
from ._link.look_up import check_srv
from ._link.tls_files import TlsFiles
from ._lock.holder import Holder
from ._lock.lock import AskedFn, Lock, LostFn
from ._lock.locks import LockSet
from ._lock.options import Options, Want
from ._lock.wanted import Wanted
from ._request.calls import Calls
from ._watch.watch import Watch


class Client(Holder):
    """A client talks to one of its endpoints at a time. When that one fails, it goes on to the next
    and repeats there what was under way, with the same lock_id, which is safe. A client belongs to
    one event loop.

    endpoints: one or more of "host:port", "tls://host:port" and "unix:/path" (IPv6 as
    "[::1]:7000"), "srv:name" and "tls://srv:name" (SRV records, which need the package dnspython),
    and "file:path" (a file of endpoints, read again at each new connection if it has changed), as a
    list or separated by commas. Each address of a host is an endpoint of its own; at most 32
    addresses of one name are used, and 64 endpoints in all. The client begins with one of them by
    chance, and tries them in this order.
    prefer_first: the client begins with the first endpoint instead, and returns to it some time
    after it had to leave it.
    ca_file, cert_file, key_file: PEM files for tls:// endpoints, which use TLS 1.3. ca_file has the
    authorities that may vouch for nodes; the other two are the client's own certificate and key.
    They are read again for each new connection if they have changed.
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
        endpoints: Endpoints,
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
        found = EndpointList(endpoints, shuffle=not prefer_first)
        if any(source.srv for source in found.sources):
            check_srv()
        wanted = ca_file is not None or any(source.tls for source in found.sources)
        tls = TlsFiles(ca_file, cert_file, key_file) if wanted else None
        for seconds, what in ((timeout, "timeout"), (connect_timeout, "connect_timeout"),
                              (silence, "silence")):
            to_ms(seconds, what)
        self._failover = Failover(found, tls, server_name, connect_timeout, silence, prefer_first)
        super().__init__(Calls(self._failover, timeout),
                         to_bytes(owner, "owner") if owner is not None
                         else ("%s:%d" % (socket.gethostname(), os.getpid())).encode(),
                         check_text(label, "label"))
        self._calls.trace = check_trace(trace) if trace is not None else None
        self._closing: Optional[asyncio.Task[None]] = None
        self._calls.on_event = self._watches.deliver
        self._calls.on_taken_away = self._take_away
        self._failover.lease_share = self._keeper.share
        self._failover.bound = self._keeper.bound
        self._failover.listening = self._watches.listening
        self._failover.on_up = self._keeper.connection_up
        self._failover.on_break = self._keeper.connection_lost
        self._failover.on_left = self._watches.broken
        self._failover.needed = self._keeper.needs

    @property
    def endpoint(self) -> str:
        """The endpoint that the client is connected to; empty if there is none."""
        return self._failover.endpoint

    async def close(self, release: bool = True) -> None:
        """Releases the locks that are still held, ends the watches and closes the connection. With
        release=False the locks are not released; their leases run out by themselves. Once this has
        begun, no cancellation and no interrupt stops it."""
        if self._closing is None:
            self._begin_close(release)
            self._closing = background(self._end_close())
        await asyncio.wait([self._closing])

    def _begin_close(self, release: bool) -> None:
        """Lets go of everything; nothing that happens to the caller comes in between."""
        self._calls.closing = True
        self._watches.close()
        # A lock that is released below must not go to a waiter of this client.
        self._calls.end_acquires()
        if release:
            self._keeper.release_dropped()
        for lock in self._keeper.locks():
            if isinstance(lock, Lock):
                lock._let_go() if release else lock._forget()

    def _close_unless(self, wanted: Wanted) -> None:
        """Closes the client once it is not wanted any more, if it holds locks then."""
        self._keeper.hold_while(wanted, lambda: background(self.close()))

    async def _end_close(self) -> None:
        try:
            await self._calls.settle_releases(1.0)
        finally:
            self._keeper.close()
            await self._calls.close()

    async def __aenter__(self) -> Client:
        return self

    async def __aexit__(self, kind: Optional[Type[BaseException]], error: Optional[BaseException],
                        trace: Optional[TracebackType]) -> None:
        await self.close()

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
        party: Optional[bytes] = None,
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
        party: 16 bytes that name for whom the lock is when nodes look for deadlocks; give each
        task that waits by itself a party of its own. The default is the client.
        """
        options = Options(lease, wait, owner, value, mode, permits, of, priority, lock_delay,
                          release_on_disconnect, label, warn, renew, party)
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
        party: Optional[bytes] = None,
    ) -> LockSet:
        """Returns locks that are acquired together, all or none, in one request and without
        deadlock, in whatever order clients name the keys. At most 64 keys are allowed; a `Want`
        instead of a key asks for another mode than exclusive. The other parameters are those of
        `lock`. on_lost gets the lock that is lost."""
        options = Options(lease, wait, owner, value, EXCLUSIVE, 0, 0, priority, lock_delay,
                          release_on_disconnect, label, warn, party=party)
        return LockSet(self, keys, options, on_lost)

    def watch(self, key: Optional[Bytes] = None, *, prefix: Optional[Bytes] = None,
              since: Optional[bytes] = None) -> Watch:
        """Watches a key, or all keys with a prefix: `async for event in client.watch("key")`. With
        `since` the watch goes on after the event that has this position."""
        return Watch(self._watches, key, prefix, since)

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
