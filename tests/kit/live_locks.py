"""The steps of live.py for level 1: locks. Each plays with three real nodes, has a key of its own,
and raises an exception if what it shows is not so."""

import signal
import time

import pawltest
from driven import Refused, boot_us
from live_nodes import HOST, SECRET, await_true
from live_steps import LEASE_MS, SOON, AnyTime, equal, in_order, pass_leases, refused, step, true


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
    for do in ("check", "extend"):
        refused(runner, "lost", do, lock="l")
    equal(runner.do("release", lock="l")["released"], False, "released")
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
    runner.lock(runner.client("c"), "l", key, lease_ms=2 * LEASE_MS)
    waits = rival.begin(key, wait_ms=15000)
    nodes.net.isolate(HOST)
    trusted = 0
    while not runner.seen_event(event="lost", lock="l"):
        said = runner.do("valid", lock="l")
        true(said["at"] < trusted + 1000000 * SOON or not trusted, "no loss was told")
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
