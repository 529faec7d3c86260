"""The judge of holders of several languages, with histories that are good and bad, and what drives
runners, with runners that do wrong."""

import json
import os
import sys
import tempfile
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.dont_write_bytecode = True
sys.path.insert(0, HERE)

import mixed_judge  # noqa: E402
from driven import Ended, Refused, Runner, boot_us  # noqa: E402
from mixed_checks import LATE_NS  # noqa: E402

MS = 1000000


class Story:
    """The history of some locks, in ms."""

    def __init__(self):
        self.lines = []

    def line(self, op, at, **fields):
        self.lines.append({"id": len(self.lines), "op": op, "invoke": at * MS, "return": at * MS,
                           **fields})

    def lock(self, name, begin, until, token, key="k", runner=0, **more):
        """A lock that is asked for and granted at `begin`, and believed until `until`."""
        same = {"key": key, "lock_id": name, "process": name, "token": token,
                **{k: v for k, v in more.items() if k == "permits"}}
        self.line("acquire", begin, result="ok", lease_ms=1000, runner=runner, **{**same, **more})
        self.line("believe", begin, until=until * MS, **same)
        return self

    def about(self, name, op, at, key="k", **more):
        self.line(op, at, key=key, lock_id=name, process=name, **more)
        return self

    def found(self):
        return sorted({kind for kind, _, _ in mixed_judge.judged({"op": "run"}, self.lines)[0]})


class Judged(unittest.TestCase):
    def test_beliefs_that_follow_each_other_are_good(self):
        story = Story().lock("a", 0, 1000, 1).lock("b", 1000, 2000, 2)
        story.lock("c", 0, 2000, 1, key="other")
        self.assertEqual(story.found(), [])

    def test_two_beliefs_that_exclude_each_other_are_found(self):
        self.assertEqual(Story().lock("a", 0, 1000, 1).lock("b", 999, 2000, 2).found(),
                         ["exclusion"])

    def test_a_release_and_a_kill_end_a_belief(self):
        for op in ("release", "forget"):
            story = Story().lock("a", 0, 1000, 1).about("a", op, 500, result="ok")
            self.assertEqual(story.lock("b", 500, 2000, 2).found(), [], op)
            self.assertEqual(story.lock("c", 499, 600, 3).found(), ["exclusion", "tokens"], op)

    def test_readers_share_and_writers_do_not(self):
        readers = Story().lock("a", 0, 1000, 1, mode="shared").lock("b", 1, 1000, 2, mode="shared")
        self.assertEqual(readers.found(), [])
        self.assertEqual(readers.lock("w", 500, 600, 3).found(), ["exclusion"])

    def test_no_permit_is_given_twice(self):
        def taken(*permits):
            story = Story()
            for n, numbers in enumerate(permits):
                story.lock("l%d" % n, n, 1000, n + 1, mode="permits", of=3, permits=numbers,
                           count=len(numbers))
            return story.found()
        self.assertEqual(taken([0, 1], [2]), [])
        self.assertEqual(taken([0, 1], [1]), ["exclusion"])
        self.assertEqual(taken([0], [3]), ["permits"])
        self.assertEqual(taken([0, 0]), ["permits"])

    def test_tokens_grow(self):
        self.assertEqual(Story().lock("a", 0, 1, 5).lock("b", 2, 3, 4).found(), ["tokens"])
        self.assertEqual(Story().lock("a", 0, 1, 5).lock("b", 2, 3, 5).found(), ["tokens"])

    def test_a_token_that_falls_while_it_is_held_is_found(self):
        story = Story().lock("a", 0, 1000, 5)
        story.about("a", "believe", 10, token=4, until=1000 * MS)
        self.assertEqual(story.found(), ["tokens"])

    def test_a_loss_is_told_before_another_one_can_believe(self):
        late = 1000 + LATE_NS // MS + 1
        for told, found in ((900, []), (late, []), (late + 1, ["losses"])):
            story = Story().lock("a", 0, 1000, 1).about("a", "lost", told)
            self.assertEqual(story.lock("b", 1001, 2000, 2).found(), found, told)

    def test_a_runner_that_stood_still_may_tell_it_later(self):
        for runner, found in ((0, []), (1, ["losses"])):
            story = Story().lock("a", 0, 1000, 1).about("a", "lost", 1900).lock("b", 1001, 2000, 2)
            story.line("paused", 500, runner=runner)
            story.lines[-1]["return"] = 1800 * MS
            self.assertEqual(story.found(), found)

    def test_what_a_runner_does_wrong_is_found(self):
        story = Story()
        story.line("complaint", 0, text="it has ended")
        self.assertEqual(story.found(), ["protocol"])


class Driven(unittest.TestCase):
    def runner(self, program):
        """Starts a runner that is this Python program; `say` answers the command `asked`."""
        with tempfile.NamedTemporaryFile("w", suffix=".py", delete=False) as f:
            f.write("import json, sys\n"
                    "def say(**fields): print(json.dumps(fields), flush=True)\n"
                    "for line in sys.stdin:\n"
                    "    asked = json.loads(line)\n"
                    "    " + program)
        self.addCleanup(os.unlink, f.name)
        runner = Runner([sys.executable, f.name])
        self.addCleanup(runner.kill)
        return runner

    def test_commands_are_answered_in_any_order(self):
        runner = self.runner("if asked['id'] == 2: say(id=2, at=5, ok={}); say(id=1, at=6, ok={})")
        first, second = runner.begin("one"), runner.begin("two")
        self.assertEqual((runner.wait(first)["at"], runner.wait(second)["at"]), (6, 5))
        self.assertEqual(runner.end(), 0)

    def test_an_error_is_raised_with_its_code(self):
        runner = self.runner("say(id=asked['id'], at=1, error={'code': 'held', 'holder': 'x'})")
        with self.assertRaises(Refused) as caught:
            runner.do("lock")
        self.assertEqual((caught.exception.code, caught.exception.error["holder"]), ("held", "x"))

    def test_an_event_is_taken_once(self):
        runner = self.runner("say(event='lost', at=1, lock=asked['do'])")
        runner.begin("a"), runner.begin("b")
        self.assertEqual(runner.event(event="lost", lock="b")["at"], 1)
        self.assertFalse(runner.seen_event(lock="b"))
        with self.assertRaises(AssertionError):
            runner.event(patience=0, lock="b")

    def test_a_runner_that_ends_or_says_nothing_is_noticed(self):
        with self.assertRaises(Ended):
            self.runner("sys.exit(3)").do("lock")
        silent = self.runner("pass")
        with self.assertRaises(Ended):
            silent.wait(silent.begin("lock"), 0.1)
        silent.kill()
        with self.assertRaises(Ended):
            silent.begin("lock")

    def test_a_liar_changes_one_thing_and_passes_the_rest_on(self):
        answers = {"lock": {"token": "7", "valid_ms": 500}, "valid": {"valid_ms": 500}}
        honest = self.runner("say(id=asked['id'], at=%d, ok=%s[asked['do']])"
                             % (boot_us(), json.dumps(answers)))
        liar = Runner([sys.executable, mixed_judge.LIAR, "valid", *honest.process.args])
        self.addCleanup(liar.kill)
        self.assertEqual(liar.do("lock")["valid_ms"], 500)
        self.assertEqual(liar.do("valid")["valid_ms"], 3500)
        self.assertEqual(liar.end(), 0)


if __name__ == "__main__":
    unittest.main(verbosity=2)
