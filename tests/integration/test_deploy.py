"""Tests scripts/deploy: one description becomes a cluster that runs, and running the script again
changes nothing."""

import glob
import os
import shutil
import stat
import subprocess
import sys
import tempfile
import unittest

import pawltest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

DESCRIPTION = """
[cluster]
name = test
max_lease = 5s
request_timeout = 300ms
promise_timeout = 600ms

[masters]
%(masters)s
[replicas]
%(replicas)s
[clients]
ops = admin
app = read, acquire on app/; deny acquire on app/fixed/
[limits]
keys = 1000
[places]
config_dir = %(dir)s/{name}
state_dir = %(dir)s/{name}/state
socket = %(dir)s/{name}/socket
"""


class TestDeploy(unittest.TestCase):
    def setUp(self):
        self.dir = tempfile.mkdtemp(prefix="pawl-deploy-")
        self.addCleanup(shutil.rmtree, self.dir)
        self.nodes = {}
        self.addCleanup(lambda: [n.kill() for n in self.nodes.values()
                                 if not n.process.stdout.closed])
        self.out = os.path.join(self.dir, "out")
        self.file = os.path.join(self.dir, "cluster.ini")

    def write(self, text):
        with open(self.file, "w", encoding="utf-8") as f:
            f.write(text)

    def describe(self, masters=3, replicas=2):
        def row(name):
            return "%s = 127.0.0.1:%d localhost client=127.0.0.1:%d\n" % (
                name, pawltest.free_port(), pawltest.free_port())
        names = {"masters": "abcde"[:masters], "replicas": "xyz"[:replicas]}
        self.write(DESCRIPTION
                   % {"dir": self.dir, **{k: "".join(map(row, v)) for k, v in names.items()}})

    def deploy(self, status=0):
        done = subprocess.run([sys.executable, os.path.join(ROOT, "scripts", "deploy"), "--pawl",
                               PAWL, "--pawld", PAWLD, self.file, self.out],
                              capture_output=True, text=True)
        self.assertEqual(done.returncode, status, done.stderr)
        return done.stdout if status == 0 else done.stderr

    def start(self, name):
        there = os.path.join(self.dir, name)
        os.makedirs(there, exist_ok=True)
        for file in glob.glob(os.path.join(self.out, "hosts", name, "*")):
            shutil.copy2(file, there)
        self.nodes[name] = pawltest.Node([PAWLD, "--config", os.path.join(there, "pawld.conf")],
                                         name)

    def pawl(self, *arguments, client="ops"):
        """Runs pawl with the environment that was written for the client."""
        return subprocess.run(["bash", "-c", '. "$0" && exec "$@"',
                               os.path.join(self.out, "clients", client, "env"), PAWL, *arguments],
                              capture_output=True, text=True, timeout=60)

    def born(self):
        for _ in range(5):
            shutil.rmtree(self.out, ignore_errors=True)
            self.describe()
            self.deploy()
            for name in "abcxy":
                self.start(name)
            try:
                for name in "abc":
                    self.nodes[name].wait_log(" voting ")
                for name in "xy":
                    self.nodes[name].wait_log(" outside ")
                return
            except AssertionError as e:
                if "cannot listen" not in str(e):
                    raise
                for name, node in self.nodes.items():
                    node.kill()
                    shutil.rmtree(os.path.join(self.dir, name))
                self.nodes = {}
        raise AssertionError("there are no free ports")

    def test_a_cluster_runs_with_the_files_that_deploy_writes(self):
        self.born()
        with open(os.path.join(self.out, "README"), encoding="utf-8") as f:
            additions = [line.split() for line in f if line.startswith("pawl cluster add-replica")]
        for words in additions:
            added = self.pawl(*words[1:])
            self.assertEqual(added.returncode, 0, added.stderr)
        for name in "xy":
            self.nodes[name].wait_log(" epoch_adopted ", " as=replica ")
        got = self.pawl("acquire", "app/one", "--lease", "3s", client="app")
        self.assertEqual(got.returncode, 0, got.stderr)
        self.assertEqual(self.pawl("acquire", "other", client="app").returncode, 1)
        self.assertEqual(self.pawl("acquire", "other", "--lease", "1s").returncode, 0)
        for name in "abcxy":
            self.assertEqual(self.nodes[name].terminate(), 0, self.nodes[name].log())

    def test_a_second_run_changes_only_what_was_changed_in_the_description(self):
        self.describe()
        self.deploy()
        self.assertIn("nothing has changed", self.deploy())
        with open(self.file, encoding="utf-8") as f:
            text = f.read()
        self.write(text.replace("x = 127.0.0.1:",
                                "x = localhost:").replace("ops = admin", "ops = admin\nnew ="))
        report = self.deploy()
        self.assertIn("changed hosts/x: pawld.conf", report)
        self.assertIn("new     clients/new: ", report)
        self.assertIn("changed hosts/a: rights.conf\n", report)
        self.assertNotIn("authority", report)
        self.write(text.replace("app = read, acquire on app/; deny acquire on app/fixed/\n", ""))
        self.assertIn("clients/app is no longer", self.deploy())

    def test_keys_are_for_their_owner_alone(self):
        self.describe()
        self.deploy()
        keys = glob.glob(os.path.join(self.out, "**", "*.key"), recursive=True)
        self.assertGreaterEqual(len(keys), 1 + 2 * 7)
        for key in keys:
            self.assertEqual(stat.S_IMODE(os.stat(key).st_mode), 0o600, key)
        self.assertEqual(stat.S_IMODE(os.stat(self.out).st_mode), 0o700)

    def test_the_environment_of_a_client_is_for_every_shell(self):
        self.describe()
        self.deploy()
        there = os.path.join(self.out, "clients", "ops")
        say = ' && printf "%s %s %s" "$PAWL_CACERT" "$PAWL_CERT" "$PAWL_CERT_KEY"'
        told = " ".join(os.path.join(there, name) for name in ("ca.crt", "ops.crt", "ops.key"))
        for shell, folder, path in (("bash", "/", os.path.join(there, "env")),
                                    ("zsh", "/", os.path.join(there, "env")),
                                    ("bash", self.out, "clients/ops/env"),
                                    ("zsh", self.out, "clients/ops/env"),
                                    ("dash", there, "./env"), ("bash", there, "./env")):
            if shutil.which(shell):
                done = subprocess.run([shell, "-euc", ". " + path + say], cwd=folder, text=True,
                                      capture_output=True)
                self.assertEqual((done.stdout, done.stderr), (told, ""), (shell, folder))
        done = subprocess.run(["dash", "-c", ". " + os.path.join(there, "env")], cwd=self.dir,
                              text=True, capture_output=True)
        self.assertIn("source this file in its own directory", done.stderr)

    def test_mistakes_are_named_with_their_line(self):
        cases = [
            ("[cluster]\nname = x\nmax_leese = 1s\n", ":3: [cluster] max_leese is unknown"),
            ("[cluster]\nname = x\n[master]\n", ":3: [master] is unknown"),
            ("[cluster]\nname = x\n[masters]\na = 10.0.0.1\na = 10.0.0.2\n", ":5: a appears twice"),
            ("[cluster]\nname = x\n[masters]\na = 10.0.0.1\n[replicas]\na = 10.0.0.2\n",
             ":6: a is given twice"),
            ("[cluster]\nname = x\n[masters]\na = 10.0.0.1:x\n",
             ":4: `10.0.0.1:x` is not an address"),
            ("[cluster]\nname = x\n[masters]\na b = 10.0.0.1\n", ":4: `a b` is not a name"),
            ("[cluster]\nname = x\n[masters]\na =\n", ":4: a needs an address"),
            ("[masters]\na = 10.0.0.1\n", "[cluster] name is missing"),
            ("[cluster]\nname = x\n[admin]\nlisten = :1\n", ":4: [admin] listen is unknown"),
            ("[cluster]\nname = x\n[admin]\nport = a:1\n", ":4: `a:1` is not a port"),
            ("[cluster]\nname = x\n", "0 masters"),
            ("[cluster]\nname = x\n[masters]\na = 10.0.0.1\n[clients]\na =\n",
             "the name a is taken"),
            ("[cluster]\nname = x\n[masters]\na = 10.0.0.1\n[clients]\nc = write c/\n",
             ":6: c = write c/: write rights with commas"),
            ("[cluster]\nname = x\n[masters]\na = 10.0.0.1\nb = 10.0.0.1:7118\n",
             "have the same address"),
            ("[cluster]\nname = x\n[masters]\na = 10.0.0.1\nb = 10.0.0.1:7120 "
             "client=10.0.0.1:7121\n", "must hold {name}"),
        ]
        for text, told in cases:
            self.write(text)
            self.assertIn(told, self.deploy(status=1))
            self.assertFalse(os.path.exists(self.out))

    def test_each_node_has_an_admin_port_if_the_description_asks_for_it(self):
        text = ("[cluster]\nname = x\n[masters]\na = 10.0.0.1\nb = b.example.org\n"
                "[clients]\nops = admin\nwatcher = deny all on *\n")
        self.write(text)
        self.deploy()
        self.assertNotIn("[admin]", self.read(self.out, "hosts", "a", "pawld.conf"))
        for more, listens in (("", "7119"), ("port = 7200\n", "7200")):
            self.write(text + "[admin]\nreaders = watcher\n" + more)
            self.deploy()
            for name, host in (("a", "10.0.0.1"), ("b", "0.0.0.0")):
                self.assertIn("[admin]\nlisten = %s:%s\nreaders = watcher\n" % (host, listens),
                              self.read(self.out, "hosts", name, "pawld.conf"))

    def read(self, *path):
        with open(os.path.join(*path), encoding="utf-8") as f:
            return f.read()

    def test_what_pawld_would_refuse_replaces_nothing(self):
        self.describe()
        self.deploy()
        good = self.read(self.out, "hosts", "a", "pawld.conf")
        text = self.read(self.file)
        for old, new, words in (("request_timeout = 300ms", "request_timeout = 4s",
                                 "request_timeout"),
                                ("keys = 1000", "kees = 1000", "kees"),
                                ("app = read, ", "app = reed, ", "reed")):
            self.assertIn(old, text)
            self.write(text.replace(old, new))
            said = self.deploy(status=1)
            self.assertIn("nothing was replaced", said)
            self.assertIn(words, said)
            self.assertEqual(self.read(self.out, "hosts", "a", "pawld.conf"), good)

    def test_it_is_a_command_of_pawl(self):
        self.describe()
        done = subprocess.run([PAWL, "deploy", "--pawld", PAWLD, self.file, self.out],
                              capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("new     hosts/a: ", done.stdout)
        self.assertIn("nothing has changed", self.deploy())

    def host(self, name):
        """Makes a directory of programs with which `install` installs the host in self.dir. Returns
        its configuration."""
        stubs = os.path.join(self.dir, "stubs")
        os.makedirs(os.path.join(self.dir, "home"), exist_ok=True)
        os.makedirs(stubs, exist_ok=True)
        rows = {
            "ssh": 'while [ "$1" = -n ]; do shift; done; shift; cd "%s/home" && sh -c "$*"'
                   % self.dir,
            "id": "echo 0", "getent": "true", "systemctl": "false", "chgrp": "true",
            "pawld": 'exec "%s" "$@"' % PAWLD,
            "setpriv": 'while [ "$1" != pawld ]; do shift; done; exec "$@"',
            # There is no group of that name, and the unit is not one of this machine.
            "install": 'args=; for a; do case $a in -g|pawl) ;; /etc/systemd/*) args="$args '
                       '%s/unit" ;; *) args="$args $a" ;; esac; done; exec /usr/bin/install $args'
                       % self.dir,
        }
        for stub, text in rows.items():
            with open(os.path.join(stubs, stub), "w", encoding="utf-8") as f:
                f.write("#!/bin/sh\n%s\n" % text)
            os.chmod(os.path.join(stubs, stub), 0o755)
        return os.path.join(self.dir, name, "pawld.conf")

    def install(self, *arguments):
        stubs = os.path.join(self.dir, "stubs")
        path = stubs + ":" + os.environ["PATH"]
        # The host is this machine, whose /var/lib is not touched.
        script, place = os.path.join(self.out, "install"), "/var/lib/pawl-deploy"
        text = self.read(script)
        self.assertEqual(text.count("\nplace=%s\n" % place), 1)
        with open(script, "w", encoding="utf-8") as f:
            f.write(text.replace("\nplace=%s\n" % place, "\nplace=%s/files\n" % self.dir))
        done = subprocess.run([script, *arguments], capture_output=True, text=True,
                              env=dict(os.environ, PATH=path))
        with open(script, "w", encoding="utf-8") as f:
            f.write(text)
        return done

    def test_a_host_keeps_a_good_configuration_and_finds_the_way_back(self):
        self.describe()
        self.deploy()
        conf = self.host("a")
        done = self.install("a")
        self.assertTrue(os.path.exists(conf), done)
        self.assertEqual(self.read(conf), self.read(self.out, "hosts", "a", "pawld.conf"))
        first = self.read(conf)
        self.assertIn("no former files", self.install("--back", "a").stderr)

        # Something between here and the host has made a mistake of it.
        new = os.path.join(self.out, "hosts", "a", "pawld.conf")
        with open(new, "a", encoding="utf-8") as f:
            f.write("nonsense = 1\n")
        said = self.install("a")
        self.assertNotEqual(said.returncode, 0, said)
        self.assertIn("the one that is in use stays", said.stderr)
        self.assertEqual(self.read(conf), first)
        self.assertEqual(glob.glob(os.path.join(self.dir, "a", "check.*")), [])

        text = self.read(self.file)
        self.write(text.replace("keys = 1000", "keys = 2000"))
        self.deploy()
        self.install("a")
        second = self.read(conf)
        self.assertIn("keys = 2000", second)
        self.install("a")  # The same once more is no step.
        self.install("--back", "a")
        self.assertEqual(self.read(conf), first)
        self.install("--back", "a")
        self.assertEqual(self.read(conf), second)

    def test_deploy_does_not_make_a_second_authority_over_half_of_one(self):
        self.describe()
        self.deploy()
        os.remove(os.path.join(self.out, "ca", "ca.key"))
        self.assertIn("put it back", self.deploy(status=1))

    def test_deploy_leaves_other_directories_alone(self):
        self.describe()
        os.makedirs(self.out)
        with open(os.path.join(self.out, "precious"), "w", encoding="utf-8"):
            pass
        self.assertIn("holds something else", self.deploy(status=1))
        self.assertEqual(os.listdir(self.out), ["precious"])


if __name__ == "__main__":
    PAWL = os.path.abspath(sys.argv.pop(2))
    pawltest.main(globals())
