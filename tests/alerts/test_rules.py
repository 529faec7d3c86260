"""The alert rules and the dashboard: they are what Prometheus and Grafana can read, they name only
metrics that nodes export, and docs/operations/alerts.md explains each alert."""

import glob
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
sys.path.insert(0, os.path.join(ROOT, "tests", "integration"))
RULES = os.path.join(ROOT, "share", "prometheus", "pawl.rules.yml")
DASHBOARD = os.path.join(ROOT, "share", "grafana", "pawl.json")

import adminhttp  # noqa: E402
import pawltest  # noqa: E402
from test_tls import Certificates  # noqa: E402

PAWLD = None
GRAFANA_ROWS = "Quorum Nodes Requests Waiting Replicas Limits Process".split()


def read(*path):
    with open(os.path.join(ROOT, *path), encoding="utf-8") as f:
        return f.read()


def rules():
    """The rules: for each the name, and the text up to the next one."""
    parts = re.split(r"^      - alert: (\w+)\n", read(RULES), flags=re.M)
    return dict(zip(parts[1::2], parts[2::2]))


def expression(rule):
    match = re.search(r"^        expr: (?:>-\n)?((?:.|\n)*?)^        (?:for|labels):", rule, re.M)
    return " ".join(match.group(1).split())


def field(rule, name):
    match = re.search(r"^ +%s: (.*)$" % name, rule, re.M)
    return match.group(1).strip('"') if match else None


def panels():
    return json.loads(read(DASHBOARD))["panels"]


def dashboard_expressions():
    """The expressions as Prometheus gets them: Grafana fills in its variables."""
    found = [target["expr"] for panel in panels() for target in panel.get("targets", [])]
    found += [a["expr"] for a in json.loads(read(DASHBOARD))["annotations"]["list"]]
    found = [e.replace("$__rate_interval", "1m").replace("$job", "pawl") for e in found]
    assert not any("$" in e for e in found), found
    return found


def promtool(*arguments):
    done = subprocess.run(["promtool", *arguments], stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True)
    return done.returncode, done.stdout


@unittest.skipUnless(shutil.which("promtool"), "promtool is missing (Debian: prometheus)")
class Promtool(unittest.TestCase):
    def test_the_rules_are_valid(self):
        status, said = promtool("check", "rules", RULES)
        self.assertEqual(status, 0, said)
        self.assertIn("%d rules found" % len(rules()), said)

    def test_each_alert_fires_when_it_should_and_not_before(self):
        files = glob.glob(os.path.join(HERE, "rules_test*.yml"))
        status, said = promtool("test", "rules", *files)
        self.assertEqual(status, 0, said)
        tested = "".join(read(file) for file in files)
        for alert in rules():
            self.assertRegex(tested, r'- labels: >-\n +ALERTS\{alertname="%s"' % alert)

    def test_each_expression_of_the_dashboard_is_valid(self):
        text = "groups:\n  - name: dashboard\n    rules:\n" + "".join(
            "      - record: panel:%d\n        expr: %s\n" % (i, json.dumps(e))
            for i, e in enumerate(dashboard_expressions()))
        with tempfile.NamedTemporaryFile("w", suffix=".yml") as f:
            f.write(text)
            f.flush()
            status, said = promtool("check", "rules", f.name)
        self.assertEqual(status, 0, said)


class Text(unittest.TestCase):
    def test_the_page_explains_each_alert(self):
        page = read("docs", "operations", "alerts.md")
        sections = re.findall(r"^## (\w+)\n\n\*(Critical|Warning)(?:, after (\w+ \w+))?\.\*$",
                              page, re.M)
        said = {name: (severity.lower(), wait.replace(" min", "m").replace(" s", "s"))
                for name, severity, wait in sections}
        want = {name: (field(rule, "severity"), field(rule, "for") or "")
                for name, rule in rules().items()}
        self.assertEqual(said, want)
        for part in re.split(r"^## ", page, flags=re.M)[1:]:
            for head in ("**What is so.**", "**How to see it.**", "**What to do.**"):
                self.assertIn(head, part)

    def test_each_alert_has_a_summary_and_a_link(self):
        page = os.path.join("docs", "operations", "alerts.md")
        with tempfile.TemporaryDirectory() as documents:  # As the package has them.
            subprocess.run([os.path.join(ROOT, "packaging", "documents"), documents, "README.md",
                            "docs"], cwd=ROOT, check=True)
            self.assertTrue(os.path.exists(os.path.join(documents, page)))
        for name, rule in rules().items():
            self.assertEqual(field(rule, "runbook_url"),
                             "file:///usr/share/doc/pawl/%s#%s" % (page, name.lower()))
            self.assertIn("summary: ", rule)

    def test_the_dashboard_has_its_rows(self):
        shown = panels()
        self.assertEqual([p["title"] for p in shown if p["type"] == "row"], GRAFANA_ROWS)
        self.assertEqual(len({p["id"] for p in shown}), len(shown))
        # No panel covers another one.
        squares = [(x, y) for p in shown for at in [p["gridPos"]]
                   for x in range(at["x"], at["x"] + at["w"])
                   for y in range(at["y"], at["y"] + at["h"])]
        self.assertEqual(len(squares), len(set(squares)))
        self.assertTrue(all(x < 24 for x, _ in squares))


class Exported(unittest.TestCase):
    """What a cluster with TLS, groups of keys, audit files and a replica exports."""

    @classmethod
    def setUpClass(cls):
        folder = tempfile.mkdtemp(prefix="pawl-alerts-")
        cls.addClassCleanup(shutil.rmtree, folder)
        c = Certificates(folder, nodes="abcr", clients=("alice",))

        def section(_, name):
            return "ca = %s\ncert = %s\nkey = %s\n%s" % (
                c.path("ca.crt"), c.path(name + ".crt"), c.path(name + ".key"),
                pawltest.rights(c.dir, ("alice", pawltest.ALL)))

        cluster = adminhttp.AdminCluster(PAWLD, tls=section,
                                         admin="groups = billing/\n[audit]\nfile = /dev/null")
        cls.addClassCleanup(cluster.__exit__)
        cluster.__enter__()
        cluster.join("r")
        with cluster.client("a", tls=c.context("alice")) as client:
            client.call("cluster_add_replica", name="r", address=cluster.peers["r"])
            client.call("acquire", key="billing/x", lease_ms=20000)
        cls.exported = set()
        # The master that the replica follows exports its lag.
        end = time.monotonic() + pawltest.PATIENCE
        while "pawl_replica_lag_entries" not in cls.exported:
            assert time.monotonic() < end
            for name in "abcr":
                cls.exported |= {sample.partition("{")[0] for sample in cluster.metrics(name)}
        cls.exported.add("up")

    def check(self, expressions):
        used = set()
        for expression_ in expressions:
            bare = re.sub(r'"[^"]*"', "", re.sub(r"\{[^}]*\}", "", expression_))
            names = set(re.findall(r"\b(?:(?:pawl|process)_\w+|up)\b", bare))
            self.assertTrue(names or "ALERTS" in bare, expression_)
            used |= names
        self.assertEqual(used - self.exported, set())

    def test_the_rules_name_exported_metrics(self):
        self.check(map(expression, rules().values()))

    def test_the_dashboard_names_exported_metrics(self):
        self.check(dashboard_expressions())


if __name__ == "__main__":
    pawltest.main(globals())
