"""Tests the options from the environment, and programs that end without closing their client."""

import asyncio
import os
import shutil
import subprocess
import sys
import tempfile
import textwrap
import unittest
import unittest.mock

import nodes
import pawl
import pawl.aio
from nodes import Case
from test_tls import Certificates


TRACE = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


class Environment(Case):
    def test_a_client_takes_the_variables_of_the_command(self):
        given = {"PAWL_ENDPOINTS": ",".join(self.endpoints), "PAWL_PREFER_FIRST": "yes"}
        with unittest.mock.patch.dict(os.environ, given):
            with pawl.connect(**pawl.options_from_env()) as client:
                self.assertIn(client.ping()["node"], ("a", b"a"))

            async def ask():
                async with pawl.aio.connect(**pawl.options_from_env()) as client:
                    return (await client.ping())["node"]

            self.assertIn(asyncio.run(ask()), ("a", b"a"))

    def test_every_variable_sets_its_option(self):
        files = {"PAWL_CACERT": "ca", "PAWL_CERT": "cert", "PAWL_CERT_KEY": "key",
                 "PAWL_SERVER_NAME": "name", "TRACEPARENT": TRACE}
        wanted = {"endpoints": "127.0.0.1:7117", "ca_file": "ca", "cert_file": "cert",
                  "key_file": "key", "server_name": "name", "trace": TRACE}
        self.assertEqual(pawl.options_from_env(files), wanted)
        self.assertEqual(pawl.options_from_env({"PAWL_ENDPOINTS": ""}),
                         {"endpoints": "127.0.0.1:7117"})

    def test_a_traceparent_goes_with_every_request_and_a_wrong_one_is_refused(self):
        for wrong in ("", TRACE.upper(), TRACE[:-1], TRACE.replace("00-", "ff-", 1),
                      "00-" + "0" * 32 + TRACE[35:], TRACE[:36] + "0" * 16 + "-01"):
            self.assertNotIn("trace", pawl.options_from_env({"TRACEPARENT": wrong}))
            with self.assertRaises(ValueError):
                pawl.connect(self.endpoints, trace=wrong)
        with pawl.connect(self.endpoints, trace=TRACE) as client:
            self.assertFalse(client.get("traced").held)
            with self.assertRaises(pawl.BadRequestError) as refused:
                client.call("ping", trace="nonsense")
            self.assertIn("traceparent", str(refused.exception))


class Files(unittest.TestCase):
    def test_an_error_about_a_file_names_the_file(self):
        folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, folder)
        path = Certificates(folder).path
        ca = path("ca.crt")
        with open(os.path.join(folder, "nonsense"), "w") as nonsense:
            nonsense.write("nonsense\n")
        nowhere = os.path.join(folder, "nowhere")
        rows = ((dict(ca_file=nowhere), nowhere), (dict(ca_file=nonsense.name), nonsense.name),
                (dict(ca_file=ca, cert_file=ca, key_file=nowhere), nowhere),
                (dict(ca_file=ca, cert_file=nonsense.name, key_file=ca), nonsense.name))
        for files, wrong in rows:
            with self.assertRaises(pawl.TlsError, msg=files) as caught:
                pawl.connect("tls://localhost:1", **files)
            self.assertEqual(caught.exception.file, wrong)
            self.assertTrue(str(caught.exception).startswith(wrong + ": "), caught.exception)


class NotClosed(Case):
    PROGRAMS = {
        "a lock": """
            client = pawl.connect(NODES)
            lock = client.lock(KEY + "1", wait=5, lease=2).acquire()
            """,
        "a watch": """
            client = pawl.connect(NODES)
            watch = client.watch(KEY)
            next(iter(watch))
            """,
        "a loop that is closed over a lock and a watch": """
            async def main():
                client = pawl.aio.connect(NODES)
                lock = await client.lock(KEY + "2", wait=5, lease=2)
                await client.watch(KEY).get()
                return client, lock

            loop = asyncio.new_event_loop()
            kept = loop.run_until_complete(main())
            loop.close()
            """,
        "asyncio.run": """
            async def main():
                client = pawl.aio.connect(NODES)
                await client.lock(KEY + "3", wait=5, lease=2)

            asyncio.run(main())
            """,
    }

    def test_a_program_that_does_not_close_its_client_ends_without_warnings(self):
        place = os.path.dirname(os.path.dirname(pawl.__file__))
        for name, program in self.PROGRAMS.items():
            text = "import asyncio, pawl, pawl.aio\nNODES, KEY = %r, %r\n%s" % (
                self.endpoints, self.key, textwrap.dedent(program))
            done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True,
                                  timeout=nodes.PATIENCE, env=dict(os.environ, PYTHONPATH=place))
            self.assertEqual((done.returncode, done.stderr), (0, ""), name)


if __name__ == "__main__":
    unittest.main()
