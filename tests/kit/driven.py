"""A runner that is driven by threads, with true time and without asyncio: for live.py and
mixed_judge.py (README.md)."""

import json
import os
import signal
import subprocess
import sys
import threading
import time

PATIENCE = 20.0


def boot_us():
    """Returns true time as runners tell it: CLOCK_BOOTTIME in microseconds."""
    return time.clock_gettime_ns(time.CLOCK_BOOTTIME) // 1000


class Refused(Exception):
    """The runner has answered with an error."""

    def __init__(self, error):
        super().__init__(json.dumps(error))
        self.error, self.code = error, error.get("code")


class Ended(Exception):
    """The runner has ended, or does not answer."""


def hello_of(command):
    """Returns what the runner says of itself."""
    runner = Runner(command)
    try:
        return runner.do("hello")
    finally:
        runner.end()


class Runner:
    """A process that does what it is told. `environment` has the variables PAWL_*; `prefix` comes
    before its command, for example to put it into a network namespace."""

    def __init__(self, command, environment=None, prefix=(), trace=False, stderr=None):
        clean = {k: v for k, v in os.environ.items() if not k.startswith("PAWL_")}
        self.trace = trace
        # It has a session of its own, so that a signal also reaches what it may start.
        self.process = subprocess.Popen(
            [*prefix, *command], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=stderr,
            text=True, bufsize=1, env={**clean, **(environment or {})}, start_new_session=True)
        self.last, self.asked, self.answers, self.events = 0, {}, {}, []
        self.clients = set()
        self.over, self.seen, self.writing = False, threading.Condition(), threading.Lock()
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()

    def _read(self):
        for line in self.process.stdout:
            if self.trace:
                print("  %d < %s" % (self.process.pid, line.rstrip()), file=sys.stderr)
            said = json.loads(line)
            with self.seen:
                if "event" in said:
                    self.events.append(said)
                else:
                    self.answers[said["id"]] = said
                self.seen.notify_all()
        with self.seen:
            self.over = True
            self.seen.notify_all()

    # ---- commands ----

    def begin(self, do, **parameters):
        """Sends a command and returns its number. Any thread may do so."""
        with self.writing:
            self.last += 1
            text = json.dumps({"id": self.last, "do": do, **parameters})
            if self.trace:
                print("  %d > %s" % (self.process.pid, text), file=sys.stderr)
            self.asked[self.last] = text
            try:
                self.process.stdin.write(text + "\n")
                self.process.stdin.flush()
            except (OSError, ValueError) as e:  # ValueError: it is closed.
                raise Ended("the runner has ended before: %s" % text) from e
            return self.last

    def wait(self, number, patience=PATIENCE):
        """Returns the answer to the command of that number: its `ok`, with its `at`."""
        with self.seen:
            done = self.seen.wait_for(lambda: number in self.answers or self.over, patience)
            if number not in self.answers:
                raise Ended("the runner %s: %s" % (
                    "has ended before it answered" if done else "has not answered",
                    self.asked[number]))
            answer = self.answers.pop(number)
            del self.asked[number]
        if "error" in answer:
            raise Refused(answer["error"])
        return {**answer["ok"], "at": answer["at"]}

    def answered(self, number):
        """Returns whether the command of that number is answered."""
        with self.seen:
            return number in self.answers

    def do(self, do, **parameters):
        return self.wait(self.begin(do, **parameters))

    def event(self, patience=PATIENCE, **fields):
        """Waits for the first event that has these fields, and takes it out."""
        def found():
            return next((e for e in self.events if fields.items() <= e.items()), None)
        with self.seen:
            self.seen.wait_for(lambda: found() or self.over, patience)
            event = found()
            if event is None:
                raise (Ended if self.over else AssertionError)("no event %s, but %s"
                                                               % (fields, self.events))
            self.events.remove(event)
            return event

    def seen_event(self, **fields):
        with self.seen:
            return any(fields.items() <= e.items() for e in self.events)

    # ---- locks, for short ----

    def client(self, name, *endpoints):
        """Connects a client, once. Endpoints are tried in this order."""
        if name not in self.clients:
            self.clients.add(name)
            more = {"endpoints": list(endpoints), "prefer_first": True} if endpoints else {}
            self.do("connect", client=name, **more)
        return name

    def begin_lock(self, client, name, key, **options):
        return self.begin("lock", client=client, key=key, **{"as": name}, **options)

    def lock(self, client, name, key, **options):
        return self.wait(self.begin_lock(client, name, key, **options))

    # ---- the process ----

    def signal(self, number):
        if self.process.poll() is None:
            os.killpg(self.process.pid, number)

    def kill(self):
        self.signal(signal.SIGKILL)
        self._reap()

    def end(self, patience=PATIENCE):
        """Ends the standard input of the runner, and returns its status."""
        self.signal(signal.SIGCONT)
        try:
            self.process.stdin.close()
        except OSError:
            pass
        try:
            self.process.wait(patience)
        except subprocess.TimeoutExpired:
            self.signal(signal.SIGKILL)
        return self._reap()

    def _reap(self):
        status = self.process.wait(PATIENCE)
        self.reader.join(PATIENCE)
        with self.writing:
            for stream in (self.process.stdin, self.process.stdout):
                try:
                    stream.close()
                except OSError:
                    pass
        return status
