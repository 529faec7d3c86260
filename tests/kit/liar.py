#!/usr/bin/env python3
"""liar.py LIE COMMAND...: a runner that breaks a rule, so that mixed_judge.py --prove sees whether
the judge finds it. What the runner COMMAND says is passed on, except for one thing:

valid   a lock is valid for 3 s longer than it is
late    a loss is told 2 s later
mute    no loss is told
token   each third token is that of the lock before
crash   the runner dies after its twentieth lock
"""

import json
import os
import subprocess
import sys
import threading
import time

LONGER_MS, LATER_S, LOCKS = 3000, 2.0, 20


class Liar:
    def __init__(self, lie, command):
        self.lie, self.asked, self.locks, self.before = lie, {}, 0, "1"
        self.writing = threading.Lock()
        self.runner = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                       text=True, bufsize=1)

    def pass_commands_on(self):
        for line in sys.stdin:
            command = json.loads(line)
            self.asked[command["id"]] = command["do"]
            self.runner.stdin.write(line)
            self.runner.stdin.flush()
        self.runner.stdin.close()

    def pass_answers_on(self):
        for line in self.runner.stdout:
            said = json.loads(line)
            if said.get("event") == "lost" and self.lie == "late":
                threading.Timer(LATER_S, self.say_late, [said]).start()
            elif said.get("event") != "lost" or self.lie != "mute":
                self.say(self.bent(said))
        return self.runner.wait()

    def say(self, said):
        with self.writing:
            sys.stdout.write(json.dumps(said) + "\n")
            sys.stdout.flush()

    def say_late(self, said):
        self.say({**said, "at": time.clock_gettime_ns(time.CLOCK_BOOTTIME) // 1000})

    def bent(self, said):
        do, ok = self.asked.pop(said.get("id"), None), said.get("ok", {})
        if self.lie == "valid" and do == "valid" and ok.get("valid_ms"):
            ok["valid_ms"] += LONGER_MS
        if do in ("lock", "campaign") and "token" in ok:
            self.locks += 1
            if self.lie == "token" and self.locks % 3 == 0:
                ok["token"] = self.before
            self.before = ok["token"]
            if self.lie == "crash" and self.locks == LOCKS:
                self.runner.kill()
                os._exit(70)
        return said


def main():
    liar = Liar(sys.argv[1], sys.argv[2:])
    threading.Thread(target=liar.pass_commands_on, daemon=True).start()
    status = liar.pass_answers_on()
    for timer in threading.enumerate():
        if isinstance(timer, threading.Timer):
            timer.join()
    return status


if __name__ == "__main__":
    sys.exit(main())
