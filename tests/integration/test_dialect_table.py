"""test_dialect_table.py PAWLD [--print]: every command of the dialects on a key in every state
(dialect_table.txt): what the client is told, and what the key holds afterwards. --print runs the
commands of the table and prints it as it is, to be read before it is believed."""

import collections
import hashlib
import os
import re
import shutil
import sys
import tempfile
import time
import unittest

import pawltest
from pawltest import wait_until
from test_compare import Cluster, Text, resp
from test_tls import Certificates

FOLDER = os.path.dirname(os.path.abspath(__file__))
TABLE = os.path.join(FOLDER, "dialect_table.txt")
# How long what is prepared lasts, in seconds. The commands take and renew for 40 s.
SHORT = 30
# What is over for its client lasts for so long, in seconds: all commands must be through by then.
SLACK = 15
# By how much a lease is longer at least that was extended, in ms: each master counts from when it
# heard of the lock.
APART = 3000
# What the commands name as a script: its text means what the operator says.
KINDS = ("take value=1 length=2", "renew value=1 length=2", "add value=1 length=2",
         "renew-or-take value=1 length=2", "release value=1", "read", "left-if-mine value=1")
SETTINGS = "slack = %ds\nwithout_end = keep\n" % SLACK
# What is with the key before the command.
STATES = {
    "free": "nobody has it",
    "ended": "a lock on it has ended by itself",
    "own": "a client of a dialect with the same identity has it, with the value `old`",
    "over": "as above, but its client counts it as over; the slack runs",
    "endless": "as `own`, without an end",
    "closing": "a client of Pawl had it until its lease ended; its lock delay runs",
    "other": "a client of a dialect with another identity has it, with the value `old`",
    "native": "a client of Pawl with the same identity has it, with the value `old`",
    "empty": "as above, without a value",
    "shared": "a client of Pawl shares it, with the same identity and the value `old`",
    "last": "as above, and so does one with another identity, whose lease ends earlier",
    "early": "as above, and so does one with another identity, whose lease ends later",
    "permit": "a client of Pawl has one of two permits, with the same identity and value `old`",
}
# What names no key, or is tested elsewhere with what only it does.
KEYLESS = set("""
    AUTH CLIENT COMMAND CONFIG DBSIZE DISCARD ECHO EXEC FLUSHALL FLUSHDB HELLO INFO KEYS MULTI
    PING PSUBSCRIBE PUNSUBSCRIBE QUIT RESET ROLE SCRIPT SELECT SENTINEL SUBSCRIBE TIME
    UNSUBSCRIBE WAIT flush_all ma mn quit stats verbosity version
""".split())
SOURCES = ("src/redis/redis.c", "src/memcached/memcached.c")


class Row(collections.namedtuple("Row", "line name overwrites dialect text cells")):
    """A command, and for each state what it is told, and what the key holds then."""

    def bytes(self, key, unique):
        text = (self.text.replace("KEY", key).replace("UNIQUE", str(unique))
                .replace("STALE", str(unique + 1)))
        if self.dialect == "redis":
            return resp(*(w.replace("''", "") for w in text.split()))
        head, data, value = text.partition(" |")
        value = value.strip()
        return ((head.replace("SIZE", str(len(value))) + "\r\n").encode()
                + ((value + "\r\n").encode() if data else b""))


def table():
    rows = []
    with open(TABLE, encoding="utf-8") as f:
        for number, line in enumerate(f, 1):
            if line.startswith("#") or not line.strip():
                continue
            if not line.startswith("\t"):
                dialect, text = line.rstrip('\n').split(None, 1)
                name, _, more = dialect.partition("+")
                rows.append(Row(number, line.strip(), more == "overwrite", name, text, {}))
                continue
            told, then, states = re.split(r"\t+", line.strip("\t\n"))
            for state in states.split():
                assert state in STATES and state not in rows[-1].cells, line
                rows[-1].cells[state] = (told, then)
    return rows


class Named(Cluster):
    """A cluster whose clients have names, and whose node b lets locks be overwritten."""

    def __init__(self, folder):
        self.certificates = Certificates(folder)
        for name, kind in (*((n, "node") for n in "abc"), ("me", "client"), ("you", "client")):
            self.certificates.make(name, "pawl:%s:%s" % (kind, name))
        rules = pawltest.rights(folder, ("me", pawltest.KEYS), ("you", pawltest.ALL))
        scripts = "".join("%s = %s\n" % (hashlib.sha1(kind.split()[0].encode()).hexdigest(), kind)
                          for kind in KINDS)

        def section(_, name):
            return "ca = %s\ncert = %s\nkey = %s\n%s[redis.scripts]\n%s" % (
                *(self.certificates.path(f) for f in ("ca.crt", name + ".crt", name + ".key")),
                rules, scripts)
        super().__init__(PAWLD, SETTINGS, tls=section)

    def write_configs(self):
        super().write_configs()
        with open(self.config("b"), encoding="utf-8") as f:
            text = f.read()
        with open(self.config("b"), "w", encoding="utf-8") as f:
            f.write(text.replace(SETTINGS, SETTINGS + "overwrite = break\n"))


def said(dialect, client):
    """Returns the reply as the table has it: numbers of time and tokens as N, errors by code and
    the words that tell them apart."""
    lines = [client.line()]
    if dialect == "redis":
        size = lines[0][:1]
        for _ in range(int(lines[0][1:]) if size == b"*" else 0):
            lines.append(client.line())
            if lines[-1][:1] == b"$" and lines[-1] != b"$-1":
                lines.append(client.line())
        if size == b"$" and lines[0] != b"$-1":
            lines.append(client.line())
    elif lines[0].startswith(b"VALUE "):
        lines += [client.line(), client.line()]
    elif re.match(rb"VA \d", lines[0]):
        lines.append(client.line())
    text = " ".join(line.decode() for line in lines)
    error = re.match(r"-?(SERVER_ERROR|CLIENT_ERROR|[A-Z]+) .*(does not overwrite|another identity|"
                     "right break|without an end|no counter|does not add|unknown command|keeps it|"
                     "not free yet|stays as it is)", text)
    if error:
        return "%s: %s" % error.groups()
    text = re.sub(r"(?<=[a-z]-)\d+", "", re.sub(r"\b[a-z]+-\d+\b", "KEY", text))
    return re.sub(r"(:| |exp=|cas=|\bc|\bt)\d\d+\b", r"\1N", text).strip()


def seen(client, key):
    """Returns who holds the key, by token, and until when at most: a read from any quorum hears of
    an extension."""
    entry = client.call("get", key=key, consistency="quorum")
    holders = entry.get("holders") or ([entry] if entry["held"] else [])
    # Its node extends a lock without an end.
    return {h["token"]: (h["value"].decode(),
                         0 if h.get("without_end") else h["held_at_most_ms"]) for h in holders}


def holds(before, after):
    """Returns what became of a key: "same", or what has changed of the locks on it, in the order of
    their tokens. A lock whose value has changed lasts longer, too, unless there is a "!"."""
    words = []
    for token in sorted({*before, *after}):
        if token not in after:
            words.append("ended")
        elif token not in before:
            words.append("taken:" + (after[token][0] or "''"))
        else:
            (old, lasted), (new, lasts) = before[token], after[token]
            longer = lasts > lasted + APART
            words.append("value:" + new + "!" * (not longer) if new != old
                         else "longer" if longer else "")
    return " ".join(w for w in words if w) or "same"


class DialectTable(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.mkdtemp(prefix="pawl-table-")
        cls.addClassCleanup(shutil.rmtree, folder)
        cls.cluster = Named(folder)
        cls.cluster.__enter__()
        cls.addClassCleanup(cls.cluster.__exit__)

    def text(self, node, dialect, name):
        ports = {"redis": self.cluster.redis_ports, "memcached": self.cluster.memcached_ports}
        client = Text(ports[dialect][node], self.cluster.certificates.context(name))
        self.addCleanup(client.close)
        return client

    def native(self, node, name):
        client = self.cluster.client(node, tls=self.cluster.certificates.context(name))
        self.addCleanup(client.close)
        return client

    def prepare(self, rows, state):
        """Brings a key for each row into the state. Returns the unique of each."""
        me, you = self.native("a", "me"), self.native("c", "you")

        def native(*clients, **options):
            """The lease of each client is longer than that of the one before."""
            def each(key):
                for n, client in enumerate(clients):
                    client.call("acquire", key=key, **{"lease_ms": 1000 * (SHORT + 10 * n),
                                                       **options})
            return each

        def by(name, *length):
            client = self.text("a", "redis", name)

            def each(key):
                client.send(resp("SET", key, "old", "NX", *length))
                self.assertEqual(client.line(), b"+OK")
            return each
        way = {"free": lambda key: None, "ended": native(me, value="old", lease_ms=100),
               "own": by("me", "EX", SHORT), "over": by("me", "PX", 1), "endless": by("me"),
               "other": by("you", "EX", SHORT),
               "closing": native(me, value="old", lease_ms=100, lock_delay_ms=1000 * SLACK),
               "native": native(me, value="old"), "empty": native(me),
               "shared": native(me, value="old", mode="shared"),
               "last": native(you, me, value="old", mode="shared"),
               "early": native(me, you, value="old", mode="shared"),
               "permit": native(me, value="old", permits=1, of=2)}[state]
        uniques, before = {}, {}
        for row in rows:
            key = "%s-%d" % (state, row.line)
            way(key)
        for row in rows:
            key = "%s-%d" % (state, row.line)
            if state in ("ended", "closing"):
                wait_until(self, lambda key=key: not seen(you, key))
            before[row.line] = seen(you, key)
            uniques[row.line] = max(before[row.line], default=1)
        if state == "over":
            time.sleep(0.002)
        return uniques, before

    def cells(self):
        """Runs all commands in all states, and yields what each has come to."""
        rows = table()
        clients = {(d, o): self.text("b" if o else "a", d, "me") for d in ("redis", "memcached")
                   for o in (False, True)}
        witness = self.native("c", "you")
        for state in STATES:
            uniques, before = self.prepare(rows, state)
            for row in rows:
                key = "%s-%d" % (state, row.line)
                client = clients[row.dialect, row.overwrites]
                client.send(row.bytes(key, uniques[row.line]))
                told = said(row.dialect, client)
                yield row, state, (told, holds(before[row.line], seen(witness, key)))

    def test_the_table_has_each_command(self):
        served = set()
        for source in SOURCES:
            with open(os.path.join(FOLDER, "../..", source), encoding="utf-8") as f:
                served |= set(re.findall(r'^\t\{ "([\w.]+)", \d', f.read(), re.M))
        shown = {row.text.split()[0] for row in table()}
        self.assertEqual(served - shown, KEYLESS)

    def test_each_command_in_each_state(self):
        for row, state, cell in self.cells():
            with self.subTest(command=row.name, line=row.line, state=state):
                self.assertEqual(cell, row.cells.get(state))


def print_table():
    DialectTable.setUpClass()
    case, cells = DialectTable(), collections.defaultdict(dict)
    try:
        for row, state, cell in case.cells():
            cells[row.name].setdefault(cell, []).append(state)
    finally:
        case.doCleanups()
        DialectTable.doClassCleanups()
    for name, by_cell in cells.items():
        print("\n" + name)
        for (told, then), states in sorted(by_cell.items(), key=lambda c: -len(c[1])):
            print("\t%s\t%s\t%s" % (told, then, " ".join(states)))


if __name__ == "__main__":
    if "--print" in sys.argv:
        PAWLD = sys.argv[1]
        print_table()
    else:
        pawltest.main(globals())
