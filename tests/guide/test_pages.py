"""Tests the pages of docs/guide: the code that they show is in the examples, the commands that they
tell you to type work, and every example is tested."""

import os
import re
import shutil
import signal
import subprocess
import tempfile
import unittest

import guide
from guide import EXAMPLES, GUIDE, HERE, Recipe, blocks, page
from test_tls import Certificates

PAGES = sorted(name for name in os.listdir(GUIDE) if name.endswith(".md"))
GO = sorted("go/%s/main.go" % name for name in os.listdir(os.path.join(EXAMPLES, "go"))
            if os.path.isdir(os.path.join(EXAMPLES, "go", name)))
FILES = sorted(name for name in os.listdir(EXAMPLES) if name not in ("meson.build", "go")) + GO
# It needs modules of others, so it is built with the module that it is about.
CONTROLLER = os.path.join(guide.BINDINGS, "go", "k8s", "examples", "controller", "example_test.go")


class Pages(unittest.TestCase):
    def test_the_links_of_the_pages_lead_somewhere(self):
        for name in PAGES:
            for link in re.findall(r"\]\((?!https://)([^)#]+)(?:#[^)]*)?\)", page(name)):
                self.assertTrue(os.path.exists(os.path.join(GUIDE, link)), "%s: %s" % (name, link))

    def test_the_guide_leads_to_each_page(self):
        for name in PAGES:
            self.assertTrue(name == "README.md" or "](%s)" % name in page("README.md"), name)

    def test_the_code_on_the_pages_is_in_the_examples(self):
        files = []
        for name in FILES:
            with open(os.path.join(EXAMPLES, name), encoding="utf-8") as f:
                files.append(f.read())
        with open(CONTROLLER, encoding="utf-8") as f:
            files.append(f.read())
        for name in PAGES:
            for language in ("c", "sql", "ini", "python", "go"):
                for block in blocks(page(name), language):
                    self.assertTrue(any(block in text for text in files), "%s:\n%s" % (name, block))

    def test_every_example_is_on_a_page_and_in_a_test(self):
        text = "".join(map(page, PAGES))
        tests = ""
        for name in ("test_recipes.py", "test_fencing.py", "test_singleton.py",
                     "test_dialects.py", "test_go.py"):
            with open(os.path.join(HERE, name), encoding="utf-8") as f:
                tests += f.read()
        for name in FILES:
            self.assertIn("](examples/%s)" % name, text)
            called = name[:-2] if name.endswith(".c") else name.removeprefix("go/")
            self.assertIn('"%s"' % called, tests, name)


class Commands(Recipe):
    """Types the blocks that are marked sh, page by page. Blocks that are marked bash start
    clusters, compile, or need real hosts. The nodes require TLS and certificates, like those that
    scripts/run leaves running."""

    @classmethod
    def setUpClass(cls):
        directory = tempfile.mkdtemp(prefix="pawl-guide-tls-")
        cls.addClassCleanup(shutil.rmtree, directory)
        certificates = Certificates(directory, nodes="abc", clients=("me",))
        path = certificates.path
        cls.certificates = {"PAWL_CACERT": path("ca.crt"), "PAWL_CERT": path("me.crt"),
                            "PAWL_CERT_KEY": path("me.key")}
        cls.tls = staticmethod(lambda _, name: "ca = %s\ncert = %s\nkey = %s\nclient_auth = "
                                               "required\n" % (
            path("ca.crt"), path(name + ".crt"), path(name + ".key")))
        super().setUpClass()
        cls.endpoints = ",".join("tls://" + address for address in cls.endpoints.split(","))

    def env(self, **more):
        return super().env(**self.certificates, **more)

    def type_page(self, name):
        # The directory is made as the guide's first page says.
        (links,) = re.findall(r"^ln -s (.*) \.$", page("README.md"), re.MULTILINE)
        for folder in re.findall(r"\.\./\.\./(\w+)(?= )", links):
            os.symlink({"docs": os.path.dirname(GUIDE), "bindings": guide.BINDINGS}[folder],
                       self.path(folder))
        for program in os.listdir(guide.Paths.programs):
            path = os.path.join(guide.Paths.programs, program)
            if os.path.isfile(path) and os.access(path, os.X_OK):
                os.symlink(path, self.path(program))
        script = "".join(blocks(page(name), "sh"))
        with open(self.path("typed"), "w+", encoding="utf-8") as out:
            typed = subprocess.Popen(["bash", "-eu", "-o", "pipefail", "-c", script], cwd=self.dir,
                                     env=self.env(),
                                     stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT,
                                     start_new_session=True)
            self.addCleanup(self.end_group, typed.pid)
            try:
                status = typed.wait(2 * guide.PATIENCE)
            except subprocess.TimeoutExpired:
                status = "none"
            out.seek(0)
            out = out.read()
        self.assertEqual(status, 0, "%s: %s" % (name, out))
        return out

    @staticmethod
    def end_group(group):
        """Ends what a page has left behind because something failed."""
        try:
            os.killpg(group, signal.SIGKILL)
        except ProcessLookupError:
            pass

    def test_a_singleton_service(self):
        self.type_page("singleton-service.md")
        tokens = [int(line.split()[0]) for line in self.read("out/clock/log").splitlines()]
        self.assertEqual(tokens, sorted(tokens))  # Two never ran at once.
        self.assertGreaterEqual(len(set(tokens)), 3)

    def test_a_cron_job(self):
        self.assertEqual(re.sub(r"token \d+", "token N", self.type_page("cron-job.md")),
                         "made with token N\nmade already\nthe report\nmade with token N\nmade "
                         "already\n")

    def test_a_leader_with_workers(self):
        self.type_page("leader-with-workers.md")

    def test_a_job_queue(self):
        self.type_page("job-queue.md")
        self.assertEqual(sorted(os.listdir(self.path("queue"))),
                         ["%d.result" % n for n in range(1, 7)])

    def test_a_rate_limit(self):
        self.assertEqual(len(re.findall("with permit", self.type_page("rate-limit.md"))), 7)

    def test_readers_and_writers(self):
        out = self.type_page("readers-and-writers.md")
        self.assertEqual((out.count("some text\n"), out.count("new\n"), out.count("from C\n")),
                         (2, 1, 10))

    def test_several_keys(self):
        self.assertIn("accounts/anna:98\naccounts/ben:102\nboth are mine\n",
                      self.type_page("several-keys.md"))
        self.assertEqual((self.read("accounts/anna"), self.read("accounts/ben")), ("97\n", "103\n"))

    def test_fencing(self):
        self.assertEqual(self.type_page("fencing.md").count("refused\n"), 3)
        self.assertEqual(self.read("journal"), "from a holder with token 5\nfrom the next one\n"
                                               "from C\nfrom Python\n")
        self.assertEqual(self.read("other"), "a line\n")

    def script(self, name, text):
        self.write(name, text)
        os.chmod(self.path(name), 0o755)

    def test_a_deployment(self):
        # An operator may let a cluster allow longer leases; this one allows a minute.
        first, _, last = (block.replace("--lease 2m --grace 30s", "--lease 30s --grace 5s")
                          for block in blocks(page("terraform.md"), "bash"))
        self.script("terraform", '#!/bin/sh\necho "$1 under token $PAWL_TOKEN"\n')
        self.script("deploy.sh", "#!/bin/sh\nexit 2\n")
        begin = 'export PATH="$PWD:$PATH" USER=me\n'
        said = self.finish("bash", "-euc", begin + first)
        self.assertRegex("\n".join(said), r"plan under token \d+\napply under token \d+$")
        self.finish("bash", "-euc", begin + last, status=2)

    def test_a_script_that_locks_itself(self):
        (text,) = [b for b in blocks(page("coming-from.md"), "bash") if b.startswith("#!")]
        self.script("my-script", text)
        self.assertRegex(self.finish("./my-script")[0], r"only one .* with token \d+")
        self.finish("pawl", "acquire", "my-script", "--lease", "30s")
        self.assertIn("somebody else holds the key", self.finish("./my-script")[0])

    def test_fencing_in_sqlite(self):
        self.assertEqual(self.type_page("fencing-sqlite.md").count("refused\n"), 1)


if __name__ == "__main__":
    guide.main("__main__")
