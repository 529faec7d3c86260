"""The blocking client: the asynchronous one, run by a thread of its own."""

from __future__ import annotations

import asyncio
from types import TracebackType
from typing import Any, Callable, Dict, Iterator, List, Optional, Sequence, Tuple, Type, TypeVar, Union

from . import _client, _election, _lock, _watch
from ._endpoint import Endpoints
from ._errors import ClosedError, PawlError
from ._runner import Runner
from ._types import EXCLUSIVE, Asked, Bytes, Entry, Event, Explanation, Leader, Page, Waiter, Want

LostFn = Callable[[Any, PawlError], None]
AskedFn = Callable[[Any, Asked], None]
ElectionAskedFn = Callable[[Any, Asked], Optional[bool]]
B = TypeVar("B", bound="_Held")


class _Held:
    """What can be acquired, trusted for a while, and released."""

    def __init__(self, runner: Runner) -> None:
        self._runner = runner

    def _target(self) -> Union[_lock.Lock, _lock.LockSet]:
        raise NotImplementedError

    @property
    def valid(self) -> float:
        """How many seconds it may still be trusted: 0.0 once the deadline has passed, for ever. Reads two clocks and nothing else. A
        write that must not happen without the lock is either over before this time is, or carries the token to a resource that checks
        it."""
        return self._target().valid

    @property
    def held(self) -> bool:
        """It may be trusted now."""
        return self._target().held

    def check(self) -> None:
        """Raises why it is lost, if it is: LostError, NoQuorumError, ... Call it between the steps of what it protects."""
        self._target().check()

    def acquire(self: B) -> B:
        """Acquires as the options say. HeldError or WaitTimeoutError: somebody else holds it."""
        try:
            self._runner.run(_acquire(self._target()))
        except (Exception, KeyboardInterrupt) as error:
            if not isinstance(error, PawlError):
                self._give_up()
            raise
        return self

    def _give_up(self) -> None:
        """An interrupt came just when it was acquired: nobody would release it."""
        try:
            self._runner.run(_release(self._target()))
        except PawlError:
            pass

    def _leave(self) -> None:
        try:
            self._runner.run(_release(self._target()))
        except PawlError:
            pass  # what cannot be released now runs out by itself

    def __enter__(self: B) -> B:
        return self.acquire()

    def __exit__(self, kind: Optional[Type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]) -> None:
        cause: Optional[PawlError] = None
        try:
            self.check()
        except PawlError as lost:
            cause = lost
        self._leave()
        if cause is not None and kind is None and not self._released_inside():
            raise cause

    def _released_inside(self) -> bool:
        return False


async def _acquire(target: Union[_lock.Lock, _lock.LockSet]) -> None:
    await target.acquire()


async def _release(target: Union[_lock.Lock, _lock.LockSet]) -> None:
    if isinstance(target, _election.Leadership):
        await target.resign()
    else:
        await target.release()


class Lock(_Held):
    """A lock: `with client.lock("key") as lock:`, or `lock = client.lock("key").acquire()` and later `lock.release()`. A background
    thread renews it at a third of its lease.

    The body of a `with` cannot be stopped from outside: call `check()` between its steps, or look at `valid`. When the lock was lost
    while the body ran, the end of the `with` raises the cause.
    """

    def __init__(self, runner: Runner, lock: _lock.Lock) -> None:
        super().__init__(runner)
        self._lock = lock
        self._let_go = False

    def _target(self) -> _lock.Lock:
        return self._lock

    def _released_inside(self) -> bool:
        return self._let_go

    @property
    def key(self) -> bytes:
        return self._lock.key

    @property
    def lock_id(self) -> str:
        """The identity of this acquisition, 32 hex digits."""
        return self._lock.lock_id

    @property
    def token(self) -> int:
        """The fencing token. May grow while the lock is held: use the present one."""
        return self._lock.token

    @property
    def mode(self) -> str:
        """`exclusive`, `shared` or `permits`: what it excludes now."""
        return self._lock.mode

    @property
    def slots(self) -> Tuple[int, ...]:
        """Which permits of the semaphore are held: numbers from 0 to of - 1, no two holders have the same one."""
        return self._lock.slots

    @property
    def error(self) -> Optional[PawlError]:
        """Why it is lost, or about to be; None while it is kept."""
        return self._lock.error

    def acquire(self: L) -> L:
        self._let_go = False
        return super().acquire()

    def release(self) -> bool:
        """Stops trusting the lock at once, then releases it. False: it was not held any more."""
        self._let_go = True
        return self._runner.run(self._lock.release())

    def update(self, value: Bytes, expect: Optional[Bytes] = None) -> bytes:
        """Writes the value; with `expect` only if that is the present one (or its value_seq), else MismatchError. Returns the value_seq.
        UnsureError: it may still take effect."""
        return self._runner.run(self._lock.update(value, expect))

    def downgrade(self) -> None:
        """Makes an exclusive lock a shared one without letting go. From the call on it is shared for this handle, whatever comes of
        it; repeating is safe."""
        self._runner.run(self._lock.downgrade())

    def transfer(self, to: Bytes) -> None:
        """Releases in favour of the waiter whose owner is `to`, who is next whoever waits ahead of it. NotFoundError: nobody of this
        name waits, nothing was released, and the lock is kept as before. After any other error it is released without a successor."""
        self._runner.run(self._lock.transfer(to))
        self._let_go = True

    def wait_lost(self, timeout: Optional[float] = None) -> Optional[PawlError]:
        """Waits until the lock is lost, and returns why; None when the time is over before."""
        return self._runner.run(_within(self._lock, timeout))


async def _within(lock: _lock.Lock, timeout: Optional[float]) -> Optional[PawlError]:
    try:
        return await asyncio.wait_for(lock.wait_lost(), timeout)
    except asyncio.TimeoutError:
        return None


L = TypeVar("L", bound=Lock)


class LockSet(_Held):
    """Several locks, all of them or none. `locks[key]` and iteration give the locks in the order in which they were named."""

    def __init__(self, runner: Runner, locks: _lock.LockSet) -> None:
        super().__init__(runner)
        self._locks = locks
        self._each = {lock.key: Lock(runner, lock) for lock in locks}
        self._let_go = False

    def _target(self) -> _lock.LockSet:
        return self._locks

    def _released_inside(self) -> bool:
        return self._let_go or any(lock._let_go for lock in self)

    def __getitem__(self, key: Bytes) -> Lock:
        return self._each[self._locks[key].key]

    def __iter__(self) -> Iterator[Lock]:
        return iter(self._each.values())

    def __len__(self) -> int:
        return len(self._each)

    def acquire(self) -> LockSet:
        """Acquires all of them. Errors name the key that they are about in `details["key"]`."""
        self._let_go = False
        for lock in self:
            lock._let_go = False
        return super().acquire()

    def release(self) -> None:
        """Releases all of them."""
        self._let_go = True
        self._runner.run(self._locks.release())


class Watch:
    """An iterator of events.

    First the present state is told (`present` for each holder, then `current`), then every change, in order for each key. It lasts
    over lost connections. Where changes may be missing comes one `overflow`, and then the present state again: a program that keeps a
    table of what it was told, and empties it at each overflow, is right in the end. A watch tells when to look, never that it is safe
    to act: that is what a lock and its token are for. Ends with `close()` or the `with`.
    """

    def __init__(self, runner: Runner, watch: _watch.Watch) -> None:
        self._runner, self._watch = runner, watch

    @property
    def current(self) -> bool:
        """Every change until about now has been told."""
        return self._watch.current

    def get(self, timeout: Optional[float] = None) -> Event:
        """The next event. WaitTimeoutError when none has come in time."""
        return self._runner.run(self._watch.get(timeout))

    def close(self) -> None:
        self._runner.run(self._watch.close())

    def __iter__(self) -> Iterator[Event]:
        return self

    def __next__(self) -> Event:
        try:
            return self.get()
        except ClosedError:
            raise StopIteration from None

    def __enter__(self) -> Watch:
        self._runner.do(self._watch.start)
        return self

    def __exit__(self, kind: Optional[Type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]) -> None:
        try:
            self.close()
        except ClosedError:
            pass


class Leadership(Lock):
    """Being the leader: `with election.campaign() as leadership:`, or `election.campaign()` and later `resign()`.

    Act only while `leading`: it is false from `warn` seconds before anybody else can lead, and when somebody has asked this leader to let
    go; then stop, and leave the `with` (or `resign()`), which hands over.
    """

    _lock: _election.Leadership

    @property
    def leading(self) -> bool:
        """It leads, and nobody has asked it to let go."""
        return self._lock.leading

    @property
    def yielding(self) -> bool:
        """It is to hand over: stop, then `resign()`, which hands over to the one that it was asked for."""
        return self._lock.yielding

    def proclaim(self, value: Bytes) -> None:
        """Another value: what observers see."""
        self._runner.run(self._lock.proclaim(value))

    def resign(self) -> None:
        """Leads no more from the call on. The next candidate leads at once: the one that it yields to, if it does."""
        self._let_go = True
        self._runner.run(self._lock.resign())


class Leaders:
    """Who leads, as an iterator: the present leader (or None) first, then every change in order, also another value of the same one."""

    def __init__(self, runner: Runner, leaders: _election.Leaders) -> None:
        self._runner, self._leaders = runner, leaders

    @property
    def leader(self) -> Optional[Leader]:
        """The one that was told last."""
        return self._leaders.leader

    def change(self, timeout: Optional[float] = None) -> Optional[Leader]:
        """The next change: the leader from now on, or None for nobody. WaitTimeoutError when none has come in time."""
        return self._runner.run(self._leaders.change(timeout))

    def close(self) -> None:
        self._runner.run(self._leaders.close())

    def __iter__(self) -> Iterator[Optional[Leader]]:
        return self

    def __next__(self) -> Optional[Leader]:
        try:
            return self.change()
        except ClosedError:
            raise StopIteration from None

    def __enter__(self) -> Leaders:
        self._runner.do(self._leaders.start)
        return self

    def __exit__(self, kind: Optional[Type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]) -> None:
        try:
            self.close()
        except ClosedError:
            pass


class Election:
    """One program's part in an election; see Client.election."""

    def __init__(self, runner: Runner, election: _election.Election) -> None:
        self._runner, self._election = runner, election

    @property
    def candidate(self) -> str:
        """This candidate's name."""
        return self._election.candidate

    def campaign(self, wait: Optional[float] = None, *, value: Optional[Bytes] = None, on_lost: Optional[LostFn] = None) -> Leadership:
        """Waits to be elected, for ever or so many seconds (WaitTimeoutError; with 0, HeldError)."""
        box: List[Leadership] = []
        inner = self._runner.do(lambda: self._election.campaign(wait, value=value, on_lost=_for(box, on_lost)))
        box.append(Leadership(self._runner, inner))
        return box[0].acquire()

    def observe(self) -> Leaders:
        """Who leads: `for leader in election.observe()`."""
        return Leaders(self._runner, self._runner.do(self._election.observe))

    def leader(self) -> Optional[Leader]:
        """Who leads now, by a quorum of the masters; None: nobody."""
        return self._runner.run(self._election.leader())

    def ask(self, *, to: Bytes = b"", priority: Optional[int] = None) -> int:
        """Asks the leader to let go, in favour of the candidate `to` if one is named. Returns how many watchers were told."""
        return self._runner.run(self._election.ask(to=to, priority=priority))


R = TypeVar("R")


def _for(box: List[Any], function: Optional[Callable[[Any, Any], R]]) -> Optional[Callable[[Any, Any], R]]:
    """A callback that is handed the blocking object and not the one underneath."""
    if function is None:
        return None
    wanted = function
    return lambda inner, what: wanted(box[0], what)


class Client:
    """Talks to one of its endpoints at a time, goes on to the next when that one fails, and repeats there what was under way (with the
    same lock_id, which is safe). May be used by several threads. See `pawl.connect` for the parameters.

    Callbacks run in the background thread and must not block: a call that waits raises RuntimeError there. After a fork only the
    parent may go on with a client."""

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
        """Closes the connection. Locks that are still held are released first (False: they run out by themselves), watches end."""
        try:
            self._runner.run(self._client.close(release))
        except ClosedError:
            return
        self._runner.stop()

    def __enter__(self) -> Client:
        return self

    def __exit__(self, kind: Optional[Type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]) -> None:
        self.close()

    # ---- requests ----

    def call(self, method: str, /, **params: Any) -> Dict[str, Any]:
        """Any method of the client protocol, with its parameters as there (durations in ms); returns the result map. What waits says
        so in its wait_ms or timeout_ms."""
        return self._runner.run(self._client.call(method, **params))

    def ping(self) -> Dict[str, Any]:
        """Who answers: version and node."""
        return self._runner.run(self._client.ping())

    def status(self) -> Dict[str, Any]:
        """How the node that is asked does: role, state, masters, peers, numbers; see docs/client-protocol.md."""
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

    def waiters(self, key: Optional[Bytes] = None, *, prefix: Optional[Bytes] = None, limit: int = 100) -> List[Waiter]:
        """Who waits for the key, in order; or for all keys with a prefix, in their order."""
        return self._runner.run(self._client.waiters(key, prefix=prefix, limit=limit))

    def explain(self, key: Bytes) -> Explanation:
        """Why the key is as it is: the holder, and what each master says."""
        return self._runner.run(self._client.explain(key))

    def ask_release(self, key: Bytes, *, to: Bytes = b"", priority: int = 0, owner: Optional[Bytes] = None) -> int:
        """Asks the holder to let go, in favour of the waiter `to` if one is named. It decides. Returns how many watchers were told."""
        return self._runner.run(self._client.ask_release(key, to=to, priority=priority, owner=owner))

    def release(self, key: Bytes, lock_id: str) -> bool:
        """Gives up a lock by its lock_id, from wherever it was acquired. False: it was not held any more. For a Lock use its own."""
        return self._runner.run(self._client.release(key, lock_id))

    def break_lock(self, key: Bytes, token: int, *, now: bool = False) -> bool:
        """For administrators: bars the holder with this token from extending, so that the key is free when its lease ends; with `now`
        at once, although the holder may still believe to hold it."""
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
        """A lock that is not acquired yet: `with client.lock("key") as lock:`, or `lock = client.lock("key").acquire()`.

        lease: seconds; extended each time a third of it has passed. wait: how long to wait in the queue: 0 tries once, None waits for
        ever. owner, label: shown to others; host and process id are shown in any case. value: of the key, readable for others.
        mode: `exclusive` or `shared` (readers); or permits and of: so many permits of a semaphore that has `of` in all (at most 128).
        priority: who waits with a greater one is earlier. lock_delay: how long the key stays closed after a loss without a release.
        release_on_disconnect: the node frees the lock as soon as the connection breaks, at the death of the process for example; and
        any break of the connection loses it at once. warn: how long before the deadline to give up when no extension has succeeded
        (a sixth of the lease; put the time in that stopping takes). renew: False lets the lease run out by itself.
        on_lost(lock, error): it cannot be kept, or is gone. on_asked(lock, asked): somebody asks the holder to let go.
        """
        options = _lock.Options(lease, wait, owner, value, mode, permits, of, priority, lock_delay, release_on_disconnect, label, warn, renew)
        box: List[Lock] = []
        inner = self._runner.do(lambda: _lock.Lock(self._client, key, options, _for(box, on_lost), _for(box, on_asked)))
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
        """All of the keys or none, in one request and without deadlock, in whatever order clients name them: at most 64 keys, or `Want`s
        for other modes than exclusive. The other parameters are those of `lock`; on_lost is handed the lock that is lost."""
        options = _lock.Options(lease, wait, owner, value, EXCLUSIVE, 0, 0, priority, lock_delay, release_on_disconnect, label, warn)
        box: List[LockSet] = []
        wanted = on_lost

        def lost(inner: _lock.Lock, error: PawlError) -> None:
            if wanted is not None:
                wanted(box[0][inner.key], error)

        made = self._runner.do(lambda: _lock.LockSet(self._client, keys, options, lost if wanted is not None else None))
        box.append(LockSet(self._runner, made))
        return box[0]

    def watch(self, key: Optional[Bytes] = None, *, prefix: Optional[Bytes] = None, since: Optional[bytes] = None) -> Watch:
        """What becomes of a key, or of all keys with a prefix: `for event in client.watch("key")`. since: go on after the event with
        this position."""
        return Watch(self._runner, self._runner.do(lambda: _watch.Watch(self._client, key, prefix, since)))

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

        candidate: its name, one that no other candidate has; the client's owner if none is given. value: what the leader proclaims.
        priority: the candidate with the greatest one is next. takeover: while it waits it asks each leader to yield, and one with a
        lower priority does. on_asked(leadership, asked): decides what happens when somebody asks this leader to let go: True yields,
        False stays, None is the usual: to the named successor, or to whoever asks with a greater priority. The others: see `lock`.
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


__all__ = ["Client", "Election", "Leaders", "Leadership", "Lock", "LockSet", "Watch"]
