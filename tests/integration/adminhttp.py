"""A cluster whose nodes have an admin port, and what such a port says. Python's standard library
only."""

import http.client
import json
import re
import socket
import time

from pawltest import PATIENCE, Cluster, free_port, split


def connect_unix(connection, path):
    connection.sock = socket.socket(socket.AF_UNIX)
    connection.sock.settimeout(connection.timeout)
    connection.sock.connect(path)


def fetch(address, path, method="GET", timeout=PATIENCE, headers=None, tls=None):
    """Returns the status, the header fields and the text of an answer."""
    if address.startswith("unix:"):
        connection = http.client.HTTPConnection("localhost", timeout=timeout)
        connection.connect = lambda: connect_unix(connection, address[5:])
    elif tls:
        connection = http.client.HTTPSConnection(*split(address), timeout=timeout, context=tls)
    else:
        connection = http.client.HTTPConnection(*split(address), timeout=timeout)
    try:
        connection.request(method, path, headers=headers or {})
        answer = connection.getresponse()
        return answer.status, dict(answer.getheaders()), answer.read().decode()
    finally:
        connection.close()


def samples(text):
    """The samples of metrics, by their names with labels."""
    return {name: float(value) for name, value in
            re.findall(r"^([^#\s].*) (\S+)$", text, re.M)}


class AdminCluster(Cluster):
    """`admin`: more lines of [admin]."""

    def __init__(self, pawld, admin="", **options):
        super().__init__(pawld, **options)
        self.more = admin

    def write_configs(self):
        super().write_configs()
        self.admin = {n: "127.0.0.1:%d" % free_port() for n in self.names}
        for n in self.names:
            with open(self.config(n), "a") as f:
                f.write("[admin]\nlisten = %s\n%s\n" % (self.admin[n], self.more))

    def joining(self, name, text):
        self.admin[name] = "127.0.0.1:%d" % free_port()
        return text.replace(self.admin[self.names[0]], self.admin[name])

    def fetch(self, name, path, **options):
        return fetch(self.admin[name], path, **options)

    def metrics(self, name):
        return samples(self.fetch(name, "/metrics")[2])

    def status(self, name):
        return json.loads(self.fetch(name, "/status")[2])

    def wait_ready(self, name, status=200):
        """Waits until /readyz has this status; returns after how many seconds, and the text."""
        begun = time.monotonic()
        while True:
            got, _, text = self.fetch(name, "/readyz?verbose")
            took = time.monotonic() - begun
            if got == status:
                return took, text
            assert took < PATIENCE, text
            time.sleep(0.02)
