"""Tests that a wrong argument is refused, with its name, before any node is asked."""

import asyncio
import unittest

import pawl
import pawl.aio

INF, NAN = float("inf"), float("nan")
# A request to this endpoint would not end within the patience of a test.
NOWHERE = "unix:/nonexistent/socket"

# Each row has a method, its arguments, the exception, and a word that is in its text.
BOTH = (
    ("lock", (5,), {}, TypeError, "key"),
    ("lock", (None,), {}, TypeError, "key"),
    ("lock", ("k",), dict(value=5), TypeError, "value"),
    ("lock", ("k",), dict(owner=5), TypeError, "owner"),
    ("lock", ("k",), dict(label=b"x"), TypeError, "label"),
    ("lock", ("k",), dict(lease=INF), ValueError, "lease"),
    ("lock", ("k",), dict(lease=NAN), ValueError, "lease"),
    ("lock", ("k",), dict(lease="30"), TypeError, "lease"),
    ("lock", ("k",), dict(wait=NAN), ValueError, "wait"),
    ("lock", ("k",), dict(wait=INF), ValueError, "wait"),
    ("lock", ("k",), dict(warn=NAN), ValueError, "warn"),
    ("lock", ("k",), dict(lock_delay=-1), ValueError, "lock_delay"),
    ("lock", ("k",), dict(priority="high"), TypeError, "priority"),
    ("lock", ("k",), dict(permits=1.5, of=3), TypeError, "permits"),
    ("lock", ("k",), dict(permits=1, of=3.0), TypeError, "of"),
    ("lock", ("k",), dict(mode=5), ValueError, "mode"),
    ("lock", ("k",), dict(on_lost=5), TypeError, "on_lost"),
    ("lock", ("k",), dict(on_asked=5), TypeError, "on_asked"),
    ("locks", ("ab",), {}, TypeError, "keys"),
    ("locks", (b"ab",), {}, TypeError, "keys"),
    ("locks", (["a", 5],), {}, TypeError, "key"),
    ("locks", ([pawl.Want("a", permits=1.5, of=2)],), {}, TypeError, "permits"),
    ("locks", (["a"],), dict(on_lost=5), TypeError, "on_lost"),
    ("election", (5,), {}, TypeError, "name"),
    ("election", ("e",), dict(candidate=5), TypeError, "candidate"),
    ("election", ("e",), dict(lease=INF), ValueError, "lease"),
    ("election", ("e",), dict(on_asked=5), TypeError, "on_asked"),
    ("watch", (5,), {}, TypeError, "key"),
    ("watch", (), dict(prefix=5), TypeError, "prefix"),
)
REQUESTS = (
    ("call", (5,), {}, TypeError, "method"),
    ("call", ("acquire",), dict(wait_ms="1"), TypeError, "wait_ms"),
    ("get", (5,), {}, TypeError, "key"),
    ("list", (5,), {}, TypeError, "prefix"),
    ("list", ("p",), dict(limit=1.5), TypeError, "limit"),
    ("wait", ("k",), dict(timeout=NAN), ValueError, "timeout"),
    ("waiters", (0,), {}, TypeError, "key"),
    ("ask_release", ("k",), dict(to=5), TypeError, "to"),
    ("release", ("k", 5), {}, TypeError, "lock_id"),
    ("break_lock", ("k", "7"), {}, TypeError, "token"),
)


class Arguments(unittest.TestCase):
    def refused(self, kind, word, ask, what):
        with self.assertRaises(kind, msg=what) as caught:
            ask()
        self.assertIn(word, str(caught.exception), what)
        self.assertNotIsInstance(caught.exception, pawl.PawlError, what)

    def test_the_blocking_client_refuses_wrong_arguments(self):
        with pawl.connect(NOWHERE, timeout=60) as client:
            for method, given, named, kind, word in BOTH + REQUESTS:
                self.refused(kind, word, lambda: getattr(client, method)(*given, **named),
                             (method, given, named))
            election = client.election("e")
            self.refused(TypeError, "on_lost", lambda: election.campaign(on_lost=5), "campaign")
            self.refused(TypeError, "value", lambda: election.campaign(value=5), "campaign")

    def test_the_client_for_asyncio_refuses_wrong_arguments(self):
        async def ask_all():
            async with pawl.aio.connect(NOWHERE, timeout=60) as client:
                for method, given, named, kind, word in BOTH:
                    self.refused(kind, word, lambda: getattr(client, method)(*given, **named),
                                 (method, given, named))
                for method, given, named, kind, word in REQUESTS:
                    with self.assertRaises(kind, msg=method) as caught:
                        await getattr(client, method)(*given, **named)
                    self.assertIn(word, str(caught.exception), method)
                election = client.election("e")
                self.refused(TypeError, "on_lost", lambda: election.campaign(on_lost=5), "campaign")

        asyncio.run(ask_all())

    def test_the_options_of_a_client_are_checked(self):
        for named, kind, word in ((dict(timeout=INF), ValueError, "timeout"),
                                  (dict(silence=NAN), ValueError, "silence"),
                                  (dict(connect_timeout="1"), TypeError, "connect_timeout"),
                                  (dict(owner=5), TypeError, "owner"),
                                  (dict(label=5), TypeError, "label")):
            self.refused(kind, word, lambda: pawl.connect(NOWHERE, **named), named)

    def test_a_fence_refuses_wrong_names_and_tokens(self):
        with pawl.FenceStore() as fence:
            self.refused(TypeError, "name", lambda: fence.check(5, 1), "check")
            self.refused(TypeError, "token", lambda: fence.check("k", 1.5), "check")
            self.refused(TypeError, "name", lambda: fence.highest(5), "highest")

    def test_bytes_of_every_kind_are_names(self):
        with pawl.connect(NOWHERE) as client:
            for key in ("k", b"k", bytearray(b"k"), memoryview(b"k")):
                self.assertEqual(client.lock(key).key, b"k")


if __name__ == "__main__":
    unittest.main()
