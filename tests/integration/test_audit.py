"""test_audit.py PAWLD PAWL: tests what stands in the audit file of real nodes, and which
requests the log calls slow."""

import os
import re
import signal
import time

import cli_fixture
import pawltest
from auditcase import TRACE, Audit, AuditCase, digest
from cli_fixture import Case
from pawltest import Cluster, Refused
from test_tls import Certificates

FIRST = ["ts", "seq", "node", "epoch", "action"]


class Actions(AuditCase):
    def test_a_lock_from_its_grant_to_its_release(self):
        got = self.acquire("k", owner="me", trace=TRACE)
        self.client.call("extend", key="k", lock_id=got["lock_id"], lease_ms=30000)
        self.client.call("update", key="k", lock_id=got["lock_id"], value="v")
        self.refused("held", "acquire", key="k", lease_ms=1000)
        self.client.call("release", key="k", lock_id=got["lock_id"])
        self.client.call("release", key="k", lock_id=got["lock_id"])
        self.audit.wait(2, action="release")
        opened, epoch = self.audit.lines()[0], self.audit.lines()[-1]["epoch"]
        self.assertEqual((opened["action"], opened["cause"], opened["format"], opened["what"],
                          opened["seq"], opened["node"], opened["boot"]),
                         ("open", "start", 1, "all", 1, "a", 1))
        self.assertEqual((epoch, opened["max_lease_ms"], opened["drift_ppm"]), (1, 60000, 10000))
        [grant] = self.audit.find(action="acquire", result="ok")
        self.assertEqual((grant["key"], grant["token"], grant["lock"], grant["owner"],
                          grant["identity"], grant["peer"], grant["mode"], grant["trace"]),
                         ("k", got["token"], digest(got["lock_id"]), "me",
                          "unix:uid:%d" % os.getuid(),
                          "unix:uid=%d,pid=%d" % (os.getuid(), os.getpid()), "exclusive", TRACE))
        # The answer was made a little after the request had come.
        self.assertLessEqual(got["valid_ms"], grant["valid_ms"] + 1)
        self.assertLess(grant["took_us"], 5e6)
        [extended] = self.audit.find(action="extend")
        self.assertEqual((extended["lock"], extended["token"], extended["result"]),
                         (grant["lock"], got["token"], "ok"))
        self.assertGreater(extended["valid_ms"], 20000)
        self.assertEqual(len(self.audit.find(action="update", result="ok", key="k")), 1)
        self.assertEqual(len(self.audit.find(action="acquire", result="held", key="k")), 1)
        released, again = self.audit.find(action="release", result="ok", lock=grant["lock"])
        self.assertNotIn("cause", released)
        self.assertEqual(again["cause"], "not_held")

    def test_every_line_has_a_number_and_two_times_and_never_a_lock_id(self):
        got = self.acquire("k")
        self.refused("not_found", "transfer", key="k", lock_id=got["lock_id"], to="nobody")
        self.client.call("release", key="k", lock_id=got["lock_id"])
        self.audit.wait(action="release")
        lines = self.audit.lines()
        self.assertEqual([line["seq"] for line in lines], list(range(1, len(lines) + 1)))
        for line in lines:
            self.assertEqual(list(line)[:5], FIRST)
            self.assertRegex(line["ts"], r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$")
        times = [line["mono_us"] for line in lines]
        self.assertEqual(times, sorted(times))
        self.assertLess(abs(times[-1] - time.clock_gettime(time.CLOCK_BOOTTIME) * 1e6), 60e6)
        with open(self.audit.path) as f:
            self.assertNotIn(got["lock_id"][:8], f.read())

    def test_shared_locks_permits_and_several_keys_say_their_modes(self):
        first = self.acquire("s", mode="exclusive")
        self.client.call("downgrade", key="s", lock_id=first["lock_id"])
        self.acquire("s", mode="shared")
        self.acquire("p", permits=2, of=5)
        self.client.call("acquire", lease_ms=60000,
                         locks=[{"key": "one"}, {"key": "two", "permits": 1, "of": 3}])
        self.audit.wait(key="two")
        [down] = self.audit.find(action="downgrade")
        self.assertEqual((down["result"], down["mode"], down["lock"]),
                         ("ok", "shared", digest(first["lock_id"])))
        self.assertEqual([line["mode"] for line in self.audit.find(key="s", action="acquire")],
                         ["exclusive", "shared"])
        [permits] = self.audit.find(key="p")
        self.assertEqual((permits["mode"], permits["permits"], permits["of"], permits["slots"]),
                         ("permits", 2, 5, [0, 1]))
        [one], [two] = self.audit.find(key="one"), self.audit.find(key="two")
        self.assertEqual((one["action"], one["mode"], two["mode"], two["slots"]),
                         ("acquire", "exclusive", "permits", [0]))
        self.assertLess(one["token"], two["token"] + 1)
        self.assertNotEqual(one["lock"], two["lock"])

    def test_locks_that_end_without_a_release(self):
        expired = self.acquire("expires", lease_ms=200, owner="gone")
        other = self.connect()
        bound = self.acquire("bound", other, release_on_disconnect=True)
        other.close()
        [line] = self.audit.wait(action="lost", key="expires")
        self.assertEqual((line["cause"], line["token"], line["lock"], line["owner"]),
                         ("expired", expired["token"], digest(expired["lock_id"]), "gone"))
        [line] = self.audit.wait(action="release", key="bound")
        self.assertEqual((line["cause"], line["lock"]), ("disconnect", digest(bound["lock_id"])))

    def test_a_client_that_leaves_before_its_answer(self):
        self.acquire("k")
        waiting = self.connect()
        waiting.send("acquire", key="k", lease_ms=1000, wait_ms=60000, owner="impatient")
        waiting.call("ping")
        waiting.close()
        [line] = self.audit.wait(action="acquire", result="gone")
        self.assertEqual((line["key"], line["owner"]), ("k", "impatient"))

    def test_many_locks_that_are_extended_together_have_a_line_each(self):
        locks = [self.acquire("k%d" % i) for i in range(3)]
        self.client.call("extend", trace=TRACE,
                         locks=[{"key": "k%d" % i, "lock_id": lock["lock_id"], "lease_ms": 1000}
                                for i, lock in enumerate(locks)])
        lines = self.audit.wait(3, action="extend", trace=TRACE)
        self.assertEqual([(line["key"], line["lock"]) for line in lines],
                         [("k%d" % i, digest(lock["lock_id"])) for i, lock in enumerate(locks)])

    def test_bytes_that_are_no_text(self):
        self.acquire(b"\xff\x00", owner='with "quotes"\n')
        [line] = self.audit.wait(action="acquire")
        self.assertEqual((line["key_hex"], line["owner"]), ("ff00", 'with "quotes"\n'))

    def test_a_wrong_traceparent_is_refused_and_named(self):
        for wrong in ("x", TRACE.upper(), 7, TRACE.replace("0af7651916cd43dd8448eb211c80319c",
                                                           "0" * 32)):
            error = self.refused("bad_request", "get", key="k", trace=wrong)
            self.assertEqual(error.error["field"], "trace")
        for method in ("ping", "status"):
            self.client.call(method, trace=TRACE)

    def test_the_command_takes_its_trace_from_the_environment(self):
        endpoint = self.cluster.unix("a")
        for key, trace in (("traced", TRACE), ("wrong", "nonsense")):
            self.succeeds(cli_fixture.pawl("acquire", key, endpoints=endpoint, TRACEPARENT=trace))
        [line] = self.audit.wait(key="traced")
        self.assertEqual(line["trace"], TRACE)
        [line] = self.audit.wait(key="wrong")
        self.assertNotIn("trace", line)


class Orders(AuditCase):
    """What administrators ask for."""
    what = "admin"

    def test_each_order_is_in_the_file_before_and_after_it_is_done(self):
        self.acquire("k")
        kicked = self.connect()
        kicked.call("ping")
        number = max(c["client"] for c in self.client.call("clients")["clients"])
        self.client.call("break", key="k", now=True, trace=TRACE)
        self.client.call("kick", client=number)
        self.refused("not_found", "cluster_promote", name="nobody")
        self.client.call("cluster_set_timing", max_lease_ms=50000)
        self.client.call("drain")
        for action, target, result in (("break", None, "ok"), ("kick", str(number), "ok"),
                                       ("cluster_promote", "nobody", "not_found"),
                                       ("cluster_set_timing", "max_lease_ms=50000", "ok"),
                                       ("drain", None, "ok")):
            asked, done = self.audit.wait(2, action=action)
            self.assertEqual((asked["result"], done["result"]), ("asked", result))
            self.assertEqual((asked.get("target"), done.get("target")), (target, target))
            self.assertEqual(asked["peer"], "unix:uid=%d,pid=%d" % (os.getuid(), os.getpid()))
        asked, done = self.audit.find(action="break")
        self.assertEqual((asked["now"], asked["trace"], asked["key"]), (True, TRACE, "k"))
        [epoch] = self.audit.find(action="epoch", max_lease_ms=50000)
        self.assertEqual(epoch["epoch"], 2)
        # Holders are for another level.
        self.assertEqual(self.audit.find(action="acquire") + self.audit.find(action="lost"), [])

    def test_an_order_is_on_the_disk_before_its_answer(self):
        self.acquire("k")
        self.client.call("break", key="k", now=True)
        self.cluster.nodes["a"].kill()
        self.assertEqual([line["result"] for line in self.audit.find(action="break")][:1],
                         ["asked"])

    def test_the_last_line_says_that_the_node_ended_in_order(self):
        self.cluster.nodes["a"].terminate()
        self.assertEqual(self.audit.lines()[-1]["action"], "close")
        self.cluster.start("a").wait_log(" voting ")
        starts = self.audit.find(action="open")
        self.assertEqual([(line["boot"], line["seq"]) for line in starts], [(1, 1), (2, 1)])


class Levels(Case):
    def lines(self, what):
        class Level(Actions):
            def runTest(self):
                pass

        case = Level()
        case.what = what
        case.setUp()
        try:
            got = case.acquire("k")
            case.client.call("extend", key="k", lock_id=got["lock_id"], lease_ms=30000)
            case.client.call("break", key="k", now=True)
            case.client.call("release", key="k", lock_id=got["lock_id"])
            case.cluster.nodes["a"].terminate()
            return [(line["action"], line.get("result")) for line in case.audit.lines()
                    if line["action"] not in ("open", "epoch", "close")]
        finally:
            case.doCleanups()

    def test_each_level_has_what_the_one_before_has(self):
        orders = [("break", "asked"), ("break", "ok")]
        self.assertEqual(self.lines("denied"), [])
        self.assertEqual(self.lines("admin"), orders)
        holders = self.lines("holders")
        self.assertEqual(sorted(holders, key=str),
                         sorted(orders + [("acquire", "ok"), ("release", "ok"), ("lost", None)],
                                key=str))
        self.assertEqual(sorted(self.lines("all"), key=str),
                         sorted(holders + [("extend", "ok")], key=str))


class Masters(AuditCase):
    masters = 3
    what = "holders"

    def test_every_master_tells_of_a_loss_and_the_coordinator_of_a_grant(self):
        got = self.acquire("k", lease_ms=300)
        for name in "abc":
            [line] = Audit(self.path(name)).wait(action="lost", key="k")
            self.assertEqual((line["node"], line["lock"]), (name, digest(got["lock_id"])))
            self.assertEqual(len(Audit(self.path(name)).find(action="acquire")), name == "a")


class Denied(Case):
    def setUp(self):
        super().setUp()
        self.certificates = Certificates(self.folder, nodes="a", clients=("alice", "bob"))
        self.audit = Audit(os.path.join(self.folder, "audit.log"))
        self.cluster = Cluster(cli_fixture.PAWLD, masters=1, tls=self.section)
        self.cluster.__enter__()
        self.addCleanup(self.cluster.__exit__)

    def section(self, _, name):
        c = self.certificates
        rules = (("alice", "allow = all on *\n"),
                 ("bob", "allow = acquire on public/\nallow = read on *\n"))
        return "ca = %s\ncert = %s\nkey = %s\n%s\n[audit]\nfile = %s\nwhat = denied\n" % (
            c.path("ca.crt"), c.path(name + ".crt"), c.path(name + ".key"),
            pawltest.rights(self.folder, *rules), self.audit.path)

    def connect(self, name):
        client = self.cluster.client("a", tls=self.certificates.context(name))
        self.addCleanup(client.close)
        return client

    def test_denied_requests_are_in_the_file_with_who_and_why(self):
        alice, bob = self.connect("alice"), self.connect("bob")
        held = alice.call("acquire", key="public/1", lease_ms=60000)
        for method, params in (("acquire", {"key": "secret", "lease_ms": 1000, "trace": TRACE}),
                               ("watch", {"key": "secret"}), ("drain", {}),
                               ("acquire", {"key": "public/1", "lock_id": held["lock_id"],
                                            "lease_ms": 1000})):
            with self.assertRaises(Refused) as refused:
                bob.call(method, **params)
            self.assertEqual(refused.exception.code, "denied")
        lines = self.audit.wait(4, result="denied")
        self.assertEqual([(line["action"], line.get("key"), line["cause"]) for line in lines],
                         [("acquire", "secret", "acquire"), ("watch", "secret", "watch"),
                          ("drain", None, "cluster"), ("acquire", "public/1", "not_yours")])
        for line in lines:
            self.assertEqual((line["identity"], line["peer"]),
                             ("bob", "127.0.0.1:%d" % bob.socket.getsockname()[1]))
        self.assertEqual(lines[0]["trace"], TRACE)
        self.cluster.nodes["a"].wait_log(" denied what=acquire key=secret ", "trace=" + TRACE)
        alice.call("break", key="public/1", now=True)
        self.assertEqual(self.audit.find(action="break"), [])


class Slow(AuditCase):
    masters = 3
    what = "denied"

    def node(self):
        return "slow_ms = 150\n"

    def slow(self):
        return [line for line in self.cluster.nodes["a"].lines if " slow_request " in line]

    def test_masters_that_are_late_are_named_with_the_time_of_each_phase(self):
        others = [self.cluster.nodes[name] for name in "bc"]
        for node in others:
            node.signal(signal.SIGSTOP)
        asked = self.client.send("acquire", key="slow", lease_ms=60000, trace=TRACE)
        time.sleep(0.3)
        for node in others:
            node.signal(signal.SIGCONT)
        self.client.answer(asked)
        line = self.cluster.nodes["a"].wait_log(" warning slow_request what=acquire key=slow "
                                                "result=ok took=", "trace=" + TRACE)
        found = re.search(r" took=(\d+)ms promises=(\w+) commit=(\w+) rest=\w+ queued=0us "
                          r'late="?([bc,]+)"? ', line)
        self.assertTrue(found, line)
        self.assertGreaterEqual(int(found[1]), 150)

    def test_waiting_for_a_holder_is_not_slow(self):
        got = self.acquire("k")
        asked = self.client.send("acquire", key="k", lease_ms=60000, wait_ms=60000)
        self.client.send("wait", key="k", timeout_ms=400, **{"for": "free"})
        time.sleep(0.5)
        other = self.connect()
        other.call("release", key="k", lock_id=got["lock_id"])
        self.client.answer(asked)
        self.assertEqual([line for line in self.slow() if "key=k" in line], [])


if __name__ == "__main__":
    cli_fixture.main()
