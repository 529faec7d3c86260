#!/usr/bin/env python3
"""Tests the kit itself: that it notices a client with a mistake, that each case can fail, and that
cases are what they say."""

import asyncio
import os
import re
import subprocess
import sys
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)

import certificates  # noqa: E402
import kit  # noqa: E402
import messages  # noqa: E402
from matching import WORDS, differs  # noqa: E402
from play import STEPS, Play, check_case  # noqa: E402
from scripted_node import BadCase, Rule  # noqa: E402

ROOT = os.path.dirname(os.path.dirname(HERE))
BROKEN = os.path.join(HERE, "broken_runner.py")
# How long a step may take that waits for something that never comes.
WITHIN_MS = 4000

# Each mistake with the cases that must notice it.
MISTAKES = {
    "counts_an_acquire_from_the_answer": ["validity_counts_from_sending", "moved_validity"],
    "counts_an_extension_from_the_answer": ["validity_of_an_extension"],
    "asks_a_late_grant_under_another_lock_id": ["late_grant"],
    "takes_another_lock_id_to_the_next_node": ["failover_hang_up", "wait_goes_on_with_the_rest"],
    "tells_a_loss_twice": ["told_once"],
    "tells_no_loss": ["told_that_it_is_lost"],
    "tells_a_loss_after_a_release": ["no_loss_after_a_release"],
    "repeats_everything": ["update_is_not_repeated", "transfer_is_not_repeated", "moved_update"],
    "never_repeats_a_release": ["release_is_repeated_until_answered"],
    "has_tokens_of_53_bits": ["token_above_2_53"],
    "does_not_wait_after_a_quota": ["quota_waits"],
    "returns_a_quota_at_once": ["quota_waits", "quota_of_a_release", "update_after_a_quota"],
    "leaves_a_node_that_answers_pings": ["slow_node_that_answers_pings"],
    "leaves_a_node_without_a_ping": ["silence_is_answered_by_a_ping"],
    "warns_at_the_deadline": ["warned_before_the_deadline"],
    "extends_late": ["renewal_at_a_third"],
    "extends_each_lock_by_itself": ["renewals_share_a_request"],
    "gives_up_at_the_first_failed_extension": ["extensions_are_tried_again"],
    "forgets_what_it_may_have_taken": ["unsure_is_released", "canceled_is_released"],
    "has_one_bond_for_ever": ["bond_grows_with_each_connection"],
    "names_no_permit_numbers": ["permits"],
    "trusts_a_lease_until_it_is_shortened": [
        "shortened_lock_is_not_trusted_before_the_answer",
        "shortened_lock_ends_though_no_node_is_there"],
    "counts_answers_to_what_was_asked_before_a_shortening": [
        "late_answer_after_a_shortening", "late_renewal_after_a_shortening"],
    "names_no_order_after_a_shortening": ["shorten", "orders_count_up",
                                          "shortening_without_a_quorum"],
    "names_the_same_order_for_ever": ["orders_count_up"],
    "counts_shortenings_over_all_acquisitions": ["order_begins_anew_with_each_lock_id"],
    "forgets_an_order_after_an_error": ["shortening_without_a_quorum"],
    "keeps_an_order_that_was_refused": ["shorten_and_a_node_of_0_2_0"],
    "closes_no_key": ["release_keeps_the_key_closed", "not_trusted_while_it_is_closed"],
    "closes_a_key_with_each_release": ["plain_release_closes_nothing"],
    "closes_no_key_when_it_repeats": ["close_goes_along_with_each_repeat"],
    "keeps_what_the_program_has_dropped": ["forgotten_lock_is_released",
                                           "forgotten_lock_that_listens_is_released",
                                           "forgotten_set_is_released"],
    "does_not_look_whom_a_certificate_is_for": ["tls_other_name", "tls_other_server_name"],
    "trusts_every_certificate": ["tls_unknown_authority", "tls_a_refused_node_is_left"],
    "trusts_certificates_for_ever": ["tls_expired"],
    "shows_no_certificate": ["tls_client_certificate", "moved_over_tls"],
    "takes_a_refusal_for_a_lost_connection": [
        "tls_client_certificate_is_missing", "tls_client_certificate_of_an_unknown_authority",
        "tls_and_a_node_without_tls", "tls_and_a_server_of_http"],
    "goes_on_without_tls": ["moved_from_tls_to_an_endpoint_without"],
    "refuses_unknown_fields": ["unknown_fields"],
    "does_not_follow": ["moved_is_followed", "moved_locks_of_an_extend"],
    "follows_for_ever": ["moved_twice", "moved_back"],
    "follows_any_list": ["moved_with_a_bad_list"],
    "misses_overflows": ["watch_overflow"],
    "says_that_a_released_lock_is_valid": ["lock_and_release", "told_that_it_is_lost"],
    "writes_with_a_lost_lock": ["write_gate", "write_gate_and_a_loss"],
    "ends_with_an_error": ["lock_and_release"],
    "has_a_clock_of_its_own": ["lock_and_release"],
    "answers_twice": ["lock_and_release"],
}


def outcomes(asked, jobs):
    """Plays cases, given as pairs of a mistake and a case. Returns why each has failed."""
    cases = kit.load()
    certificates.folder()

    async def play_all():
        turn, starts = asyncio.Semaphore(jobs), asyncio.Semaphore(os.cpu_count() or 1)

        async def one(mistake, name):
            async with turn:
                plain = ["-I", "-S"] if mistake in ("yes", "no") else []
                command = [sys.executable, *plain, BROKEN, mistake]
                return await Play(cases[name], command, starts, WITHIN_MS).run()
        return await asyncio.gather(*(one(*pair) for pair in asked))
    return dict(zip(asked, asyncio.run(play_all())))


class Mistakes(unittest.TestCase):
    def test_each_mistake_is_noticed(self):
        asked = [(mistake, name) for mistake, names in MISTAKES.items() for name in names]
        for (mistake, name), why in outcomes(asked, 12).items():
            with self.subTest(mistake=mistake, case=name):
                self.assertTrue(why, "%s plays %s without a complaint" % (mistake, name))


class Idle(unittest.TestCase):
    def test_each_case_fails_if_the_client_does_nothing(self):
        names = list(kit.load())
        asked = [(answer, name) for name in names for answer in ("yes", "no")]
        for (answer, name), why in outcomes(asked, 16).items():
            with self.subTest(answer=answer, case=name):
                self.assertTrue(why, "a runner that says %s to all passes %s" % (answer, name))


class Cases(unittest.TestCase):
    def test_each_case_names_a_rule_and_its_page(self):
        for name, case in kit.load().items():
            page = re.search(r"\((docs/[a-z0-9/-]+\.md|tests/kit/README\.md)", case["why"])
            self.assertTrue(page, "%s: why names no page" % name)
            self.assertTrue(os.path.exists(os.path.join(ROOT, page.group(1))), name)

    def test_each_case_is_written_in_the_language_of_cases(self):
        for name, case in kit.load().items():
            with self.subTest(case=name):
                check_case(case)
                for rules in case["nodes"].values():
                    for rule in rules if rules != "refused" else []:
                        Rule(name, rule)

    def test_mistakes_in_cases_are_named(self):
        good = {"level": 1, "why": "w", "nodes": {"a": []}, "steps": []}
        check_case(good)
        check_case({**good, "tls": {"a": "expired"}, "client": {"certificate": "right"}})
        for change in ({"level": 5}, {"more": 1}, {"steps": [{"request": "get", "nobody": 1}]},
                       {"steps": [{"waits": 1}]}, {"steps": [{"play": "stop", "node": "z"}]},
                       {"tls": {"z": "right"}}, {"tls": {"a": "wrong"}},
                       {"client": {"certificate": "left"}}, {"client": {"certificates": "right"}}):
            with self.assertRaises(BadCase):
                check_case({**good, **change})
        with self.assertRaises(BadCase):
            Rule("a", {"on": "get", "anser": {}})

    def test_explain_prints_the_whole_language(self):
        run = subprocess.run([sys.executable, os.path.join(HERE, "kit.py"), "--explain"],
                             capture_output=True, text=True, check=True)
        for word in [*WORDS, *STEPS, *set().union(*STEPS.values()), *certificates.NODES]:
            self.assertRegex(run.stdout, r"\b%s\b" % word)


class Driver(unittest.TestCase):
    def run_kit(self, *args):
        return subprocess.run([sys.executable, os.path.join(HERE, "kit.py"), *args],
                              capture_output=True, text=True, timeout=120)

    def test_a_failed_case_says_what_was_wanted_what_came_and_what_was_said(self):
        run = self.run_kit("--runner", os.path.join(HERE, "runners", "python"), "--case",
                           "lock_and_release", "--trace")
        self.assertEqual((run.returncode, run.stdout.splitlines()[-1]),
                         (0, "passed=1 failed=0 skipped=0"), run.stdout)
        self.assertIn("<- acquire {", run.stdout)

    def test_cases_above_the_level_are_skipped(self):
        run = self.run_kit("--runner", "python", "--level", "1", "--case", "permits", "--case",
                           "valid_ms_0")
        self.assertEqual(run.stdout.splitlines()[-1], "passed=1 failed=0 skipped=1", run.stdout)

    def test_an_unknown_runner_or_case_is_named(self):
        for args, word in ((("--runner", "cobol"), "cobol"),
                           (("--runner", "python", "--case", "nothing"), "--list"),
                           ((), "--runner")):
            run = self.run_kit(*args)
            self.assertNotEqual(run.returncode, 0)
            self.assertIn(word, run.stderr)


class Parts(unittest.TestCase):
    def test_comparisons(self):
        for wanted, came in ((1, 1), ("a", "a"), ({"a": 1}, {"a": 1, "b": 2}), ({"min": 2}, 2),
                             ({"min": 2}, "3"), ({"in": [1, 2]}, 2), ({"any": True}, None),
                             ({"absent": True}, None), ([1, {"a": 2}], [1, {"a": 2, "c": 3}]),
                             ({"size": 2}, [1, 2]), ({"some": {"b": 1}}, [{"b": 2}, {"b": 1}]),
                             ({"each": {"min": 1}}, [1, 2]), ({"not": 3}, 4)):
            self.assertEqual(differs(wanted, came), "", (wanted, came))
        for wanted, came in ((1, 2), (1, True), ("1", 1), ({"a": 1}, {}), ({"min": 2}, 1),
                             ({"max": 2}, "x"), ({"in": [1]}, 2), ({"absent": True}, 1),
                             ([1], [1, 2]), ({"size": 2}, [1]), ({"some": 1}, [2]),
                             ({"each": 1}, [1, 2]), ({"not": 3}, 3), ({"a": {"any": True}}, {})):
            self.assertTrue(differs(wanted, came), (wanted, came))

    def test_messages_are_read_in_any_pieces_and_forms(self):
        value = [0, -1, -33, 127, 128, 2**62, -2**40, None, True, b"x" * 300, "y" * 40,
                 {"a": [{}, []]}, messages.Number.of("u32", 5)]
        for wide in (False, True):
            reader, found = messages.Reader(), []
            for byte in messages.pack(value, wide):
                found += reader.feed(bytes([byte]))
            self.assertEqual(found, [value])
        self.assertEqual(messages.pack(messages.Number.of("u64", 5))[:1], b"\xcf")
        with self.assertRaises(messages.Malformed):
            messages.Reader().feed(b"\xc1")


if __name__ == "__main__":
    unittest.main()
