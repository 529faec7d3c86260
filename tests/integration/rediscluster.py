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

    def write_configs(self):
        super().write_configs()
        self.redis_ports = {n: pawltest.free_port() for n in self.names}
        for n in self.names:
            with open(self.config(n), encoding="utf-8") as f:
                text = f.read()
            with open(self.config(n), "w", encoding="utf-8") as f:
                f.write(text.replace("listen_client = ", "listen_redis = 127.0.0.1:%d, unix:%s\n"
                                     "listen_client = " % (self.redis_ports[n],
                                                           self.redis_path(n))))

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
