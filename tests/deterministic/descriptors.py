"""Carries out the calls of processes: what is behind their descriptors, files, and chance."""

import errno
import struct

from network import AF_INET, EPOLLERR, EPOLLHUP, EPOLLIN, Listener, Stream, address, port_of

EVENT = struct.Struct("=IQ")
CTL_ADD, CTL_DEL, CTL_MOD = 1, 2, 3
OK = (0, 0, b"")


def failed(error):
    return -1, error, b""


class Timer:
    """A timer by the clock of its node. `when`: 0 is never."""

    def __init__(self, node):
        self.node, self.when = node, 0

    def ready(self):
        return EPOLLIN if self.when and self.node.clock() >= self.when else 0

    def read(self, _):
        if not self.ready():
            return failed(errno.EAGAIN)
        self.when = 0
        return 8, 0, struct.pack("=Q", 1)

    def closed(self):
        self.when = 0


class Counter:
    """An eventfd."""

    def __init__(self, count):
        self.count = count

    def ready(self):
        return EPOLLIN if self.count else 0

    def read(self, _):
        if not self.count:
            return failed(errno.EAGAIN)
        count, self.count = self.count, 0
        return 8, 0, struct.pack("=Q", count)

    def write(self, data):
        self.count += struct.unpack("=Q", data)[0]
        return len(data), 0

    def closed(self):
        pass


class PipeEnd:
    """The end of a pipe that is read, or, with `to`, the one that is written."""

    def __init__(self, to=None):
        self.to, self.bytes = to, b""

    def ready(self):
        return EPOLLIN if self.bytes else 0

    def read(self, most):
        if not self.bytes:
            return failed(errno.EAGAIN)
        data, self.bytes = self.bytes[:most], self.bytes[most:]
        return len(data), 0, data

    def write(self, data):
        self.to.bytes += data
        return len(data), 0

    def closed(self):
        pass


class Epoll:
    def __init__(self, table):
        self.table, self.watched = table, {}

    def ready_now(self):
        for fd, (events, data) in self.watched.items():
            mask = self.table[fd].ready() & (events | EPOLLERR | EPOLLHUP)
            if mask:
                yield mask, data

    def some_ready(self):
        return any(self.ready_now())

    def closed(self):
        self.watched = {}


# ---- the calls ----

def carry_out(conductor, thread, call, interrupted):
    """Returns (result, errno, data)."""
    name, fd, a, b, data = call
    if interrupted:
        return failed(errno.EINTR)
    return HANDLERS[name](conductor, thread, fd, a, b, data)


def do_nothing(*_):
    return OK


def do_socket(conductor, thread, fd, family, *_):
    if family != AF_INET:
        return failed(errno.EAFNOSUPPORT)
    thread.node.table[fd] = Stream(conductor.network, thread.node.name)
    return OK


def do_bind(conductor, thread, fd, a, b, data):
    thread.node.table[fd].port = port_of(data)
    return OK


def do_listen(conductor, thread, fd, *_):
    node, port = thread.node, thread.node.table[fd].port
    if port in conductor.network.listeners:
        return failed(errno.EADDRINUSE)
    conductor.network.listeners[port] = node.table[fd] = Listener(node.name, port)
    return OK


def do_accept(conductor, thread, fd, taken, *_):
    backlog = thread.node.table[fd].backlog
    if not backlog:
        return failed(errno.EAGAIN)
    thread.node.table[taken] = backlog.popleft()
    return 0, 0, address(thread.node.table[taken].peer_port)


def do_connect(conductor, thread, fd, a, b, data):
    conductor.network.connect(thread.node.table[fd], port_of(data))
    return failed(errno.EINPROGRESS)


def do_shutdown(conductor, thread, fd, *_):
    thread.node.table[fd].shutdown()
    return OK


def do_close(conductor, thread, fd, *_):
    node = thread.node
    gone = node.table.pop(fd)
    for other in node.table.values():
        if isinstance(other, Epoll):
            other.watched.pop(fd, None)
    if isinstance(gone, Listener):
        conductor.network.listeners.pop(gone.port, None)
    gone.closed()
    return OK


def do_name(conductor, thread, fd, *_):
    return 0, 0, address(thread.node.table[fd].port)


def do_peer_name(conductor, thread, fd, *_):
    return 0, 0, address(thread.node.table[fd].peer_port)


def do_error(conductor, thread, fd, *_):
    stream = thread.node.table[fd]
    error, stream.error = stream.error, 0
    return error, 0, b""


def do_read(conductor, thread, fd, most, *_):
    """Now and then less is read than there is."""
    if most > 1 and conductor.random.random() < 0.02:
        most = conductor.random.randrange(8, most) if most > 8 else most
    return thread.node.table[fd].read(most)


def do_write(conductor, thread, fd, a, b, data):
    """Now and then less of a message is written than there is."""
    if leaves(thread.node, fd) and len(data) > 1 and conductor.random.random() < 0.02:
        data = data[:conductor.random.randrange(1, len(data))]
    return *thread.node.table[fd].write(data), b""


def do_epoll(conductor, thread, fd, *_):
    thread.node.table[fd] = Epoll(thread.node.table)
    return OK


def do_epoll_ctl(conductor, thread, fd, operation, watched, data):
    table = thread.node.table[fd].watched
    if (operation == CTL_ADD) == (watched in table):
        return failed(errno.EEXIST if operation == CTL_ADD else errno.ENOENT)
    if operation == CTL_DEL:
        del table[watched]
    else:
        table[watched] = EVENT.unpack(data)
    return OK


def do_epoll_wait(conductor, thread, fd, most, *_):
    """Those that are ready come in any order."""
    ready = list(thread.node.table[fd].ready_now())
    if len(ready) > 1:
        conductor.random.shuffle(ready)
    ready = ready[:most]
    return len(ready), 0, b"".join(EVENT.pack(*one) for one in ready)


def do_timer(conductor, thread, fd, *_):
    thread.node.table[fd] = Timer(thread.node)
    return OK


def do_timer_set(conductor, thread, fd, when, *_):
    thread.node.table[fd].when = when
    return OK


def do_counter(conductor, thread, fd, count, *_):
    thread.node.table[fd] = Counter(count)
    return OK


def do_pipe(conductor, thread, fd, written, *_):
    thread.node.table[fd] = PipeEnd()
    thread.node.table[written] = PipeEnd(thread.node.table[fd])
    return OK


def do_log(conductor, thread, fd, a, b, data):
    for line in data.decode(errors="replace").splitlines():
        conductor.note("%s: %s" % (thread.node.name, line))
    return len(data), 0, b""


# ---- files ----

def in_state(node, path):
    """Returns the name of a file in the state directory, "." for the directory, or None."""
    parts = path.decode().split("/state-%s" % node.name)
    return None if len(parts) != 2 else parts[1].lstrip("/") or "."


def do_file_write(conductor, thread, fd, offset, size, path):
    name = in_state(thread.node, path)
    if name and fails(conductor, thread.node):
        return failed(errno.ENOSPC)
    if name:
        thread.node.disk.write(name, offset, size)
    return OK


def do_file_sync(conductor, thread, fd, a, b, path):
    name, disk = in_state(thread.node, path), thread.node.disk
    if name == ".":
        disk.sync_directory()
    elif name and fails(conductor, thread.node):
        disk.fail_to_sync(name)
        return failed(errno.EIO)
    elif name:
        disk.sync_file(name)
    return OK


def fails(conductor, node):
    """While its disk is failing, every second write and sync of a node does."""
    return conductor.time < node.failing and conductor.random.random() < 0.5


def do_file_create(conductor, thread, fd, a, b, path):
    name = in_state(thread.node, path)
    if name:
        thread.node.disk.create(name)
    return OK


def do_file_rename(conductor, thread, fd, a, b, data):
    try:
        thread.node.disk.rename(*(in_state(thread.node, p) for p in data.split(b"\n")))
    except FileNotFoundError:
        return failed(errno.ENOENT)
    return OK


def do_file_unlink(conductor, thread, fd, a, b, path):
    try:
        thread.node.disk.unlink(in_state(thread.node, path))
    except FileNotFoundError:
        return failed(errno.ENOENT)
    return OK


# ---- chance and threads ----

def do_random(conductor, thread, fd, size, *_):
    return size, 0, thread.node.random.randbytes(size)


def do_spawn(conductor, thread, *_):
    return conductor.spawn(thread), 0, b""


def do_unlock(conductor, thread, *_):
    conductor.wake(thread.node, "lock")
    return OK


def do_wait(conductor, thread, *_):
    return 0 if thread.woken else 1, 0, b""


def do_signal(conductor, thread, fd, condition, *_):
    conductor.wake(thread.node, "wait", condition, most=1)
    return OK


HANDLERS = {name[3:]: function for name, function in globals().items() if name.startswith("do_")}
HANDLERS |= {name: do_nothing for name in ("hello", "join", "lock")}


# ---- points ----

def leaves(node, fd):
    """Returns whether what is written there leaves the process."""
    return isinstance(node.table.get(fd), Stream)


def send_some(node, name, fd, data):
    """Of the message in whose sending the process dies, some first part may have left."""
    if name == "write":
        node.table[fd].write(data[:node.random.randrange(len(data) + 1)])
