"""Probes of the admin port while others take all that the port gives: whoever watches over a node
must not take it for dead because it is read much."""

import multiprocessing
import select
import socket
import sys
import time
import unittest

import pawltest
from adminhttp import AdminCluster, fetch
from pawltest import split

PAWLD = None

# More than the port has places for readers, and fewer than it has for probes.
CROWD = 48
CROWD_OF_PROBES = 24
PROBES = 40
# The longest that a probe may take at its median. Behind 32 readers it would take over 0.3 s.
MEDIAN_MAX_S = 0.25


class Crowd:
    """Connections that ask for one path without end, and connect again when they are closed. They
    read the answers or not. They are a process of their own, so that they share no interpreter with
    whoever measures."""

    def __init__(self, address, path, reads, size):
        self.address, self.reads, self.size = split(address), reads, size
        self.request = b"GET %s HTTP/1.1\r\nHost: localhost\r\n\r\n" % path.encode() * 8
        self.over, self.begun = multiprocessing.Event(), multiprocessing.Event()
        self.process = multiprocessing.Process(target=self.run)

    def __enter__(self):
        self.process.start()
        assert self.begun.wait(pawltest.PATIENCE)
        return self

    def __exit__(self, *_):
        self.over.set()
        self.process.join()

    def connect(self):
        s = socket.socket()
        s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        s.connect(self.address)
        s.sendall(self.request)
        return s

    def keep(self, s):
        """Reads what has come, and asks for more. Returns false if the node has closed."""
        try:
            if not s.recv(1 << 16):
                return False
            s.send(self.request, socket.MSG_DONTWAIT)
        except BlockingIOError:
            pass
        except OSError:
            return False
        return True

    def run(self):
        crowd = [self.connect() for _ in range(self.size)]
        self.begun.set()
        while not self.over.is_set():
            events = select.POLLIN if self.reads else select.POLLRDHUP
            waiting = select.poll()
            at = {s.fileno(): s for s in crowd}
            for s in crowd:
                waiting.register(s, events)
            for fd, _ in waiting.poll(20):
                s = at[fd]
                if not self.reads or not self.keep(s):
                    crowd.remove(s)
                    s.close()
                    crowd.append(self.connect())
        for s in crowd:
            s.close()


class Probes(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = AdminCluster(PAWLD, masters=1).__enter__()
        cls.addClassCleanup(cls.cluster.__exit__)
        cls.cluster.wait_ready("a")

    def beside(self, path, reads=True, size=CROWD):
        """Every probe is answered, and soon, beside a crowd."""
        address, took = self.cluster.admin["a"], []
        with Crowd(address, path, reads, size):
            for n in range(PROBES):
                begun = time.monotonic()
                probe = ("/livez", "/readyz", "/healthz")[n % 3]
                self.assertEqual(fetch(address, probe)[0], 200)
                took.append(time.monotonic() - begun)
        took.sort()
        sys.stderr.write("probes beside %s: p50 %.1f ms, longest %.1f ms\n"
                         % (path, took[len(took) // 2] * 1000, took[-1] * 1000))
        self.assertLess(took[len(took) // 2], MEDIAN_MAX_S)

    def test_beside_busy_readers(self):
        self.beside("/metrics")

    def test_beside_slow_readers(self):
        self.beside("/metrics", reads=False)

    def test_beside_other_probes(self):
        self.beside("/readyz?verbose", size=CROWD_OF_PROBES)

    def test_a_reader_is_answered_beside_probes(self):
        with Crowd(self.cluster.admin["a"], "/livez", True, CROWD_OF_PROBES):
            self.assertEqual(self.cluster.fetch("a", "/metrics")[0], 200)


if __name__ == "__main__":
    pawltest.main(globals())
