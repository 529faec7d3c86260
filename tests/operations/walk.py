"""walk BASE [--keep]: runs the commands of docs/operations in order, like somebody who follows the
pages. It also does what must happen to the machines in between (one dies, one loses its disk), just
before the block that repairs it. scripts/test-operations starts it in a mount namespace of its own.
With --keep the machines stay."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

from machines import Machines, netns

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SECTIONS = [("install.md", "From nothing to five masters and two replicas"),
            ("run.md", "Look at it"),
            ("change.md", "The commands, one by one"),
            ("upgrade.md", "All nodes, one after the other"),
            ("disaster.md", "Copy the state files"), ("disaster.md", "A majority is lost")]
PATIENCE = 60
NUMBERS = [1, 2, 3, 4, 5, 6, 7, 8, 11, 12, 13]


def blocks(kind):
    """Returns the code of the pages as [(section, text)]."""
    found = []
    for page, name in SECTIONS:
        with open(os.path.join(ROOT, "docs", "operations", page), encoding="utf-8") as f:
            sections = dict(re.findall(r"^## (.*?)\n(.*?)(?=^## |\Z)", f.read(), re.M | re.S))
        found += [(name, text) for text in re.findall(r"^```%s\n(.*?)^```$" % kind, sections[name],
                                                      re.M | re.S)]
    return found


class Failed(Exception):
    pass


class Shell:
    """One bash for all pages, which runs in the hub of the network."""

    def __init__(self, directory, machines):
        self.dir, self.count = directory, 0
        self.environment = {"HOME": directory, "LC_ALL": "C.UTF-8",
                            "PATH": ":".join([machines.bin,
                                              os.path.join(directory, "pawl", "usr", "bin"),
                                              "/usr/sbin:/usr/bin:/sbin:/bin"]),
                            "LD_LIBRARY_PATH": os.path.join(directory, "pawl", "usr", "lib",
                                                            "x86_64-linux-gnu")}
        self.process = machines.net.popen(netns.HUB, ["bash"], cwd=directory, env=self.environment,
                                          stdin=subprocess.PIPE,
                                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                          text=True)

    def run(self, text):
        """Runs a block, and returns what it prints."""
        self.count += 1
        path = os.path.join(self.dir, "block-%d" % self.count)
        with open(path, "w", encoding="utf-8") as f:
            f.write("set -e -o pipefail\n" + text)
        self.process.stdin.write(". %s </dev/null\necho @@done\n" % path)
        self.process.stdin.flush()
        said = []
        for line in self.process.stdout:
            if line == "@@done\n":
                return "".join(said)
            said.append(line)
            print("         | " + line, end="", flush=True)
        raise Failed("the block ended with status %d" % self.process.wait())


class Walk:
    def __init__(self, directory, base):
        self.dir = directory
        self.machines = Machines(directory, base, "10.0.0")
        for number in NUMBERS:
            self.machines.add(number)
        for name in ("scripts", "share", "build"):
            os.symlink(os.path.join(ROOT, name), os.path.join(directory, name))
        for package in ("pawl", "libpawl2"):
            path = next(p for p in os.listdir(os.path.join(ROOT, "build", "packages"))
                        if re.match(package + r"_.*\.deb", p))
            subprocess.run(["dpkg-deb", "-x", os.path.join(ROOT, "build", "packages", path),
                            os.path.join(directory, "pawl")], check=True)
        with open(os.path.join(directory, "production.ini"), "w", encoding="utf-8") as f:
            f.write(blocks("ini")[0][1])
        self.shell = Shell(directory, self.machines)
        self.holder = None
        self.found = []

    # ---- what happens to machines between blocks, and what must be so afterwards ----
    # A text that the block contains says which block it is.

    def before(self, text):
        if text.endswith("production/install\n") and not self.found:
            self.find_directories()
        elif "replace b r3" in text:
            self.hold()
            self.happens("machine b dies")
            self.machines.power_off(2)
        elif "replace c c" in text:
            self.happens("machine c loses its disk and starts without it")
            self.machines.power_off(3)
            shutil.rmtree(os.path.join(self.machines.root(3), "var/lib/pawl"))
            self.shell.run("ssh root@10.0.0.3 'install -d -m 700 -o pawl -g pawl /var/lib/pawl && "
                           "systemctl start pawld'")
        elif "d=10.0.0.24" in text:
            self.happens("machine d gets a second address")
            self.machines.net.run("m4", ["ip", "address", "add", "10.0.0.24/24", "dev", "eth0"],
                                  check=True)
        elif "cluster force" in text:
            self.release()
            self.happens("machines g and h are destroyed")
            for number in (12, 13):
                self.machines.power_off(number)

    def after(self, text):
        self.keep_directories()
        if "status --all" in text and "clients/ops/env" in text and not self.holder:
            self.await_states({"voting": 5})
        elif "replace b r3" in text or "replace c c" in text or "d=10.0.0.24" in text:
            self.await_states({"voting": 5})
        elif "--replicas a" in text or "systemctl restart pawld" in text:
            self.await_states({"voting": 3, "following": 1})
        elif "add-replica r2" in text:
            self.await_states({"voting": 5, "following": 2})
        elif "force" in text and "--yes" in text:
            self.await_states({"voting": 1})
            token = json.loads(self.shell.run("pawl acquire nightly --lease 5s --json"))["token"]
            if token <= self.token:
                raise Failed("the token fell from %d to %d" % (self.token, token))
        elif "add-replica a " in text:
            self.await_states({"voting": 1, "following": 1})
        self.still_held()

    def find_directories(self):
        """Puts directories on a host whose names an installation might take for its own. On another
        host the installation's own directory is somebody else's: it is refused there, and goes on
        once that is moved away."""
        self.happens("machine a has a clone in ~/pawl, and the user has files in /etc/pawl/new")
        for place in ("root/pawl", "root/pawl.new", "root/pawl.former", "etc/pawl/new"):
            path = os.path.join(self.machines.root(1), place, "precious")
            os.makedirs(os.path.dirname(path))
            with open(path, "w", encoding="ascii") as f:
                f.write(place)
            self.found.append(path)
        theirs = os.path.join(self.machines.root(5), "var/lib/pawl-deploy")
        os.makedirs(theirs)
        said = self.shell.run("production/install e 2>&1 || true")
        if "/var/lib/pawl-deploy on this host was not made by pawl deploy" not in said:
            raise Failed("install took somebody's directory for its own")
        os.rmdir(theirs)

    def keep_directories(self):
        for path in self.found:
            if not os.path.exists(path):
                raise Failed("%s was removed" % path)

    def happens(self, what):
        print("       * %s" % what, flush=True)

    def await_states(self, wanted):
        """Waits until this many nodes say that they are in these states."""
        end = time.monotonic() + PATIENCE
        while True:
            said = subprocess.run(self.machines.net.command(netns.HUB,
                                                            ["bash", "-c",
                                                             ". production/clients/ops/env; pawl "
                                                             "status --all --json --timeout 1s"]),
                                  cwd=self.dir, env=self.shell.environment, capture_output=True,
                                  text=True).stdout
            states = re.findall(r'"state": *"(\w+)"', said)
            if all(states.count(state) == count for state, count in wanted.items()):
                return
            if time.monotonic() > end:
                raise Failed("not %s but %s" % (wanted, states))
            time.sleep(0.1)

    def hold(self):
        """Begins to hold a lock. From here on its holder must not notice anything."""
        self.lines = os.path.join(self.dir, "lines")
        script = ('. production/clients/ops/env; exec pawl run nightly --lease 10s -- sh -c "while '
                  ':; do echo \\$PAWL_TOKEN >>lines; sleep 0.1; done"')
        self.holder = self.machines.net.popen(netns.HUB, ["bash", "-c", script], cwd=self.dir,
                                              env=self.shell.environment,
                                              stderr=open(os.path.join(self.dir, "holder"), "wb"))
        self.happens("somebody holds the lock nightly from here on")
        self.seen = 0
        self.still_held()

    def still_held(self):
        if not self.holder:
            return
        end = time.monotonic() + PATIENCE
        tokens = []
        while len(tokens) <= self.seen:
            if self.holder.poll() is not None or time.monotonic() > end:
                with open(os.path.join(self.dir, "holder"), encoding="utf-8") as f:
                    raise Failed("the lock was lost (status %s): %s"
                                 % (self.holder.poll(), f.read()))
            time.sleep(0.05)
            if os.path.exists(self.lines):
                with open(self.lines, encoding="ascii") as f:
                    tokens = f.read().split()
        self.seen, self.token = len(tokens), int(tokens[0])
        if len(set(tokens)) != 1:
            raise Failed("the lock's token changed: %s" % sorted(set(tokens)))

    def release(self):
        self.holder.terminate()
        self.holder.wait()
        self.holder = None
        self.found = []

    # ---- the pages ----

    def go(self):
        started, section = time.monotonic(), None
        for name, text in blocks("sh"):
            if name != section:
                section = name
                print("== %s" % name, flush=True)
            self.before(text)
            for line in text.splitlines():
                print("%6.1f s $ %s" % (time.monotonic() - started, line))
            self.shell.run(text)
            self.after(text)
        return len(blocks("sh"))

    def close(self):
        if self.holder:
            self.holder.kill()
            self.holder.wait()
        self.shell.process.kill()
        self.shell.process.wait()
        self.machines.close()


def main():
    base = sys.argv[1]
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # Nothing must be left behind.
    netns.sweep()
    directory = tempfile.mkdtemp(prefix="pawl-walk-", dir="/var/tmp")
    walk, passed, failed = None, 0, 0
    try:
        walk = Walk(directory, base)
        passed = walk.go()
    except Failed as e:
        failed = 1
        print("FAILED: %s" % e)
        print("\n".join(walk.machines.logs()))
    finally:
        if walk:
            if "--keep" in sys.argv:
                input("the machines are there: PATH=%s:$PATH ssh root@10.0.0.1 ...; Enter ends "
                      "them " % walk.machines.bin)
            walk.close()
            subprocess.run(["umount", "-R", "-l", walk.machines.dir], check=False)
        shutil.rmtree(directory, ignore_errors=True)
    print("passed=%d failed=%d skipped=0" % (passed, failed))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
