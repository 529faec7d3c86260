"""test_containers.py PAWLD PAWL: tests the files for containers, as far as that is possible without
any: their YAML, the configuration and the probes in it, and what a cluster of masters needs."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import unittest

import pawltest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
MANIFEST = os.path.join(ROOT, "share", "kubernetes", "pawl.yaml")
# Debian's Python has the package python3-yaml; the one that runs the tests may be another one.
READ = "import json, sys, yaml; print(json.dumps(list(yaml.safe_load_all(open(sys.argv[1])))))"


def manifest():
    found = json.loads(subprocess.run(["/usr/bin/python3", "-c", READ, MANIFEST], check=True,
                                      capture_output=True, text=True).stdout)
    return {one["kind"]: one for one in found}


class Containers(unittest.TestCase):
    def setUp(self):
        self.dir = tempfile.mkdtemp(prefix="pawl-containers-")
        self.addCleanup(shutil.rmtree, self.dir)

    def test_the_manifest_has_what_a_cluster_of_masters_needs(self):
        found = manifest()
        service, stateful = found["Service"]["spec"], found["StatefulSet"]["spec"]
        pod = stateful["template"]["spec"]
        self.assertEqual((service["publishNotReadyAddresses"], service["clusterIP"]),
                         (True, "None"))
        self.assertEqual(stateful["podManagementPolicy"], "Parallel")
        self.assertEqual(stateful["serviceName"], found["Service"]["metadata"]["name"])
        self.assertEqual(found["PodDisruptionBudget"]["spec"]["maxUnavailable"], 1)
        rule = pod["affinity"]["podAntiAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
        labels = stateful["template"]["metadata"]["labels"]
        for selector in (rule[0]["labelSelector"], stateful["selector"],
                         found["PodDisruptionBudget"]["spec"]["selector"]):
            self.assertEqual(selector["matchLabels"], labels)
        self.assertEqual(service["selector"], labels)
        self.assertTrue(pod["securityContext"]["runAsNonRoot"])
        mounted = {m["name"] for m in pod["containers"][0]["volumeMounts"]}
        self.assertEqual(mounted, {v["name"] for v in pod["volumes"]}
                         | {v["metadata"]["name"] for v in stateful["volumeClaimTemplates"]})
        config = found["ConfigMap"]["data"]["pawld.conf"]
        masters = re.findall(r"(?m)^(\S+) = (\S+):7118$", config)[-stateful["replicas"]:]
        self.assertEqual(masters, [("pawl-%d" % i, "pawl-%d.pawl" % i)
                                   for i in range(stateful["replicas"])])
        self.assertIn("auto_replace = yes\n", config)

    def test_the_configuration_is_one_that_pawld_accepts(self):
        for arguments in (["ca"], ["node", "pawl-1", "--host", "pawl-1.pawl"]):
            subprocess.run([PAWL, "cert", *arguments, "--dir", self.dir], check=True,
                           capture_output=True)
        text = manifest()["ConfigMap"]["data"]["pawld.conf"].replace("@name@", "pawl-1")
        path = os.path.join(self.dir, "pawld.conf")
        with open(path, "w", encoding="utf-8") as f:
            f.write(text.replace("/etc/pawl/tls", self.dir))
        checked = subprocess.run([PAWLD, "--check-config", path], capture_output=True, text=True)
        self.assertEqual(checked.returncode, 0, checked.stderr)

    def test_the_probes_tell_a_ready_node_from_one_that_is_not(self):
        found = manifest()
        container = found["StatefulSet"]["spec"]["template"]["spec"]["containers"][0]
        port = pawltest.free_port()
        probe = os.path.join(self.dir, "probe")
        with open(probe, "w", encoding="utf-8") as f:
            f.write(found["ConfigMap"]["data"]["probe"].replace("7119", str(port)))

        def ends(which):
            command = container[which]["exec"]["command"]
            self.assertEqual(command[1], "/etc/pawl/config/probe")
            return subprocess.run([command[0], probe, *command[2:]], capture_output=True,
                                  timeout=pawltest.PATIENCE).returncode

        self.assertNotEqual(ends("livenessProbe"), 0)  # Nobody listens yet.
        admin = "[admin]\nlisten = 127.0.0.1:%d\ndrain_wait = 20s" % port
        with pawltest.Cluster(PAWLD, masters=1, node=admin) as cluster:
            while ends("readinessProbe"):
                pass
            self.assertEqual(ends("livenessProbe"), 0)
            # A planned stop begins: the node lives on and is not ready.
            cluster.nodes["a"].signal(signal.SIGTERM)
            while ends("readinessProbe") == 0:
                pass
            self.assertEqual(ends("livenessProbe"), 0)
            cluster.nodes["a"].signal(signal.SIGTERM)  # Now it stops at once.

    def test_kubectl_reads_the_set_as_it_is_written(self):
        kubectl = shutil.which("kubectl")
        if not kubectl:
            self.skipTest("there is no kubectl")
        found = manifest()["StatefulSet"]
        path = os.path.join(self.dir, "set.json")
        with open(path, "w", encoding="utf-8") as f:
            json.dump(found, f)
        read = subprocess.run([kubectl, "set", "image", "--local", "-f", path, "pawld=pawl:other",
                               "-o", "json"], capture_output=True, text=True, timeout=60)
        self.assertEqual(read.returncode, 0, read.stderr)
        found["spec"]["template"]["spec"]["containers"][0]["image"] = "pawl:other"

        def lost(ours, theirs, at):
            """Yields what kubectl does not know, such as a name that is misspelled."""
            if isinstance(ours, dict):
                for name, value in ours.items():
                    if not isinstance(theirs, dict) or name not in theirs:
                        yield "%s.%s" % (at, name)
                    else:
                        yield from lost(value, theirs[name], at + "." + name)
            elif isinstance(ours, list):
                for i, value in enumerate(ours):
                    yield from lost(value, theirs[i], "%s[%d]" % (at, i))

        self.assertEqual(list(lost(found, json.loads(read.stdout), "")), [])

    def test_the_image_does_not_run_as_root_and_has_a_health(self):
        with open(os.path.join(ROOT, "Containerfile"), encoding="utf-8") as f:
            text = f.read()
        self.assertRegex(text, r"(?m)^USER 7117:7117$")
        self.assertRegex(text, r'(?m)^HEALTHCHECK .*\["pawl", "status", "--check"\]$')
        user = manifest()["StatefulSet"]["spec"]["template"]["spec"]["securityContext"]["runAsUser"]
        self.assertEqual(user, 7117)


if __name__ == "__main__":
    PAWL = os.path.abspath(sys.argv.pop(2))
    pawltest.main(globals())
