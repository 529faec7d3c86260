#!/usr/bin/env python3
"""test_terminal.py PAWLD PAWL: tests pawl run and pawl elect in a shell on a terminal.

On a terminal the command belongs to the job of the shell, as with flock(1): it may read the
terminal, however the rest is redirected; Ctrl-C and Ctrl-Z reach it, and fg and bg continue it.
"""

import os
import pty
import select
import signal
import time

import cli_fixture
from cli_fixture import DevCase
from pawltest import PATIENCE

# All that run a command while they hold a lock.
RUNS = ("run", "lock", "elect --once")
# This command asks a question on the terminal, and tells the answer.
ASK = "sh -c 'echo ask- >/dev/tty; read x; echo got-$x'"
CTRL_C, CTRL_Z = b"\x03", b"\x1a"


class Shell:
    """A bash with job control that runs a script on a terminal of its own."""

    def __init__(self, case, script, argv=("bash", "--norc", "-m", "-c")):
        self.script, self.shown, self.ended = script, b"", False
        self.pid, self.terminal = pty.fork()
        if self.pid == 0:
            os.environ.update(cli_fixture.environment(PAWL=cli_fixture.PAWL,
                                                      PAWL_ENDPOINTS=case.endpoints))
            os.chdir(case.folder)
            os.execvp(argv[0], [*argv, script])
        case.addCleanup(self.close)

    def wait(self, text):
        """Waits until the terminal shows the text, and drops what it has shown up to there."""
        end = time.monotonic() + PATIENCE
        while text.encode() not in self.shown:
            assert not self.ended and time.monotonic() < end, (self.script, text, self.shown)
            self.read(0.1)
        self.shown = self.shown.partition(text.encode())[2]

    def read(self, patience):
        if select.select([self.terminal], [], [], patience)[0]:
            try:
                self.shown += os.read(self.terminal, 4096)
            except OSError:
                # The last one who had the terminal is gone.
                self.ended = True

    def type(self, what):
        os.write(self.terminal, what)

    def after(self, text, what):
        """Waits for the text, and types what follows it."""
        self.wait(text)
        self.type(what)

    def end(self):
        """Waits until nobody has the terminal any more. Returns what it has shown."""
        limit = time.monotonic() + PATIENCE
        while not self.ended:
            assert time.monotonic() < limit, (self.script, self.shown)
            self.read(0.1)
        return self.shown.decode()

    def close(self):
        os.close(self.terminal)
        try:
            os.kill(self.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        os.waitpid(self.pid, 0)


class Terminal(DevCase):
    def is_free(self):
        self.assertFalse(self.pawl("get", "k", "--json").json["held"])

    def test_the_command_may_ask_however_the_rest_is_redirected(self):
        for script in ("$PAWL %s k -- %s; echo end-$?",
                       "$PAWL %s k -- %s | tee log; echo end-${PIPESTATUS[0]}",
                       "$PAWL %s k -- %s > log; echo end-$?; cat log",
                       "$PAWL %s k -- %s 2>&1 | tee log; echo end-${PIPESTATUS[0]}",
                       "x=$($PAWL %s k -- %s); echo end-$?; echo $x",
                       "set +m; $PAWL %s k -- %s; echo end-$?",
                       "set +m; x=$($PAWL %s k -- %s); echo end-$?; echo $x"):
            for runs in RUNS:
                shell = Shell(self, script % (runs, ASK))
                shell.after("ask-", b"yes\n")
                shown = shell.end()
                self.assertIn("got-yes", shown)
                self.assertIn("end-0", shown)
                self.is_free()

    def test_the_others_of_a_pipe_may_read_the_terminal(self):
        shell = Shell(self, "$PAWL run k -- echo text- | sh -c 'read x; echo $x; read y </dev/tty; "
                            "echo got-$y'")
        shell.after("text-", b"yes\n")
        self.assertIn("got-yes", shell.end())

    def test_ctrl_c_reaches_the_command_once(self):
        script = ("import os, signal, subprocess, sys\n"
                  "caught, wakes = os.pipe()\n"
                  "os.set_blocking(wakes, False)\n"
                  "signal.set_wakeup_fd(wakes)\n"
                  "signal.signal(signal.SIGINT, lambda *_: print('caught-', flush=True))\n"
                  "print('ask-', flush=True)\n"
                  # A signal just before input() sleeps would be handled only after it.
                  "os.read(caught, 1)\n"
                  "input()\n"
                  # Until this is done, pawl would have passed a second one on.
                  "subprocess.run(sys.argv[1:], stdout=-1)\n")
        with open(os.path.join(self.folder, "ask.py"), "w") as file:
            file.write(script)
        command = "%s ask.py $PAWL get k" % cli_fixture.sys.executable
        for words in ("$PAWL %s k -- %s; echo end-$?",
                      "$PAWL %s k -- %s | (trap '' INT; cat); echo end-0"):
            for runs in RUNS:
                shell = Shell(self, words % (runs, command))
                shell.after("ask-", CTRL_C)
                shell.after("caught-", b"yes\n")
                self.assertNotIn("caught-", shell.end())
                self.is_free()

    def test_ctrl_c_ends_the_command(self):
        for runs in RUNS:
            shell = Shell(self, "$PAWL %s k -- sh -c 'echo ask-; exec sleep 1000'; echo end-$?"
                          % runs)
            shell.after("ask-", CTRL_C)
            self.assertIn("end-130", shell.end())
            self.is_free()

    def test_a_signal_for_pawl_alone_reaches_the_command(self):
        shell = Shell(self, "$PAWL run k -- sh -c 'trap \"echo caught-\" USR1; echo ask-; read x; "
                            "read y; exit 5'; echo end-$?")
        shell.wait("ask-")
        # It leads the job in the foreground.
        os.kill(os.tcgetpgrp(shell.terminal), signal.SIGUSR1)
        shell.after("caught-", b"\n\n")
        self.assertIn("end-5", shell.end())

    def test_ctrl_z_stops_the_job_and_fg_continues_it(self):
        for words in ("$PAWL %s k -- %s; echo stopped-; fg; echo end-$?",
                      "$PAWL %s k -- %s | cat; echo stopped-; fg; echo end-$?"):
            for runs in RUNS:
                shell = Shell(self, words % (runs, ASK))
                shell.after("ask-", CTRL_Z)
                shell.after("stopped-", b"yes\n")
                shown = shell.end()
                self.assertIn("got-yes", shown)
                self.assertIn("end-0", shown)
                self.is_free()

    def test_bg_continues_it_too(self):
        command = "sh -c 'trap \"echo continued-; exit 6\" CONT; echo ask-; read x'"
        shell = Shell(self, "$PAWL run k -- %s; echo stopped-; bg; wait %%1; echo end-$?" % command)
        shell.after("ask-", CTRL_Z)
        shell.wait("stopped-")
        shell.wait("continued-")
        self.assertIn("end-6", shell.end())
        self.is_free()

    def test_what_asks_in_the_background_is_stopped_until_fg(self):
        shell = Shell(self, "set -b; $PAWL run k -- %s & wait %%1; echo stopped-; fg; echo end-$?"
                      % ASK)
        shell.after("stopped-", b"yes\n")
        shown = shell.end()
        self.assertIn("got-yes", shown)
        self.assertIn("end-0", shown)

    def test_a_job_that_is_stopped_and_forgotten_gives_its_lock_up_when_its_lease_ends(self):
        for runs in RUNS:
            alive = self.alive()
            shell = Shell(self, "$PAWL %s k --lease 1s -- sh -c 'exec 9>%s; echo ask-; "
                                "exec sleep 1000'; echo stopped-; read x" % (runs, alive.path))
            shell.after("ask-", CTRL_Z)
            shell.wait("stopped-")
            self.succeeds(self.pawl("wait", "k", "--for", "free", "--timeout", "20s"))
            self.assertTrue(alive.has_ended(), "the command was there after its lock")
            shell.type(b"\n")

    def test_a_command_that_stops_by_itself_keeps_the_lock(self):
        shell = Shell(self, "$PAWL run k --lease 1s -- sh -c 'kill -STOP $$; exit 3'; echo end-$?")
        self.succeeds(self.pawl("wait", "k", "--for", "held", "--timeout", "20s"))
        # Other leases that nobody renews say when twice its lease is over.
        for other in ("x", "y"):
            self.pawl("acquire", other, "--lease", "1s")
            self.succeeds(self.pawl("wait", other, "--for", "free", "--timeout", "20s"))
        self.assertTrue(self.pawl("get", "k", "--json").json["held"])
        # The signal waits for it to be continued.
        shell.type(CTRL_C)
        shell.wait("^C")
        os.killpg(os.tcgetpgrp(shell.terminal), signal.SIGCONT)
        self.assertIn("end-130", shell.end())

    def test_without_a_shell_that_could_continue_it_ctrl_z_stops_nothing(self):
        shell = Shell(self, "", ("bash", "--norc", "-c", "exec $PAWL run k -- %s" % ASK))
        shell.after("ask-", CTRL_Z)
        shell.type(b"yes\n")
        self.assertIn("got-yes", shell.end())

    def test_a_shell_may_be_the_command(self):
        shell = Shell(self, "$PAWL run k -- env PS1=prompt- bash --norc -i; echo end-$?")
        shell.after("prompt-", b"sh -c 'echo a\"\"sk-; exec cat'\n")
        shell.after("ask-", CTRL_Z)
        shell.wait("Stopped")
        shell.after("prompt-", b"fg\n")
        shell.after("exec cat'\r\n", b"yes\n")
        shell.after("yes\r\nyes", CTRL_C)
        shell.after("prompt-", b"exit 4\n")
        self.assertIn("end-4", shell.end())
        self.is_free()


class Waiting(DevCase):
    """What is said on a terminal while a command waits."""

    def hold(self, key, *more):
        """Holds the key until the returned process is told to end."""
        holder = self.begin("run", key, *more, "--", "sh", "-c", "echo held; exec sleep 1000")
        self.assertEqual(holder.stdout.readline(), "held\n")
        return holder

    def queue(self, key, *more):
        """Waits for the key with another process, and returns it."""
        waiter = self.begin("run", key, *more, "--wait", "1m", "--", "sleep", "1000")
        end = time.monotonic() + PATIENCE
        while "%d" % waiter.pid not in self.pawl("waiters", key).out:
            self.assertLess(time.monotonic(), end)
        return waiter

    def test_a_wait_tells_the_holder_and_the_place_once_and_each_change(self):
        for runs in (*RUNS, "acquire"):
            command, has = ("", "lock id") if runs == "acquire" else ("-- echo mine-", "mine-")
            wait = "" if runs.startswith("elect") else "--wait 1m"
            holder = self.hold("k", "--owner", "first", "--label", "nightly")
            other = self.queue("k")
            shell = Shell(self, "$PAWL %s k %s %s" % (runs, wait, command))
            shell.wait("waiting for 'k': held by first (")
            shell.wait("nightly), 2nd in line\r\n")
            other.terminate()
            shell.wait("waiting for 'k': held by first (")
            shell.wait("nightly), 1st in line\r\n")
            holder.terminate()
            shell.wait(has)
            self.assertNotIn("waiting for", shell.end())
            self.pawl("break", "k", "--now")

    def test_of_several_keys_the_one_that_is_waited_for_is_told(self):
        holder = self.hold("b", "--owner", "first")
        shell = Shell(self, "$PAWL run c b a --wait 1m -- echo mine-")
        shell.wait("waiting for 'b': held by first (")
        shell.wait("), 1st in line\r\n")
        holder.terminate()
        shell.wait("mine-")

    def test_readers_are_counted_and_a_key_that_a_lock_delay_keeps_closed_is_said_to_be(self):
        self.hold("r", "--shared", "--owner", "reader")
        self.hold("r", "--shared", "--owner", "reader")
        shell = Shell(self, "$PAWL run r --wait 1m -- true")
        shell.wait("waiting for 'r': held by reader (")
        shell.wait(") and 1 more, 1st in line\r\n")
        self.succeeds(self.pawl("acquire", "k", "--owner", "lost", "--lease", "100ms",
                                "--lock-delay", "10s"))
        shell = Shell(self, "$PAWL run k --wait 1m -- true")
        shell.wait("waiting for 'k': kept closed, because it was lost by lost (")

    def test_no_name_reaches_the_terminal_as_it_is(self):
        odd = "a\x1b[2Jb\u202e\nc"
        self.hold(odd, "--owner", odd, "--label", odd)
        shell = Shell(self, "$PAWL run $'a\\e[2Jb\\u202e\\nc' --wait 1m -- true")
        shown = "a\\x1b[2Jb\\xe2\\x80\\xae\\x0ac"
        shell.wait("waiting for '%s': held by %s (" % (shown, shown))
        shell.wait("%s), 1st in line\r\n" % shown)

    def test_pipes_logs_json_and_the_background_see_nothing(self):
        self.hold("k")
        for words in ("2>log; echo end-; cat log", "2>&1 | cat; echo end-", "--json; echo end-",
                      "& wait; echo end-"):
            shell = Shell(self, "$PAWL acquire k --wait 1200ms " + words)
            shown = shell.end()
            self.assertIn("end-", shown)
            self.assertNotIn("waiting for", shown)

    def test_without_a_node_it_says_so_and_for_how_long_it_tries(self):
        nobody = "unix:" + os.path.join(self.folder, "nobody")
        for command, left in (("run k --timeout 1m -- true", "trying for 5"),
                              ("run k --wait 10m --timeout 1m -- true", "trying for 10m5"),
                              ("elect k -- true", "trying on"),
                              ("acquire k --timeout 1m", "trying for 5"),
                              ("get k --timeout 1m", "trying for 5")):
            shell = Shell(self, "PAWL_ENDPOINTS=%s $PAWL %s" % (nobody, command))
            shell.wait("no node answers yet (" + left)
            shell.wait("): %s: No such file or directory\r\n" % nobody)

    def test_a_node_that_hangs_is_told_and_so_is_the_holder_when_it_goes_on(self):
        self.hold("k", "--owner", "first", "--lease", "1m")
        shell = Shell(self, "$PAWL run k --wait 1m -- true")
        shell.wait("held by first (")
        self.addCleanup(self.node.process.send_signal, signal.SIGCONT)
        self.node.process.send_signal(signal.SIGSTOP)
        shell.wait(" any more (trying for ")
        self.node.process.send_signal(signal.SIGCONT)
        shell.wait("held by first (")

    def test_a_wait_that_ends_while_a_node_is_asked_for_its_reason_leaves_nothing_behind(self):
        self.addCleanup(self.node.process.send_signal, signal.SIGCONT)
        self.node.process.send_signal(signal.SIGSTOP)
        # The first question is sent after half a second, and waits for its answer for a second.
        for command, status in (("$PAWL acquire k --timeout 1s", 3),
                                ("$PAWL get k --timeout 1s", 3),
                                ("$PAWL run k --timeout 1s -- true", 113),
                                ("timeout --foreground -s INT 1 $PAWL elect k -- true", 124)):
            shown = Shell(self, command + "; echo end-$?").end()
            self.assertIn("end-%d" % status, shown)
            self.assertNotIn("Sanitizer", shown)


if __name__ == "__main__":
    cli_fixture.main()
