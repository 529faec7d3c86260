#!/usr/bin/env python3
"""ledger.sqlite.py DATABASE LINE: writes a line to the ledger with the token of the lock, as in

    pawl run ledger -- ledger.sqlite.py ledger.db 'a line'
"""
import os
import sqlite3
import sys

db = sqlite3.connect(sys.argv[1], isolation_level=None)
try:
    db.execute("BEGIN IMMEDIATE")
    db.execute("INSERT INTO pawl_fence VALUES ('ledger', :token)"
               " ON CONFLICT (name) DO UPDATE SET token = excluded.token",
               {"token": int(os.environ["PAWL_TOKEN"])})
    db.execute("INSERT INTO ledger (line) VALUES (:line)", {"line": sys.argv[2]})
    db.execute("COMMIT")
except sqlite3.Error as error:  # nothing of the transaction is left
    sys.exit("not written: %s" % error)
