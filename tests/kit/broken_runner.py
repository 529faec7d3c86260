#!/usr/bin/env python3
"""broken_runner.py MISTAKE: the runner for Python with one mistake, so that test_kit.py can see
that the kit notices it. `yes` and `no` know no client at all, and answer every command alike."""

import json
import os
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))


def answer_all(answer):
    for line in sys.stdin:
        command = json.loads(line)
        said = ({"ok": {"language": "none", "version": "0", "level": 4}}
                if command["do"] == "hello" else answer)
        print(json.dumps({"id": command["id"],
                          "at": time.clock_gettime_ns(time.CLOCK_BOOTTIME) // 1000, **said}),
              flush=True)


def load():
    """Returns the module of the runner for Python; with it the package is loaded."""
    import importlib.util
    from importlib.machinery import SourceFileLoader

    path = os.path.join(HERE, "runners", "python")
    loader = SourceFileLoader("python_runner", path)
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(loader.name, loader))
    loader.exec_module(module)
    return module


def after(owner, name, change):
    """Changes what a function returns."""
    before = getattr(owner, name)
    setattr(owner, name, lambda *args, **named: change(before(*args, **named)))


def counts_an_acquire_from_the_answer(runner):
    from pawl._env import clock
    from pawl._lock import acquire
    acquire._deadline_of = lambda answer: clock.now().plus(answer.result["valid_ms"] * clock.MS)


def counts_an_extension_from_the_answer(runner):
    from pawl._env import clock
    from pawl._lock.renew import Keeper
    prolong = Keeper._prolong
    Keeper._prolong = lambda self, lock, outcome, sent_at, connection: prolong(
        self, lock, outcome, clock.now(), connection)


def asks_a_late_grant_under_another_lock_id(runner):
    from pawl._lock import acquire

    class Anew(acquire.Call):
        def __init__(self, method, params, *more):
            super().__init__(method, params, *more)
            if "lock_id" in params:
                self.draw_anew()
    acquire.Call = Anew


def takes_another_lock_id_to_the_next_node(runner):
    from pawl._request.calls import Calls
    lost = Calls._connection_lost

    def anew(self, link, error):
        for call in self._under_way(link):
            if call.method == "acquire":
                call.draw_anew()
        lost(self, link, error)
    Calls._connection_lost = anew


def tells_a_loss_twice(runner):
    lost = runner.Runner.lost
    runner.Runner.lost = lambda *args: (lost(*args), lost(*args))


def tells_no_loss(runner):
    runner.Runner.lost = lambda *args: None


def tells_a_loss_after_a_release(runner):
    async def release(self, command):
        self.event("lost", lock=command["lock"], code="lost", valid_ms=0, token="1")
        return {"released": await self.lock(command).release()}
    runner.Runner.do_release = release


def repeats_everything(runner):
    from pawl._request import call
    call.NEVER_REPEATED = frozenset()


def never_repeats_a_release(runner):
    from pawl._request import call
    call.NEVER_REPEATED = call.NEVER_REPEATED | {"release"}


def has_tokens_of_53_bits(runner):
    after(runner, "granted", lambda told: {**told, "token": str(int(float(told["token"])))})


def does_not_wait_after_a_quota(runner):
    from pawl._request import rest
    rest.random.uniform = lambda low, high: 0


def returns_a_quota_at_once(runner):
    from pawl._request.rest import Resting
    Resting.take = lambda *args: False


def leaves_a_node_that_answers_pings(runner):
    from pawl._link.silence import Silence
    Silence.heard = lambda self: None


def leaves_a_node_without_a_ping(runner):
    from pawl._link.silence import Silence

    def pretend(self):
        self.owed = self.pinged = self.pong_due = True
        self._ping_at = self._loop.time()
    Silence.send_ping = pretend


def warns_at_the_deadline(runner):
    from pawl._lock.options import Options
    Options.warn_ms = 0


def extends_late(runner):
    from pawl._env import clock
    from pawl._lock.renew import Keeper

    def schedule(self, lock, at_once):
        now = clock.now()
        lock._renew_at = now.boot + clock.left(lock._deadline, now) - lock._lease // 5
    Keeper._schedule = schedule


def extends_each_lock_by_itself(runner):
    from pawl._lock import extension
    extension.BATCH_MAX = 1


def gives_up_at_the_first_failed_extension(runner):
    from pawl._lock.renew import Keeper
    Keeper._retry = Keeper.lose


def forgets_what_it_may_have_taken(runner):
    from pawl._request.call import Call
    Call.in_doubt = lambda *args: False


def change_extensions(runner, change):
    from pawl._lock.renew import Keeper
    extension = Keeper._extension

    def changed(self, batch, how):
        call = extension(self, batch, how)
        for item in call.params["locks"]:
            change(item)
        return call
    Keeper._extension = changed


def has_one_bond_for_ever(runner):
    change_extensions(runner, lambda item: "bond" in item and item.update(bond=1))


def names_no_permit_numbers(runner):
    change_extensions(runner, lambda item: item.pop("slots", None))


def trusts_a_lease_until_it_is_shortened(runner):
    from pawl._lock.renew import Keeper
    give_up = Keeper._give_up_later_end

    def trust_on(self, lock, lease_ms):
        deadline = lock._deadline
        give_up(self, lock, lease_ms)
        lock._deadline = deadline
    Keeper._give_up_later_end = trust_on


def counts_answers_to_what_was_asked_before_a_shortening(runner):
    from pawl._lock.leased import LeasedLock
    LeasedLock._version = property(lambda self: (self._lock_id, 0))


def names_no_order_after_a_shortening(runner):
    change_extensions(runner, lambda item: item.pop("order", None))


def names_the_same_order_for_ever(runner):
    from pawl._lock import renew
    item = renew.item
    renew.item = lambda lock, how: {name: min(value, 1) if name == "order" else value
                                     for name, value in item(lock, how).items()}


def counts_shortenings_over_all_acquisitions(runner):
    from pawl._lock.leased import LeasedLock
    orders = []

    def set_order(self, order):
        orders.append(order)
    LeasedLock._order = property(lambda self: max(orders), set_order)


def forgets_an_order_after_an_error(runner):
    from pawl._env.errors import BadRequestError
    from pawl._request.calls import Calls
    wait = Calls.wait

    async def fail(self, call):
        try:
            return await wait(self, call)
        except runner.pawl.NoQuorumError as error:
            raise BadRequestError(error.message) from error
    Calls.wait = fail


def keeps_an_order_that_was_refused(runner):
    from pawl._lock import renew
    renew.BadRequestError = ()


def closes_no_key(runner):
    release = runner.pawl.aio.Lock.release
    runner.pawl.aio.Lock.release = lambda self, close=0: release(self)


def closes_a_key_with_each_release(runner):
    release = runner.pawl.aio.Lock.release
    runner.pawl.aio.Lock.release = lambda self, close=0: release(self, close=close or 0.1)


def closes_no_key_when_it_repeats(runner):
    from pawl._request.call import Call
    body = Call.body

    def forget(self, *where):
        said = body(self, *where)
        return {k: v for k, v in said.items() if k != "close_ms" or not self.sends}
    Call.body = forget


def keeps_what_the_program_has_dropped(runner):
    from pawl._lock.renew import Keeper
    kept, add = [], Keeper.add

    def keep(self, lock, *more):
        kept.append(lock)
        add(self, lock, *more)
    Keeper.add = keep


def change_tls(change):
    from pawl._link import tls_files
    context = tls_files._context

    def changed(*files):
        made = context(*files)
        change(made)
        return made
    tls_files._context = changed


def does_not_look_whom_a_certificate_is_for(runner):
    change_tls(lambda context: setattr(context, "check_hostname", False))


def trusts_every_certificate(runner):
    import ssl

    def trust(context):
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    change_tls(trust)


def trusts_certificates_for_ever(runner):
    import ssl
    no_check_time = 0x200000  # X509_V_FLAG_NO_CHECK_TIME
    change_tls(lambda context: setattr(context, "verify_flags",
                                       ssl.VerifyFlags(context.verify_flags | no_check_time)))


def shows_no_certificate(runner):
    from pawl._link import tls_files
    context = tls_files._context
    tls_files._context = lambda ca, cert, key: context(ca, None, None)


def takes_a_refusal_for_a_lost_connection(runner):
    from pawl._link import link
    link.is_tls_problem = lambda error: False


def goes_on_without_tls(runner):
    from pawl._link import failover
    named = failover.named_endpoints
    failover.named_endpoints = lambda said, over_tls, has_tls: named(said, False, has_tls)


def refuses_unknown_fields(runner):
    from pawl._request import calls
    response = calls.Calls._on_response

    def refuse(self, link, msgid, error, result):
        if isinstance(result, dict) and "later" in result:
            result = "?"
        response(self, link, msgid, error, result)
    calls.Calls._on_response = refuse


def does_not_follow(runner):
    from pawl._request.follow import Followed
    Followed.take = lambda *args: False


def follows_for_ever(runner):
    from pawl._request.call import Call
    Call.moved = property(lambda self: False, lambda self, value: None)


def follows_any_list(runner):
    from pawl._link import failover
    from pawl._link.endpoint import parse_one
    failover.named_endpoints = lambda said, over_tls, has_tls: [
        parse_one(one) for one in said or [] if isinstance(one, str) and ":" in one[:10]]


def misses_overflows(runner):
    from pawl._watch.watch import Watch
    Watch._overflow = lambda self: None


def says_that_a_released_lock_is_valid(runner):
    async def valid(self, command):
        return {"valid_ms": 500}
    runner.Runner.do_valid = valid


def writes_with_a_lost_lock(runner):
    async def gate(self, command):
        return {"accepted": True, "token": str(self.lock(command).token)}
    runner.Runner.do_gate = gate


def ends_with_an_error(runner):
    async def end(self):
        sys.exit(3)
    runner.Runner.end = end


def has_a_clock_of_its_own(runner):
    runner.boot_us = lambda: time.time_ns() // 1000


def answers_twice(runner):
    tell = runner.Runner.tell
    runner.Runner.tell = lambda self, what: (tell(self, what), tell(self, what))


def main(mistake):
    if mistake in ("yes", "no"):
        answer_all({"ok": {}} if mistake == "yes" else {"error": {"code": "held"}})
    else:
        import asyncio

        runner = load()
        globals()[mistake](runner)
        asyncio.run(runner.main())


if __name__ == "__main__":
    main(sys.argv[1])
