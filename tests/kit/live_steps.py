"""What the steps of live.py share."""

import time

from driven import Refused

STEPS = []
# What a machine that is busy may add to something that takes a millisecond, in seconds.
SOON = 1.0
LEASE_MS = 1500


def step(level, net=False):
    """Registers a step of that level. With `net` it needs a network that can be cut."""
    def take(function):
        STEPS.append((level, net, function.__name__, function))
        return function
    return take


def equal(found, expected, what):
    assert found == expected, "%s is %r and not %r" % (what, found, expected)


def true(condition, what):
    assert condition, what


def refused(runner, code, do, **parameters):
    """Checks that the command is refused with that code, and returns the error."""
    try:
        answer = runner.do(do, **parameters)
    except Refused as e:
        equal(e.code, code, "the code of %s" % e.error)
        return e.error
    raise AssertionError("%s %s: not refused with %s but answered with %s"
                         % (do, parameters, code, answer))


def pass_leases(runner, lock, seconds):
    """Lets time pass, in which the lock must always be valid. Returns its last token."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        valid = runner.do("valid", lock=lock)["valid_ms"]
        true(valid > 0, "the lock %s is not valid any more" % lock)
        time.sleep(0.05)
    runner.do("check", lock=lock)
    true(not runner.seen_event(event="lost", lock=lock), "the lock %s was told to be lost" % lock)
    return int(runner.do("token", lock=lock)["token"])


def in_order(runner, numbers, locks, what):
    """Checks that these acquires are granted one after the other; each lock is released then."""
    for number, lock in zip(numbers, locks):
        runner.wait(number)
        late = [n for n in numbers[numbers.index(number) + 1:] if runner.answered(n)]
        equal(late, [], what)
        runner.do("release", lock=lock)


class AnyTime:
    def __eq__(self, other):
        return isinstance(other, int)

    def __repr__(self):
        return "a time"


def refused_wait(runner, number, code):
    """Checks that a command that was begun is refused with that code."""
    try:
        runner.wait(number)
    except Refused as e:
        equal(e.code, code, "the code")
    else:
        raise AssertionError("a command is not refused with %s" % code)
