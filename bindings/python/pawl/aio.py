"""Pawl for asyncio.

    async with pawl.aio.connect("127.0.0.1:7001,127.0.0.1:7002") as client:
        async with client.lock("reports/daily", wait=60) as lock:
            write_report(token=lock.token)
"""

from ._client import Client
from ._election.election import Election, Leadership
from ._election.observe import Leaders
from ._lock.lock import Lock
from ._lock.locks import LockSet
from ._watch.watch import Watch

connect = Client

__all__ = ["Client", "Election", "Leaders", "Leadership", "Lock", "LockSet", "Watch", "connect"]
