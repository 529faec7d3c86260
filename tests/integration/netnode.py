"""One pawld in a network namespace of its own, with clocks at a rate of its own. The nodes of
tests/soak, tests/elections and tests/judge are such nodes; nodes on loopback are in pawltest.py."""

import os
import signal
import subprocess
import time


class NetNode:
    """A node whose process may run or not, and may be stopped. It ends at the latest with the
    thread that started it."""

    # The clock whose time is in the log at each start of the process.
    CLOCK = time.CLOCK_MONOTONIC

    def __init__(self, net, name, folder, pawld, rates):
        """The files of the node are in `folder`. `rates` is tests/rates/librate.so."""
        self.net, self.name, self.pawld, self.rates = net, name, pawld, rates
        self.process, self.stopped, self.rate = None, False, 1.0
        self.state = os.path.join(folder, "state-" + name)
        self.config, self.log, self.unix = (
            os.path.join(folder, name + end) for end in (".conf", ".log", ".sock"))

    def command(self):
        clocks = []
        if self.rate != 1.0:
            clocks = ["env", "LD_PRELOAD=" + self.rates, "PAWL_TEST_RATE=%.4f" % self.rate]
        return ["setpriv", "--pdeathsig", "KILL", "--", *clocks, self.pawld,
                "--config", self.config]

    def start(self, rate=1.0):
        """Starts the process. `rate` is the rate of its clocks compared with true time."""
        self.rate, self.stopped = rate, False
        with open(self.log, "a") as log:
            log.write("---- started %.3f, clocks x%.4f\n"
                      % (time.clock_gettime(self.CLOCK), rate))
            log.flush()
            self.process = self.net.popen(self.name, self.command(), stdin=subprocess.DEVNULL,
                                          stdout=log, stderr=log, start_new_session=True)

    def running(self):
        return self.process is not None

    def stop(self):
        self.process.send_signal(signal.SIGSTOP)
        self.stopped = True

    def go_on(self):
        if self.process and self.stopped:
            self.process.send_signal(signal.SIGCONT)
        self.stopped = False
