"""The steps of live.py for the levels 2 to 4, as live_locks.py has those of level 1."""

import os
import signal
import subprocess
import time

from driven import PATIENCE, boot_us
from live_nodes import SECRET, await_true
from live_steps import (
    LEASE_MS, SOON, equal, in_order, pass_leases, refused, refused_wait, step, true,
)

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
    ok = runner.do("locks", client=client, keys=keys, lease_ms=LEASE_MS, **{"as": "s"})
    equal(sorted(ok["tokens"]), keys, "the keys of the tokens")
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


@step(2)
def what_is_lost_is_not_handed_over(nodes, key):
    runner, rival = nodes.runner(), nodes.rival()
    runner.lock(runner.client("c"), "l", key, lease_ms=LEASE_MS)
    token = rival.client.call("get", key=key)["token"]
    rival.client.call("break", key=key, token=token, now=True)
    runner.event(event="lost", lock="l", code="lost")
    refused(runner, "lost", "transfer", lock="l", to="somebody")


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

class Election:
    """The candidates of an election, and the runner that observes it."""

    def __init__(self, name, observer):
        self.name, self.observer = name, observer
        self.numbers, self.tokens = {}, []
        self.leader_is(None)
        observer.do("observe", client=observer.client("c"), name=name, **{"as": "o"})
        equal(self.told(), None, "the leader told")

    def told(self, **fields):
        return self.observer.event(event="leader", watch="o", **fields)["leader"]

    def leader_is(self, owner):
        client = self.observer.client("c")
        leader = self.observer.do("leader", client=client, name=self.name)["leader"]
        equal(leader and leader["owner"], owner, "the leader")

    def stand(self, runner, name):
        self.numbers[name] = runner.begin(
            "campaign", client=runner.client("c"), name=self.name, candidate=name,
            value="of " + name, wait_ms=None, release_on_disconnect=True, **{"as": name})

    def waits(self, name):
        await_true(lambda: name in self.observer.do("waiters", client="c",
                                                    key=self.name)["owners"], name)

    def leads(self, runner, name):
        """Waits until this candidate leads, and everybody sees it."""
        self.tokens.append(int(runner.wait(self.numbers[name])["token"]))
        self.leader_is(name)
        equal(self.told(), {"owner": name, "value": "of " + name, "token": str(self.tokens[-1])},
              "the leader told")

    def is_followed(self, runner, name):
        """The same, after a leader: nobody leads for a moment."""
        self.told(leader=None)
        self.leads(runner, name)


@step(3)
def a_leader_that_dies_resigns_or_hands_over_is_followed_by_the_next(nodes, key):
    nodes.well()
    one, two = nodes.runner(), nodes.runner()
    election = Election(key, two)
    election.stand(one, "one")
    election.leads(one, "one")
    election.stand(two, "two")
    election.waits("two")
    election.stand(two, "three")
    election.waits("three")
    one.do("proclaim", lock="one", value="more")
    equal(election.told()["value"], "more", "the proclamation told")
    one.do("transfer", lock="one", to="three")
    election.is_followed(two, "three")
    election.stand(one, "one")
    election.waits("one")
    two.do("release", lock="three")
    election.is_followed(two, "two")
    two.do("release", lock="two")
    election.is_followed(one, "one")
    election.stand(two, "two")
    election.waits("two")
    before = boot_us()
    one.kill()
    election.is_followed(two, "two")
    spent = boot_us() - before
    true(spent < SOON * 1e6, "the next one led after %d ms" % (spent / 1000))
    equal(election.tokens, sorted(set(election.tokens)), "the list of tokens")
    return "followed after %.1f ms" % (spent / 1000)


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
    await_true(lambda: any(runner.seen_event(type=kind, key=prefix + "after")
                           for kind in ("acquired", "present")), "an event of another node")
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
