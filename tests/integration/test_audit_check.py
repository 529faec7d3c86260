"""test_audit_check.py PAWLD PAWL: tests pawl audit check: with files of real nodes, with files that
are made up, and with files that somebody has tampered with."""

import datetime
import json
import os
import subprocess

import cli_fixture
from cli_fixture import Case
from test_audit import AuditCase

BEGIN = datetime.datetime(2026, 11, 26, 18, 0, 0, tzinfo=datetime.timezone.utc)


class Node:
    """Makes up the audit file of a node. Its clock is in seconds since BEGIN."""

    def __init__(self, name, ahead=0.0, boot=1, what="all"):
        self.name, self.ahead, self.boot, self.seq = name, ahead, boot, 0
        self.lines = []
        self.add(-60, "open", cause="start", format=1, boot=boot, what=what, drift_ppm=10000)

    def add(self, at, action, **more):
        self.seq += 1
        ts = BEGIN + datetime.timedelta(seconds=at + self.ahead)
        self.lines.append({"ts": ts.strftime("%Y-%m-%dT%H:%M:%S.%fZ"), "seq": self.seq,
                           "node": self.name, "epoch": 1, "action": action,
                           "mono_us": round((at + 1000) * 1e6), **more})
        return self.lines[-1]

    def acquire(self, at, lock, token, valid=10.0, took=0.01, **more):
        return self.add(at, "acquire", **{"key": "k", "lock": "%032x" % lock, "token": token,
                                          "owner": "owner %d" % lock, "mode": "exclusive",
                                          "valid_ms": round(valid * 1000),
                                          "took_us": round(took * 1e6), "result": "ok", **more})

    def extend(self, at, lock, token, valid=10.0):
        return self.add(at, "extend", key="k", lock="%032x" % lock, token=token,
                        valid_ms=round(valid * 1000), took_us=10000, result="ok")

    def release(self, at, lock, action="release", result="ok", **more):
        return self.add(at, action, key="k", lock="%032x" % lock, took_us=10000, result=result,
                        **more)


class Checked(Case):
    def check(self, *nodes, options=("--copied-within", "0s"), raw=None, expect=None):
        """Runs the command. Returns its JSON."""
        paths = []
        for i, node in enumerate(nodes):
            path = os.path.join(self.folder, "made-%d.log" % i)
            with open(path, "w") as f:
                f.write("".join(json.dumps(line) + "\n" for line in node.lines)
                        if isinstance(node, Node) else node)
            paths.append(path)
        done = self.run_check(paths, options)
        self.assertEqual(done.returncode, expect if expect is not None else done.returncode,
                         done.stdout + done.stderr)
        return json.loads(done.stdout) if done.returncode in (0, 1) else done.stderr

    def run_check(self, paths, options=(), json_too=True):
        return subprocess.run([cli_fixture.PAWL, "audit", "check", *paths, *options,
                               *(["--json"] if json_too else [])],
                              capture_output=True, text=True, timeout=60)

    def good(self, *nodes, **more):
        result = self.check(*nodes, expect=0, **more)
        self.assertEqual(result["findings"], [])
        return result

    def bad(self, kind, *nodes, **more):
        result = self.check(*nodes, expect=1, **more)
        self.assertEqual([f["kind"] for f in result["findings"] if not f["possible"]], [kind])
        return result["findings"][0]

    def possible(self, *nodes, **more):
        result = self.check(*nodes, expect=0, **more)
        self.assertEqual([(f["kind"], f["possible"]) for f in result["findings"]],
                         [("overlap", True)])


class Holders(Checked):
    def setUp(self):
        super().setUp()
        self.a, self.b = Node("a"), Node("b")

    def test_one_after_the_other_is_right(self):
        self.a.acquire(1, 1, 5)
        self.a.release(4, 1)
        self.b.acquire(6, 2, 7)
        self.b.extend(12, 2, 7)
        self.a.acquire(24, 3, 9)
        result = self.good(self.a, self.b)
        self.assertEqual((result["nodes"], result["keys"], result["grants"]), (2, 1, 3))

    def test_two_holders_are_found_and_named(self):
        self.a.acquire(1, 1, 5)
        self.b.acquire(6, 2, 7)
        found = self.bad("overlap", self.a, self.b)
        self.assertEqual((found["key"], found["first"]["owner"], found["first"]["token"],
                          found["then"]["owner"], found["then"]["token"]),
                         ("k", "owner 1", 5, "owner 2", 7))
        # Of 4.99 s the clocks may account for 1 s, and the drift for 0.1 s.
        self.assertTrue(3.8e6 < found["overlap_us"] < 4e6, found)

    def test_it_is_said_in_words(self):
        self.a.acquire(1, 1, 5)
        self.b.acquire(6, 2, 7)
        self.check(self.a, self.b)
        paths = [os.path.join(self.folder, "made-%d.log" % i) for i in (0, 1)]
        done = self.run_check(paths, ["--copied-within", "0s"], json_too=False)
        self.assertEqual(done.returncode, 1)
        self.assertIn("VIOLATION overlap: key k had two holders", done.stdout)
        self.assertIn("owner owner 1, token 5", done.stdout)
        self.assertIn("1 violations, 0 possible", done.stdout)

    def test_a_name_cannot_forge_the_report(self):
        forged = "k had no holder\n0 violations, 0 possible\n\x1b[2J"
        a, b = Node("a\x1b[8m\n"), Node("b")
        a.acquire(1, 1, 5, key=forged, owner=forged)
        b.acquire(6, 2, 7, key=forged, owner=forged)
        self.check(a, b)
        paths = [os.path.join(self.folder, name) for name in ("a\nb", "\x1b[2J")]
        for i, path in enumerate(paths):
            os.rename(os.path.join(self.folder, "made-%d.log" % i), path)
        done = self.run_check(paths, ["--copied-within", "0s"], json_too=False)
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertEqual([line.split()[0] for line in done.stdout.splitlines()],
                         ["VIOLATION", "first", "then", "4", "1"])
        self.assertEqual([c for c in done.stdout.replace("\n", "") if not c.isprintable()], [])

    def test_a_key_with_a_zero_byte_is_a_key_of_its_own(self):
        self.a.acquire(1, 1, 5, key="k\0a")
        self.b.acquire(2, 2, 7, key="k\0b")
        self.good(self.a, self.b)
        self.b.acquire(6, 3, 9, key="k\0a")
        found = self.bad("overlap", self.a, self.b)
        self.assertEqual(found["key"], "hex:6b0061")

    def test_an_extension_counts(self):
        self.a.acquire(1, 1, 5)
        self.a.extend(8, 1, 5)
        self.b.acquire(13, 2, 7)
        self.bad("overlap", self.a, self.b)

    def test_a_pair_is_told_once(self):
        self.a.acquire(1, 1, 5)
        self.b.acquire(3, 2, 7)
        for at in (4, 6, 8):
            self.a.extend(at, 1, 5)
            self.b.extend(at + 1, 2, 7)
        self.bad("overlap", self.a, self.b)

    def test_clocks_of_two_nodes_may_differ(self):
        self.b = Node("b", ahead=-3)
        self.a.acquire(1, 1, 5)
        self.a.release(4, 1)
        self.b.acquire(6, 2, 7)
        self.bad("overlap", self.a, self.b, options=("--copied-within", "0s", "--clocks", "100ms"))
        self.good(self.a, self.b, options=("--copied-within", "0s", "--clocks", "3500ms"))
        self.good(self.a, self.b, options=("--copied-within", "0s", "--one-machine"))

    def test_one_node_is_judged_by_its_own_clock(self):
        self.a.acquire(1, 1, 5)
        line = self.a.acquire(10.9, 2, 7)
        line["ts"] = "2026-11-26T19:00:00.000000Z"
        self.bad("overlap", self.a)

    def test_a_request_counts_from_its_arrival(self):
        self.a.acquire(8, 1, 5, valid=10, took=7)
        self.a.acquire(11.5, 2, 7)
        self.good(self.a)

    def test_what_ends_a_lock_ends_it_wherever_it_was_asked(self):
        for action, result in (("release", "ok"), ("release", "no_quorum"), ("transfer", "ok"),
                               ("transfer", "no_quorum")):
            a, b, c = Node("a"), Node("b"), Node("c")
            a.acquire(1, 1, 5)
            b.release(4, 1, action, result)
            c.acquire(7, 2, 7)
            self.good(a, b, c)

    def test_a_denied_release_and_a_transfer_to_nobody_end_nothing(self):
        for action, result in (("release", "denied"), ("transfer", "not_found")):
            a, b = Node("a"), Node("b")
            a.acquire(1, 1, 5)
            a.release(4, 1, action, result)
            b.acquire(7, 2, 7)
            self.bad("overlap", a, b)

    def test_a_lock_that_was_taken_away_may_overlap(self):
        self.a.acquire(1, 1, 5)
        self.b.add(3, "lost", key="k", lock="%032x" % 1, token=5, cause="taken")
        self.a.acquire(4, 2, 7)
        self.good(self.a, self.b)

    def test_after_a_break_by_force_and_a_forced_start_beliefs_may_overlap(self):
        for more in ({"action": "break", "key": "k", "now": True}, {"action": "cluster_force"}):
            a = Node("a")
            a.acquire(1, 1, 5)
            a.add(3, **more, result="asked")
            a.acquire(4, 2, 7)
            self.good(a)
        a = Node("a")
        a.acquire(1, 1, 5)
        a.add(3, "break", key="other", now=True, result="asked")
        a.acquire(4, 2, 7)
        self.bad("overlap", a)

    def test_readers_share_and_writers_do_not(self):
        self.a.acquire(1, 1, 5, mode="shared")
        self.b.acquire(3, 2, 5, mode="shared")
        self.good(self.a, self.b)
        self.b.acquire(5, 3, 9)
        result = self.check(self.a, self.b, expect=1)
        self.assertEqual([f["kind"] for f in result["findings"]], ["overlap", "overlap"])

    def test_a_downgraded_lock_is_shared(self):
        self.a.acquire(1, 1, 5)
        self.a.release(2, 1, "downgrade")
        self.a.extend(3, 1, 5)
        self.b.acquire(5, 2, 7, mode="shared")
        self.good(self.a, self.b)

    def test_permits_are_judged_by_their_numbers(self):
        self.a.acquire(1, 1, 5, mode="permits", of=3, slots=[0, 1])
        self.b.acquire(3, 2, 7, mode="permits", of=3, slots=[2])
        self.good(self.a, self.b)
        self.b.acquire(4, 3, 9, mode="permits", of=3, slots=[1])
        self.bad("overlap", self.a, self.b)


class Tokens(Checked):
    def test_the_same_token_twice(self):
        a = Node("a")
        a.acquire(1, 1, 5, valid=1)
        a.acquire(30, 2, 5)
        self.bad("tokens", a)

    def test_a_token_that_goes_back(self):
        a, b = Node("a"), Node("b")
        a.acquire(1, 1, 5, valid=1)
        a.acquire(10, 2, 9, valid=1)
        b.acquire(30, 3, 7)
        found = self.bad("tokens", a, b)
        self.assertEqual((found["first"]["token"], found["then"]["token"]), (9, 7))

    def test_the_highest_token_of_all_before_counts(self):
        a = Node("a")
        for i in range(50):
            a.acquire(10 + 2 * i, i, 100 + i, valid=1)
        a.acquire(300, 90, 120, valid=1)
        self.bad("tokens", a)

    def test_requests_that_were_under_way_at_once_have_no_order(self):
        a, b = Node("a"), Node("b")
        a.acquire(20, 1, 9, valid=1, took=2)
        a.release(20.5, 1)
        b.acquire(22.5, 2, 7, took=20)
        self.good(a, b)

    def test_tokens_have_more_bits_than_a_float(self):
        a = Node("a")
        a.acquire(1, 1, 2 ** 60 + 1, valid=1)
        a.acquire(30, 2, 2 ** 60 + 2, valid=1)
        self.good(a)
        a.acquire(60, 3, 2 ** 60 + 1)
        self.bad("tokens", a)


class Files(Checked):
    def two_holders(self):
        a, b = Node("a"), Node("b")
        a.acquire(100, 1, 5)
        b.acquire(106, 2, 7)
        return a, b

    def test_a_line_that_is_missing_is_found(self):
        a, b = self.two_holders()
        a.release(104, 1)
        a.add(120, "close")
        self.good(a, b)
        del a.lines[2]
        result = self.check(a, b, expect=1)
        self.assertEqual([(f["kind"], f["possible"]) for f in result["findings"]],
                         [("missing", False), ("overlap", True)])

    def test_what_the_node_says_that_it_dropped_is_not_missing(self):
        a, b = self.two_holders()
        a.release(104, 1)
        a.add(120, "close", dropped=1)
        del a.lines[2]
        self.possible(a, b)

    def test_a_crash_may_have_lost_lines(self):
        a, b = self.two_holders()
        again = Node("a", boot=2)
        for line in again.lines:
            line["ts"] = "2026-11-26T18:03:00.000000Z"
        a.lines += again.lines
        self.possible(a, b)

    def test_what_happened_while_the_files_were_copied_is_possible(self):
        a, b = self.two_holders()
        self.possible(a, b, options=())
        b.add(200, "close")
        self.bad("overlap", a, b, options=())

    def test_a_line_that_was_altered_is_found(self):
        a, _ = self.two_holders()
        a.add(110, "close")
        a.lines[1]["mono_us"] += 50000000
        self.bad("altered", a)

    def test_a_line_that_stands_twice_is_altered_and_a_file_that_is_named_twice_is_not(self):
        a, b = self.two_holders()
        del b.lines[1]
        self.good(a, a, b)
        other = Node("a")
        other.acquire(100, 1, 6)
        self.bad("altered", a, other)

    def test_rotated_files_are_put_in_order(self):
        a, _ = self.two_holders()
        a.release(104, 1)
        older, a.lines = a.lines[:2], a.lines[1:]
        newer = Node("a")
        newer.lines = [{**older[0], "cause": "rotated", "seq": 3}] + [
            {**line, "seq": line["seq"] + 1} for line in a.lines[1:]]
        for line in newer.lines[:1]:
            line.update(ts=older[1]["ts"], mono_us=older[1]["mono_us"])
        first = Node("a")
        first.lines = older
        self.good(newer, first)
        result = self.check(newer, expect=0)
        self.assertEqual(result["grants"], 0)

    def test_a_last_line_that_a_crash_has_cut_is_left_out(self):
        a, _ = self.two_holders()
        text = "".join(json.dumps(line) + "\n" for line in a.lines)
        self.good(text + '{"ts": "2026-11')

    def test_a_line_that_a_crash_has_cut_is_left_out_after_the_next_start(self):
        a, _ = self.two_holders()
        again = Node("a", boot=2)
        again.lines[0]["ts"] = "2026-11-26T18:03:00.000000Z"
        first, then = ("".join(json.dumps(line) + "\n" for line in node.lines)
                       for node in (a, again))
        self.good(first + '{"ts": "2026-11\n' + then)
        for behind in ("", json.dumps(a.lines[1]) + "\n"):
            self.assertIn("line 3: this is no JSON", self.check(first + "{\n" + behind, expect=2))

    def test_dropped_lines_may_be_told_late(self):
        a = Node("a")
        for at in range(1, 9):
            a.acquire(at, at, at)
            a.release(at + 0.5, at)
        a.lines[9]["dropped"] = 3
        del a.lines[3:6]
        self.good(a)
        for told in (2, 4):
            a.lines[6]["dropped"] = told
            self.assertEqual(self.check(a, expect=1)["violations"], 1)

    def test_nodes_that_do_not_tell_of_grants_are_named(self):
        a = Node("a", what="admin")
        a.add(1, "acquire", key="k", result="denied", cause="acquire")
        result = self.good(a)
        self.assertEqual((result["denied"], result["nodes_without_grants"]), (1, 1))

    def test_what_is_no_audit_file_is_refused(self):
        line = json.dumps(Node("a").lines[0])
        for text, why in (("hello\n", "line 1: this is no JSON object"),
                          ("[1]\n", "no JSON object"), ("{}\n", "it lacks node"),
                          (line.replace('"format": 1', '"format": 2') + "\n", "format 1"),
                          (line.replace("2026-", "year ") + "\n", "ts is no time"),
                          (line + "\n" + line[:-1] + ',"seq": 7}\n', "line 2: this is no JSON"),
                          (line.replace('"open"', '"close"') + "\n", "lacks its beginning")):
            self.assertIn(why, self.check(text, expect=2))
        done = self.run_check(["/nonexistent"])
        self.assertEqual(done.returncode, 2)
        self.assertIn("/nonexistent: No such file", done.stderr)


class Real(AuditCase):
    """The files of real nodes."""
    masters = 3

    def files(self):
        return [self.path(name) for name in self.cluster.names]

    def test_a_cluster_at_work(self):
        clients = [self.connect(name) for name in self.cluster.names]
        for i in range(30):
            client, other = clients[i % 3], clients[(i + 1) % 3]
            got = self.acquire("k%d" % (i % 4), client, lease_ms=2000)
            client.call("extend", key="k%d" % (i % 4), lock_id=got["lock_id"], lease_ms=3000)
            self.refused("held", "acquire", key="k%d" % (i % 4), lease_ms=1000)
            other.call("release", key="k%d" % (i % 4), lock_id=got["lock_id"])
        short = self.acquire("short", lease_ms=300)
        again = self.acquire("short", clients[1], lease_ms=300, wait_ms=5000)
        self.assertGreater(again["token"], short["token"])
        self.cluster.end_all()
        done = subprocess.run([cli_fixture.PAWL, "audit", "check", *self.files(), "--one-machine",
                               "--copied-within", "0s", "--json"],
                              capture_output=True, text=True, timeout=60)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        result = json.loads(done.stdout)
        self.assertEqual((result["nodes"], result["keys"], result["grants"], result["findings"]),
                         (3, 5, 32, []))

    def test_a_release_that_somebody_removes_is_found(self):
        for i in range(2):
            got = self.acquire("k", lease_ms=60000)
            self.client.call("release", key="k", lock_id=got["lock_id"])
        self.cluster.end_all()
        with open(self.path("a")) as f:
            lines = f.readlines()
        with open(self.path("a"), "w") as f:
            f.writelines(line for i, line in enumerate(lines) if '"release"' not in line)
        done = subprocess.run([cli_fixture.PAWL, "audit", "check", *self.files(), "--one-machine",
                               "--copied-within", "0s"], capture_output=True, text=True,
                              timeout=60)
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
        self.assertIn("lines are missing between these two", done.stdout)


if __name__ == "__main__":
    cli_fixture.main()
