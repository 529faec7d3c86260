"""Three real nodes on loopback for all tests that only use them; tests that stop nodes start their
own."""

import os
import threading
import time
import unittest

import pawltest

PATIENCE = 20.0
_shared = []


def start():
    return pawltest.Cluster(os.environ["PAWLD"])


def shared():
    if not _shared:
        cluster = start()
        cluster.__enter__()
        _shared.append(cluster)
    return _shared[0]


def stop():
    """Whoever crashed, or complained, is a failure."""
    while _shared:
        _shared.pop().__exit__(None, None, None)


def endpoints(cluster, *names):
    return [cluster.clients[name] for name in names or cluster.names]


class InBackground:
    """Runs a function in a thread; `result` waits for what comes of it."""

    def __init__(self, function, *arguments):
        self._outcome = []
        self._thread = threading.Thread(target=self._run, args=(function, arguments), daemon=True)
        self._thread.start()

    def _run(self, function, arguments):
        try:
            self._outcome = [function(*arguments), None]
        except BaseException as error:  # handed to whoever asks
            self._outcome = [None, error]

    def result(self):
        self._thread.join(PATIENCE)
        if not self._outcome:
            raise AssertionError("it takes too long")
        if self._outcome[1] is not None:
            raise self._outcome[1]
        return self._outcome[0]

    def over(self):
        return bool(self._outcome)


class Case(unittest.TestCase):
    """key: one of this test's own."""

    def setUp(self):
        self.key = self.id()
        self.endpoints = endpoints(shared())

    def until(self, condition, what="it"):
        """Asks again and again until it is so."""
        end = time.monotonic() + PATIENCE
        while not condition():
            if time.monotonic() > end:
                raise AssertionError("%s does not come" % what)
            time.sleep(0.005)

    def until_waiting(self, client, key, count=1):
        self.until(lambda: len(client.waiters(key)) >= count, "a waiter")


class AsyncCase(Case, unittest.IsolatedAsyncioTestCase):
    async def until_so(self, condition, what="it"):
        import asyncio

        end = time.monotonic() + PATIENCE
        while not await condition():
            if time.monotonic() > end:
                raise AssertionError("%s does not come" % what)
            await asyncio.sleep(0.005)
