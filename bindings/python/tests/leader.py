"""leader.py ENDPOINTS ELECTION LEASE FORM [CA CERT KEY]: leads until it is killed, and prints each
change of what it believes: its token while it leads, and 0 while it does not. FORM is `blocking` or
`asyncio`; `forks` is blocking with a child that outlives it."""

import asyncio
import os
import sys
import time

import pawl
import pawl.aio


def files(names):
    return dict(zip(("ca_file", "cert_file", "key_file"), names))


class Diary:
    def __init__(self):
        self.last = None

    def note(self, leadership):
        now = leadership.token if leadership.leading else 0
        if now != self.last:
            print(now, flush=True)
            self.last = now


def lead(endpoints, name, lease, form, *names):
    election = pawl.connect(endpoints, **files(names)).election(name, candidate=form,
                                                                lease=float(lease),
                                                                release_on_disconnect=True)
    leadership = election.campaign()
    if form == "forks" and os.fork() == 0:
        sys.stdin.read()  # This returns when the test closes the pipe.
        os._exit(0)
    diary = Diary()
    while True:
        diary.note(leadership)
        time.sleep(0.002)


async def lead_async(endpoints, name, lease, form, *names):
    client = pawl.aio.connect(endpoints, **files(names))
    diary = Diary()
    leadership = await client.election(name, candidate=form, lease=float(lease),
                                       release_on_disconnect=True).campaign()
    while True:
        diary.note(leadership)
        await asyncio.sleep(0.002)


if __name__ == "__main__":
    asyncio.run(lead_async(*sys.argv[1:])) if sys.argv[4] == "asyncio" else lead(*sys.argv[1:])
