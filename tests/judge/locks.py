"""What a client knows of one acquisition, and the requests about it. Each request is sent, awaited,
and written to the history."""

import rpc

# How long a client waits for an answer, in addition to the time that it has asked to wait.
PATIENCE_S = 2.5


class Kind:
    """The mode of a lock: exclusive, shared, or `count` of the `of` permits of a semaphore."""

    def __init__(self, mode, of=None, count=None):
        self.mode, self.of, self.count = mode, of, count

    def asked(self):
        return ({"permits": self.count, "of": self.of}
                if self.mode == "permits" else {"mode": self.mode})

    def told(self):
        return {"mode": self.mode, "of": self.of, "count": self.count}


class Lock:
    def __init__(self, client, key, kind, lease_ms, owner=None, **options):
        self.client, self.key, self.kind = client, key, kind
        self.lease_ms, self.options = lease_ms, options
        self.owner = owner or client.owner
        self.lock_id = "%032x" % client.random.getrandbits(128)
        # `until` is the time by the machine's clock until which the client may believe.
        self.token = self.until = 0
        # The number of the connection that ends the lock.
        self.bound = None
        # The greatest number of a connection under which an answer counted.
        self.answered_binding = 0
        # The client has let the lock go: no answer makes it believe again.
        self.over = False
        # A node has confirmed the release.
        self.released = False
        # A request that may acquire the lock is perhaps still on its way.
        self.unanswered = False
        # The last value and value_seq that the client knows.
        self.value = self.seq = None
        self.first = client.another_value()

    def believed(self):
        return not self.over and rpc.now() < self.until

    def left_ms(self):
        return max(0, self.until - rpc.now()) // 1000000

    def told(self):
        return {"key": self.key, "lock_id": self.lock_id}

    def counts_on(self, answer, token, valid_ms, binding=None):
        """Returns whether the client believes because of this answer: the answer came in time, the
        lock was not let go meanwhile, and it has not moved to a later connection than that of the
        request. If this answer moves it, earlier answers do not count any more."""
        until = answer.invoke + int(valid_ms * 1000000 / self.client.rate)
        binding = binding or self.answered_binding
        if self.over or answer.returned >= until or binding < self.answered_binding:
            return False
        moved, self.answered_binding = binding > self.answered_binding, binding
        self.token = max(token, self.token)
        self.until = until if moved else max(until, self.until)
        return True

    def write(self, op, answer, believes, **fields):
        self.client.write(op, answer, **self.told(), believed=believes if answer.ok else None,
                          **fields)

    # ---- requests ----

    async def acquire(self, connection, wait_ms=0):
        """Asks for the lock, for the first time or again."""
        if self.options.get("release_on_disconnect"):
            self.bound = connection.number
        binding = self.bound
        answer = await connection.call("acquire", PATIENCE_S + wait_ms / 1000, key=self.key,
                                       lock_id=self.lock_id, lease_ms=self.lease_ms,
                                       wait_ms=wait_ms, owner=self.owner, value=self.first,
                                       bond=binding, **self.kind.asked(), **self.options)
        believes = (answer.ok and self.counts_on(answer, answer.data["token"],
                                                 answer.data["valid_ms"], binding))
        self.unanswered |= answer.result == "unknown"
        self.client.examine(answer, "acquire", self)
        self.value = self.first if self.value is None else self.value
        self.write("acquire", answer, believes, **self.kind.told(), lease_ms=self.lease_ms,
                   wait_ms=wait_ms, value=self.first, node=connection.node,
                   binding=binding, lock_delay_ms=self.options.get("lock_delay_ms"),
                   priority=self.options.get("priority"))
        return answer

    async def extend(self, connection, deadline_kept=True, name_token=True, lease_ms=None):
        """Extends the lease. With deadline_kept the client knows its deadline, and drops an answer
        that comes after it; without, it has forgotten for how long it may believe."""
        lease_ms, before, binding = lease_ms or self.lease_ms, self.until, None
        if self.bound and connection.number > self.bound:
            deadline_kept, binding = False, connection.number
        answer = await connection.call("extend", PATIENCE_S, key=self.key, lock_id=self.lock_id,
                                       lease_ms=lease_ms, bond=binding,
                                       token=self.token or None if name_token else None,
                                       deadline_kept=deadline_kept)
        self.client.examine(answer, "extend", self, lease_ms)
        late = deadline_kept and answer.ok and answer.returned >= before
        self.unanswered |= answer.result == "unknown"
        believes = (answer.ok and not late
                    and self.counts_on(answer, answer.data["token"], answer.data["valid_ms"],
                                       connection.number if self.bound else None))
        if answer.ok and binding:
            self.bound = binding
        self.write("extend", answer, believes, lease_ms=lease_ms, deadline_kept=deadline_kept,
                   binding=binding,
                   node=connection.node,
                   named=self.token if name_token else None)
        if answer.result in ("lost", "not_found"):
            self.over = True
        return answer

    async def release(self, connection):
        self.over = True
        answer = await connection.call("release", PATIENCE_S, key=self.key, lock_id=self.lock_id)
        self.client.examine(answer, "release", self)
        self.client.write("release", answer, **self.told(), node=connection.node)
        self.released |= answer.ok
        return answer

    async def downgrade(self, connection):
        """Makes the lock a shared one. It counts as shared from now on, whatever the answer."""
        self.kind = Kind("shared")
        answer = await connection.call("downgrade", PATIENCE_S, key=self.key, lock_id=self.lock_id)
        self.client.examine(answer, "downgrade", self)
        self.client.write("downgrade", answer, **self.told(), node=connection.node)
        if answer.result in ("lost", "not_found"):
            self.over = True
        return answer

    async def transfer(self, connection, to):
        """Hands the lock over, which ends it unless nobody of that name waits."""
        self.over = True
        answer = await connection.call("transfer", PATIENCE_S, key=self.key, lock_id=self.lock_id,
                                       to=to)
        self.client.examine(answer, "transfer", self)
        self.client.write("transfer", answer, **self.told(), to=to, node=connection.node)
        self.over = answer.result != "not_found"
        return answer

    async def update(self, connection, by=None):
        """Writes another value. With `by`, which is "value" or "value_seq", the update is
        conditional on the last one that the client knows."""
        value, over, seq = self.client.another_value(), self.value, self.seq
        by = None if by == "value_seq" and seq is None else by
        asked = ({"expect": over} if by == "value" else {"value_seq": seq}
                 if by == "value_seq" else {})
        answer = await connection.call("update", PATIENCE_S, key=self.key, lock_id=self.lock_id,
                                       value=value, **asked)
        self.client.examine(answer, "update", self)
        self.client.write("update", answer, **self.told(), value=value, expect=over if by else None,
                          by=by, node=connection.node,
                          shown=answer.data.get("value") if answer.result == "mismatch" else None)
        if answer.ok:
            self.value, self.seq = value, answer.data["value_seq"]
        elif answer.result == "mismatch":
            self.value, self.seq = answer.data.get("value"), answer.data.get("value_seq")
        return answer


async def acquire_all(connection, locks, wait_ms):
    """Acquires all of the locks or none, in one request."""
    client, lease_ms = locks[0].client, locks[0].lease_ms
    named = [{"key": k.key, "lock_id": k.lock_id, **k.kind.asked()} for k in locks]
    answer = await connection.call("acquire", PATIENCE_S + wait_ms / 1000, locks=named,
                                   lease_ms=lease_ms, wait_ms=wait_ms, owner=client.owner,
                                   value=locks[0].first)
    members, believes = [{**k.told(), **k.kind.told()} for k in locks], False
    client.examine(answer, "acquire_all", locks[0])
    if answer.ok:
        got = answer.data["locks"]
        believes = all([k.counts_on(answer, g["token"], answer.data["valid_ms"])
                        for k, g in zip(locks, got)])
        for member, g in zip(members, got):
            member["token"] = g["token"]
            if "slots" in g:
                member["permits"] = g["slots"]
    for k in locks:
        k.first, k.unanswered = locks[0].first, k.unanswered or answer.result == "unknown"
    members = [{name: v for name, v in m.items() if v is not None} for m in members]
    client.write("acquire_all", answer, members=members, lease_ms=lease_ms, wait_ms=wait_ms,
                 value=locks[0].first, node=connection.node,
                 believed=believes if answer.ok else None)
    return answer


async def extend_all(connection, locks):
    """Extends all of the locks in one request. The history has an extension for each of them."""
    before = [k.until for k in locks]
    answer = await connection.call("extend", PATIENCE_S, deadline_kept=True, locks=[
        {"key": k.key, "lock_id": k.lock_id, "lease_ms": k.lease_ms, "token": k.token}
        for k in locks])
    for at, k in enumerate(locks):
        one = answer.data["locks"][at] if answer.ok else answer.data
        result = ((one["error"] if isinstance(one["error"], str) else one["error"]["code"])
                  if answer.ok and "error" in one else answer.result)
        each = rpc.Answer(answer.invoke, answer.returned, result, one)
        believes = (each.ok and each.returned < before[at]
                    and k.counts_on(each, one["token"], one["valid_ms"]))
        k.write("extend", each, believes, lease_ms=k.lease_ms, deadline_kept=True,
                node=connection.node, named=k.token)
        if result in ("lost", "not_found"):
            k.over = True
    return answer
