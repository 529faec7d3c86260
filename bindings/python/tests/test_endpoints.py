"""Tests of endpoints: what may be written, what files, names and SRV records stand for, and what a
client does when that changes."""

import asyncio
import os
import shutil
import socket
import tempfile
import types
import unittest
from unittest import mock

import pawl
import pawl.aio
from pawl._link import endpoint, look_up
from pawl._link.endpoint_list import EndpointList
from pawl._link.look_up import Place
from scripted import Refuse, Script, ScriptedCase


class Folder(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="pawl-endpoints-")
        self.addCleanup(shutil.rmtree, self.folder)
        self.path = os.path.join(self.folder, "endpoints")

    def write(self, data):
        """Puts a new file in the place of the old one. Returns the endpoint for it."""
        with open(self.path + ".new", "wb") as f:
            f.write(data if isinstance(data, bytes) else data.encode())
        os.rename(self.path + ".new", self.path)
        return "file:" + self.path


class Texts(Folder):
    def test_all_forms_are_understood(self):
        found = endpoint.parse("a:1, tls://b.example:2,unix:/run/p.sock,[::1]:3,tls://[fe80::1]:4,"
                                "tls://c:5@10.0.0.1,d:6@fd00::1,srv:_s._tcp.x,tls://srv:y")
        self.assertEqual([(e.host, e.port, e.path, e.tls, e.srv, e.address) for e in found], [
            ("a", 1, "", False, False, ""), ("b.example", 2, "", True, False, ""),
            ("", 0, "/run/p.sock", False, False, ""), ("::1", 3, "", False, False, "::1"),
            ("fe80::1", 4, "", True, False, "fe80::1"), ("c", 5, "", True, False, "10.0.0.1"),
            ("d", 6, "", False, False, "fd00::1"), ("_s._tcp.x", 0, "", False, True, ""),
            ("y", 0, "", True, True, "")])
        self.assertEqual(len(endpoint.parse(["a:1", "b:2", "a:1"])), 2)

    def test_a_wrong_endpoint_is_refused(self):
        for wrong in ("", ",", "a", "a:", ":1", "a:0", "a:65536", "a:x", "http://a:1", "unix:p",
                      "::1:3", ["a:1"] * 65, "a:1@", "a:1@b", "@10.0.0.1", "srv:", "tls://srv:",
                      "file:", "file:/nonexistent", "file:/"):
            with self.assertRaises(ValueError, msg=wrong):
                endpoint.parse(wrong)

    def test_a_file_has_one_endpoint_a_line_or_several(self):
        file = self.write("# ours\n127.0.0.1:1, 127.0.0.1:2,\r\n\n\t[::1]:3 # third\nunix:/x")
        self.assertEqual([e.text for e in endpoint.parse(["127.0.0.1:2", file])],
                         ["127.0.0.1:2", "127.0.0.1:1", "[::1]:3", "unix:/x"])

    def test_what_is_wrong_in_a_file_is_named_with_its_line(self):
        for data, says in (
                ("", ": it has no endpoint"), ("#\n,\n", ": it has no endpoint"),
                ("a:1\n\nb\n", ", line 3: endpoint 'b' is neither"),
                ("file:/x", ", line 1: a file of endpoints names no other file"),
                (",".join("a:%d" % i for i in range(1, 66)), ", line 1: endpoints: at most 64"),
                (b"\xff", ": it is no text"), ("#" * 65537, ": it is longer than 64 KiB")):
            with self.assertRaises(ValueError) as caught:
                endpoint.parse(self.write(data))
            self.assertIn("file of endpoints %s%s" % (self.path, says), str(caught.exception))
        os.unlink(self.path)
        with self.assertRaisesRegex(ValueError, self.path + ": No such file"):
            endpoint.parse("file:" + self.path)


def place(address, host="n", port=7, **options):
    return Place(host, port, address, socket.AF_INET, **options)


class Lists(Folder):
    def texts(self):
        return [item.text for item in self.list.items]

    def test_each_address_of_a_name_is_an_endpoint(self):
        self.list = EndpointList("127.0.0.9:9,tls://n:7,127.0.0.8:8", False)
        self.list.found("tls://n:7", [place("10.0.0.1"), Place("n", 7, "::1", socket.AF_INET6)])
        self.assertEqual(self.texts(), ["127.0.0.9:9", "tls://n:7", "tls://n:7", "127.0.0.8:8"])
        first = self.list.items[1]
        self.list.found("tls://n:7", [place("10.0.0.2"), place("10.0.0.1"), place("10.0.0.2")])
        self.assertEqual(self.texts(), ["127.0.0.9:9", "tls://n:7@10.0.0.1", "tls://n:7@10.0.0.2",
                                        "127.0.0.8:8"])
        self.assertEqual(self.list.find(first, 3), 1)
        again = endpoint.parse_one(self.list.items[2].text)
        self.assertEqual((again.host, again.address, again.tls), ("n", "10.0.0.2", True))
        self.list.found("tls://n:7", [place("10.0.0.3")])
        self.assertEqual(self.list.find(first, 3), 1)

    def test_the_list_is_bounded_and_every_name_has_its_share(self):
        self.list = EndpointList("a:1,b:1,c:1,127.0.0.1:1", False)
        for name in "abc":
            self.list.found(name + ":1", [place("10.0.0.%d" % i, name, 1) for i in range(32)])
        self.assertEqual(len(self.list.items), 64)
        self.assertEqual([e.host for e in self.list.items[-2:]], ["c", "127.0.0.1"])

    def test_records_are_taken_by_priority_and_weight(self):
        places = [place("10.0.0.3", "z", 3, rank=40), place("10.0.0.2", "y", 2, rank=20, weight=10),
                  place("10.0.0.1", "x", 1, rank=20, weight=90)]
        heavy = 0
        for _ in range(200):
            self.list = EndpointList("tls://srv:s", True)
            self.list.found("tls://srv:s", places)
            self.assertEqual(self.texts()[2], "tls://z:3")
            heavy += self.texts()[0] == "tls://x:1"
        self.assertTrue(150 < heavy < 199, heavy)

    def test_a_file_that_has_changed_is_read_again(self):
        self.list = EndpointList(self.write("127.0.0.1:1\nn:7\n"), False)
        self.list.found("n:7", [place("10.0.0.1")])
        known = self.list.items[1]
        self.write("n:7\n127.0.0.1:3\n")
        self.list.read_again()
        self.assertEqual((self.texts(), self.list.find(known, 5)), (["n:7", "127.0.0.1:3"], 0))
        self.assertEqual(self.list.items[0].address, "10.0.0.1")
        # A file with a fault changes nothing, and is told.
        self.write("nonsense")
        self.list.read_again()
        self.assertEqual(self.texts(), ["n:7", "127.0.0.1:3"])
        self.assertIn("line 1: endpoint 'nonsense'", self.list.problem)
        self.write("127.0.0.1:4")
        self.list.read_again()
        self.assertEqual((self.texts(), self.list.problem), (["127.0.0.1:4"], ""))


class Services(unittest.TestCase):
    """With another dnspython, because there need not be one."""

    def look(self, *records):
        answer = [types.SimpleNamespace(
            priority=r[0], weight=r[1], port=r[2],
            target=types.SimpleNamespace(to_text=lambda omit_final_dot, name=r[3]: name))
            for r in records]
        resolver = types.SimpleNamespace(resolve=lambda name, kind, lifetime: answer)
        with mock.patch.object(look_up, "check_srv", lambda: resolver):
            return look_up._look_up(endpoint.parse_one("srv:_pawl._tcp.x"))

    def test_records_lead_to_the_addresses_of_their_targets(self):
        found = self.look((7, 2, 11, "127.0.0.2"), (3, 1, 10, "127.0.0.1"))
        self.assertEqual([(p.host, p.port, p.address, p.rank, p.weight) for p in found],
                         [("127.0.0.1", 10, "127.0.0.1", 6, 1), ("127.0.0.2", 11, "127.0.0.2", 14,
                                                                 2)])

    def test_the_trouble_with_records_is_told(self):
        with self.assertRaisesRegex(pawl.UnreachableError, "offer no host"):
            self.look((0, 0, 1, "."))
        with mock.patch("socket.getaddrinfo", side_effect=socket.gaierror(-2, "unknown")):
            with self.assertRaisesRegex(pawl.UnreachableError, "gone.x: .* resolved .unknown"):
                self.look((0, 0, 1, "gone.x"))

    def test_the_package_that_is_missing_is_named(self):
        with mock.patch.dict("sys.modules", {"dns": None, "dns.resolver": None}):
            with self.assertRaisesRegex(ValueError, "dnspython"):
                pawl.connect("srv:_pawl._tcp.x")


class Names(ScriptedCase):
    """Each name leads to ports of scripted nodes."""

    async def asyncSetUp(self):
        self.places, self.asked = {}, []
        patched = mock.patch.object(look_up, "look_up", self.look_up)
        patched.start()
        self.addCleanup(patched.stop)

    async def look_up(self, endpoint):
        self.asked.append(endpoint.text)
        found = self.places[endpoint.text]
        if isinstance(found, asyncio.Event):
            await found.wait()
        if not isinstance(found, list):
            raise pawl.UnreachableError("the host name cannot be resolved")
        return found

    async def lead(self, name, *scripts):
        self.places[name] = [place("127.0.0.1", "h", int((await one.start(self)).split(":")[1]))
                             for one in scripts]

    def connect(self, endpoints, **options):
        client = pawl.aio.connect(endpoints, **dict({"timeout": 5, "prefer_first": True},
                                                    **options))
        self.addAsyncCleanup(client.close)
        return client

    async def test_a_node_of_a_name_that_refuses_is_left_for_the_next_one(self):
        useless = [Script(get=lambda p: Refuse("recovering")) for _ in range(2)]
        good = Script(get=lambda p: {"held": False})
        await self.lead("n:7", *useless, good)
        await self.connect("n:7").get("k")
        self.assertEqual([len(s.of("get")) for s in (*useless, good)], [1, 1, 1])

    async def test_a_node_of_a_name_that_hangs_is_left_for_the_next_one(self):
        hangs = Script(get=lambda p: Script.SILENT, ping=lambda p: Script.SILENT)
        await self.lead("n:7", hangs, Script(get=lambda p: {"held": False}))
        start = asyncio.get_running_loop().time()
        await self.connect("n:7", silence=20, timeout=20).get("k")
        self.assertLess(asyncio.get_running_loop().time() - start, 10)

    async def test_a_name_is_looked_up_again_for_a_new_connection(self):
        one = Script(get=lambda p: {"held": False})
        two = Script(get=lambda p: {"held": False})
        await self.lead("n:7", one)
        client = self.connect("n:7")
        await client.get("k")
        await self.lead("n:7", two)
        one.answers["get"] = lambda p: Script.HANG_UP
        with mock.patch("pawl._link.locate.LOOK_AGAIN", 0):
            await client.get("k")
        self.assertEqual(len(two.of("get")), 1)
        # Addresses that are known stay when the name servers fail.
        self.places["n:7"] = None
        for writer in two.writers:
            writer.close()
        with mock.patch("pawl._link.locate.LOOK_AGAIN", 0):
            await client.get("k")
        self.assertEqual(len(two.of("get")), 2)

    async def test_a_look_up_that_hangs_stops_no_other_endpoint(self):
        self.places["a:1"] = asyncio.Event()
        await self.lead("n:7", Script(get=lambda p: {"held": False}))
        client = self.connect("a:1,n:7", connect_timeout=0.1)
        await client.get("k")
        self.assertEqual(self.asked, ["a:1", "n:7"])

    async def test_a_name_without_an_address_is_named(self):
        self.places["a:1"] = None
        with self.assertRaisesRegex(pawl.UnreachableError, "^a:1: the host name cannot be"):
            await self.connect("a:1", timeout=0.2).get("k")
        self.places["b:1"] = asyncio.Event()
        with self.assertRaisesRegex(pawl.UnreachableError, "^b:1: looking up the name took too"):
            await self.connect("b:1", timeout=0.3, connect_timeout=0.1).get("k")

    async def test_a_file_is_read_again_for_a_new_connection(self):
        folder = tempfile.mkdtemp(prefix="pawl-endpoints-")
        self.addCleanup(shutil.rmtree, folder)
        path = os.path.join(folder, "endpoints")
        one, two, three = (Script(get=lambda p: {"held": False}) for _ in range(3))
        for script in (one, two, three):
            await script.start(self)

        def write(text):
            with open(path, "w", encoding="ascii") as f:
                f.write(text)

        write(one.endpoint)
        client = self.connect("file:" + path, timeout=0.5)
        await client.get("k")
        write("# new\n" + two.endpoint)
        await client.get("k")
        one.answers["get"] = lambda p: Script.HANG_UP
        await client.get("k")
        self.assertEqual((len(one.of("get")), len(two.of("get"))), (3, 1))
        # No file takes TLS away.
        write("tls://" + three.endpoint)
        two.answers["get"] = lambda p: Script.HANG_UP
        with self.assertRaisesRegex(pawl.TlsError, "needs a ca_file"):
            await client.get("k")
        self.assertEqual(three.writers, [])


if __name__ == "__main__":
    unittest.main()
