"""Tests the parts that need no node: clocks, the maps of answers, and options."""

import os
import unittest
from unittest import mock

import pawl
from pawl._env import clock, errors
from pawl._lock.options import Options, mode_params
from pawl._request.result import entry_of


class Clocks(unittest.TestCase):
    def test_trust_ends_when_either_clock_says_so(self):
        deadline = clock.Instant(1000, 2000)
        self.assertEqual(clock.left(deadline, clock.Instant(400, 1900)), 100)
        self.assertEqual(clock.left(deadline, clock.Instant(950, 1900)), 50)
        for over in (clock.Instant(1000, 0), clock.Instant(0, 2000), clock.Instant(5000, 0)):
            self.assertTrue(clock.distrusted(deadline, over))
            self.assertEqual(clock.left(deadline, over), 0)


class Maps(unittest.TestCase):
    def test_a_field_that_is_missing_or_has_another_type_gets_its_default(self):
        entry = entry_of({"held": True, "token": "x", "owner": 5, "slots": "no",
                          "holders": [1], "remaining_ms": None})
        self.assertEqual((entry.held, entry.token, entry.owner, entry.slots, entry.holders,
                          entry.remaining), (True, 0, b"", (), (), 0.0))

    def test_nobody_holds_a_key_whose_lock_delay_runs(self):
        entry = entry_of({"held": False, "closing": True, "closing_ms": 1500}, b"k")
        self.assertEqual((entry.held, entry.closing), (False, 1.5))

    def test_every_code_has_its_error_and_unknown_ones_are_errors_too(self):
        self.assertIsInstance(errors.from_wire({"code": "held", "message": "m",
                                                "holder": {"token": 3}}), pawl.HeldError)
        self.assertEqual(errors.from_wire({"code": "held", "holder": {"token": 3}}).holder,
                         {"token": 3})
        unknown = errors.from_wire({"code": "newer", "message": "m"})
        self.assertEqual((type(unknown), unknown.code), (pawl.PawlError, "newer"))
        self.assertIsInstance(errors.from_wire(7), pawl.ProtocolError)


class OptionsOfLocks(unittest.TestCase):
    def test_impossible_options_are_refused_before_any_node_is_asked(self):
        for wrong in (dict(mode="write"), dict(permits=1), dict(of=3), dict(permits=4, of=3),
                      dict(mode="shared", permits=1, of=2)):
            with self.assertRaises(ValueError, msg=wrong):
                mode_params(wrong.get("mode", "exclusive"), wrong.get("permits", 0),
                            wrong.get("of", 0))
        for options in (dict(lease=0), dict(lease=-1), dict(lease=10, warn=6)):
            with self.assertRaises(ValueError, msg=options):
                Options(**options)

    def test_the_process_and_its_host_are_shown(self):
        client = mock.Mock(owner=b"me", label="build 7")
        said = Options(priority=-3, value="v").params(client)
        self.assertEqual((said["pid"], said["owner"], said["label"], said["priority"],
                          said["value"]), (os.getpid(), b"me", "build 7", -3, b"v"))
        self.assertNotIn("lock_delay_ms", said)

    def test_a_client_without_a_usable_endpoint_is_refused(self):
        with self.assertRaises(ValueError):
            pawl.connect("nonsense")
        with self.assertRaises(pawl.TlsError):
            pawl.connect("tls://a:1")

    def test_an_unreachable_endpoint_is_an_error_in_time(self):
        with pawl.connect("unix:/nonexistent/socket", timeout=0.2) as client:
            with self.assertRaises(pawl.UnreachableError) as caught:
                client.ping()
            self.assertIn("/nonexistent/socket", str(caught.exception))


if __name__ == "__main__":
    unittest.main()
