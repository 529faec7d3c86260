"""Several locks that are acquired together."""

from __future__ import annotations

import asyncio
import dataclasses
from typing import Any, Dict, Iterable, Iterator, List, Optional, Sequence, Union

from .._env.arguments import Bytes, check_callback, to_bytes, to_ms
from .._env.errors import PawlError, ProtocolError
from .._request.call import new_lock_id
from .acquire import acquire
from .guard import Holding
from .holder import Holder
from .lock import Lock, LostFn
from .options import Options, Want


class LockSet(Holding):
    """Several locks that are acquired together, all or none, by `await locks`, `await
    locks.acquire()` or `async with locks`. The body of the `async with` is canceled when one of
    them is lost. `locks[key]` gives one of them, and iteration gives all of them in the order in
    which they were named."""

    def __init__(self, client: Holder, wants: Sequence[Union[Bytes, Want]], options: Options,
                 on_lost: Optional[LostFn] = None) -> None:
        super().__init__(client, "set of locks")
        check_callback(on_lost, "on_lost")
        if isinstance(wants, (str, bytes, bytearray)):  # Each letter would be a key.
            raise TypeError("keys: expected a list of keys, not one %s" % type(wants).__name__)
        self._options, self._on_lost = options, on_lost
        self._wants = [want if isinstance(want, Want) else Want(want) for want in wants]
        self._locks: Dict[bytes, Lock] = {}
        for want in self._wants:
            own = dataclasses.replace(options, mode=want.mode, permits=want.permits, of=want.of)
            self._locks[to_bytes(want.key)] = Lock(client, want.key, own, self._lost)
        if not 1 <= len(self._locks) == len(self._wants):
            raise ValueError("keys: give at least one key, and no key twice")

    def __getitem__(self, key: Bytes) -> Lock:
        return self._locks[to_bytes(key)]

    def __iter__(self) -> Iterator[Lock]:
        return iter(self._locks.values())

    def __len__(self) -> int:
        return len(self._locks)

    @property
    def valid(self) -> float:
        """For how many seconds all of them may still be trusted."""
        return min(lock.valid for lock in self)

    @property
    def held(self) -> bool:
        return self.valid > 0.0

    def check(self) -> None:
        """If one of them is lost, raises the cause."""
        for lock in self:
            lock.check()

    def _lost(self, lock: Lock, cause: PawlError) -> None:
        self._guard.stop(cause)
        if self._on_lost is not None:
            self._client._callback(self._on_lost, lock, cause)

    def _has_it(self) -> bool:
        return all(lock._has_it() for lock in self)

    async def _get(self) -> None:
        for lock in self:
            lock._forget_lost()
        items = [dict(lock._mode_params, key=lock.key, lock_id=new_lock_id()) for lock in self]
        grant = await acquire(self._client, self._options, {"locks": items})
        found = grant.result.get("locks")
        said = {item["key"]: item for item in found or [] if isinstance(item, dict)
                and isinstance(item.get("key"), bytes)}
        if set(said) != set(self._locks):
            for key, lock_id in grant.ids.items():
                self._client._calls.let_go(key, lock_id, self._options.lease_ms / 1000)
            raise ProtocolError("the answer is not about the keys that were asked for")
        for key, lock in self._locks.items():
            lock._begin(grant, said[key])

    def _causes(self) -> Iterable[Optional[PawlError]]:
        return [lock.error for lock in self]

    def _begin_release(self) -> List[asyncio.Future[Any]]:
        return [release for lock in self for release in lock._begin_release()]

    async def shorten(self, lease: float) -> None:
        """Shortens all of them; see Lock.shorten. Raises the first error."""
        lease_ms = to_ms(lease, "lease")
        for lock in self:
            lock._check_shorten(lease_ms)
        await self._client._keeper.shorten(list(self), lease_ms)

    async def release(self) -> None:
        """Stops trusting all of them at once, and then releases them. Once this has begun, no
        cancellation and no interrupt stops the releases."""
        await self._client._calls.outcomes(self._begin_release())
