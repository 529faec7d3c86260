"""A small network inside this machine: one network namespace for each host, all on one bridge, and
faults between the hosts.

The bridge is in a namespace, too (the hub), so that nothing outside sees or touches it. The hub has
an address as well, from which tests can observe. This needs root, iproute2, nftables and util-linux
(nsenter), and of Python only the standard library.

    with netns.Net() as net:
        net.add("a"), net.add("b")
        process = net.popen("a", ["pawld", ...])  # the pid is that of the command
        net.cut("a", "b")                         # nothing goes between them, in either direction
        net.cut("a", "b", both=False)             # only what a sends does not reach b
        net.lose("a", 30)                         # of every 100 packets to and from a 30 get lost
        net.heal()
        with net.inside("b"): socket.create_connection(...)   # this thread's new sockets are b's
"""

import contextlib
import ctypes
import os
import re
import shutil
import subprocess

PLACE = "/run/netns"
HUB = "hub"
CLONE_NEWNET = 0x40000000

RULES = """
table inet pawl {
	set cut {
		type ipv4_addr
	}
	chain loss {
	}
	chain input {
		type filter hook input priority 0
		ip saddr @cut drop
		jump loss
	}
}
"""


class Unable(Exception):
    """This machine or this user cannot do that."""


def why_not():
    """Returns None if namespaces can be made here, or a sentence that says why not."""
    if os.geteuid() != 0:
        return "network namespaces need root"
    for tool in ("ip", "nft", "nsenter"):
        if not shutil.which(tool):
            return "the program %s is missing (Debian: iproute2, nftables, util-linux)" % tool
    name = "pawl%d-try" % os.getpid()
    tried = subprocess.run(["ip", "netns", "add", name], capture_output=True, text=True)
    if tried.returncode:
        return "cannot make a network namespace: %s" % tried.stderr.strip()
    try:
        tried = subprocess.run(["nsenter", "--net=%s/%s" % (PLACE, name), "nft", "-f", "-"],
                               input=RULES,
                               capture_output=True, text=True)
        return ("cannot filter packets in a namespace: %s" % tried.stderr.strip()
                if tried.returncode else None)
    finally:
        subprocess.run(["ip", "netns", "delete", name], check=False)


def run(*command, text=None):
    done = subprocess.run(command, input=text, capture_output=True, text=True)
    if done.returncode:
        raise Unable("%s: %s" % (" ".join(command), done.stderr.strip() or done.stdout.strip()))
    return done.stdout


class Net:
    """Hosts on one bridge. Without a prefix the namespaces have this process's number in their
    names, and are removed when the network is closed. With a prefix another process can find them
    again, and knows the existing hosts at once."""

    def __init__(self, prefix=None, subnet="10.117.0"):
        self.prefix = prefix or "pawl%d" % os.getpid()
        self.subnet = subnet
        # The last number of the address of each host.
        self.hosts = {}
        self._libc = ctypes.CDLL(None, use_errno=True)
        if self.exists():
            self._find()
        else:
            self._make_hub()

    # ---- hosts ----

    def namespace(self, host):
        return "%s-%s" % (self.prefix, host)

    def path(self, host):
        return os.path.join(PLACE, self.namespace(host))

    def exists(self, host=HUB):
        return os.path.exists(self.path(host))

    def address(self, host):
        return "%s.%d" % (self.subnet, 254 if host == HUB else self.hosts[host])

    def add(self, host, number=None):
        """Makes a host: a namespace with an address on the bridge, which is the next free one or
        the one with this last number. Returns the address."""
        if host in self.hosts:
            return self.address(host)
        if not re.fullmatch(r"[a-z0-9_-]{1,32}", host) or host == HUB:
            raise ValueError("%r is not a name for a host: use a-z, 0-9, _ and -" % host)
        number = number or next(n for n in range(1, 254) if n not in self.hosts.values())
        run("ip", "netns", "add", self.namespace(host))
        self.hosts[host] = number
        port = "port%d" % number
        run("ip", "-n", self.namespace(HUB), "link", "add", port, "type", "veth",
            "peer", "name", "eth0", "netns", self.namespace(host))
        run("ip", "-n", self.namespace(HUB), "link", "set", port, "master", "bridge", "up")
        self._equip(host, "eth0", number)
        return self.address(host)

    def remove(self, host):
        """Takes the host off the bridge. Its namespace goes when the last process in it ends."""
        run("ip", "-n", self.namespace(HUB), "link", "delete", "port%d" % self.hosts.pop(host))
        run("ip", "netns", "delete", self.namespace(host))

    def pids(self, host):
        """Returns the processes in the host's namespace."""
        return [int(p) for p in run("ip", "netns", "pids", self.namespace(host)).split()]

    # ---- processes and sockets of a host ----

    def command(self, host, arguments):
        """Returns a command that runs the arguments in the host's namespace, with its own pid."""
        return ["nsenter", "--net=" + self.path(host), "--", *arguments]

    def popen(self, host, arguments, **options):
        return subprocess.Popen(self.command(host, arguments), **options)

    def run(self, host, arguments, **options):
        return subprocess.run(self.command(host, arguments), **options)

    @contextlib.contextmanager
    def inside(self, host):
        """Sockets that this thread makes within the block belong to the host, also afterwards."""
        with open("/proc/thread-self/ns/net") as before, open(self.path(host)) as there:
            self._enter(there)
            try:
                yield
            finally:
                self._enter(before)

    # ---- faults ----

    def cut(self, one, other, both=True):
        """What `one` sends does not reach `other` any more, and with both=True vice versa."""
        self._filter(other, "add element inet pawl cut { %s }" % self.address(one))
        if both:
            self._filter(one, "add element inet pawl cut { %s }" % self.address(other))

    def mend(self, one, other):
        for here, there in ((one, other), (other, one)):
            element = "element inet pawl cut { %s }" % self.address(there)
            self._filter(here, "add %s\ndelete %s" % (element, element))

    def partition(self, *groups):
        """Cuts the hosts of different groups off from each other. Hosts in no group are not
        touched."""
        for at, group in enumerate(groups):
            others = [self.address(h) for g in groups[:at] + groups[at + 1:] for h in g]
            for host in group if others else ():
                self._filter(host, "add element inet pawl cut { %s }" % ", ".join(others))

    def isolate(self, host, both=True):
        """Cuts the host off from all other hosts, but not from the hub. With both=False it hears
        them, and they do not hear it."""
        for other in self.hosts:
            if other != host:
                self.cut(host, other, both)

    def lose(self, host, percent):
        """Loses this percentage of the packets to and from the host, at random; 0 ends that."""
        for other in self.hosts:
            if other != host:
                self._lose(host, other, percent)
                self._lose(other, host, percent)

    def heal(self, *hosts):
        """Ends all faults at these hosts; without arguments everywhere."""
        for host in hosts or self.hosts:
            self._filter(host, "flush set inet pawl cut\nflush chain inet pawl loss")

    # ---- the end ----

    def close(self):
        """Removes everything. Processes that still run in the network lose it; whoever started them
        must end them."""
        for host in [*self.hosts, HUB]:
            if self.exists(host):
                subprocess.run(["ip", "netns", "delete", self.namespace(host)], check=False)
        self.hosts = {}

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    # ---- inside ----

    def _make_hub(self):
        run("ip", "netns", "add", self.namespace(HUB))
        try:
            run("ip", "-n", self.namespace(HUB), "link", "add", "bridge", "type", "bridge")
            self._equip(HUB, "bridge", 254)
        except BaseException:
            self.close()
            raise

    def _equip(self, host, device, number):
        run("ip", "-batch", "-", "-n", self.namespace(host), text="\n".join([
            "link set lo up", "address add %s.%d/24 dev %s" % (self.subnet, number, device),
            "link set %s up" % device, ""]))
        self._filter(host, RULES)

    def _find(self):
        for name in os.listdir(PLACE):
            if name.startswith(self.prefix + "-") and name != self.namespace(HUB):
                host = name[len(self.prefix) + 1:]
                shown = run("ip", "-n", name, "-4", "-brief", "address", "show", "dev", "eth0")
                found = re.search(r"(\d+\.\d+\.\d+)\.(\d+)/", shown)
                if found:
                    self.subnet, self.hosts[host] = found.group(1), int(found.group(2))

    def _filter(self, host, rules):
        run(*self.command(host, ["nft", "-f", "-"]), text=rules + "\n")

    def _lose(self, host, sender, percent):
        """Replaces the rule for a sender. The chain has one rule for each, named by its comment."""
        listed = run(*self.command(host, ["nft", "-a", "list", "chain", "inet", "pawl", "loss"]))
        old = re.findall(r'comment "%s" # handle (\d+)' % re.escape(sender), listed)
        rules = ["delete rule inet pawl loss handle %s" % handle for handle in old]
        if percent:
            rules.append('add rule inet pawl loss ip saddr %s numgen random mod 100 < %d drop '
                         'comment "%s"' % (
                self.address(sender), percent, sender))
        if rules:
            self._filter(host, "\n".join(rules))

    def _enter(self, namespace):
        if self._libc.setns(namespace.fileno(), CLONE_NEWNET):
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


def sweep():
    """Removes the namespaces of processes that ended without closing their Net."""
    for name in os.listdir(PLACE) if os.path.isdir(PLACE) else ():
        owner = re.match(r"pawl(\d+)-", name)
        if owner and not os.path.exists("/proc/" + owner.group(1)):
            subprocess.run(["ip", "netns", "delete", name], check=False)
