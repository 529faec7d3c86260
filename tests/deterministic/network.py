"""Connections between nodes and clients, in virtual time: bytes arrive in order and late, or not
before a cut link is whole again. Nothing here is the kernel's."""

import collections
import errno
import struct

MS = 1000000
# How many bytes may be under way, or wait to be read, in one direction.
WINDOW = 256 * 1024
EPOLLIN, EPOLLOUT, EPOLLERR, EPOLLHUP, EPOLLRDHUP = 1, 4, 8, 16, 0x2000
AF_INET = 2
END, RESET = "end", "reset"


def address(port):
    return struct.pack("=H", AF_INET) + struct.pack(">H4s8x", port, b"\x7f\0\0\x01")


def port_of(data):
    return struct.unpack(">H", data[2:4])[0]


class Listener:
    """A socket that listens."""

    def __init__(self, host, port):
        self.host, self.port, self.backlog = host, port, collections.deque()

    def ready(self):
        return EPOLLIN if self.backlog else 0

    def closed(self):
        for stream in self.backlog:
            stream.closed()


class Stream:
    """One end of a connection. `wake` is called when there is something to do, for an end that
    belongs to a client of the test."""

    def __init__(self, network, host):
        self.network, self.host, self.wake = network, host, None
        self.port = self.peer_port = 0
        self.peer = None
        self.state = "new"
        self.input, self.error = b"", 0
        # The other end sends no more; this end sends no more.
        self.ended = self.shut = False
        # What this end has sent and the other has not received: (when, bytes or END or RESET).
        self.under_way, self.unreceived = collections.deque(), 0

    def ready(self):
        mask = 0
        if self.state == "open":
            mask |= EPOLLIN if self.input or self.ended else 0
            mask |= EPOLLRDHUP if self.ended else 0
            mask |= EPOLLOUT if self.room() > 0 or self.shut else 0
            mask |= EPOLLHUP if self.ended and self.shut else 0
        elif self.state == "broken":
            mask = EPOLLIN | EPOLLOUT | EPOLLERR | EPOLLHUP
        return mask

    def room(self):
        return WINDOW - self.unreceived - (len(self.peer.input) if self.peer else 0)

    def read(self, most):
        if self.state == "broken":
            error, self.error = self.error, 0
            return (-1, error, b"") if error else (0, 0, b"")
        if not self.input:
            return (0, 0, b"") if self.ended else (-1, errno.EAGAIN, b"")
        data, self.input = self.input[:most], self.input[most:]
        if self.peer and self.peer.wake:
            self.peer.wake()
        return len(data), 0, data

    def write(self, data):
        if self.state != "open" or self.shut:
            return -1, errno.ECONNRESET if self.state == "broken" else errno.EPIPE
        data = data[:max(0, self.room())]
        if not data:
            return -1, errno.EAGAIN
        self.network.send(self, data)
        return len(data), 0

    def shutdown(self):
        if self.state == "open" and not self.shut:
            self.shut = True
            self.network.send(self, END)

    def closed(self):
        """The process has closed its end. Unread input makes a reset of it, as in TCP."""
        if self.state == "open":
            if self.input:
                self.network.send(self, RESET)
            else:
                self.shutdown()
        self.state = "closed"

    def receive(self, item):
        if self.state != "open":
            if self.state == "closed" and self.peer and isinstance(item, bytes):
                self.network.send(self, RESET)
            return
        if item is RESET:
            self.broken(errno.ECONNRESET)
        elif item is END:
            self.ended = True
        else:
            self.input += item
        if self.wake:
            self.wake()

    def broken(self, error):
        self.state, self.error = "broken", error
        if self.wake:
            self.wake()


class Network:
    """`at(when, what)` calls what() at a later time; `now()` is the time in ns."""

    def __init__(self, now, at, random):
        self.now, self.at, self.random = now, at, random
        self.listeners, self.streams, self.port = {}, [], 40000
        # Until when a pair of hosts, or a host alone, is cut off.
        self.cuts = {}

    def cut(self, hosts, until):
        self.cuts[frozenset(hosts)] = until

    def whole_at(self, one, other):
        """Returns from when on something gets through between the two."""
        return max(self.cuts.get(frozenset(hosts), 0) for hosts in ((one, other), (one,), (other,)))

    def delay(self):
        """Most often a tenth of a millisecond, and now and then much more."""
        draw = self.random.random()
        if draw < 0.02:
            return self.random.randrange(1 * MS, 60 * MS)
        return self.random.randrange(20000, 400000)

    def send(self, stream, item):
        last = stream.under_way[-1][0] if stream.under_way else 0
        stream.under_way.append((max(last, self.now() + self.delay()), item))
        stream.unreceived += len(item) if isinstance(item, bytes) else 0
        if len(stream.under_way) == 1:
            self.at(stream.under_way[0][0], lambda: self.arrive(stream))

    def arrive(self, stream):
        if not stream.under_way:
            return
        when, item = stream.under_way[0]
        whole = max(when, self.whole_at(stream.host, stream.peer.host))
        if whole > self.now():
            self.at(whole, lambda: self.arrive(stream))
            return
        stream.under_way.popleft()
        stream.unreceived -= len(item) if isinstance(item, bytes) else 0
        stream.peer.receive(item)
        if stream.wake:
            stream.wake()
        if stream.under_way:
            self.at(max(stream.under_way[0][0], self.now()), lambda: self.arrive(stream))

    def connect(self, stream, port):
        self.port += 1
        stream.state, stream.port, stream.peer_port = "connecting", self.port, port
        self.streams.append(stream)
        self.at(self.now() + self.delay(), lambda: self.knock(stream))

    def knock(self, stream):
        """The request for a connection arrives."""
        listener = self.listeners.get(stream.peer_port)
        if stream.state != "connecting":
            return
        whole = self.whole_at(stream.host, listener.host) if listener else 0
        if whole > self.now():
            self.at(whole, lambda: self.knock(stream))
            return
        if listener is None:
            self.at(self.now() + self.delay(), lambda: self.refused(stream))
            return
        other = Stream(self, listener.host)
        other.port, other.peer_port, other.peer, other.state = (stream.peer_port, stream.port,
                                                                stream, "open")
        self.streams.append(other)
        listener.backlog.append(other)
        stream.peer = other
        self.at(self.now() + self.delay(), lambda: self.connected(stream))

    def refused(self, stream):
        if stream.state == "connecting":
            stream.broken(errno.ECONNREFUSED)

    def connected(self, stream):
        if stream.state == "connecting":
            stream.state = "open"
            if stream.wake:
                stream.wake()

    def host_died(self, host):
        """Ends all connections of a host whose process, or power, is gone. Some first part of what
        it has sent still arrives; then the other ends hear of it, sooner or later."""
        for port in [p for p, listener in self.listeners.items() if listener.host == host]:
            del self.listeners[port]
        for stream in self.streams:
            if stream.host != host or stream.state not in ("open", "connecting"):
                continue
            was_open, stream.state = stream.state == "open", "gone"
            stream.wake = None
            if stream.peer is None:
                continue
            left = self.random.randrange(len(stream.under_way) + 1)
            while len(stream.under_way) > left:
                _, item = stream.under_way.pop()
                stream.unreceived -= len(item) if isinstance(item, bytes) else 0
            heard = self.now() + self.random.choice((self.delay(), self.delay(), 800 * MS))
            if was_open:
                self.at(heard, lambda stream=stream: self.send(stream, RESET))
        self.streams = [s for s in self.streams
                        if s.state != "closed" and not (s.state == "gone" and s.peer is None)]
