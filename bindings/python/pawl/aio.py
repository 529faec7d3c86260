"""Pawl for asyncio.

    async with pawl.aio.connect("127.0.0.1:7001,127.0.0.1:7002") as client:
        async with client.lock("reports/daily", wait=60) as lock:
            write_report(token=lock.token)
"""

from ._client import Client
from ._election import Election, Leaders, Leadership
from ._lock import Lock, LockSet
from ._watch import Watch

connect = Client

__all__ = ["Client", "Election", "Leaders", "Leadership", "Lock", "LockSet", "Watch", "connect"]
