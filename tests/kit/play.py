"""Plays one case: its nodes, the commands for a runner, and the judgement of what comes."""

import asyncio
import json
import tempfile
import time

import certificates
from matching import differs
from runner import Runner, RunnerProblem
from scripted_node import BadCase, Conversation, Rule, environment, filler, make_nodes, now_us

# How long a step may take if the case does not say so, and at most; and how long a runner may take
# to say hello.
WITHIN_MS, LIMIT_S, HELLO_S = 20_000, 60, 120
CASE_FIELDS = {"level", "why", "nodes", "steps"}
# What a case may have besides.
MORE_FIELDS = {"tls", "client"}
# The fields of each kind of step, by the field that names the kind. A step with `do` has the
# parameters of its command besides.
STEPS = {
    "do": {"do", "ok", "error", "either", "within_ms", "at_least_ms", "start"},
    "await": {"await", "ok", "error", "either", "within_ms", "at_least_ms"},
    "event": {"event", "lock", "watch", "want", "within_ms", "next"},
    "no_event": {"no_event", "lock", "watch", "where", "for_ms"},
    "request": {"request", "node", "where", "want", "same", "differs", "like", "since",
                "within_ms"},
    "no_request": {"no_request", "node", "where", "for_ms"},
    "count": {"count", "node", "where", "want"},
    "order": {"order"},
    "play": {"play", "node"},
    "send": {"send", "node"},
    "pause_ms": {"pause_ms"},
}


class Failed(Exception):
    """Something has come that the case does not want."""


class NotHere(Exception):
    """The language of the runner does not have what the case is about."""


def kind_of(step):
    return next((kind for kind in STEPS if kind in step), None)


def check_case(case):
    """Raises BadCase if the case is not written in the language of cases."""
    if set(case) - MORE_FIELDS != CASE_FIELDS or case["level"] not in (1, 2, 3, 4):
        raise BadCase("a case has level (1 to 4), why, nodes and steps, perhaps tls and client, "
                      "and nothing else")
    check_tls(case)
    names = set(case["nodes"]) | {"*"}
    for number, step in enumerate(case["steps"], 1):
        kind = kind_of(step)
        if kind is None or (kind != "do" and set(step) - STEPS[kind]):
            raise BadCase("step %d is of no kind, or has unknown fields: %s"
                          % (number, json.dumps(step)))
        if "node" in STEPS[kind] and step.get("node", "*") not in names:
            raise BadCase("step %d: there is no node %r" % (number, step["node"]))


def check_tls(case):
    for node, kind in case.get("tls", {}).items():
        if node not in case["nodes"] or kind not in certificates.NODES:
            raise BadCase("tls: there is no node %r, or it cannot be %r" % (node, kind))
    client = case.get("client", {})
    if (set(client) - {"certificate", "server_name"}
            or client.get("certificate", "right") not in certificates.OF_CLIENTS):
        raise BadCase("client: it has a certificate that is one of %s, and a server_name" % (
            ", ".join(certificates.OF_CLIENTS)))


class Play:
    def __init__(self, case, command, starts, within_ms=WITHIN_MS, show=None):
        """starts: lets so many runners start at a time, because a start takes all of a processor.
        within_ms: how long a step may take if the case does not say so."""
        check_case(case)
        self._starts, self._within_ms = starts, within_ms
        self.case, self.talk = case, Conversation(show)
        self.nodes = make_nodes(case, self.talk)
        self._folder = tempfile.TemporaryDirectory(prefix="pawl-kit-")
        self._fill = filler({**{name: node.endpoint for name, node in self.nodes.items()},
                             "folder": self._folder.name})
        self.runner = Runner(command, self.talk, environment(case, self.nodes))
        self.skipped = False
        # The commands that run in the background, and the keys of locks, by name.
        self._started, self._keys = {}, {}

    async def run(self):
        """Returns why the case has failed, or an empty text."""
        at, why = 0, ""
        try:
            for node in self.nodes.values():
                await node.start()
            async with self._starts:
                await self.runner.start()
                if await self.runner.answer(self.runner.begin("hello", {}), HELLO_S) is None:
                    raise Failed("the runner does not answer hello within %d s" % HELLO_S)
            for at, step in enumerate(self.case["steps"], 1):
                try:
                    await asyncio.wait_for(self._step(step), LIMIT_S)
                except asyncio.TimeoutError:
                    raise Failed("the step takes longer than %d s" % LIMIT_S) from None
                self._check_problems()
            at = 0
            self._check_end()
            wrong = await self.runner.end()
            if wrong:
                raise Failed(wrong)
            self._check_problems()
        except NotHere:
            self.skipped = True
        except (Failed, RunnerProblem) as error:
            why = str(error)
        finally:
            await self.runner.end(0.5 if why else 10)
            for node in self.nodes.values():
                await node.end()
            self._folder.cleanup()
        if why and at:
            return "step %d, %s:\n    %s" % (at, json.dumps(self.case["steps"][at - 1]), why)
        return why

    def _check_problems(self):
        if self.talk.problems:
            raise Failed(self.talk.problems[0])

    def _check_end(self):
        for node in self.nodes.values():
            for rule in node.unused():
                raise Failed("node %s: %d more request%s should have come for the rule %s" % (
                    node.name, rule.left, "s" if rule.left > 1 else "", json.dumps(rule.said)))
        for event in self.runner.events:
            if event["event"] == "lost" and not event["taken"]:
                raise Failed("the runner tells a loss that the case does not have: %s"
                             % json.dumps(event))

    async def _step(self, step):
        kind = kind_of(step)
        await getattr(self, "_step_" + kind)(self._fill(step))

    async def _until(self, found, within_ms, what):
        """Waits until `found` returns something, and returns it."""
        end = time.monotonic() + within_ms / 1000
        while True:
            self._check_problems()
            result = found()
            if result:
                return result
            left = end - time.monotonic()
            if left <= 0:
                raise Failed("%s within %d ms" % (what, within_ms))
            await self.talk.wait_change(left)

    # ---- commands ----

    async def _step_do(self, step):
        parameters = {name: value for name, value in step.items() if name not in STEPS["do"]}
        if step["do"] == "cancel":
            parameters["command"] = self._started[parameters["command"]]
        if step["do"] == "connect" and "endpoints" in parameters:
            parameters["endpoints"] = [
                self.nodes[one].endpoint if one in self.nodes else one
                for one in parameters["endpoints"]]
        if "as" in parameters:
            keys = parameters.get("keys") or [parameters.get("key", parameters.get("name"))]
            self._keys[parameters["as"]] = [json.dumps(key) for key in keys]
        number = self.runner.begin(step["do"], parameters)
        if "start" in step:
            self._started[step["start"]] = number
        else:
            await self._outcome(number, step, parameters)

    async def _step_await(self, step):
        await self._outcome(self._started[step["await"]], step, {})

    async def _outcome(self, number, step, parameters):
        within = step.get("within_ms", self._within_ms)
        answer = self.runner.answer(number, within / 1000)
        said = await answer
        self._check_problems()
        if said is None:
            raise Failed("no answer has come to the command within %d ms" % within)
        took = (said["at"] - self.runner.asked_at(number)) / 1000
        if took < step.get("at_least_ms", 0):
            raise Failed("the answer came after %.1f ms, and should not come before %d ms"
                         % (took, step["at_least_ms"]))
        if said.get("error", {}).get("code") == "unknown_command":
            raise Failed("the runner does not know the command")
        if said.get("error", {}).get("code") == "no_collector" and step.get("do") == "forget":
            raise NotHere
        wanted = step.get("either") or [{"ok": step["ok"]} if "ok" in step else
                                        {"error": step["error"]} if "error" in step
                                        else {"ok": {}}]
        why = [self._outcome_differs(one, said) for one in wanted]
        if all(why):
            raise Failed("wanted %s, came %s: %s" % (
                " or ".join(json.dumps(one) for one in wanted),
                json.dumps({k: v for k, v in said.items() if k in ("ok", "error")}),
                "; ".join(why)))
        if step.get("do") == "valid" and "ok" in said:
            self._check_valid(parameters["lock"], said)

    @staticmethod
    def _outcome_differs(wanted, said):
        (which, value), = wanted.items()
        if which not in said:
            return "it is no %s" % which
        if which == "error" and isinstance(value, str):
            value = {"code": value}
        return differs(value, said[which])

    def _check_valid(self, lock, said):
        """Nobody may trust a lock for longer than any node has granted it, counted from the moment
        at which the request came, which is not before it was sent."""
        valid = said["ok"]["valid_ms"]
        bounds = [self.talk.bounds.get(key, 0) for key in self._keys.get(lock, [])]
        if valid and bounds and said["at"] + valid * 1000 > min(bounds) + 1000:
            raise Failed("the lock is trusted for %d ms, and only %.1f ms are left of what was "
                         "granted, counted from the sending of the request"
                         % (valid, (min(bounds) - said["at"]) / 1000))

    # ---- events ----

    async def _step_event(self, step):
        def of(event):
            return (event["event"] == step["event"]
                    and all(event.get(name) == step[name] for name in ("lock", "watch")
                            if name in step))

        def matches(event):
            return of(event) and (step.get("next") or not differs(step.get("want", {}), event))

        event = await self._until(
            lambda: self.runner.take_event(matches), step.get("within_ms", self._within_ms),
            "no such event has come: %s" % step["event"])
        why = differs(step.get("want", {}), event)
        if why:
            raise Failed("the next event is %s: %s" % (json.dumps(event), why))
        if event["event"] == "lost" and event.get("valid_ms") and event.get("lock"):
            key = json.dumps(event["key"]) if "key" in event else self._keys[event["lock"]][0]
            end = self.talk.bounds.get(key, 0)
            if event["at"] > end:
                raise Failed("the loss is told %.1f ms after the end of what was granted, with "
                             "valid_ms %d" % ((event["at"] - end) / 1000, event["valid_ms"]))

    async def _step_no_event(self, step):
        seen = len(self.runner.events)

        def found():
            return [event for event in self.runner.events[seen:]
                    if event["event"] == step["no_event"]
                    and all(event.get(name) == step[name] for name in ("lock", "watch")
                            if name in step) and not differs(step.get("where", {}), event)]
        await self._none(found, step["for_ms"])

    async def _none(self, found, for_ms):
        end = time.monotonic() + for_ms / 1000
        while (left := end - time.monotonic()) > 0:
            self._check_problems()
            if found():
                break
            await self.talk.wait_change(left)
        came = found()
        if came:
            raise Failed("this should not have come: %s" % (
                json.dumps(came[0]) if isinstance(came[0], dict) else
                "%s %s" % (came[0].method, json.dumps(came[0].params))))

    # ---- requests ----

    def _requests(self, step, method):
        return [request for request in self.talk.requests
                if request.method == method
                and step.get("node", "*") in ("*", request.node.name)
                and not differs(step.get("where", {}), request.params)]

    async def _step_request(self, step):
        request = await self._until(
            lambda: next((one for one in self._requests(step, step["request"])
                          if not one.taken), None),
            step.get("within_ms", self._within_ms), "no such request has come: %s at node %s" % (
                step["request"], step.get("node", "*")))
        request.taken = True
        rule = Rule("", {"on": step["request"], **{name: step[name] for name in (
            "want", "same", "differs", "like", "since") if name in step}})
        before = self.talk.requests[:self.talk.requests.index(request)]

        def last(method):
            return next((one for one in reversed(before) if one.method == method), None)
        why = rule.check(request, last(request.method), last)
        if why:
            raise Failed("the request is %s %s: %s" % (request.method,
                                                       json.dumps(request.params), why))

    async def _step_no_request(self, step):
        since = now_us()
        await self._none(lambda: [one for one in self._requests(step, step["no_request"])
                                  if one.at > since], step["for_ms"])

    async def _step_count(self, step):
        count = len(self._requests(step, step["count"]))
        why = differs(step["want"], count)
        if why:
            raise Failed("the number of requests %s: %s" % (step["count"], why))

    async def _step_order(self, step):
        """The first requests of these kinds came in this order."""
        at = []
        for what in step["order"]:
            name, method = what.split()
            found = self._requests({"node": name}, method)
            if not found:
                raise Failed("there was no %s at node %s" % (method, name))
            at.append(self.talk.requests.index(found[0]))
        if at != sorted(at):
            raise Failed("the first requests came in another order")

    # ---- what is done to nodes ----

    async def _step_play(self, step):
        await self.nodes[step["node"]].play(step["play"])

    async def _step_send(self, step):
        if not self.nodes[step["node"]].send(step["send"]):
            raise Failed("node %s has no connection over which it could send" % step["node"])

    async def _step_pause_ms(self, step):
        await asyncio.sleep(step["pause_ms"] / 1000)
