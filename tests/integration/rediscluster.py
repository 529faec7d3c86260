"""Real nodes that listen for clients of Redis."""

import os
import socket
import sys

import pawltest
from pawltest import PATIENCE

# Debian's Python has the package python3-redis; the one that runs the tests may be another one.
sys.path.append("/usr/lib/python3/dist-packages")
import redis  # noqa: E402
import redis.sentinel  # noqa: E402


class RedisCluster(pawltest.Cluster):
    """A cluster whose nodes listen for clients of Redis, too. `settings` are those of [redis]."""

    def __init__(self, pawld, settings="", **options):
        node = options.pop("node", "")
        super().__init__(pawld, node=node + "\n[redis]\n" + settings, **options)
        self.redis_ports = {}

    def listens(self, name):
        self.redis_ports[name] = pawltest.free_port()
        return super().listens(name) + "listen_redis = 127.0.0.1:%d, unix:%s\n" % (
            self.redis_ports[name], self.redis_path(name))

    def redis_path(self, name):
        return os.path.join(self.dir, name + "-redis.sock")

    def redis(self, name, **options):
        options.setdefault("socket_timeout", PATIENCE)
        return redis.Redis(port=self.redis_ports[name], **options)

    def redis_unix(self, name, **options):
        return redis.Redis(unix_socket_path=self.redis_path(name), socket_timeout=PATIENCE,
                           **options)

    def socket(self, name):
        s = socket.create_connection(("127.0.0.1", self.redis_ports[name]), PATIENCE)
        s.settimeout(PATIENCE)
        return s


def command(*words):
    """Returns the bytes of a command."""
    words = [w if isinstance(w, bytes) else str(w).encode() for w in words]
    return b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(w), w) for w in words)
