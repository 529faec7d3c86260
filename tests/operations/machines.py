"""The machines for the walk through docs/operations. Each is a Debian root of its own over a common
base, with a network namespace, and an `ssh` that is a script reaches it. systemd does not run in
them; a small systemctl does what the pages ask of it."""

import os
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "integration"))
import netns  # noqa: E402

SSH = """#!/bin/bash
# ssh [-n] root@HOST COMMAND...
[ "$1" != -n ] || { shift; exec </dev/null; }
host=${1#root@}
shift
root=@machines@/$host/root
[ -d "$root" ] || { echo "ssh: no route to $host" >&2; exit 255; }
exec nsenter --net="$(cat "@machines@/$host/network")" chroot "$root" \\
	/usr/bin/env -i HOME=/root USER=root LC_ALL=C.UTF-8 DEBIAN_FRONTEND=noninteractive \\
	PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \\
	sh -c "cd /root && $*"
"""

SYSTEMCTL = """#!/bin/bash
# This stands in for systemd on this machine, for one service, pawld, as its unit says.
pid=$(cat /run/pawld.pid 2>/dev/null)
runs() {
	[ -n "$pid" ] && [ -d "/proc/$pid" ] && [ "$(awk '{ print $3 }' "/proc/$pid/stat")" != Z ]
}
start() {
	runs && return
	install -d -o pawl -g pawl /run/pawl
	touch /run/pawld.start
	setsid setpriv --reuid pawl --regid pawl --init-groups \\
		pawld --config /etc/pawl/pawld.conf </dev/null >>/var/log/pawld.log 2>&1 &
	pid=$!
	echo $pid >/run/pawld.pid
	# As with Type=notify, the service is ready once it listens.
	until [ -S /run/pawl/pawld.sock ] && [ /run/pawl/pawld.sock -nt /run/pawld.start ]; do
		runs || { tail -n 5 /var/log/pawld.log >&2; exit 1; }
		sleep 0.05
	done
}
stop() {
	runs || return
	kill -TERM "$pid"
	while runs; do sleep 0.05; done
}
while [[ ${1-} == -* ]]; do shift; done
case $1 in
daemon-reload) ;;
enable) ;;
disable) stop ;; # The pages use it with --now.
is-active) runs ;;
start) start ;;
stop) stop ;;
restart) stop && start ;;
reload) kill -HUP "$pid" ;;
*)
	echo "systemctl: $* is not known here" >&2
	exit 1
	;;
esac
"""


class Machines:
    """The machines in a directory that belongs to the walk. The caller must have a mount namespace
    of its own."""

    def __init__(self, directory, base, subnet):
        self.dir, self.base = os.path.join(directory, "machines"), base
        self.bin = os.path.join(directory, "bin")
        os.makedirs(self.dir)
        self.mount("-t", "tmpfs", "-o", "mode=755", "tmpfs", self.dir)
        self.script(os.path.join(self.bin, "ssh"), SSH.replace("@machines@", self.dir))
        self.net = netns.Net(subnet=subnet)
        self.all = []

    def mount(self, *arguments):
        subprocess.run(["mount", *arguments], check=True)

    def script(self, path, text):
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as f:
            f.write(text)
        os.chmod(path, 0o755)

    def add(self, number):
        """Makes a machine. The number is the last one of its address."""
        host = "m%d" % number
        address = self.net.add(host, number)
        there = os.path.join(self.dir, address)
        for name in ("upper", "work", "root"):
            os.makedirs(os.path.join(there, name))
        root = os.path.join(there, "root")
        self.mount("-t", "overlay", "-o", "lowerdir=%s,upperdir=%s/upper,workdir=%s/work"
                   % (self.base, there, there), "overlay", root)
        self.mount("-t", "proc", "proc", os.path.join(root, "proc"))
        self.mount("--rbind", "/dev", os.path.join(root, "dev"))
        os.makedirs(os.path.join(root, "run/systemd/system"), exist_ok=True)
        self.script(os.path.join(root, "usr/local/bin/systemctl"), SYSTEMCTL)
        with open(os.path.join(there, "network"), "w", encoding="utf-8") as f:
            f.write(self.net.path(host))
        self.all.append((host, root))
        return address

    def root(self, number):
        return dict(self.all)["m%d" % number]

    def pid(self, number):
        with open(os.path.join(self.root(number), "run/pawld.pid"), encoding="ascii") as f:
            return int(f.read())

    def power_off(self, number):
        """Lets the machine die, without any notice to others."""
        os.kill(self.pid(number), signal.SIGKILL)
        while os.path.exists("/proc/%d" % self.pid(number)):
            with open("/proc/%d/stat" % self.pid(number), encoding="ascii") as f:
                if f.read().rsplit(")", 1)[1].split()[0] == "Z":
                    return
            time.sleep(0.02)

    def close(self):
        for host, _ in self.all:
            for pid in self.net.pids(host):
                os.kill(pid, signal.SIGKILL)
        self.net.close()

    def logs(self):
        for host, root in self.all:
            path = os.path.join(root, "var/log/pawld.log")
            if os.path.exists(path):
                with open(path, encoding="utf-8", errors="replace") as f:
                    yield "%s:\n%s" % (host, "".join(f.readlines()[-12:]))
