"""test_containers.py PAWLD PAWL: tests the files for containers, as far as that is possible without
any: their YAML, the configuration and the probes in it, and what a cluster of masters needs."""

import json
import os
import re
import shutil
import signal
import ssl
import subprocess
import sys
import tempfile
import unittest

import adminhttp
import pawltest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
MANIFEST = os.path.join(ROOT, "share", "kubernetes", "pawl.yaml")
PAGE = os.path.join(ROOT, "docs", "operations", "kubernetes.md")
# Debian's Python has the package python3-yaml; the one that runs the tests may be another one.
READ = "import json, sys, yaml; print(json.dumps(list(yaml.safe_load_all(sys.stdin))))"
NODES = ["a", "b", "c"]


def read(path):
    with open(path, encoding="utf-8") as f:
        return f.read()


def manifest(node="a"):
    text = read(MANIFEST).replace("@node@", node)
    found = json.loads(subprocess.run(["/usr/bin/python3", "-c", READ], check=True, input=text,
                                      capture_output=True, text=True).stdout)
    return {one["kind"]: one for one in found}


def cert(folder, *arguments):
    subprocess.run([PAWL, "cert", *arguments, "--dir", folder], check=True, capture_output=True)


class Pod:
    """Node a as its pod runs it, with the files of the manifest in a directory of its own."""

    def __init__(self, folder, masters=1):
        self.dir, self.tls, self.made = folder, os.path.join(folder, "tls"), 0
        self.port = {port: pawltest.free_port() for port in ("7117", "7118", "7119")}
        found = manifest()
        self.container = found["StatefulSet"]["spec"]["template"]["spec"]["containers"][0]
        self.pod = found["StatefulSet"]["metadata"]["name"] + "-0"
        os.mkdir(self.tls)
        os.mkdir(os.path.join(folder, "config"))
        cert(folder, "ca")
        self.new_secret()
        for name, text in found["ConfigMap"]["data"].items():
            for port, free in self.port.items():
                text = text.replace("0.0.0.0:" + port, "0.0.0.0:%d" % free)
            text = text.replace("a = pawl-a-0.pawl:7118", "a = 127.0.0.1:" + str(self.port["7118"]))
            if masters == 1:
                text = re.sub("(?m)^[bc] = .*\n", "", text)
            with open(os.path.join(folder, "config", name), "w", encoding="utf-8") as f:
                f.write(self.here(text.replace("drain_wait = 2s", "drain_wait = 20s")))

    def here(self, text):
        """Puts directories of the test in the place of those that the manifest mounts."""
        mounted = {m["name"]: m["mountPath"] for m in self.container["volumeMounts"]}
        for name, path in (("config", "config"), ("tls", "tls"), ("run", ""), ("state", "")):
            text = text.replace(mounted[name], os.path.join(self.dir, path).rstrip("/"))
        return text.replace("$(POD_NAME)", self.pod)

    def new_secret(self):
        """A new certificate comes as the kubelet brings it: a link changes, and with it all files
        at once."""
        cert(self.dir, "node", "a", "--host", "pawl-a-0.pawl,127.0.0.1", "--force")
        self.made += 1
        fresh = os.path.join(self.tls, "..%d" % self.made)
        os.mkdir(fresh)
        for name, source in (("ca.crt", "ca.crt"), ("tls.crt", "a.crt"), ("tls.key", "a.key")):
            shutil.copy(os.path.join(self.dir, source), os.path.join(fresh, name))
            os.chmod(os.path.join(fresh, name), 0o440)
            if self.made == 1:
                os.symlink(os.path.join("..data", name), os.path.join(self.tls, name))
        os.symlink(os.path.basename(fresh), os.path.join(self.tls, "..new"))
        os.replace(os.path.join(self.tls, "..new"), os.path.join(self.tls, "..data"))
        if self.made > 1:
            shutil.rmtree(os.path.join(self.tls, "..%d" % (self.made - 1)))

    def start(self, case):
        program, *arguments = [self.here(word) for word in self.container["command"]]
        case.assertEqual(program, "pawld")
        node = pawltest.Node([PAWLD, *arguments])
        case.addCleanup(node.kill)
        return node

    def probe(self, which):
        program, *arguments = self.container[which]["exec"]["command"]
        endpoints = [e["value"] for e in self.container["env"] if e["name"] == "PAWL_ENDPOINTS"]
        return subprocess.run([{"pawl": PAWL}[program], *arguments], capture_output=True,
                              env={**os.environ, "PAWL_ENDPOINTS": self.here(endpoints[0])},
                              timeout=pawltest.PATIENCE).returncode

    def fetch(self, path, client):
        context = pawltest.tls_context(*(os.path.join(self.dir, name) for name in (
            "ca.crt", client + ".crt", client + ".key")))
        return adminhttp.fetch("127.0.0.1:%d" % self.port["7119"], path, tls=context)

    def served(self):
        """The certificate that the node shows to clients now."""
        return ssl.get_server_certificate(("127.0.0.1", self.port["7117"]))


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
        self.assertEqual(stateful["serviceName"], found["Service"]["metadata"]["name"])
        self.assertEqual(found["PodDisruptionBudget"]["spec"]["maxUnavailable"], 1)
        # All nodes share the service and the budget, and each has a set of its own.
        labels = stateful["template"]["metadata"]["labels"]
        self.assertEqual(stateful["selector"]["matchLabels"], labels)
        self.assertEqual(labels, {"app": "pawl", "node": "a"})
        self.assertEqual(service["selector"], {"app": "pawl"})
        self.assertEqual(found["PodDisruptionBudget"]["spec"]["selector"]["matchLabels"],
                         {"app": "pawl"})
        # Sets do not wait for each other when they update.
        self.assertEqual((stateful["replicas"], stateful["updateStrategy"]["type"]),
                         (1, "OnDelete"))
        self.assertTrue(pod["securityContext"]["runAsNonRoot"])
        mounted = {m["name"] for m in pod["containers"][0]["volumeMounts"]}
        self.assertEqual(mounted, {v["name"] for v in pod["volumes"]}
                         | {v["metadata"]["name"] for v in stateful["volumeClaimTemplates"]})
        config = found["ConfigMap"]["data"]["pawl-a-0.conf"]
        self.assertEqual(re.findall(r"(?m)^(\S+) = (\S+):7118$", config)[1:],
                         [(node, "pawl-%s-0.pawl" % node) for node in NODES])
        self.assertIn("auto_replace = yes\n", config)

    def test_it_comes_up_on_a_single_machine(self):
        spread = manifest()["StatefulSet"]["spec"]["template"]["spec"]["affinity"]
        rules = spread["podAntiAffinity"]
        self.assertEqual(list(rules), ["preferredDuringSchedulingIgnoredDuringExecution"])
        term = rules["preferredDuringSchedulingIgnoredDuringExecution"][0]["podAffinityTerm"]
        # Each node keeps away from all others.
        self.assertEqual(term["labelSelector"]["matchLabels"], {"app": "pawl"})

    def test_each_pod_has_its_own_key_and_no_other(self):
        secrets = set()
        for node in NODES:
            found = manifest(node)
            pod = found["StatefulSet"]["spec"]["template"]["spec"]
            self.assertEqual([v["secret"]["secretName"] for v in pod["volumes"] if "secret" in v],
                             ["pawl-" + node])
            secrets.add("pawl-" + node)
            # A second pod of the set would be the same node: it finds no configuration.
            command = pod["containers"][0]["command"]
            self.assertEqual(command[-1], "/etc/pawl/config/$(POD_NAME).conf")
            self.assertEqual(list(found["ConfigMap"]["data"]), ["pawl-%s-0.conf" % node])
            self.assertEqual(found["ConfigMap"]["metadata"]["name"], "pawl-" + node)
            self.assertFalse(pod["automountServiceAccountToken"])
        self.assertEqual(len(secrets), len(NODES))
        # The page makes secrets with the files that the configuration names.
        files = set(re.findall(r"--from-file=([a-z.]+)=", read(PAGE)))
        config = manifest()["ConfigMap"]["data"]["pawl-a-0.conf"]
        self.assertEqual(files, set(re.findall(r"/etc/pawl/tls/(\S+)", config)))

    def test_the_probes_tell_a_ready_node_from_one_that_is_not(self):
        pod = Pod(self.dir)
        self.assertNotEqual(pod.probe("livenessProbe"), 0)  # Nobody listens yet.
        node = pod.start(self)
        node.wait_log(" voting ")
        pawltest.wait_until(self, lambda: pod.probe("readinessProbe") == 0)
        self.assertEqual(pod.probe("livenessProbe"), 0)
        # A planned stop begins: the node lives on and is not ready.
        node.signal(signal.SIGTERM)
        pawltest.wait_until(self, lambda: pod.probe("readinessProbe") != 0)
        self.assertEqual(pod.probe("livenessProbe"), 0)
        node.signal(signal.SIGTERM)  # Now it stops at once.
        self.assertEqual(node.wait(), 0)

    def test_a_node_that_waits_for_the_others_lives_and_is_not_ready(self):
        pod = Pod(self.dir, masters=3)
        pod.start(self).wait_log(" started ")
        self.assertEqual(pod.probe("livenessProbe"), 0)
        self.assertEqual(pod.probe("readinessProbe"), 1)

    def test_prometheus_reads_the_metrics_and_others_do_not(self):
        pod = Pod(self.dir)
        for client in ("prometheus", "other"):
            cert(self.dir, "client", client)
        pod.start(self).wait_log(" voting ")
        status, _, text = pod.fetch("/metrics", "prometheus")
        self.assertEqual(status, 200)
        self.assertIn("pawl_certificate_not_after_seconds", text)
        self.assertEqual(pod.fetch("/metrics", "other")[0], 403)
        ports = manifest()["Service"]["spec"]["ports"]
        self.assertIn({"name": "admin", "port": 7119}, ports)

    def test_a_state_directory_that_fs_group_has_opened_is_closed_before_the_start(self):
        pod = Pod(self.dir)
        state = os.path.join(self.dir, "state")
        init, = manifest()["StatefulSet"]["spec"]["template"]["spec"]["initContainers"]
        for _ in range(2):  # Before the first start there is no such directory.
            subprocess.run([pod.here(word) for word in init["command"]], check=True)
            node = pod.start(self)
            node.wait_log(" started ")
            node.kill()
            os.chmod(state, 0o2770)
        node = pod.start(self)
        node.wait_log("run chmod 700 " + state)
        self.assertNotEqual(node.wait(), 0)

    def test_a_reload_takes_a_new_secret(self):
        pod = Pod(self.dir)
        node = pod.start(self)
        node.wait_log(" voting ")
        before = pod.served()
        pod.new_secret()
        self.assertEqual(pod.served(), before)
        node.signal(signal.SIGHUP)
        node.wait_log(" reloaded ")
        self.assertEqual(pod.served(), read(os.path.join(self.dir, "a.crt")))

    def test_kubectl_reads_the_set_as_it_is_written(self):
        kubectl = shutil.which("kubectl")
        if not kubectl:
            self.skipTest("there is no kubectl")
        found = manifest()["StatefulSet"]
        path = os.path.join(self.dir, "set.json")
        with open(path, "w", encoding="utf-8") as f:
            json.dump(found, f)
        known = subprocess.run([kubectl, "set", "image", "--local", "-f", path, "pawld=pawl:other",
                               "-o", "json"], capture_output=True, text=True, timeout=60)
        self.assertEqual(known.returncode, 0, known.stderr)
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

        self.assertEqual(list(lost(found, json.loads(known.stdout), "")), [])

    def test_the_image_does_not_run_as_root_and_has_a_health(self):
        text = read(os.path.join(ROOT, "Containerfile"))
        self.assertRegex(text, r"(?m)^USER 7117:7117$")
        self.assertRegex(text, r'(?m)^HEALTHCHECK .*\["pawl", "status", "--check"\]$')
        user = manifest()["StatefulSet"]["spec"]["template"]["spec"]["securityContext"]["runAsUser"]
        self.assertEqual(user, 7117)


if __name__ == "__main__":
    PAWL = os.path.abspath(sys.argv.pop(2))
    pawltest.main(globals())
