"""The blocking client. It runs the asynchronous client in a thread of its own."""

from __future__ import annotations

import contextlib
import weakref
from types import TracebackType
from typing import Any, Callable, Dict, Iterator, List, Optional, Sequence, Type, Union

from .. import aio
from .._env.arguments import EXCLUSIVE, Bytes
from .._env.errors import ClosedError, PawlError
from .._link.endpoint import Endpoints
from .._lock.lock import Asked
from .._lock.options import Options, Want
from .._lock.wanted import Wanted
from .._request.result import Entry, Explanation, Page, Waiter
from .block import Block
from .election import Election
from .lock import Box, Lock, LockSet, LostFn, contain
from .runner import Runner
from .watch import Watch

AskedFn = Callable[[Any, Asked], None]
ElectionAskedFn = Callable[[Any, Asked], Optional[bool]]


class Client(Block):
    """A client talks to one of its endpoints at a time. When that one fails, it goes on to the next
    and repeats there what was under way, with the same lock_id, which is safe. Several threads may
    use one client.

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

    Callbacks run in the background thread and must not block: there, a call that waits raises
    RuntimeError. After a fork only the parent may go on with a client."""

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
        super().__init__()
        self._runner = Runner()
        try:
            self._client = self._runner.do(
                lambda: aio.Client(
                    endpoints,
                    ca_file=ca_file,
                    cert_file=cert_file,
                    key_file=key_file,
                    server_name=server_name,
                    owner=owner,
                    label=label,
                    timeout=timeout,
                    connect_timeout=connect_timeout,
                    silence=silence,
                    prefer_first=prefer_first,
                    trace=trace,
                )
            )
        except BaseException:
            self._runner.stop()
            raise

    @property
    def owner(self) -> bytes:
        """The owner of acquisitions that give none."""
        return self._client.owner

    @property
    def endpoint(self) -> str:
        """The endpoint that the client is connected to; empty if there is none."""
        return self._client.endpoint

    def close(self, release: bool = True) -> None:
        """Releases the locks that are still held, ends the watches and closes the connection. With
        release=False the locks are not released; their leases run out by themselves. Once this has
        begun, no cancellation and no interrupt stops it."""
        with contextlib.suppress(ClosedError):
            self._runner.finish(self._client.close, release)
        self._runner.stop()

    def __enter__(self) -> Client:
        block = self._begun()
        if block is not None:
            wanted = Wanted(block)
            try:
                self._runner.do(lambda: self._client._close_unless(wanted))
            except BaseException:
                wanted.taken = True  # The client stays open: there is no block.
                raise
        return self

    def _exit(self, kind: Optional[Type[BaseException]], error: Optional[BaseException],
              trace: Optional[TracebackType]) -> None:
        self.close()

    # ---- requests ----

    def call(self, method: str, /, **params: Any) -> Dict[str, Any]:
        """Calls any method of the client protocol and returns its result map. The parameters have
        the names of the protocol, and durations are in ms. A request that is to wait says so in its
        wait_ms or timeout_ms."""
        return self._runner.run(self._client.call, method, **params)

    def ping(self) -> Dict[str, Any]:
        """Asks the node for its name and version."""
        return self._runner.run(self._client.ping)

    def status(self) -> Dict[str, Any]:
        """Returns the status of the node that is asked: its role, state, masters, peers and
        counters; see docs/client-protocol.md."""
        return self._runner.run(self._client.status)

    def get(self, key: Bytes, *, quorum: bool = False) -> Entry:
        """Reads the key from the node's memory; with quorum=True, from a quorum of the masters."""
        return self._runner.run(self._client.get, key, quorum=quorum)

    def list(self, prefix: Bytes = b"", *, limit: int = 100, after: Bytes = b"") -> Page:
        """Returns a page of the held keys that begin with the prefix: the first `limit` (at most
        1000) that follow `after`, in order."""
        return self._runner.run(self._client.list, prefix, limit=limit, after=after)

    def keys(self, prefix: Bytes = b"") -> Iterator[Entry]:
        """Yields all held keys that begin with the prefix, in order. They are read in pages."""
        after: bytes = b""
        while True:
            page = self.list(prefix, limit=1000, after=after)
            yield from page.entries
            if not page.more or not page.entries:
                return
            after = page.entries[-1].key

    def wait(self, key: Bytes, until: str = "free", *, timeout: Optional[float] = None) -> Entry:
        """Waits until the key is `free` or `held` at the node that is asked. WaitTimeoutError: the
        time is over."""
        return self._runner.run(self._client.wait, key, until, timeout=timeout)

    def waiters(self, key: Optional[Bytes] = None, *, prefix: Optional[Bytes] = None,
                limit: int = 100) -> List[Waiter]:
        """Returns those that wait for the key, in the order of its queue; or those that wait for
        any key with the prefix, in the order of the keys."""
        return self._runner.run(self._client.waiters, key, prefix=prefix, limit=limit)

    def explain(self, key: Bytes) -> Explanation:
        """Explains the state of the key: its holder, and the reports of the masters."""
        return self._runner.run(self._client.explain, key)

    def ask_release(self, key: Bytes, *, to: Bytes = b"", priority: int = 0,
                    owner: Optional[Bytes] = None) -> int:
        """Asks the holder to let go, in favour of the waiter `to` if one is named. The holder
        decides. Returns how many watchers were told."""
        return self._runner.run(self._client.ask_release, key, to=to, priority=priority,
                                owner=owner)

    def release(self, key: Bytes, lock_id: str) -> bool:
        """Releases a lock by its lock_id, wherever it was acquired. False: it was not held any
        more. If a Lock of this client has this lock_id, it is lost from the moment of the call."""
        return self._runner.run(self._client.release, key, lock_id)

    def break_lock(self, key: Bytes, token: int, *, now: bool = False) -> bool:
        """For administrators: bars the holder with this token from extending, so that the key is
        free when its lease ends. With `now` the key is free at once, although the holder may still
        believe that it holds it."""
        return self._runner.run(self._client.break_lock, key, token, now=now)

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
        """Returns a lock that is not acquired yet: `with client.lock("key") as lock:`, or `lock =
        client.lock("key").acquire()`.

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
        thread that waits by itself a party of its own. The default is the client.
        """
        options = Options(lease, wait, owner, value, mode, permits, of, priority, lock_delay,
                          release_on_disconnect, label, warn, renew, party)
        box = Box()
        lost, asked = box.call(on_lost, "on_lost"), box.call(on_asked, "on_asked")
        inner = self._runner.do(lambda: aio.Lock(self._client, key, options, lost, asked))
        return box.put(Lock(self._runner, inner))

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
        wanted = contain(on_lost, "on_lost")
        kept: Callable[[], Optional[LockSet]] = lambda: None

        def lost(inner: aio.Lock, error: PawlError) -> None:
            locks = kept()
            if wanted is not None and locks is not None:
                wanted(locks[inner.key], error)

        made = self._runner.do(lambda: aio.LockSet(self._client, keys, options,
                                                   lost if wanted is not None else None))
        locks = LockSet(self._runner, made)
        kept = weakref.ref(locks)
        return locks

    def watch(self, key: Optional[Bytes] = None, *, prefix: Optional[Bytes] = None,
              since: Optional[bytes] = None) -> Watch:
        """Watches a key, or all keys with a prefix: `for event in client.watch("key")`. With
        `since` the watch goes on after the event that has this position."""
        return Watch(self._runner,
                     self._runner.do(lambda: self._client.watch(key, prefix=prefix,
                                                                  since=since)))

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
        inner = self._runner.do(
            lambda: self._client.election(
                name,
                candidate=candidate,
                value=value,
                lease=lease,
                warn=warn,
                priority=priority,
                lock_delay=lock_delay,
                release_on_disconnect=release_on_disconnect,
                takeover=takeover,
                label=label,
                on_asked=contain(on_asked, "on_asked"),
            )
        )
        return Election(self._runner, inner)
