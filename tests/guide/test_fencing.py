"""Tests the fencing pages of docs/guide: a stale token changes nothing, in a plain file, in SQLite
and in PostgreSQL."""

import glob
import os
import pwd
import shutil
import sqlite3
import subprocess
import tempfile
import time
import unittest

import guide
from guide import EXAMPLES, Recipe


def example(name):
    with open(os.path.join(EXAMPLES, name), encoding="utf-8") as f:
        return f.read()


class File(Recipe):
    """fencing.md"""

    def check_guard(self, append, status):
        append("5", "five")
        append("5", "five again")
        append("7", "seven")
        append("6", "stale", status=status)
        append("7", "seven again")
        self.assertEqual(self.read("journal"), "five\nfive again\nseven\nseven again\n")

    def test_in_shell_an_older_token_writes_nothing(self):
        def append(token, line, status=0):
            self.finish("append.sh", "journal", "ledger", token, line, status=status)
        self.check_guard(append, 1)

    def test_in_c_an_older_token_writes_nothing(self):
        def append(token, line, status=0):
            self.finish(os.path.join(guide.Paths.programs, "append"), "journal", "ledger", token,
                        line, status=status)
        self.check_guard(append, 1)

    def test_in_python_an_older_token_writes_nothing(self):
        def append(token, line, status=0):
            self.finish("env", "PYTHONPATH=" + guide.BINDINGS + "/python", "append.py", "journal",
                        "ledger", token, line, status=status)
        self.check_guard(append, 1)

    def test_shell_c_and_python_share_one_store(self):
        self.finish(os.path.join(guide.Paths.programs, "append"), "journal", "ledger", "9", "nine")
        self.finish("append.sh", "journal", "ledger", "8", "stale", status=1)
        self.finish("env", "PYTHONPATH=" + guide.BINDINGS + "/python", "append.py", "journal",
                    "ledger", "8", "stale", status=1)
        self.assertEqual(self.finish("pawl", "fence", "show", "journal.fence", "ledger"), ["9"])

    def test_a_holder_that_was_stalled_writes_nothing_after_its_successor(self):
        stalled = self.call("acquire", key="ledger", lease_ms=5000)
        # This is as if its lease had run out without its knowledge.
        self.call("break", key="ledger", token=stalled["token"], now=True)
        self.finish("pawl", "run", "ledger", "--lease", "5s", "--", "sh", "-c",
                    'append.sh journal "$PAWL_KEY" "$PAWL_TOKEN" new')
        self.finish("append.sh", "journal", "ledger", str(stalled["token"]), "stale", status=1)
        self.assertEqual(self.read("journal"), "new\n")


class Sqlite(Recipe):
    """fencing-sqlite.md"""

    def setUp(self):
        super().setUp()
        with sqlite3.connect(self.path("ledger.db")) as db:
            db.executescript(example("fence.sqlite.sql"))
            db.execute("CREATE TABLE ledger (line TEXT NOT NULL)")
        db.close()

    def ledger(self):
        db = sqlite3.connect(self.path("ledger.db"))
        try:
            return [row[0] for row in db.execute("SELECT line FROM ledger ORDER BY rowid")]
        finally:
            db.close()

    def write_line(self, token, line, status=0):
        return self.finish("env", "PAWL_TOKEN=%d" % token, "ledger.sqlite.py", "ledger.db", line,
                           status=status)

    def test_an_older_token_writes_nothing(self):
        self.write_line(5, "five")
        self.write_line(7, "seven")
        self.assertEqual(self.write_line(6, "stale", status=1),
                         ["not written: fenced: somebody newer was here"])
        self.write_line(7, "seven again")
        self.assertEqual(self.ledger(), ["five", "seven", "seven again"])

    def test_under_the_lock_each_holder_has_a_newer_token(self):
        for line in ("one", "two"):
            self.finish("pawl", "run", "ledger", "--lease", "5s", "--", "ledger.sqlite.py",
                        "ledger.db", line)
        self.assertEqual(self.ledger(), ["one", "two"])

    def test_no_token_is_refused(self):
        self.write_line(0, "none", status=1)
        self.assertEqual(self.ledger(), [])


BINARIES = sorted(glob.glob("/usr/lib/postgresql/*/bin"))


@unittest.skipUnless(BINARIES, "PostgreSQL is not installed (Debian: postgresql-15)")
class Postgresql(Recipe):
    """fencing-postgresql.md: the tests start a server of their own, on a socket in a directory."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.data = tempfile.mkdtemp(prefix="pawl-pg-")
        cls.addClassCleanup(shutil.rmtree, cls.data, ignore_errors=True)
        cls.user = {}
        if os.getuid() == 0:  # The server refuses to run as root.
            account = pwd.getpwnam("nobody")
            cls.user = {"user": account.pw_uid, "group": account.pw_gid, "extra_groups": []}
            os.chown(cls.data, account.pw_uid, account.pw_gid)
        cls.pg("initdb", "--auth=trust", "--username=guide", "--no-sync", "--locale=C.UTF-8", "-D",
               cls.data + "/db")
        with open(cls.data + "/db/postgresql.conf", "a", encoding="utf-8") as f:
            f.write("listen_addresses = ''\nunix_socket_directories = '%s'\nfsync = off\n"
                    % cls.data)
        cls.pg("pg_ctl", "start", "--wait", "--silent", "-D", cls.data + "/db", "-l",
               cls.data + "/log")
        cls.addClassCleanup(cls.pg, "pg_ctl", "stop", "--silent", "--mode=immediate", "-D",
                            cls.data + "/db")

    @classmethod
    def pg(cls, program, *arguments):
        subprocess.run([os.path.join(BINARIES[-1], program), *arguments], check=True, cwd=cls.data,
                       stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, **cls.user)

    def setUp(self):
        super().setUp()
        self.sql("DROP SCHEMA public CASCADE; CREATE SCHEMA public")
        self.sql(example("fence.postgresql.sql"))
        self.sql("CREATE TABLE ledger (number serial PRIMARY KEY, line text NOT NULL)")

    def env(self, **more):
        env = super().env(PGHOST=self.data, PGUSER="guide", PGDATABASE="postgres", **more)
        # This is psql itself, not the wrapper that finds it.
        return {**env, "PATH": BINARIES[-1] + os.pathsep + env["PATH"]}

    def psql(self):
        return subprocess.Popen(["psql", "-XqAt", "-v", "ON_ERROR_STOP=1"], env=self.env(),
                                text=True, stdin=subprocess.PIPE,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def sql(self, text, refused=""):
        session = self.psql()
        out, err = session.communicate(text, guide.PATIENCE)
        self.assertIn(refused, err)
        self.assertEqual(session.returncode, 3 if refused else 0, err)
        return out.split()

    def ledger(self):
        return self.sql("SELECT line FROM ledger ORDER BY number")

    def write_line(self, token, line, status=0):
        return self.finish("psql", "-Xq", "-v", "ON_ERROR_STOP=1", "-v", "token=%d" % token, "-v",
                           "line=" + line,
                           "-f", os.path.join(EXAMPLES, "ledger.postgresql.sql"), status=status)

    def test_an_older_token_writes_nothing(self):
        self.write_line(5, "five")
        self.write_line(7, "seven")
        lines = self.write_line(6, "stale", status=3)
        self.assertTrue(any("fenced: somebody newer than token 6 of ledger was here" in line
                            for line in lines), lines)
        self.write_line(7, "again")
        self.assertEqual(self.ledger(), ["five", "seven", "again"])

    def test_a_client_that_goes_on_after_the_error_writes_nothing_either(self):
        self.write_line(7, "seven")
        self.finish("psql", "-Xq", "-v", "token=6", "-v", "line=stale", "-f",
                    os.path.join(EXAMPLES, "ledger.postgresql.sql"))
        self.assertEqual(self.ledger(), ["seven"])

    def test_under_the_lock_each_holder_has_a_newer_token(self):
        for line in ("one", "two"):
            self.finish("pawl", "run", "ledger", "--lease", "5s", "--", "sh", "-c",
                        'psql -Xq -v ON_ERROR_STOP=1 -v token="$PAWL_TOKEN" -v line=' + line
                        + ' -f "$0"',
                        os.path.join(EXAMPLES, "ledger.postgresql.sql"))
        self.assertEqual(self.ledger(), ["one", "two"])

    def open_transaction(self, token, line):
        """Returns a session that has passed the fence and written, but has not committed."""
        session = self.psql()
        session.stdin.write("BEGIN; SELECT pawl_fence('ledger', %d); INSERT INTO ledger (line) "
                            "VALUES ('%s');\n"
                            "SELECT 'open';\n" % (token, line))
        session.stdin.flush()
        while session.stdout.readline() != "open\n":
            pass
        return session

    def await_blocked(self):
        end = time.monotonic() + guide.PATIENCE
        while self.sql("SELECT count(*) FROM pg_locks WHERE NOT granted") == ["0"]:
            self.assertLess(time.monotonic(), end)

    def test_an_older_transaction_waits_for_an_open_newer_one_and_is_refused(self):
        newer = self.open_transaction(7, "seven")
        older = self.start("psql", "-Xq", "-v", "ON_ERROR_STOP=1", "-v", "token=6", "-v",
                           "line=stale",
                           "-f", os.path.join(EXAMPLES, "ledger.postgresql.sql"))
        self.await_blocked()
        newer.communicate("COMMIT;\n", guide.PATIENCE)
        self.assertEqual(older.end(), 3)
        self.assertEqual(self.ledger(), ["seven"])

    def test_a_newer_transaction_waits_for_an_open_older_one(self):
        older = self.open_transaction(6, "six")
        newer = self.start("psql", "-Xq", "-v", "ON_ERROR_STOP=1", "-v", "token=7", "-v",
                           "line=seven",
                           "-f", os.path.join(EXAMPLES, "ledger.postgresql.sql"))
        self.await_blocked()
        older.communicate("COMMIT;\n", guide.PATIENCE)
        self.assertEqual(newer.end(), 0)
        self.assertEqual(self.ledger(), ["six", "seven"])

    def test_readers_do_not_refuse_each_other_but_older_writers(self):
        self.sql("SELECT pawl_fence('ledger', 5)")
        self.sql("SELECT pawl_fence('ledger', 8, true); SELECT pawl_fence('ledger', 7, true)")
        # This reader is older than the writer.
        self.sql("SELECT pawl_fence('ledger', 4, true)", refused="fenced")
        # This writer is older than the readers.
        self.sql("SELECT pawl_fence('ledger', 6)", refused="fenced")
        self.sql("SELECT pawl_fence('ledger', 9); SELECT pawl_fence('ledger', 9)")
        self.sql("SELECT pawl_fence('ledger', 8, true)", refused="fenced")

    def test_no_token_is_refused(self):
        self.sql("SELECT pawl_fence('new', 0)", refused="fenced")
        self.sql("SELECT pawl_fence('new', NULL)", refused="null value")

    def test_rows_are_protected_one_by_one(self):
        self.sql(example("fence-rows.postgresql.sql"))
        self.sql("INSERT INTO report VALUES ('a', 'one', 5), ('b', 'one', 9)")
        self.sql("UPDATE report SET body = 'two', token = 7 WHERE id = 'a'")
        self.sql("UPDATE report SET body = 'stale', token = 6 WHERE id = 'a'",
                 refused="fenced: token 7 was here, yours is 6")
        # The statement changes all rows or none.
        self.sql("UPDATE report SET body = 'stale', token = 8", refused="fenced")
        self.assertEqual(self.sql("SELECT id, body, token FROM report ORDER BY id"),
                         ["a|two|7", "b|one|9"])


if __name__ == "__main__":
    guide.main("__main__")
