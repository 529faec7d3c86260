"""The blocking client: the asynchronous one, run by a thread of its own."""

from __future__ import annotations

from types import TracebackType
from typing import Any, Callable, Dict, Iterator, List, Optional, Sequence, Type, Union

from . import _client, _lock, _watch
from ._acquire import Options
from ._blocking_lock import Lock, LockSet, LostFn, for_box
from ._blocking_watch import Election, Watch
from ._endpoint import Endpoints
from ._errors import ClosedError, PawlError
from ._runner import Runner
from ._types import EXCLUSIVE, Asked, Bytes, Entry, Explanation, Page, Waiter, Want, check_callback

AskedFn = Callable[[Any, Asked], None]
ElectionAskedFn = Callable[[Any, Asked], Optional[bool]]


class Client:
    """Talks to one of its endpoints at a time, goes on to the next when that one fails, and repeats
    there what was under way (with the same lock_id, which is safe). May be used by several threads.

    endpoints: one or more of "host:port", "tls://host:port", "unix:/path" ("[::1]:7000" for IPv6),
    a list or separated by commas; tried in this order, beginning with one by chance. prefer_first:
    begin with the first one, and return to it some time after it had to be left. ca_file,
    cert_file, key_file: PEM, for tls://: who may vouch for nodes, and the client's own certificate
    (TLS 1.3 only); server_name: the name that a node's certificate must carry, if it is not the
    endpoint's host. owner: for acquisitions that name none, shown to others; "host:pid" if none is
    given. label: likewise, a free text of at most 128 bytes.
    timeout: how many seconds a request may take over all nodes that are tried, beyond what it may
    wait. connect_timeout: for one endpoint. silence: how long a connection on which an answer is
    awaited may be silent before it is given up; with locks held these two are at most a sixth of
    the shortest lease. A node of several that answers neither a request nor a ping is left much
    sooner, after a few times of what its answers take.

    Does not connect yet: the first request does. ValueError, TlsError: an endpoint or a certificate
    cannot be used.

    Callbacks run in the background thread and must not block: a call that waits raises RuntimeError
    there. After a fork only the parent may go on with a client."""

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
    ) -> None:
        self._runner = Runner()
        try:
            self._client = self._runner.do(
                lambda: _client.Client(
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
                )
            )
        except BaseException:
            self._runner.stop()
            raise

    @property
    def owner(self) -> bytes:
        """The name that acquisitions have which name none."""
        return self._client.owner

    @property
    def endpoint(self) -> str:
        """The endpoint that there is a connection with; empty for none."""
        return self._client.endpoint

    def close(self, release: bool = True) -> None:
        """Closes the connection. Locks that are still held are released first (False: they run out
        by themselves), watches end."""
        try:
            self._runner.run(self._client.close(release))
        except ClosedError:
            return
        self._runner.stop()

    def __enter__(self) -> Client:
        return self

    def __exit__(self, kind: Optional[Type[BaseException]], error: Optional[BaseException],
                 trace: Optional[TracebackType]) -> None:
        self.close()

    # ---- requests ----

    def call(self, method: str, /, **params: Any) -> Dict[str, Any]:
        """Any method of the client protocol, with its parameters as there (durations in ms);
        returns the result map. What waits says so in its wait_ms or timeout_ms."""
        return self._runner.run(self._client.call(method, **params))

    def ping(self) -> Dict[str, Any]:
        """Who answers: version and node."""
        return self._runner.run(self._client.ping())

    def status(self) -> Dict[str, Any]:
        """How the node that is asked does: role, state, masters, peers, numbers; see
        docs/client-protocol.md."""
        return self._runner.run(self._client.status())

    def get(self, key: Bytes, *, quorum: bool = False) -> Entry:
        """Reads the key, from the node's memory, or from a quorum of the masters."""
        return self._runner.run(self._client.get(key, quorum=quorum))

    def list(self, prefix: Bytes = b"", *, limit: int = 100, after: Bytes = b"") -> Page:
        """Held keys that begin with the prefix, in order, `limit` (at most 1000) at a time."""
        return self._runner.run(self._client.list(prefix, limit=limit, after=after))

    def keys(self, prefix: Bytes = b"") -> Iterator[Entry]:
        """All held keys that begin with the prefix, in order, page by page."""
        after: bytes = b""
        while True:
            page = self.list(prefix, limit=1000, after=after)
            yield from page.entries
            if not page.more or not page.entries:
                return
            after = page.entries[-1].key

    def wait(self, key: Bytes, until: str = "free", *, timeout: Optional[float] = None) -> Entry:
        """Waits until the key is `free` or `held` at the node that is asked. WaitTimeoutError."""
        return self._runner.run(self._client.wait(key, until, timeout=timeout))

    def waiters(self, key: Optional[Bytes] = None, *, prefix: Optional[Bytes] = None,
                limit: int = 100) -> List[Waiter]:
        """Who waits for the key, in order; or for all keys with a prefix, in their order."""
        return self._runner.run(self._client.waiters(key, prefix=prefix, limit=limit))

    def explain(self, key: Bytes) -> Explanation:
        """Why the key is as it is: the holder, and what each master says."""
        return self._runner.run(self._client.explain(key))

    def ask_release(self, key: Bytes, *, to: Bytes = b"", priority: int = 0,
                    owner: Optional[Bytes] = None) -> int:
        """Asks the holder to let go, in favour of the waiter `to` if one is named. It decides.
        Returns how many watchers were told."""
        return self._runner.run(self._client.ask_release(key, to=to, priority=priority,
                                                         owner=owner))

    def release(self, key: Bytes, lock_id: str) -> bool:
        """Gives up a lock by its lock_id, from wherever it was acquired. False: it was not held any
        more. For a Lock use its own."""
        return self._runner.run(self._client.release(key, lock_id))

    def break_lock(self, key: Bytes, token: int, *, now: bool = False) -> bool:
        """For administrators: bars the holder with this token from extending, so that the key is
        free when its lease ends; with `now` at once, although the holder may still believe to hold
        it."""
        return self._runner.run(self._client.break_lock(key, token, now=now))

    # ---- locks, watches, elections ----

    def lock(
        self,
        key: Bytes,
        *,
        lease: float = 30.0,
        wait: Optional[float] = None,
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
        """A lock that is not acquired yet: `with client.lock("key") as lock:`, or `lock =
        client.lock("key").acquire()`.

        lease: seconds; extended each time a third of it has passed. wait: how long to wait in the
        queue: 0 tries once, None waits for ever. owner, label: shown to others; host and process id
        are shown in any case. value: of the key, readable for others.
        mode: `exclusive` or `shared` (readers); or permits and of: so many permits of a semaphore
        that has `of` in all (at most 128).
        priority: who waits with a greater one is earlier. lock_delay: how long the key stays closed
        after a loss without a release.
        release_on_disconnect: the key is free milliseconds after the death of this process; the
        death or the hang of a node does not end the lock. warn: how long before the deadline to
        give up when no extension has succeeded (a sixth of the lease; put the time in that stopping
        takes). renew: False lets the lease run out by itself.
        on_lost(lock, error): it cannot be kept, or is gone. on_asked(lock, asked): somebody asks
        the holder to let go.
        """
        options = Options(lease, wait, owner, value, mode, permits, of, priority, lock_delay,
                          release_on_disconnect, label, warn, renew)
        box: List[Lock] = []
        lost, asked = for_box(box, on_lost, "on_lost"), for_box(box, on_asked, "on_asked")
        inner = self._runner.do(lambda: _lock.Lock(self._client, key, options, lost, asked))
        box.append(Lock(self._runner, inner))
        return box[0]

    def locks(
        self,
        keys: Sequence[Union[Bytes, Want]],
        *,
        lease: float = 30.0,
        wait: Optional[float] = None,
        owner: Optional[Bytes] = None,
        value: Bytes = b"",
        priority: int = 0,
        lock_delay: float = 0.0,
        release_on_disconnect: bool = False,
        label: Optional[str] = None,
        warn: Optional[float] = None,
        on_lost: Optional[LostFn] = None,
    ) -> LockSet:
        """All of the keys or none, in one request and without deadlock, in whatever order clients
        name them: at most 64 keys, or `Want`s for other modes than exclusive. The other parameters
        are those of `lock`; on_lost is handed the lock that is lost."""
        options = Options(lease, wait, owner, value, EXCLUSIVE, 0, 0, priority, lock_delay,
                          release_on_disconnect, label, warn)
        box: List[LockSet] = []
        check_callback(on_lost, "on_lost")
        wanted = on_lost

        def lost(inner: _lock.Lock, error: PawlError) -> None:
            if wanted is not None:
                wanted(box[0][inner.key], error)

        made = self._runner.do(lambda: _lock.LockSet(self._client, keys, options,
                                                     lost if wanted is not None else None))
        box.append(LockSet(self._runner, made))
        return box[0]

    def watch(self, key: Optional[Bytes] = None, *, prefix: Optional[Bytes] = None,
              since: Optional[bytes] = None) -> Watch:
        """What becomes of a key, or of all keys with a prefix: `for event in client.watch("key")`.
        since: go on after the event with this position."""
        return Watch(self._runner,
                     self._runner.do(lambda: _watch.Watch(self._client, key, prefix, since)))

    def election(
        self,
        name: Bytes,
        *,
        candidate: Optional[Bytes] = None,
        value: Bytes = b"",
        lease: float = 30.0,
        warn: Optional[float] = None,
        priority: int = 0,
        lock_delay: float = 0.0,
        release_on_disconnect: bool = False,
        takeover: bool = False,
        label: Optional[str] = None,
        on_asked: Optional[ElectionAskedFn] = None,
    ) -> Election:
        """One program's part in the election `name`: as a candidate, an observer, or both.

        candidate: its name, one that no other candidate has; the client's owner if none is given.
        value: what the leader proclaims.
        priority: the candidate with the greatest one is next. takeover: while it waits it asks each
        leader to yield, and one with a lower priority does. on_asked(leadership, asked): decides
        what happens when somebody asks this leader to let go: True yields, False stays, None is the
        usual: to the named successor, or to whoever asks with a greater priority. The others: see
        `lock`.
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
                on_asked=on_asked,
            )
        )
        return Election(self._runner, inner)
