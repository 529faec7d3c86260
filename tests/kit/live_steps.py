"""The steps of live.py. Each plays with three real nodes, has a key of its own, and raises an
exception if what it shows is not so."""

import os
import signal
import subprocess
import time

import pawltest
from live_nodes import HOST, SECRET, await_true
from driven import PATIENCE, Refused, boot_us

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


# ---- level 1 ----

@step(1)
def a_lock_is_taken_and_excludes_others_until_its_release(nodes, key):
    runner, rival = nodes.runner(), nodes.rival()
    hello = runner.do("hello")
    true(hello["language"] and hello["version"], "hello names neither language nor version")
    before = boot_us()
    lock = runner.lock(runner.client("c"), "l", key, owner="first", value={"hex": "00ff"})
    true(before <= lock["at"] <= boot_us(), "`at` is not CLOCK_BOOTTIME in microseconds")
    true(0 < lock["valid_ms"] <= 4000, "valid_ms is %d" % lock["valid_ms"])
    true(len(lock["lock_id"]) == 32, "the lock_id is %r" % lock["lock_id"])
    equal(runner.do("get", client="c", key=key, quorum=True),
          {"held": True, "owner": "first", "value": {"hex": "00ff"}, "token": lock["token"],
           "at": AnyTime()}, "get")
    true(rival.held_by_another(key), "another client got the key")
    equal(refused(runner, "held", "lock", client="c", key=key, **{"as": "m"})["holder"], "first",
          "the holder")
    runner.do("extend", lock="l", lease_ms=3000)
    equal(runner.do("release", lock="l")["released"], True, "released")
    equal(runner.do("valid", lock="l")["valid_ms"], 0, "valid_ms after the release")
    equal(runner.do("release", lock="l")["released"], False, "released again")
    grant = rival.acquire(key)
    true(grant["token"] > int(lock["token"]), "the next token is not greater")
    refused(runner, "timeout", "lock", client="c", key=key, wait_ms=100, **{"as": "n"})
    rival.release(key, grant)
    true(not runner.seen_event(event="lost"), "a lock that was released was told to be lost")


@step(1)
def a_held_lock_survives_the_kill_of_its_node(nodes, key):
    survives(nodes, key, "a", nodes.kill)


@step(1)
def waiters_are_served_in_the_order_in_which_they_came(nodes, key):
    runner, rival = nodes.runner(), nodes.rival()
    first, numbers, locks = rival.acquire(key), [], ["l1", "l2", "l3", "l4"]
    for n, lock in enumerate(locks):
        client = runner.client("c%d" % n, *nodes.endpoints("abca"[n:] + "abc"[:n]))
        numbers.append(runner.begin_lock(client, lock, key, wait_ms=None, owner=lock))
        await_true(lambda: len(rival.waiters(key)) == len(numbers), "%s waits" % lock)
    equal(runner.do("waiters", client="c0", key=key)["owners"], locks, "the queue")
    rival.release(key, first)
    in_order(runner, numbers, locks, "those who were granted the key too early")


def survives(nodes, key, name, fault):
    """A lock lives on for several leases after something has happened to its node."""
    nodes.well()
    runner = nodes.runner()
    order = name + "".join(n for n in "abc" if n != name)
    client = runner.client("c", *nodes.endpoints(order))
    token = int(runner.lock(client, "l", key, lease_ms=LEASE_MS)["token"])
    fault(name)
    true(pass_leases(runner, "l", 1.6 * LEASE_MS / 1000) >= token, "the token has become smaller")
    other = nodes.rival(order[1])
    true(other.held_by_another(key), "another client got the key")
    equal(runner.do("release", lock="l")["released"], True, "released")
    true(other.acquire(key)["token"] > token, "the next token is not greater")


@step(1)
def a_lock_is_taken_although_the_first_endpoints_are_dead(nodes, key):
    nodes.kill("a")
    dead = "127.0.0.1:%d" % pawltest.free_port() if not nodes.net else "127.0.0.1:9"
    runner = nodes.runner()
    client = runner.client("c", "tls://" + dead, *nodes.endpoints("ab"))
    runner.lock(client, "l", key)


@step(1)
def a_held_lock_survives_the_hang_of_its_node(nodes, key):
    survives(nodes, key, "b", nodes.hang)


@step(1)
def a_runner_that_was_stopped_past_its_deadline_trusts_nothing(nodes, key):
    nodes.well()
    runner, rival = nodes.runner(), nodes.rival()
    runner.lock(runner.client("c"), "l", key, lease_ms=LEASE_MS)
    runner.signal(signal.SIGSTOP)
    grant = rival.granted(rival.begin(key, wait_ms=10000))
    asked = runner.begin("valid", lock="l")
    runner.signal(signal.SIGCONT)
    equal(runner.wait(asked)["valid_ms"], 0, "the validity after the stop")
    equal(runner.event(event="lost", lock="l")["valid_ms"], 0, "what was left")
    refused(runner, "lost", "check", lock="l")
    rival.release(key, grant)


@step(1)
def a_held_lock_survives_the_drain_of_its_node(nodes, key):
    survives(nodes, key, "c", nodes.drain)


@step(1)
def nodes_of_another_authority_are_not_trusted(nodes, key):
    nodes.well()
    runner = nodes.runner(PAWL_CACERT=nodes.others.path("ca.crt"))
    try:
        runner.client("c")
        refused(runner, "tls", "lock", client="c", key=key, **{"as": "l"})
    except Refused as e:
        equal(e.code, "tls", "the code")


@step(1)
def what_the_rules_do_not_allow_is_denied(nodes, key):
    runner = nodes.runner()
    refused(runner, "denied", "lock", client=runner.client("c"), key=SECRET + key, wait_ms=1000,
            **{"as": "l"})
    refused(runner, "denied", "get", client="c", key=SECRET + key)
    runner.lock("c", "m", key)


@step(1)
def tokens_grow_when_runners_and_nodes_start_again(nodes, key):
    nodes.well()
    tokens = []

    def take():
        runner = nodes.runner()
        tokens.append(int(runner.lock(runner.client("c"), "l", key, wait_ms=15000)["token"]))
        runner.do("release", lock="l")
        equal(runner.end(), 0, "the status of the runner")

    take()
    for name in "abc":
        nodes.drain(name)
    for name in "abc":
        nodes.cluster.nodes[name].wait()
    nodes.well()
    take()
    for name in "abc":
        nodes.kill(name)
    for name in "abc":
        nodes.cluster.start(name)
    take()
    equal(tokens, sorted(set(tokens)), "the list of tokens")
    nodes.well()


@step(1)
def a_runner_that_ends_leaves_its_locks_to_their_leases(nodes, key):
    runner, rival = nodes.runner(), nodes.rival()
    at = runner.lock(runner.client("c"), "l", key, lease_ms=LEASE_MS)["at"]
    equal(runner.end(), 0, "the status of the runner")
    true(rival.held_by_another(key), "the key is free although nobody has released it")
    grant = rival.granted(rival.begin(key, wait_ms=10000))
    true(grant["at"] - at > LEASE_MS * 900, "the key was free too early")
    rival.release(key, grant)


@step(1, net=True)
def a_held_lock_survives_cuts_in_one_direction(nodes, key):
    nodes.well()
    runner, net = nodes.runner(), nodes.net
    for name in "ab":
        client = runner.client("c" + name, *nodes.endpoints(name + "c"))
        runner.lock(client, name, key + name, lease_ms=LEASE_MS)
    net.cut(HOST, "a", both=False)  # This node hears nothing of the runner.
    net.cut("b", HOST, both=False)  # The runner hears nothing of this one.
    pass_leases(runner, "a", LEASE_MS / 1000)
    for name in "ab":
        pass_leases(runner, name, LEASE_MS / 1000)
        equal(runner.do("release", lock=name)["released"], True, "released")


@step(1, net=True)
def a_held_lock_survives_its_node_being_cut_off_from_the_others(nodes, key):
    nodes.well()
    runner = nodes.runner()
    client = runner.client("c", *nodes.endpoints("abc"))
    runner.lock(client, "l", key, lease_ms=LEASE_MS)
    nodes.net.partition(["a"], ["b", "c"])
    pass_leases(runner, "l", 1.6 * LEASE_MS / 1000)


@step(1, net=True)
def a_loss_is_told_before_anybody_else_gets_the_key(nodes, key):
    nodes.well()
    runner, rival = nodes.runner(), nodes.rival()
    runner.lock(runner.client("c"), "l", key, lease_ms=LEASE_MS)
    waits = rival.begin(key, wait_ms=15000)
    nodes.net.isolate(HOST)
    trusted = 0
    while not runner.seen_event(event="lost", lock="l"):
        said = runner.do("valid", lock="l")
        true(said["valid_ms"] > 0, "the lock has run out and no loss was told")
        trusted = max(trusted, said["at"] + 1000 * said["valid_ms"])
        time.sleep(0.02)
    lost = runner.event(event="lost", lock="l")
    said = runner.do("valid", lock="l")
    trusted = max(trusted, said["at"] + 1000 * said["valid_ms"])
    granted = rival.granted(waits)
    true(lost["valid_ms"] > 0 and lost["at"] < trusted, "the loss was told after the deadline")
    true(trusted <= granted["at"], "the lock was trusted for %d us beyond the next grant"
         % (trusted - granted["at"]))
    true(int(lost["token"]) < granted["token"], "the next token is not greater")
    await_true(lambda: boot_us() > trusted, "the deadline")
    equal(runner.do("valid", lock="l")["valid_ms"], 0, "the validity after the deadline")
    refused(runner, lost["code"], "check", lock="l")
    true(not runner.seen_event(event="lost", lock="l"), "the loss was told twice")
    rival.release(key, granted)


# ---- level 2 ----

@step(2)
def readers_share_and_writers_do_not(nodes, key):
    nodes.well()
    runner, rival = nodes.runner(), nodes.rival()
    client = runner.client("c")
    runner.lock(client, "r1", key, mode="shared")
    reader = rival.acquire(key, mode="shared")
    refused(runner, "held", "lock", client=client, key=key, **{"as": "w"})
    rival.release(key, reader)
    runner.do("release", lock="r1")
    runner.lock(client, "w", key)
    true(rival.held_by_another(key), "a writer is not alone")
    runner.do("downgrade", lock="w")
    rival.release(key, rival.acquire(key, mode="shared"))
    true(rival.held_by_another(key), "a reader is beside a writer")


@step(2)
def permits_are_never_more_than_there_are(nodes, key):
    runner, rival = nodes.runner(), nodes.rival()
    client = runner.client("c")
    slots = runner.lock(client, "p", key, permits=2, of=3)["slots"]
    slots += rival.acquire(key, permits=1, of=3)["slots"]
    equal(sorted(slots), [0, 1, 2], "the permit numbers")
    refused(runner, "held", "lock", client=client, key=key, permits=1, of=3, **{"as": "q"})
    runner.do("release", lock="p")
    runner.lock(client, "q", key, permits=2, of=3)


@step(2)
def several_keys_are_taken_together_or_not_at_all(nodes, key):
    runner, rival = nodes.runner(), nodes.rival()
    client, keys = runner.client("c"), [key + "1", key + "2", key + "3"]
    grant = rival.acquire(keys[1])
    error = refused(runner, "held", "locks", client=client, keys=keys, **{"as": "s"})
    equal(error["key"], keys[1], "the key of the error")
    true(rival.free(keys[0]) and rival.free(keys[2]), "a part of the keys is held")
    rival.release(keys[1], grant)
    tokens = runner.do("locks", client=client, keys=keys, lease_ms=LEASE_MS, **{"as": "s"})["tokens"]
    equal(sorted(tokens), keys, "the keys of the tokens")
    time.sleep(1.5 * LEASE_MS / 1000)  # The lease would have run out by now.
    true(runner.do("valid", lock="s")["valid_ms"] > 0, "the keys were not extended")
    true(all(rival.held_by_another(k) for k in keys), "one of the keys is free")
    runner.do("release", lock="s")
    true(all(rival.free(k) for k in keys), "one of the keys is still held")


@step(2)
def a_key_is_free_at_once_when_its_holder_dies(nodes, key):
    runner, other, rival = nodes.runner(), nodes.runner(), nodes.rival()
    runner.lock(runner.client("c"), "l", key, release_on_disconnect=True)
    runner.lock("c", "m", key + "stays")
    waits = other.begin_lock(other.client("c"), "l", key, wait_ms=10000)
    await_true(lambda: rival.waiters(key), "somebody waits")
    before = boot_us()
    runner.kill()
    spent = other.wait(waits)["at"] - before
    true(spent < SOON * 1e6, "the key was free after %d ms" % (spent / 1000))
    true(rival.held_by_another(key + "stays"), "a lock without release_on_disconnect is gone")
    return "free after %.1f ms" % (spent / 1000)


@step(2)
def a_lock_that_ends_with_the_process_survives_its_node(nodes, key):
    nodes.well()
    runner, rival = nodes.runner(), nodes.rival()
    client = runner.client("c", *nodes.endpoints("abc"))
    runner.lock(client, "l", key, lease_ms=LEASE_MS, release_on_disconnect=True)
    nodes.kill("a")
    pass_leases(runner, "l", 1.5 * LEASE_MS / 1000)
    waits = rival.begin(key, wait_ms=10000)
    before = boot_us()
    runner.kill()
    true(rival.granted(waits)["at"] - before < SOON * 1e6, "it does not end with the process now")


@step(2)
def waiters_of_higher_priority_are_served_first(nodes, key):
    nodes.well()
    runner, rival = nodes.runner(), nodes.rival()
    first, numbers = rival.acquire(key), {}
    for n, priority in enumerate((0, 5, -3, 5)):
        lock = "l%d" % n
        numbers[lock] = runner.begin_lock(runner.client("c%d" % n), lock, key, wait_ms=None,
                                          owner=lock, priority=priority)
        await_true(lambda: len(rival.waiters(key)) == len(numbers), "%s waits" % lock)
    order = ["l1", "l3", "l0", "l2"]
    equal(runner.do("waiters", client="c0", key=key)["owners"], order, "the queue")
    rival.release(key, first)
    in_order(runner, [numbers[lock] for lock in order], order, "those granted too early")


@step(2)
def a_holder_is_asked_and_hands_over(nodes, key):
    runner, other, rival = nodes.runner(), nodes.runner(), nodes.rival()
    token = runner.lock(runner.client("c"), "l", key, asked=True)["token"]
    early = other.begin_lock(other.client("c"), "early", key, wait_ms=None, owner="early")
    await_true(lambda: len(rival.waiters(key)) == 1, "the first one waits")
    late = other.begin_lock("c", "late", key, wait_ms=None, owner="late")
    await_true(lambda: len(rival.waiters(key)) == 2, "the second one waits")
    await_true(lambda: other.do("ask_release", client="c", key=key, to="late",
                                priority=3)["reached"], "that the holder hears of it")
    asked = runner.event(event="asked", lock="l")
    equal((asked["to"], asked["priority"]), ("late", 3), "what was asked")
    refused(runner, "not_found", "transfer", lock="l", to="nobody")
    true(runner.do("valid", lock="l")["valid_ms"] > 0, "the lock is gone though nobody took it")
    runner.do("transfer", lock="l", to="late")
    equal(runner.do("valid", lock="l")["valid_ms"], 0, "the validity after the transfer")
    true(int(other.wait(late)["token"]) > int(token), "the next token is not greater")
    true(not other.answered(early), "another one got the key")
    other.do("cancel", command=early)
    refused_wait(other, early, "canceled")


def refused_wait(runner, number, code):
    try:
        runner.wait(number)
    except Refused as e:
        equal(e.code, code, "the code")
    else:
        raise AssertionError("a command is not refused with %s" % code)


@step(2)
def a_ring_of_parties_is_found(nodes, key):
    nodes.well()
    runner, one, two = nodes.runner(), "11" * 16, "22" * 16
    client = runner.client("c")
    runner.lock(client, "x", key + "x", party=one)
    runner.lock(client, "y", key + "y", party=two)
    first = runner.begin_lock(client, "y1", key + "y", wait_ms=10000, party=one)
    await_true(lambda: runner.do("waiters", client=client, key=key + "y")["owners"], "one waits")
    second = runner.begin_lock(client, "x2", key + "x", wait_ms=10000, party=two)
    refused_wait(runner, second, "deadlock")
    runner.do("release", lock="y")
    runner.wait(first)


# ---- level 3 ----

def leader_is(runner, owner, value=None):
    leader = runner.do("leader", client="c", name=runner.election)["leader"]
    equal(leader and leader["owner"], owner, "the leader")
    if value is not None:
        equal(leader["value"], value, "what the leader proclaims")


@step(3)
def a_leader_that_dies_resigns_or_hands_over_is_followed_by_the_next(nodes, key):
    nodes.well()
    runners = {name: nodes.runner() for name in ("one", "two")}
    one, two = runners["one"], runners["two"]
    numbers, tokens = {}, []

    def stand(runner, name):
        numbers[name] = runner.begin("campaign", client=runner.client("c"), name=key,
                                     candidate=name, value="of " + name, wait_ms=None,
                                     release_on_disconnect=True, **{"as": name})

    def leads(runner, name):
        tokens.append(int(runner.wait(numbers[name])["token"]))
        leader_is(two, name, "of " + name)
        equal(two.event(event="leader", watch="o")["leader"],
              {"owner": name, "value": "of " + name, "token": str(tokens[-1])}, "the leader told")

    one.election = two.election = key
    leader = two.do("leader", client=two.client("c"), name=key)["leader"]
    equal(leader, None, "the leader")
    two.do("observe", client="c", name=key, **{"as": "o"})
    equal(two.event(event="leader", watch="o")["leader"], None, "the leader told")
    stand(one, "one")
    leads(one, "one")
    for name in ("two", "three"):
        stand(two, name)
        await_true(lambda: name in two.do("waiters", client="c", key=key)["owners"], name)
    one.do("proclaim", lock="one", value="more")
    equal(two.event(event="leader", watch="o")["leader"]["value"], "more", "the proclamation told")
    one.do("transfer", lock="one", to="three")
    next_leader(two, leads, "three")
    stand(one, "one")
    await_true(lambda: "one" in two.do("waiters", client="c", key=key)["owners"], "one")
    two.do("release", lock="three")
    next_leader(two, leads, "two")
    two.do("release", lock="two")
    two.event(event="leader", watch="o", leader=None)
    leads(one, "one")
    stand(two, "two")
    await_true(lambda: "two" in two.do("waiters", client="c", key=key)["owners"], "two")
    before = boot_us()
    one.kill()
    next_leader(two, leads, "two")
    spent = boot_us() - before
    true(spent < SOON * 1e6, "the next one led after %d ms" % (spent / 1000))
    equal(tokens, sorted(set(tokens)), "the list of tokens")


def next_leader(two, leads, name):
    """Nobody leads for a moment, and then the next one."""
    two.event(event="leader", watch="o", leader=None)
    leads(two, name)


@step(3)
def a_watch_tells_everything_and_survives_its_node(nodes, key):
    nodes.well()
    runner, rival = nodes.runner(), nodes.rival()
    prefix, call = key + "/", rival.client.call

    def told(kind, name="k"):
        event = runner.event(event="change", watch="w", type=kind)
        if name:
            equal(event["key"], prefix + name, "the key of %s" % kind)
        return event

    rival.acquire(prefix + "before", owner="o", value="v")
    runner.do("watch", client=runner.client("c", *nodes.endpoints("abc")), prefix=prefix,
              **{"as": "w"})
    equal((told("present", "before")["owner"], told("current", None)["type"]), ("o", "current"),
          "what was told of the beginning")
    lock = rival.acquire(prefix + "k", owner="p", value="1")
    same = {"key": prefix + "k", "lock_id": lock["lock_id"]}
    event = told("acquired")
    equal((event["owner"], event["value"], event["token"]), ("p", "1", str(lock["token"])),
          "what was told of an acquire")
    call("update", value="2", **same)
    equal(told("updated")["value"], "2", "the value told")
    call("ask_release", key=prefix + "k")
    told("asked")
    call("downgrade", **same)
    told("downgraded")
    call("release", **same)
    told("released")
    rival.acquire(prefix + "short", lease_ms=200)
    told("acquired", "short"), told("expired", "short")
    rival.acquire(prefix + "broken")
    told("acquired", "broken")
    call("break", key=prefix + "broken", now=True)
    told("lost", "broken")
    nodes.kill("a")
    lock = rival.acquire(prefix + "after")
    await_true(lambda: runner.seen_event(type="acquired", key=prefix + "after")
               or runner.seen_event(type="present", key=prefix + "after"), "an event of another node")
    runner.do("stop", watch="w")
    rival.acquire(prefix + "unseen")
    runner.do("get", client="c", key=key)
    true(not runner.seen_event(key=prefix + "unseen"), "a watch that was stopped tells more")


@step(3)
def a_watch_that_is_denied_ends(nodes, key):
    runner = nodes.runner()
    runner.do("watch", client=runner.client("c"), prefix=SECRET, **{"as": "w"})
    equal(runner.event(event="ended", watch="w")["code"], "denied", "the code")


@step(3)
def an_explanation_names_the_masters_that_are_silent(nodes, key):
    nodes.well()
    runner = nodes.runner()
    client = runner.client("c", *nodes.endpoints("bca"))
    nodes.hang("a")
    masters = runner.do("explain", client=client, key=key)["masters"]
    equal({m["node"]: m["state"] for m in masters},
          {"a": "silent", "b": "voting", "c": "voting"}, "the states of the masters")
    nodes.well()


# ---- level 4 ----

@step(4)
def a_fence_is_shared_with_the_command(nodes, key):
    runner, path = nodes.runner(), os.path.join(nodes.folder, "fence")

    def command(token):
        done = subprocess.run([nodes.pawl, "fence", "check", path, key, str(token)],
                              capture_output=True, text=True, timeout=PATIENCE)
        true(done.returncode in (0, 1), "pawl fence check: %s" % done.stderr)
        return done.returncode == 0

    def own(token):
        return runner.do("fence", file=path, key=key, token=str(token))["accepted"]

    great = 2 ** 62 - 1
    equal([own(5), command(4), command(5), command(7), own(6), own(7), own(great),
           command(great - 1), command(great)],
          [True, False, True, True, False, True, True, False, True], "what was accepted")


@step(4)
def a_write_is_let_through_only_while_there_is_time_for_it(nodes, key):
    nodes.well()
    runner = nodes.runner()
    token = runner.lock(runner.client("c"), "l", key, lease_ms=LEASE_MS)["token"]
    gate = runner.do("gate", lock="l", margin_ms=100)
    equal((gate["accepted"], gate["token"]), (True, token), "the gate")
    equal(runner.do("gate", lock="l", margin_ms=LEASE_MS)["accepted"], False, "a wide margin")
    runner.signal(signal.SIGSTOP)
    rival = nodes.rival()
    rival.granted(rival.begin(key, wait_ms=10000))
    asked = runner.begin("gate", lock="l", margin_ms=0)
    runner.signal(signal.SIGCONT)
    equal(runner.wait(asked)["accepted"], False, "the gate after the deadline")
