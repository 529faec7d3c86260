#!/usr/bin/env python3
"""test_run.py PAWLD PAWL: tests the promises of pawl run, with real processes.

Commands open a named pipe and leave it open, so all of them are gone when the test reads the end of
the pipe. The next holder gets the key by an acquire that waits: when it is answered, the pipe must
have ended.
"""

import os
import signal
import socket
import threading
import time

import cli_fixture
import pawltest
from cli_fixture import Case, DevCase, finish, pawl
from pawltest import PATIENCE

# This script opens the pipe $0 as 9, says "ready", ignores SIGTERM, and goes on for ever.
STUBBORN = "exec 9>$0; trap '' TERM INT HUP; echo ready >&9; while :; do sleep 0.01; done"
# This one does the same, and starts a part that leaves the process group and the session.
SPREAD = ("exec 9>$0; trap '' TERM; setsid sh -c 'trap \"\" TERM; while :; do sleep 0.01; done' & "
          "echo ready >&9; wait; wait")
# What pawl run ends with if it fails itself.
REFUSED, MISUSED, UNREACHABLE, LOST, HELD, TIMED_OUT, DENIED = range(111, 118)
TIMING = "max_lease = 5s\npromise_timeout = 600ms\nrequest_timeout = 300ms"
OBEDIENT = ("exec 9>$0; trap 'echo told >&9; exit 9' TERM; echo ready >&9; while :; do sleep 0.01; "
            "done")


class Proxy:
    """A proxy between a client and a node, on a Unix socket. It can fall silent without closing
    anything."""

    def __init__(self, path, target):
        self.path, self.target, self.silent = path, target, threading.Event()
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(path)
        self.listener.listen()
        self.sockets = [self.listener]
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while True:
            try:
                near, _ = self.listener.accept()
            except OSError:
                return
            far = socket.socket(socket.AF_UNIX)
            far.connect(self.target)
            self.sockets += [near, far]
            for a, b in ((near, far), (far, near)):
                threading.Thread(target=self._copy, args=(a, b), daemon=True).start()

    def _copy(self, a, b):
        try:
            while data := a.recv(65536):
                if not self.silent.is_set():
                    b.sendall(data)
        except OSError:
            pass

    def close(self):
        for s in self.sockets:
            s.close()


class RunCase(DevCase):
    def run_pawl(self, script, *options, endpoints=None):
        """Starts pawl run with a shell script, and waits until the script is ready. Returns the
        process, and the pipe that ends with everything that the script started."""
        alive = self.alive()
        process = self.start("run", "k", *options, "--", "sh", "-c", script, alive.path,
                             endpoints=endpoints or self.endpoints)
        self.assertEqual(alive.line(), "ready")
        return process, alive

    def next_holder(self):
        return self.begin("acquire", "k", "--wait", "20s", "--json")

    def gone_before_the_next(self, alive, next_holder):
        """Waits for the next holder's grant. The command must be gone by then."""
        granted = finish(next_holder)
        ended = alive.has_ended()
        self.succeeds(granted)
        self.assertTrue(ended, "the command still ran when the next one had the key")


class Ordinary(RunCase):
    def test_the_exit_status_passes_through_and_the_lock_is_free(self):
        self.assertEqual(self.pawl("run", "k", "--", "sh", "-c", "exit 42").status, 42)
        self.assertFalse(self.pawl("get", "k", "--json").json["held"])
        self.succeeds(self.pawl("run", "k", "--", "true"))

    def test_death_by_a_signal_is_128_and_its_number(self):
        self.assertEqual(self.pawl("run", "k", "--", "sh", "-c", "kill -9 $$").status, 128 + 9)

    def test_a_command_that_does_not_exist_is_127(self):
        run = self.pawl("run", "k", "--", "/does/not/exist")
        self.assertEqual(run.status, 127)
        self.assertIn("/does/not/exist", run.err)
        self.assertFalse(self.pawl("get", "k", "--json").json["held"])

    def test_the_environment_names_key_lock_and_token(self):
        run = self.pawl("run", "the key", "--value", "v", "--owner", "anna", "--", "sh", "-c",
                        'echo "$PAWL_KEY|$PAWL_LOCK_ID|$PAWL_TOKEN"; exec "$0" get "$PAWL_KEY" '
                        '--json', cli_fixture.PAWL)
        words, got = self.succeeds(run).out.split("\n", 1)
        got = cli_fixture.json.loads(got)
        self.assertEqual(words, "the key|%s|%d" % (got["lock_id"], got["token"]))
        self.assertEqual((got["owner"], got["value"]), ("anna", "v"))

    def test_pawl_key_is_the_key_of_the_lock_and_never_a_file(self):
        for arguments in (["ca"], ["client", "me"]):
            self.succeeds(pawl("cert", *arguments, "--dir", self.folder))
        files = {"PAWL_" + n: os.path.join(self.folder, f)
                 for n, f in (("CACERT", "ca.crt"), ("CERT", "me.crt"), ("CERT_KEY", "me.key"))}
        run = self.pawl("run", "k", "--", "sh", "-c", 'echo "$PAWL_KEY $PAWL_CERT_KEY"; exec "$0" '
                                                      'get k', cli_fixture.PAWL, **files)
        self.assertEqual(self.succeeds(run).out.split("\n")[0], "k " + files["PAWL_CERT_KEY"])
        files["PAWL_KEY"] = files.pop("PAWL_CERT_KEY")
        run = pawl("get", "k", endpoints="tls://127.0.0.1:1", **files)
        self.assertEqual(run.status, 2)
        self.assertIn("key", run.err)

    def test_json_comes_last_and_tells_the_exit_status(self):
        run = self.pawl("run", "k", "--json", "--", "sh", "-c", "exit 3")
        self.assertEqual((run.status, run.json["exit_status"], run.json["key"]), (3, 3, "k"))

    def test_standard_input_and_output_are_the_commands(self):
        env = cli_fixture.environment(PAWL_ENDPOINTS=self.endpoints)
        process = cli_fixture.subprocess.run([cli_fixture.PAWL, "run", "k", "--", "cat"],
                                             input=b"text", stdout=-1, timeout=PATIENCE, env=env)
        self.assertEqual((process.returncode, process.stdout), (0, b"text"))

    def test_a_held_key_is_refused_and_the_command_never_runs(self):
        process, _ = self.run_pawl(STUBBORN)
        marker = os.path.join(self.folder, "marker")
        run = self.pawl("run", "k", "--", "touch", marker)
        self.assertEqual((run.status, os.path.exists(marker)), (HELD, False))
        process.kill()

    def test_the_failures_of_pawl_have_statuses_that_few_commands_have(self):
        holder, _ = self.run_pawl(OBEDIENT)
        rows = (((), HELD), (("--wait", "50ms"), TIMED_OUT), (("-E", "0"), 0),
                (("--conflict-exit-code", "75", "--wait", "50ms"), 75),
                (("--lease", "1d", "--wait", "2d"), REFUSED), (("--wait", "x"), MISUSED),
                (("-E", "256"), MISUSED), (("-E",), MISUSED))
        for options, status in rows:
            run = self.pawl("run", "k", *options, "--", "false")
            self.assertEqual(run.status, status, "%s: %s" % (options, run.err))
        self.assertEqual(pawl("run", "k", "--timeout", "300ms", "--", "true",
                              endpoints="unix:/does/not/exist").status, UNREACHABLE)
        holder.terminate()
        # Whatever the command ends with comes through, also with -E.
        for status in (1, 2, 3, 4):
            run = self.pawl("run", "k", "-E", "0", "--wait", "forever", "--", "sh", "-c",
                            "exit %d" % status)
            self.assertEqual(run.status, status, run.err)

    def test_who_has_no_right_to_the_key_is_told_by_the_status(self):
        acl = pawltest.rights(self.folder, ("unix:uid:%d" % os.getuid(), "allow = read on *\n"),
                              local=False)
        with pawltest.Cluster(cli_fixture.PAWLD, masters=1, node=acl) as cluster:
            run = pawl("run", "k", "--", "true", endpoints=cluster.unix("a"))
            self.assertEqual((run.status, "access rules" in run.err), (DENIED, True), run.err)

    def test_a_wait_without_end_goes_on_until_the_key_is_free(self):
        holder, _ = self.run_pawl(OBEDIENT)
        waiting = self.begin("run", "k", "--wait", "forever", "--", "sh", "-c", "exit 5")
        while not self.pawl("waiters", "k", "--json").json["waiters"]:
            pass
        holder.terminate()
        self.assertEqual(finish(waiting).status, 5)

    def test_the_tokens_of_all_keys_reach_the_command_in_the_order_of_the_line(self):
        for _ in range(3):  # One key has had more holders than the other.
            self.succeeds(self.pawl("run", "b", "--", "true"))
        show = 'echo "$PAWL_TOKENS"; exec "$0" ls --json'
        for keys in (["b", "a"], ["a", "b"], ["a"]):
            run = self.succeeds(self.pawl("run", *keys, "--", "sh", "-c", show, cli_fixture.PAWL))
            tokens, entries = run.out.split("\n", 1)
            held = {e["key"]: e["token"] for e in cli_fixture.json.loads(entries)["keys"]}
            self.assertEqual([int(t) for t in tokens.split(",")], [held[key] for key in keys])

    def test_signals_are_forwarded_to_the_commands_group(self):
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2,
                       signal.SIGQUIT):
            name = number.name[3:]
            script = ("exec 9>$0; trap 'exit 7' %s; echo ready >&9; while :; do sleep 0.01; done"
                      % name)
            process, _ = self.run_pawl(script)
            process.send_signal(number)
            self.assertEqual(finish(process).status, 7, name)

    def test_a_signal_while_it_waits_ends_it(self):
        holder, _ = self.run_pawl(STUBBORN)
        waiting = self.begin("run", "k", "--wait", "20s", "--", "true")
        while not self.pawl("waiters", "k", "--json").json["waiters"]:
            pass
        waiting.send_signal(signal.SIGTERM)
        self.assertEqual(finish(waiting).status, 128 + signal.SIGTERM)
        while self.pawl("waiters", "k", "--json").json["waiters"]:
            pass
        holder.kill()

    def test_the_lease_is_renewed_while_the_command_runs(self):
        process, alive = self.run_pawl(OBEDIENT, "--lease", "2s")
        token = self.pawl("get", "k", "--json").json["token"]
        # Another lease that nobody renews says when twice the lease is over.
        for other in ("x", "y"):
            self.pawl("acquire", other, "--lease", "2s")
            self.succeeds(self.pawl("wait", other, "--for", "free", "--timeout", "20s"))
        self.assertEqual(self.pawl("get", "k", "--json").json["token"], token)
        process.terminate()
        self.assertEqual(alive.line(), "told")
        self.assertEqual(finish(process).status, 9)

    def test_what_the_command_leaves_in_the_background_ends_before_the_release(self):
        alive = self.alive()
        script = ("exec 9>$0; (trap '' TERM; echo ready >&9; while :; do sleep 0.01; done) & read "
                  "x <$0.go; exit 5")
        os.mkfifo(alive.path + ".go")
        process = self.begin("run", "k", "--lease", "1s", "--", "sh", "-c", script, alive.path)
        self.assertEqual(alive.line(), "ready")
        following = self.next_holder()
        with open(alive.path + ".go", "w") as go:
            go.write("go\n")
        self.gone_before_the_next(alive, following)
        self.assertEqual(finish(process).status, 5)


class KeepsItsWord(RunCase):
    def test_a_command_that_ignores_sigterm_is_gone_before_its_lease_ends_when_nodes_hang(self):
        process, alive = self.run_pawl(STUBBORN, "--lease", "1s")
        following = self.next_holder()
        self.node.signal(signal.SIGSTOP)
        self.addCleanup(self.node.signal, signal.SIGCONT)
        self.assertEqual(finish(process).status, LOST)
        self.assertTrue(alive.has_ended())
        self.node.signal(signal.SIGCONT)
        self.gone_before_the_next(alive, following)

    def test_the_command_is_gone_in_time_when_the_network_falls_silent(self):
        proxy = Proxy(os.path.join(self.folder, "proxy"), self.endpoints[5:])
        self.addCleanup(proxy.close)
        process, alive = self.run_pawl(SPREAD, "--lease", "1s", endpoints="unix:" + proxy.path)
        following = self.next_holder()
        proxy.silent.set()
        self.gone_before_the_next(alive, following)
        run = finish(process)
        self.assertEqual(run.status, LOST)
        self.assertIn("'k'", run.err)

    def test_without_an_answer_the_command_goes_on_for_as_long_as_configure_md_says(self):
        for options, warned in ((["--lease", "4s"], 4 / 6), (["--lease", "4s", "--grace", "400ms"],
                                                             0.4)):
            before = time.monotonic()
            process, alive = self.run_pawl(OBEDIENT, *options)
            self.node.process.send_signal(signal.SIGSTOP)
            try:
                self.assertEqual(alive.line(), "told")
                lasted = time.monotonic() - before
                self.assertEqual(finish(process).status, LOST)
            finally:
                self.node.process.send_signal(signal.SIGCONT)
            # The lease, less the warn time, a tenth and 2 % of the lease, and 1 % of drift.
            self.assertGreater(lasted, 4 - warned - 0.4 - 0.08 - 0.04 - 0.02)
            self.succeeds(self.pawl("wait", "k", "--for", "free", "--timeout", "20s"))

    def test_when_the_node_dies_the_command_has_its_grace(self):
        process, alive = self.run_pawl(OBEDIENT, "--lease", "1s", "--json")
        self.node.kill()
        self.assertEqual(alive.line(), "told")
        alive.wait_end()
        run = finish(process)
        self.assertEqual((run.status, run.json["error"]["code"]), (LOST, "lost"))

    def test_the_command_is_gone_in_time_when_pawl_is_killed(self):
        for script in (STUBBORN, SPREAD):
            process, alive = self.run_pawl(script, "--lease", "3s")
            following = self.next_holder()
            process.kill()
            self.gone_before_the_next(alive, following)
            self.pawl("break", "k", "--now")

    def test_the_command_is_gone_in_time_when_pawl_is_stopped_for_longer_than_the_lease(self):
        for script in (STUBBORN, SPREAD):
            process, alive = self.run_pawl(script, "--lease", "1s")
            following = self.next_holder()
            process.send_signal(signal.SIGSTOP)
            self.gone_before_the_next(alive, following)
            process.send_signal(signal.SIGCONT)
            run = finish(process)
            self.assertEqual(run.status, LOST)
            self.assertIn("this process stood still until the lease was over", run.err)
            # The next one holds it: pawl has not touched it.
            self.assertTrue(self.pawl("get", "k", "--json").json["held"])
            self.pawl("break", "k", "--now")

    def test_the_command_is_gone_in_time_when_the_shells_job_is_stopped(self):
        alive = self.alive()
        # The job has a process group of its own, as a shell starts one.
        job = cli_fixture.subprocess.Popen(
            ["setsid", cli_fixture.PAWL, "run", "k", "--lease", "1s", "--", "sh", "-c", STUBBORN,
             alive.path],
            env=cli_fixture.environment(PAWL_ENDPOINTS=self.endpoints),
            stderr=cli_fixture.subprocess.DEVNULL)
        self.assertEqual(alive.line(), "ready")
        following = self.next_holder()
        os.killpg(job.pid, signal.SIGSTOP)
        self.gone_before_the_next(alive, following)
        os.killpg(job.pid, signal.SIGCONT)
        self.assertEqual(job.wait(PATIENCE), LOST)

    @staticmethod
    def guardian(process):
        with open("/proc/%d/task/%d/children" % (process.pid, process.pid)) as children:
            return int(children.read().split()[0])

    @staticmethod
    def state(pid):
        with open("/proc/%d/stat" % pid) as stat:
            return stat.read().rsplit(")", 1)[1].split()[0]

    def test_the_command_is_gone_in_time_when_the_guardian_is_killed(self):
        process, alive = self.run_pawl(SPREAD, "--lease", "1s")
        following = self.next_holder()
        os.kill(self.guardian(process), signal.SIGKILL)
        self.gone_before_the_next(alive, following)
        self.assertEqual(finish(process).status, 128 + signal.SIGKILL)

    def test_when_pawl_and_the_guardian_are_killed_at_once_the_command_dies_with_them(self):
        process, alive = self.run_pawl('exec >"$0"; echo ready; exec sleep 1000')
        for victim in (process.pid, self.guardian(process)):
            os.kill(victim, signal.SIGSTOP)  # Neither must see the end of the other.
        for victim in (self.guardian(process), process.pid):
            os.kill(victim, signal.SIGKILL)
        alive.wait_end()
        finish(process)

    def test_when_the_guardian_is_killed_before_the_command_runs(self):
        holder, _ = self.run_pawl(STUBBORN)
        waiting = self.begin("run", "k", "--wait", "20s", "--", "true")
        while not self.pawl("waiters", "k", "--json").json["waiters"]:
            pass
        os.kill(self.guardian(waiting), signal.SIGKILL)
        self.assertEqual(finish(waiting).status, REFUSED)
        holder.kill()

    def test_a_guardian_that_somebody_stops_goes_on(self):
        process, alive = self.run_pawl(SPREAD, "--lease", "1s")
        os.kill(self.guardian(process), signal.SIGSTOP)
        # The script ignores the signal, so the guardian must act when the node hangs.
        process.terminate()
        self.node.signal(signal.SIGSTOP)
        self.addCleanup(self.node.signal, signal.SIGCONT)
        self.assertEqual(finish(process).status, LOST)
        self.assertTrue(alive.has_ended())

    def test_a_guardian_that_is_stopped_at_the_end_does_not_keep_pawl_from_ending(self):
        holder, _ = self.run_pawl(STUBBORN)
        waiting = self.begin("run", "k", "--wait", "20s", "--", "true")
        while not self.pawl("waiters", "k", "--json").json["waiters"]:
            pass
        # If pawl still ran, it would continue the guardian before the test sees it stopped.
        for stopped in (waiting.pid, self.guardian(waiting)):
            os.kill(stopped, signal.SIGSTOP)
            while self.state(stopped) != "T":
                pass
        # This signal is the first that pawl handles when it goes on, before its guardian.
        waiting.send_signal(signal.SIGTERM)
        waiting.send_signal(signal.SIGCONT)
        self.assertEqual(finish(waiting).status, 128 + signal.SIGTERM)
        holder.kill()

    def test_the_guardian_does_not_have_pawls_name(self):
        process, _ = self.run_pawl(STUBBORN)
        for name in ("comm", "cmdline"):
            with open("/proc/%d/%s" % (self.guardian(process), name)) as f:
                text = f.read()
            self.assertIn("lease-guardian", text)
            self.assertNotIn("pawl", text)

    def test_the_command_is_gone_in_time_when_an_administrator_breaks_the_lock(self):
        process, alive = self.run_pawl(STUBBORN, "--lease", "1s")
        following = self.next_holder()
        self.succeeds(self.pawl("break", "k"))
        self.gone_before_the_next(alive, following)
        self.assertEqual(finish(process).status, LOST)


class InACluster(Case):
    def test_a_lease_that_is_not_given_is_what_the_cluster_allows(self):
        with pawltest.Cluster(cli_fixture.PAWLD, cluster=TIMING) as cluster:
            endpoints = ",".join(cluster.clients.values())
            show = 'exec "$0" get k --json'
            for line in (["run", "k"], ["run", "k", "other"], ["elect", "k", "--once"]):
                run = self.succeeds(pawl(*line, "--", "sh", "-c", show, cli_fixture.PAWL,
                                         endpoints=endpoints))
                left = cli_fixture.json.loads(run.out)["remaining_ms"]
                self.assertTrue(3000 < left <= 5100, left)
            # The lock delay is a part of what is allowed; and a lease that is given stays.
            for line, status in (("run k --lock-delay 4s", 0), ("elect k --once --lease 30s", 111),
                                 ("run k --lease 30s", 111), ("run k --lock-delay 9s", 111),
                                 ("run k --grace 2s", 112)):
                run = pawl(*line.split(), "--", "true", endpoints=endpoints)
                self.assertEqual(run.status, status, run.err)
            self.assertIn("--grace: 2.0s is more than a quarter of the lease (5.0s)", run.err)
            self.assertFalse(pawl("get", "k", "--json", endpoints=endpoints).json["held"])

    def survives(self, number):
        """Signals the master that pawl run talks to. pawl run must go on for twice its lease."""
        with pawltest.Cluster(cli_fixture.PAWLD, cluster=TIMING) as cluster:
            endpoints = ",".join(cluster.clients.values())
            alive = self.alive()
            process = self.start("run", "k", "--lease", "2s", "--", "sh", "-c", OBEDIENT,
                                 alive.path, endpoints=endpoints)
            self.assertEqual(alive.line(), "ready")
            token = pawl("get", "k", "--quorum", "--json", endpoints=endpoints).json["token"]
            cluster.nodes["a"].signal(number)
            rest = ",".join([cluster.clients["b"], cluster.clients["c"]])
            other = pawl("acquire", "other", "--lease", "4s", "--json", endpoints=rest)
            self.assertEqual(other.status, 0, other.err)
            self.assertEqual(pawl("wait", "other", "--for", "free", "--timeout", "20s",
                                  endpoints=rest).status, 0)
            self.assertEqual(pawl("get", "k", "--quorum", "--json",
                                  endpoints=rest).json.get("token"), token)
            process.terminate()
            self.assertEqual(alive.line(), "told")
            self.assertEqual(finish(process).status, 9)

    def test_the_command_survives_the_kill_of_the_master_it_talks_to(self):
        self.survives(signal.SIGKILL)

    def test_the_command_survives_the_hang_of_the_master_it_talks_to(self):
        self.survives(signal.SIGSTOP)

    def test_without_a_quorum_the_command_ends_in_time(self):
        with pawltest.Cluster(cli_fixture.PAWLD, cluster=TIMING) as cluster:
            endpoints = ",".join(cluster.clients.values())
            alive = self.alive()
            process = self.start("run", "k", "--lease", "1s", "--", "sh", "-c", STUBBORN,
                                 alive.path, endpoints=endpoints)
            self.assertEqual(alive.line(), "ready")
            for name in ("a", "b"):
                cluster.nodes[name].signal(signal.SIGSTOP)
            self.assertEqual(finish(process).status, LOST)
            self.assertTrue(alive.has_ended())
            cluster.nodes["a"].signal(signal.SIGCONT)
            cluster.nodes["b"].signal(signal.SIGCONT)
            self.succeeds(pawl("acquire", "k", "--wait", "20s", "--lease", "2s",
                               endpoints=endpoints))

    def tries(self, endpoints, *options):
        """Runs a command that does not get the key; returns for how many seconds it tried."""
        before = time.monotonic()
        run = pawl("run", "k", *options, "--", "true", endpoints=endpoints)
        self.assertEqual(run.status, UNREACHABLE, run.err)
        return time.monotonic() - before

    def test_it_tries_for_its_timeout_if_no_node_answers_and_else_for_its_wait(self):
        with pawltest.Cluster(cli_fixture.PAWLD, cluster=TIMING) as cluster:
            endpoints = ",".join(cluster.clients.values())
            for name in "bc":
                cluster.nodes[name].signal(signal.SIGSTOP)
            cluster.nodes["a"].wait_log(" quorum_lost ")
            # Node a answers that there is no quorum, at once or when it has asked the others.
            self.assertLess(self.tries(cluster.clients["a"], "--timeout", "1m"), 20)
            self.assertGreater(self.tries(cluster.clients["a"], "--wait", "1s"), 1)
            cluster.nodes["a"].signal(signal.SIGSTOP)
            hung = self.tries(endpoints, "--timeout", "700ms")
            waited = self.tries(endpoints, "--timeout", "700ms", "--wait", "600ms")
            for name in "abc":
                cluster.nodes[name].kill()
            gone = self.tries(endpoints, "--timeout", "700ms")
            for tried, least in ((hung, 0.7), (waited, 1.3), (gone, 0.7)):
                self.assertGreater(tried, least)
                self.assertLess(tried, least + 4)

    def test_a_lock_that_ends_with_the_connection_outlives_a_majority_until_its_lease_is_over(self):
        with pawltest.Cluster(cli_fixture.PAWLD, cluster=TIMING) as cluster:
            alive, options = (self.alive(), ["--lease", "5s", "--grace", "500ms",
                                             "--release-on-disconnect"])
            process = self.start("run", "k", *options, "--", "sh", "-c", OBEDIENT, alive.path,
                                 endpoints=",".join(cluster.clients.values()))
            self.assertEqual(alive.line(), "ready")
            killed = time.monotonic()
            cluster.nodes["a"].kill()
            cluster.nodes["b"].kill()
            self.assertEqual(alive.line(), "told")
            # The last extension was at most a third of the lease ago, and the command was told one
            # grace before the end.
            self.assertGreater(time.monotonic() - killed, 2.5)
            self.assertEqual(finish(process).status, LOST)


if __name__ == "__main__":
    cli_fixture.main()
