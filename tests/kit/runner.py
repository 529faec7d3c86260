"""Starts a language's runner, gives it commands, and keeps what it says (README.md)."""

import asyncio
import contextlib
import json
import os
import sys

from scripted_node import now_us

HERE = os.path.dirname(os.path.abspath(__file__))
FOLDER = os.path.join(HERE, "runners")
LINE_BYTES_MAX = 1 << 24
# Clocks of one machine; a runner reads its own just before it writes.
AT_TOLERANCE_US = 1000


class RunnerProblem(Exception):
    """The runner does not do what README.md says of every runner."""


def command_of(name):
    """Returns how the runner of that name is started: by an executable file, or by a JSON file with
    `command`, a list whose parts may have ${KIT} for this folder. A name with a slash is the path
    of an executable file."""
    path = name if "/" in name else os.path.join(FOLDER, name)
    if os.path.isfile(path) and os.access(path, os.X_OK):
        with open(path, "rb") as f:
            in_python = f.readline().rstrip().endswith(b"python3")
        # The interpreter itself: a name in PATH may be a script that looks for it.
        return ([sys.executable] if in_python else []) + [os.path.abspath(path)]
    described = path + ".json"
    if os.path.isfile(described):
        with open(described, encoding="utf-8") as f:
            return [part.replace("${KIT}", HERE) for part in json.load(f)["command"]]
    known = sorted(one.partition(".")[0] for one in os.listdir(FOLDER))
    raise SystemExit("kit: there is no runner %r in %s; there are: %s"
                     % (name, FOLDER, ", ".join(known)))


class Runner:
    def __init__(self, command, talk, environment):
        self._command, self._talk = command, talk
        self._environment = {name: value for name, value in os.environ.items()
                             if not name.startswith("PAWL_")}
        self._environment.update(environment)
        self.events, self.errors = [], b""
        self._answers, self._asked, self._number = {}, {}, 0
        self._process, self._readers = None, []

    async def start(self):
        self._process = await asyncio.create_subprocess_exec(
            *self._command, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE, env=self._environment, limit=LINE_BYTES_MAX)
        self._readers = [asyncio.ensure_future(self._read()),
                         asyncio.ensure_future(self._read_errors())]

    async def _read_errors(self):
        while data := await self._process.stderr.read(65536):
            self.errors = (self.errors + data)[-8192:]

    async def _read(self):
        try:
            while line := await self._process.stdout.readline():
                self._line(line)
            self._talk.note("runner", "ends its output")
        except (RunnerProblem, ValueError, KeyError) as error:
            self._talk.problem("the runner: %s" % (error if isinstance(error, RunnerProblem)
                                                   else repr(error)))
        for future in self._answers.values():
            if not future.done():
                future.set_exception(RunnerProblem("the runner has ended: "
                                                   + self.errors.decode(errors="replace")))
                future.exception()

    def _line(self, line):
        said = json.loads(line)
        if not isinstance(said, dict):
            raise RunnerProblem("this line is no JSON object: %r" % line)
        self._talk.note("runner", "-> " + line.decode().strip())
        at, now = said.get("at"), now_us()
        if not isinstance(at, int) or not self._talk.began - AT_TOLERANCE_US <= at <= now:
            raise RunnerProblem("`at` is not CLOCK_BOOTTIME in microseconds, which is %d now: %s"
                                % (now, line.decode()))
        if "event" in said:
            said["taken"] = False
            self.events.append(said)
            self._check_event(said)
        else:
            if ("ok" in said) == ("error" in said):
                raise RunnerProblem("an answer has either `ok` or `error`: %s" % line.decode())
            future = self._answers.get(said["id"])
            if future is None or future.done():
                raise RunnerProblem("a command is answered that was not given, or twice: %s"
                                    % line.decode())
            self._check_answer(said)
            future.set_result(said)
        self._talk.changed()

    def _check_answer(self, said):
        ok = said.get("ok", {})
        for name in ("token", "tokens"):
            tokens = ok.get(name, [])
            for token in tokens.values() if isinstance(tokens, dict) else [tokens]:
                if token != [] and not (isinstance(token, str) and token.isdecimal()):
                    raise RunnerProblem("a token is a string of decimal digits, and not %r"
                                        % (token,))
        if "valid_ms" in ok and (not isinstance(ok["valid_ms"], int) or ok["valid_ms"] < 0):
            raise RunnerProblem("valid_ms is a whole number of at least 0, and not %r"
                                % (ok["valid_ms"],))

    def _check_event(self, said):
        """A loss is told once, whatever the case is about."""
        if said["event"] == "lost":
            same = [one for one in self.events if one["event"] == "lost"
                    and (one.get("lock"), one.get("key")) == (said.get("lock"), said.get("key"))]
            if len(same) > 1:
                self._talk.problem("the loss of the lock %r is told twice" % said.get("lock"))

    def begin(self, do, parameters):
        """Gives a command, and returns its number."""
        self._number += 1
        self._answers[self._number] = asyncio.get_running_loop().create_future()
        line = json.dumps({"id": self._number, "do": do, **parameters})
        self._talk.note("kit", "-> " + line)
        self._asked[self._number] = now_us()
        self._process.stdin.write(line.encode() + b"\n")
        return self._number

    def asked_at(self, number):
        return self._asked[number]

    async def answer(self, number, seconds):
        """Returns the answer to a command; None: none has come in time."""
        future = self._answers[number]
        done, _ = await asyncio.wait([future], timeout=seconds)
        return future.result() if done else None

    def unanswered(self):
        return [number for number, future in self._answers.items() if not future.done()]

    def take_event(self, matches):
        """Takes the first event that matches and was not taken."""
        for event in self.events:
            if not event["taken"] and matches(event):
                event["taken"] = True
                return event
        return None

    async def end(self, seconds=10):
        """Ends the runner by the end of its input. Returns what is wrong with its end."""
        process = self._process
        if process is None:
            return ""
        wrong = ""
        try:
            process.stdin.close()
            await asyncio.wait_for(process.wait(), seconds)
        except asyncio.TimeoutError:
            wrong = "the runner does not end within %d s of the end of its input" % seconds
            with contextlib.suppress(ProcessLookupError):  # It has ended just now.
                process.kill()
            await process.wait()
        await asyncio.gather(*self._readers, return_exceptions=True)
        if not wrong and process.returncode:
            wrong = "the runner ends with status %d: %s" % (
                process.returncode, self.errors.decode(errors="replace"))
        return wrong
