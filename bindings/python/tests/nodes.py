"""Three real nodes on loopback, which all tests share that only use them. Tests that stop nodes
start their own."""

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
    """Stops the shared nodes. A node that has crashed or complained is a failure."""
    while _shared:
        _shared.pop().__exit__(None, None, None)


def endpoints(cluster, *names):
    return [cluster.clients[name] for name in names or cluster.names]


class InBackground:
    """Runs a function in a thread; `result` waits for its result and raises its exception."""

    def __init__(self, function, *arguments):
        self._outcome = []
        self._thread = threading.Thread(target=self._run, args=(function, arguments), daemon=True)
        self._thread.start()

    def _run(self, function, arguments):
        try:
            self._outcome = [function(*arguments), None]
        except BaseException as error:  # `result` raises it.
            self._outcome = [None, error]

    def result(self):
        self._thread.join(PATIENCE)
        if not self._outcome:
            raise AssertionError("the background thread has not ended within %g s" % PATIENCE)
        if self._outcome[1] is not None:
            raise self._outcome[1]
        return self._outcome[0]

    def over(self):
        return bool(self._outcome)


class Case(unittest.TestCase):
    """A test with a key of its own, in `key`."""

    def setUp(self):
        self.key = self.id()
        self.endpoints = endpoints(shared())

    def until(self, condition, what="the expected state"):
        """Waits until the condition is true, by asking it again and again."""
        end = time.monotonic() + PATIENCE
        while not condition():
            if time.monotonic() > end:
                raise AssertionError("%s has not come within %g s" % (what, PATIENCE))
            time.sleep(0.005)

    def until_waiting(self, client, key, count=1):
        self.until(lambda: len(client.waiters(key)) >= count, "a waiter")


class AsyncCase(Case, unittest.IsolatedAsyncioTestCase):
    async def until_so(self, condition, what="the expected state"):
        import asyncio

        end = time.monotonic() + PATIENCE
        while not await condition():
            if time.monotonic() > end:
                raise AssertionError("%s has not come within %g s" % (what, PATIENCE))
            await asyncio.sleep(0.005)
