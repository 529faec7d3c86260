"""A real Prometheus that scrapes a real cluster, with the rules in less time."""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.request

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, "..", "integration"))

from adminhttp import AdminCluster  # noqa: E402
from pawltest import free_port  # noqa: E402
from test_rules import expression, rules  # noqa: E402

# How long an alert may take to fire or to end.
PATIENCE = 45.0
# What is shorter here than in the rules, so that a run takes minutes: the time for which an
# expression must be true, the ranges, and the threshold of WaiterStuck.
FOR = "2s"
SHORTER = (("[5m]", "[8s]"), ("[10m]", "[8s]"), ("> 900", "> 8"))
TIMING = "max_lease = 10s\nrequest_timeout = 300ms\npromise_timeout = 600ms\n"


def short_rules():
    """The rules with their expressions, in less time."""
    text = "groups:\n  - name: pawl\n    rules:\n"
    for name, rule in rules().items():
        expr = expression(rule)
        for long, short in SHORTER:
            expr = expr.replace(long, short)
        wait = "        for: %s\n" % FOR if re.search("^ +for: ", rule, re.M) else ""
        text += "      - alert: %s\n        expr: %s\n%s" % (name, json.dumps(expr), wait)
    return text


class Prometheus:
    """A Prometheus in a directory of its own that scrapes the nodes of a cluster each second."""

    def __init__(self, cluster):
        self.dir = tempfile.mkdtemp(prefix="pawl-prometheus-")
        self.address = "127.0.0.1:%d" % free_port()
        config = {"global": {"scrape_interval": "1s", "scrape_timeout": "500ms",
                             "evaluation_interval": "1s"},
                  "rule_files": ["rules.yml"],
                  "scrape_configs": [{"job_name": "pawl", "static_configs": [
                      {"targets": sorted(cluster.admin.values())}]}]}
        self.write("rules.yml", short_rules())
        self.write("prometheus.yml", json.dumps(config))
        with open(os.path.join(self.dir, "log"), "w") as log:
            self.process = subprocess.Popen(
                ["prometheus", "--config.file", os.path.join(self.dir, "prometheus.yml"),
                 "--storage.tsdb.path", os.path.join(self.dir, "data"),
                 "--web.listen-address", self.address],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log)

    def write(self, name, text):
        with open(os.path.join(self.dir, name), "w") as f:
            f.write(text)

    def firing(self):
        """The names of the alerts that fire, and their labels; None until it answers."""
        try:
            with urllib.request.urlopen("http://%s/api/v1/alerts" % self.address) as answer:
                alerts = json.load(answer)["data"]["alerts"]
        except OSError:
            assert self.process.poll() is None, self.log()
            return None
        return {a["labels"]["alertname"]: a["labels"] for a in alerts if a["state"] == "firing"}

    def log(self):
        with open(os.path.join(self.dir, "log")) as f:
            return f.read()

    def wait(self, what, condition, meanwhile=lambda: None):
        end = time.monotonic() + PATIENCE
        while True:
            firing = self.firing()
            if firing is not None and condition(set(firing)):
                return firing
            assert time.monotonic() < end, "%s; now fire: %s" % (what, sorted(firing or ()))
            meanwhile()
            time.sleep(0.1)

    def scraped(self):
        """Returns how often nodes were scraped."""
        url = "http://%s/api/v1/query?query=sum(count_over_time(up[1h]))" % self.address
        with urllib.request.urlopen(url) as answer:
            found = json.load(answer)["data"]["result"]
        return int(found[0]["value"][1]) if found else 0

    def wait_fires(self, *names, meanwhile=lambda: None):
        firing = self.wait("%s should fire" % ", ".join(names), lambda now: set(names) <= now,
                           meanwhile)
        print("  fire: %s" % ", ".join(sorted(firing)), flush=True)

    def wait_ends(self, meanwhile=lambda: None):
        """All alerts end after the fault."""
        self.wait("all should end", lambda now: not now, meanwhile)

    def close(self):
        self.process.terminate()
        self.process.wait(PATIENCE)
        shutil.rmtree(self.dir, ignore_errors=True)


class World:
    """A cluster, and a Prometheus that scrapes it, for a with statement."""

    def __init__(self, pawld, replica=False, **options):
        options.setdefault("cluster", TIMING)
        self.cluster, self.replica, self.prometheus = AdminCluster(pawld, **options), replica, None

    def __enter__(self):
        self.cluster.__enter__()
        try:
            if self.replica:
                self.cluster.join("r")
                with self.cluster.client("a") as client:
                    client.call("cluster_add_replica", name="r", address=self.cluster.peers["r"])
                self.cluster.wait_ready("r")
            self.prometheus = Prometheus(self.cluster)
            many = 3 * len(self.cluster.admin)
            self.prometheus.wait("the nodes should be scraped and nothing should fire",
                                 lambda now: not now and self.prometheus.scraped() >= many)
        except BaseException:
            self.__exit__(*sys.exc_info())
            raise
        return self.cluster, self.prometheus

    def __exit__(self, *exception):
        if self.prometheus:
            self.prometheus.close()
        self.cluster.__exit__(*exception)
