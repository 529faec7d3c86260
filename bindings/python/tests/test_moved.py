"""Tests the error `moved`, with scripted nodes: the client asks the named endpoints, once, for that
request (docs/client-protocol.md, Moved)."""

import asyncio
import socket
import unittest

import pawl
from pawl._link.moved import named_endpoints
from scripted import GRANT, Refuse, Script, ScriptedCase

EXTENDED = {"locks": [{"valid_ms": 9900, "token": 5}]}


def moved(*endpoints, **more):
    return Refuse("moved", endpoints=list(endpoints), **more)


class Moved(ScriptedCase):
    async def here_and_there(self, *there, **answers):
        """Starts a node that moves what it is asked to the other ones, and returns it with its
        client."""
        ends = [await node.start(self) for node in there]
        to = moved(*ends)
        here = Script(**dict({method: lambda p: to for method in
                              ("acquire", "extend", "release", "get", "update", "transfer")},
                             **answers))
        return here, await self.client(here)

    async def test_a_lock_is_granted_extended_and_released_where_it_was_moved(self):
        there = Script(acquire=lambda p: dict(GRANT, valid_ms=890),
                       extend=lambda p: {"locks": [{"valid_ms": 890, "token": 9}]})
        here, client = await self.here_and_there(there)
        lock = await client.lock("k", lease=0.9)
        await self.until(lambda: lock.token == 9)
        self.assertTrue(await lock.release())
        ids = {p["lock_id"] for p in here.of("acquire") + there.of("acquire") + there.of("release")}
        self.assertEqual((ids, client.endpoint), ({lock.lock_id}, here.endpoint))

    async def test_a_second_moved_is_the_outcome_and_nothing_is_released(self):
        there = Script(acquire=lambda p: moved("127.0.0.1:1"))
        here, client = await self.here_and_there(there)
        with self.assertRaises(pawl.MovedError) as caught:
            await client.lock("k")
        self.assertEqual(caught.exception.endpoints, ("127.0.0.1:1",))
        await client.ping()
        self.assertEqual((here.of("release"), there.of("release")), ([], []))

    async def test_the_connection_there_ends_with_the_request(self):
        there = Script(get=lambda p: {"held": False})
        _, client = await self.here_and_there(there)
        await client.get("k")
        await self.until(lambda: there.ended == 1)

    async def test_a_canceled_request_ends_its_connection_there(self):
        there = Script(get=lambda p: Script.SILENT)
        _, client = await self.here_and_there(there)
        asked = asyncio.ensure_future(client.get("k"))
        await self.until(lambda: there.of("get"))
        asked.cancel()
        await asyncio.gather(asked, return_exceptions=True)
        await self.until(lambda: there.ended == 1)

    async def test_a_client_that_is_closed_ends_its_connections_there(self):
        there = Script(get=lambda p: Script.SILENT)
        _, client = await self.here_and_there(there)
        asked = asyncio.ensure_future(client.get("k"))
        await self.until(lambda: there.of("get"))
        await client.close()
        with self.assertRaises(pawl.ClosedError):
            await asked
        await self.until(lambda: there.ended == 1)

    async def test_what_is_under_way_at_the_own_endpoint_goes_on(self):
        there = Script(acquire=lambda p: Script.SILENT)
        _, client = await self.here_and_there(there, get=lambda p: {"held": False})
        waits = asyncio.ensure_future(client.lock("k", wait=60).acquire())
        await self.until(lambda: there.of("acquire"))
        self.assertFalse((await client.get("k")).held)
        waits.cancel()
        await asyncio.gather(waits, return_exceptions=True)

    async def test_a_node_there_that_is_silent_is_pinged_and_left(self):
        deaf, good = (Script(get=lambda p: Script.SILENT, ping=lambda p: Script.SILENT),
                      Script(get=lambda p: {"held": False}))
        ends = [await deaf.start(self), await good.start(self)]
        client = await self.client(Script(get=lambda p: moved(*ends)), silence=0.2)
        self.assertFalse((await client.get("k")).held)
        self.assertEqual([method for method, _ in deaf.asked], ["get", "ping"])

    async def test_only_the_locks_that_were_moved_are_extended_there(self):
        there = Script(extend=lambda p: {"locks": [{"valid_ms": 890, "token": 9}]})
        end = await there.start(self)

        def extend(params):
            return {"locks": [{"error": {"code": "moved", "endpoints": [end]}}
                              if lock["key"] == b"b" else {"valid_ms": 890, "token": 5}
                              for lock in params["locks"]]}

        here = Script(acquire=lambda p: dict(GRANT, valid_ms=890), extend=extend)
        client = await self.client(here)
        locks = [await client.lock(key, lease=0.9) for key in "ab"]
        await self.until(lambda: locks[1].token == 9 and len(there.of("extend")) > 2)
        self.assertEqual([lock.held for lock in locks], [True, True])
        self.assertEqual({item["key"] for p in there.of("extend") for item in p["locks"]}, {b"b"})
        await locks[1].extend()
        self.assertEqual(locks[0].token, 5)

    async def test_a_lock_that_is_moved_to_nowhere_is_given_up_in_time(self):
        here, client = await self.here_and_there(Script(extend=lambda p: moved("127.0.0.1:1")),
                                                 acquire=lambda p: dict(GRANT, valid_ms=890))
        lock = await client.lock("k", lease=0.9)
        error = await asyncio.wait_for(lock.wait_lost(), 5)
        self.assertEqual((error.code, lock.held), ("moved", True))

    async def test_what_is_about_a_connection_is_not_followed(self):
        there = Script()
        here, client = await self.here_and_there(there, watch=lambda p: moved(there.endpoint),
                                                 status=lambda p: moved(there.endpoint))
        for asked in (client.lock("k", release_on_disconnect=True).acquire(), client.status(),
                      client.watch("k").get(5)):
            with self.assertRaises(pawl.MovedError):
                await asked
        self.assertEqual(there.asked, [])

    async def test_a_transfer_that_loses_its_connection_there_is_unsure(self):
        there = Script(acquire=lambda p: GRANT, transfer=lambda p: Script.HANG_UP)
        other = Script()
        _, client = await self.here_and_there(there, other)
        lock = await client.lock("k")
        with self.assertRaises(pawl.UnsureError):
            await lock.transfer("x")
        self.assertEqual((lock.valid, other.of("transfer")), (0.0, []))

    async def test_an_endpoint_is_a_host_name_as_well(self):
        there = Script(get=lambda p: {"held": False})
        port = (await there.start(self)).rpartition(":")[2]
        client = await self.client(Script(get=lambda p: moved("localhost:" + port)))
        self.assertFalse((await client.get("k")).held)

    async def test_an_endpoint_that_cannot_be_reached_is_named(self):
        with socket.socket() as nobody:
            nobody.bind(("127.0.0.1", 0))
            end = "127.0.0.1:%d" % nobody.getsockname()[1]
            client = await self.client(Script(get=lambda p: moved(end)))
            with self.assertRaisesRegex(pawl.UnreachableError, end):
                await client.get("k")


class Named(unittest.TestCase):
    def of(self, said, over_tls=False, has_tls=True):
        return [one.text for one in named_endpoints(said, over_tls, has_tls)]

    def test_endpoints_are_hosts_with_ports(self):
        some = ["a.example:1", "tls://a.example:1", "[::1]:7", "a.example:1@10.0.0.1"]
        self.assertEqual(self.of(some), some)
        self.assertEqual(self.of([b"a:1"]), ["a:1"])

    def test_a_list_that_is_none_or_has_anything_else_is_not_followed(self):
        for said in (None, "a:1", [], ["a:1"] * 17, ["a:1", 7], ["unix:/x"], ["file:/x"],
                     ["srv:x"], ["a"], ["a:1,b:1"], [b"\xff:1"], ["a:0"], {"a:1": 1}):
            self.assertEqual(self.of(said), [], said)

    def test_nobody_is_led_from_tls_to_a_port_without_or_without_certificates_to_one_with(self):
        self.assertEqual(self.of(["tls://a:1", "b:1"], over_tls=True), [])
        self.assertEqual(self.of(["tls://a:1"], over_tls=True), ["tls://a:1"])
        self.assertEqual(self.of(["b:1", "tls://a:1"], has_tls=False), [])


if __name__ == "__main__":
    unittest.main()
