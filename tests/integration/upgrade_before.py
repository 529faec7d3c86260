#!/usr/bin/env python3
"""upgrade_before.py PAWLD_BEFORE PAWLD PAWL_BEFORE PAWL SOURCE_BEFORE: upgrades three masters of an
earlier version one by one, and goes back in the same way, while locks are held by clients of both
versions. It also shows that a configuration of the earlier version is valid. scripts/test-upgrade
builds the earlier version and runs this."""

import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

import pawltest
import test_upgrade
from pawltest import Cluster

PAWLD = NEW = PAWL_BEFORE = PAWL = SOURCE = None


class Upgrade(unittest.TestCase):
    replace = test_upgrade.Upgrade.replace
    held, version = test_upgrade.Upgrade.held, test_upgrade.Upgrade.version

    def run_under(self, pawl, *words):
        """Starts a command that runs until this test ends it; returns it and the token of its
        lock."""
        process = subprocess.Popen(
            [pawl, *words, "--endpoints", ",".join(self.cluster.clients.values()), "--", "sh", "-c",
             "echo $PAWL_TOKEN; exec sleep 600"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            text=True, env={k: v for k, v in os.environ.items() if not k.startswith("PAWL_")})
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.wait, pawltest.PATIENCE)
        self.addCleanup(process.terminate)
        return process, int(process.stdout.readline())

    def tokens(self, key):
        """The tokens of one key after the other, from every node: they grow."""
        for name in self.cluster.names:
            with self.cluster.client(name) as client:
                got = client.call("acquire", key=key, lease_ms=1000)
                self.assertGreater(got["token"], self.last)
                self.last = got["token"]
                client.call("release", key=key, lock_id=got["lock_id"])

    def test_there_and_back_with_locks_held_all_the_time(self):
        self.last = 0
        with Cluster(PAWLD) as self.cluster:
            holder = test_upgrade.Holder(self.cluster, "held")
            runs = [self.run_under(pawl, "run", key, "--lease", "10s")
                    for pawl, key in ((PAWL_BEFORE, "old"), (PAWL, "new"))]
            runs.append(self.run_under(PAWL, "elect", "leader", "--lease", "10s"))
            for pawld in (NEW, PAWLD):
                for name in self.cluster.names:
                    self.replace(self.cluster, holder, name, pawld)
                    for key in ("held", "old", "new", "leader"):
                        self.held(self.cluster, name, key)
                    self.tokens("counted")
                    print("%s runs %s" % (name, self.version(self.cluster, name)), flush=True)
            holder.end()
            with self.cluster.client("a") as client:
                for (process, token), key in zip(runs, ("old", "new", "leader")):
                    self.assertIsNone(process.poll())
                    self.assertEqual(client.call("get", key=key)["token"], token)


class Configuration(unittest.TestCase):
    # The shipped file leaves these out.
    unshipped = {"released": "1000", "rounds": "1000", "lingering": "1000"}

    def settings(self):
        """All settings of the earlier version, each with a value: the shipped one, if there is."""
        with open(os.path.join(SOURCE, "share", "pawld.conf")) as f:
            shipped = dict(re.findall(r"(?m)^#?([a-z_]+) = (.*)$", f.read()))
        with open(os.path.join(SOURCE, "src", "node", "config", "config_setting.h")) as f:
            names = re.findall(r'X\(\w+, "(\w+)", "(\w+)"', f.read())
        self.assertGreater(len(names), 40)
        return [(section, key, shipped.get(key) or self.unshipped[key]) for section, key in names]

    def files(self, folder):
        """Makes what the settings name. Returns the values that differ from the shipped ones."""
        for words in (("ca",), ("node", "a", "--host", "127.0.0.1"), ("revoke",)):
            subprocess.run([PAWL, "cert", *words, "--dir", folder], check=True,
                           stdout=subprocess.DEVNULL)
        pawltest.rights(folder, ("ops", pawltest.ALL))
        with open(os.path.join(folder, "revoked"), "w"):
            pass
        paths = {key: os.path.join(folder, name) for key, name in (
            ("ca", "ca.crt"), ("cert", "a.crt"), ("key", "a.key"), ("crl", "ca.crl"),
            ("revoked", "revoked"), ("file", "rights.conf"), ("state_dir", "state"))}
        return {**paths, "advertise": "127.0.0.1:7118"}

    def test_a_file_with_every_setting_of_before_is_valid(self):
        folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, folder)
        own, text, before = self.files(folder), "", None
        for section, key, value in self.settings():
            text += "[%s]\n" % section if section != before else ""
            # Both sections have a name; that of the node is in its certificate.
            name = "a" if section == "node" else value
            text += "%s = %s\n" % (key, name if key == "name" else own.get(key, value))
            before = section
        path = os.path.join(folder, "pawld.conf")
        with open(path, "w") as f:
            f.write(text + "[cluster.masters]\na = 127.0.0.1:7118\nb = 127.0.0.1:7128\n"
                    "c = 127.0.0.1:7138\n")
        for pawld in (PAWLD, NEW):
            run = subprocess.run([pawld, "--check-config", path], capture_output=True, text=True)
            self.assertEqual((run.returncode, run.stderr), (0, ""))


if __name__ == "__main__":
    NEW, PAWL_BEFORE, PAWL, SOURCE = (os.path.abspath(sys.argv.pop(2)) for _ in range(4))
    pawltest.main(globals())
