"""Interrupts a program at a chosen point: a cancellation at any of its awaits, or Ctrl-C at any
bytecode of the package."""

import asyncio
import dis
import os
import random
import signal
import sys
import threading
import time

import pawl

PACKAGE = os.path.dirname(pawl.__file__)


class Canceled:
    """Awaits a coroutine in the present task, and cancels this task some turns of the loop after
    its wait number `at` has begun. again: it goes on to cancel in each turn, as anyio does."""

    def __init__(self, work, at, turns=0, again=False):
        self._work, self._at, self._turns, self._again = work, at, turns, again
        self._waits = 0
        self.done = False
        self.canceled = False

    def __await__(self):
        steps, thrown = self._work.__await__(), None
        self._task = asyncio.current_task()
        try:
            while True:
                waits = steps.send(None) if thrown is None else steps.throw(thrown)
                self._waits += 1
                if self._waits == self._at:
                    self._turn(self._turns)
                try:
                    thrown = yield waits
                except BaseException as error:  # The work gets it.
                    thrown = error
        except StopIteration:
            pass
        finally:
            self.done = True

    def _turn(self, left):
        if self.done:
            return
        if left == 0:
            self.canceled = True
            self._task.cancel()
        if left > 0 or self._again:
            asyncio.get_running_loop().call_soon(self._turn, max(0, left - 1))


class Traced:
    """Raises KeyboardInterrupt in this thread before bytecode number `at` of the package."""

    def __init__(self, at):
        self._left = at
        self._thread = threading.get_ident()
        self.raised = False
        self.where = ""

    def __enter__(self):
        if sys.version_info >= (3, 12):
            self._monitor()
        else:
            sys.settrace(self._call)
        return self

    def __exit__(self, kind, error, trace):
        if sys.version_info >= (3, 12):
            sys.monitoring.set_events(sys.monitoring.DEBUGGER_ID, 0)
            sys.monitoring.free_tool_id(sys.monitoring.DEBUGGER_ID)
        else:
            sys.settrace(None)

    # ---- Python 3.12 and later ----

    def _monitor(self):
        tool, event = sys.monitoring.DEBUGGER_ID, sys.monitoring.events.INSTRUCTION
        sys.monitoring.use_tool_id(tool, "interrupts")
        sys.monitoring.register_callback(tool, event, self._instruction)
        sys.monitoring.restart_events()
        sys.monitoring.set_events(tool, event)

    def _instruction(self, code, offset):
        if not code.co_filename.startswith(PACKAGE):
            return sys.monitoring.DISABLE
        if not self.raised and threading.get_ident() == self._thread:
            self._step(code, offset)

    # ---- before that ----

    def _call(self, frame, event, arg):
        if not frame.f_code.co_filename.startswith(PACKAGE):
            return None
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        return self._local

    def _local(self, frame, event, arg):
        if event == "opcode":
            self._step(frame.f_code, frame.f_lasti)
        return self._local

    def _step(self, code, offset):
        if dis.opname[code.co_code[offset]].startswith("RETURN_"):
            return  # For the function this would be no different from one that comes just after it.
        self._left -= 1
        if self._left == 0:
            self.raised = True
            self.where = "%s, %s, byte %d" % (os.path.basename(code.co_filename), code.co_name,
                                              offset)
            raise KeyboardInterrupt


class Shooter:
    """Runs functions while a thread sends SIGINT once or twice, at random moments."""

    def __init__(self):
        self._main = threading.get_ident()
        self._aimed = threading.Semaphore(0)
        self._pauses, self._shooting, self.shots = (), False, 0
        self._before = signal.signal(signal.SIGINT, signal.default_int_handler)
        threading.Thread(target=self._shoot, daemon=True).start()

    def close(self):
        signal.signal(signal.SIGINT, self._before)

    def _shoot(self):
        while True:
            self._aimed.acquire()
            for pause in self._pauses:
                time.sleep(pause)
                self.shots += 1
                signal.pthread_kill(self._main, signal.SIGINT)
            self._shooting = False

    def run(self, function, span):
        """Runs the function, with the first interrupt within that many seconds. Returns what it
        raised, as texts; no interrupt is left afterwards."""
        again = (random.uniform(0, span / 4),) if random.random() < 0.2 else ()
        self._pauses = (random.uniform(0, span), *again)
        raised = []
        try:
            try:
                self._shooting = True
                self._aimed.release()
                function()
            except BaseException as error:  # As a text, so that no frames are kept.
                raised.append("%s: %s" % (type(error).__name__, error))
            self._quiet()
        except KeyboardInterrupt:  # There is one more at most.
            try:
                self._quiet()
            except KeyboardInterrupt:
                pass
        return raised

    def _quiet(self):
        """Waits for the last interrupt, which comes out of this function at the latest."""
        while self._shooting:
            time.sleep(0.0001)
        time.sleep(0)
