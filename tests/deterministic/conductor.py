"""Runs the threads of several processes one at a time, in virtual time. Which of those that can go
on is next is drawn from the seed; time passes when none can. The processes are real, with a
preloaded library (channel.h) that asks here for what they would ask the kernel."""

import heapq
import os
import random
import resource
import signal
import socket
import struct
import subprocess
import zlib

import descriptors
from disk import Disk
from network import MS, Network

CALLS = """hello socket bind listen accept connect shutdown close name peer_name error read write
epoll epoll_ctl epoll_wait timer timer_set counter pipe log file_write file_sync file_create
file_rename file_unlink random spawn exit join lock unlock wait signal""".split()
# struct call_out and struct call_back of channel.h.
OUT, BACK = struct.Struct("=Iiqq"), struct.Struct("=qiiqq")
CALL_BYTES_MAX = 64 * 1024
# The folder of a run as its processes name it.
HERE = "/proc/self/cwd"
WALL_NS = 1700000000 * 10**9
# One call takes so long, so that clocks never stand still while a node is busy.
CALL_NS = 1000
# The calls before which a process can be killed.
POINTS = {"file_write", "file_sync", "file_create", "file_rename", "file_unlink"}
# How long, in true time, a thread may take for anything between two calls: (seconds, us).
PATIENCE = struct.pack("@ll", 60, 0)
# A run that has made so many calls does not end any more.
CALLS_MAX = 5000000


class Thread:
    def __init__(self, node, number, channel):
        self.node, self.number, self.channel = node, number, channel
        # The call that it waits in: (name, fd, a, b, data). None: it has not been read yet.
        self.call, self.woken, self.until = None, False, None
        # Until when (in true time) the disk keeps it waiting.
        self.slow = 0
        self.over = False
        # The channel of the thread that this one is about to make.
        self.made = None

    def __repr__(self):
        return "%s.%d" % (self.node.name, self.number)


class Node:
    """One process, and the machine that it is on, which stays when the process is killed."""

    def __init__(self, conductor, name, random_):
        self.conductor, self.name, self.random = conductor, name, random_
        self.disk = Disk(os.path.join(conductor.folder, "state-" + name),
                         random.Random("disk %s" % random_.random()))
        self.process, self.threads, self.table = None, [], {}
        # The signal that the process is to get; until when it is paused, and its disk is failing.
        self.signal, self.stalled, self.failing = 0, 0, 0
        # How many points this machine has passed, and what happens at which: {number: function}.
        self.points, self.at_point = 0, {}
        self.base = self.since = self.ppm = 0

    def start_clock(self, base, ppm):
        """The clock shows `base` now and runs faster than true time by so many millionths."""
        self.base, self.since, self.ppm = base, self.conductor.time, ppm

    def clock(self):
        return self.base + (self.conductor.time - self.since) * (1000000 + self.ppm) // 1000000

    def true(self, at):
        """The first true time at which the clock shows at least this."""
        return self.since - (self.base - at) * 1000000 // (1000000 + self.ppm) + 1

    def alive(self):
        return self.process is not None

    def said(self):
        with open(os.path.join(self.conductor.folder, self.name + ".err")) as file:
            return file.read()


class Conductor:
    def __init__(self, folder, preload, seed, on_end):
        self.folder, self.preload = folder, preload
        self.time, self.calls, self.order = 0, 0, 0
        self.log, self.events, self.nodes = [], [], {}
        self.random = random.Random("schedule %s" % seed)
        self.network = Network(lambda: self.time, self.at, random.Random("network %s" % seed))
        # on_end(node, status) is called when a process has ended by itself.
        self.on_end = on_end
        self.door = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.door.bind(os.path.join(folder, "conductor"))
        self.door.listen(8)
        self.door.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, PATIENCE)

    def let_in(self):
        """Returns the channel of a thread that begins."""
        channel = self.door.accept()[0]
        channel.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, PATIENCE)
        return channel

    # ---- time ----

    def at(self, when, what):
        self.order += 1
        heapq.heappush(self.events, (max(when, self.time), self.order, what))

    def later(self, ns, what):
        self.at(self.time + ns, what)

    def note(self, text):
        self.log.append("%d.%09d %s" % (self.time // 10**9, self.time % 10**9, text))

    # ---- processes ----

    def add(self, name, seed):
        self.nodes[name] = Node(self, name, random.Random("node %s %s" % (name, seed)))
        return self.nodes[name]

    def start(self, name, arguments):
        node = self.nodes[name]
        node.table, node.signal, node.stalled = {}, 0, 0
        self.note("%s starts" % name)
        with open(os.path.join(self.folder, name + ".err"), "ab") as said:
            node.process = subprocess.Popen(
                arguments, cwd=self.folder, stdin=subprocess.DEVNULL, stdout=said, stderr=said,
                env={"LD_PRELOAD": self.preload, "PAWL_TEST_CONDUCTOR": "conductor"},
                preexec_fn=plain_process)
        node.threads = [Thread(node, 1, self.let_in())]

    def kill(self, name, power, worst):
        """Ends the process. With `power` the machine loses its power, too: what was not synced may
        be gone, or is gone if `worst`."""
        node = self.nodes[name]
        node.process.kill()
        node.process.wait()
        self.bury(node)
        lost = node.disk.crash(worst) if power else "nothing"
        self.note("%s is killed at its point %d%s; lost: %s" % (
            name, node.points, ", and its machine is without power" if power else "", lost))

    def bury(self, node):
        for thread in node.threads:
            thread.channel.close()
            thread.over = True
            if thread.made:
                thread.made.close()
        node.process, node.threads, node.table = None, [], {}
        self.network.host_died(node.name)

    def ended(self, node):
        """The process has ended by itself."""
        status = node.process.wait()
        self.bury(node)
        self.note("%s ends with status %d" % (node.name, status))
        self.on_end(node, status)

    def end(self):
        for node in self.nodes.values():
            if node.alive():
                node.process.kill()
                node.process.wait()
                self.bury(node)
        self.door.close()

    # ---- the schedule ----

    def run(self, until):
        while self.time < until:
            while self.events and self.events[0][0] <= self.time:
                heapq.heappop(self.events)[2]()
            ready = [t for n in self.nodes.values() if n.stalled <= self.time for t in n.threads
                     if self.can_go_on(t)]
            if ready:
                self.step(ready[0] if len(ready) == 1 else self.random.choice(ready))
                self.time += CALL_NS
            else:
                self.time = max(self.time + 1, min([until, *self.ends()]))
            if self.calls > CALLS_MAX:
                raise AssertionError("the run does not end")

    def ends(self):
        """Yields the times at which something can go on."""
        if self.events:
            yield self.events[0][0]
        for node in self.nodes.values():
            if node.alive() and node.stalled > self.time:
                yield node.stalled
            for thread in node.threads:
                if thread.until is not None and node.stalled <= self.time:
                    yield node.true(thread.until)
                if thread.slow > self.time:
                    yield thread.slow
            for timer in node.table.values():
                if isinstance(timer, descriptors.Timer) and timer.when and not timer.ready():
                    yield node.true(timer.when)

    def can_go_on(self, thread):
        if thread.call is None:
            return True
        name, fd, a, _, _ = thread.call
        if thread.slow > self.time:
            return False
        if name == "epoll_wait":
            return (thread.node.signal and thread.number == 1 or self.late(thread)
                    or thread.node.table[fd].some_ready())
        if name == "join":
            return all(t.over for t in thread.node.threads if t.number == a)
        if name in ("lock", "wait"):
            return thread.woken or self.late(thread)
        return True

    def late(self, thread):
        return thread.until is not None and thread.node.clock() >= thread.until

    def sync_takes(self):
        """Most often a disk takes some milliseconds, and now and then much longer."""
        return MS * self.random.choice((1, 1, 2, 4, 8, 30, 150))

    def step(self, thread):
        """Carries out the call in which the thread waits, lets it go on, and reads its next one."""
        node = thread.node
        if thread.call is None:
            self.read_call(thread)
        if thread.over:
            return
        name, fd, a, b, data = thread.call
        if name in POINTS or name == "write" and descriptors.leaves(node, fd):
            node.points += 1
            if node.points in node.at_point:
                descriptors.send_some(node, name, fd, data)
                node.at_point.pop(node.points)()
                return
        number = node.signal if name == "epoll_wait" and thread.number == 1 else 0
        result, error, back = descriptors.carry_out(self, thread, thread.call, bool(number))
        if number:
            node.signal = 0
        self.note("%r %s %d %d %d %08x -> %d %d %08x" % (
            thread, name, fd, 0 if name in ("wait", "signal") else a, b, zlib.crc32(data), result,
            error, zlib.crc32(back)))
        self.calls += 1
        now = node.clock()
        thread.channel.send(BACK.pack(result, error, number, now, WALL_NS + now) + back)
        self.read_call(thread)

    def read_call(self, thread):
        message = thread.channel.recv(CALL_BYTES_MAX + OUT.size)
        if not message:
            self.ended(thread.node)
            return
        call, fd, a, b = OUT.unpack_from(message)
        name = CALLS[call]
        # The folder has another name in each run.
        data = message[OUT.size:].replace(self.folder.encode(), HERE.encode())
        thread.call, thread.woken = (name, fd, a, b, data), False
        thread.until = None
        if name == "epoll_wait" and b >= 0:
            thread.until = thread.node.clock() + b * MS
        elif name == "wait" and b:
            thread.until = b
        if name == "exit":
            self.note("%r ends" % thread)
            thread.over = True
            thread.channel.close()
            thread.node.threads.remove(thread)
        elif name == "wait":
            self.wake(thread.node, "lock")
        elif name == "spawn":
            thread.made = self.let_in()
        elif name == "file_sync":
            thread.slow = self.time + self.sync_takes()

    @staticmethod
    def wake(node, name, address=None, most=None):
        """Wakes the threads that wait in the call of this name, the longest waiting first."""
        for thread in node.threads[:]:
            if (thread.call and thread.call[0] == name and not thread.woken and most != 0
                and address in (None, thread.call[2])):
                thread.woken = True
                most = None if most is None else most - 1

    @staticmethod
    def spawn(thread):
        number = 1 + max(t.number for t in thread.node.threads)
        thread.node.threads.append(Thread(thread.node, number, thread.made))
        thread.made = None
        return number


def plain_process():
    """How many files a process may open differs from machine to machine, and nodes log it."""
    resource.setrlimit(resource.RLIMIT_NOFILE, (1024, 1024))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    signal.signal(signal.SIGINT, signal.SIG_IGN)
