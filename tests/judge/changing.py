"""Changes the masters while nothing else is wrong. Meanwhile some holders renew, and others lose
their lock with their connection and come back with its lock_id."""

import asyncio

import locks

LEASE_MS = 4000


async def hold(calm, key, done):
    """A lock that is renewed all the time, at one node after the other, is never lost."""
    lock = calm.lock(key, lease_ms=LEASE_MS)
    await lock.acquire(await calm.at())
    while not done.is_set() and lock.believed():
        await lock.extend(await calm.at())
        await asyncio.sleep(0.03)
    await lock.release(await calm.at())


async def share(calm, key, done):
    """One of several holders has permits of a semaphore, for as long as all the others."""
    lock = calm.lock(key, locks.Kind("permits", 3, 1), lease_ms=LEASE_MS)
    await lock.acquire(await calm.at(), 3000)
    while not done.is_set() and lock.believed():
        await lock.extend(await calm.at())
        await asyncio.sleep(0.05)
    await lock.release(await calm.at())


async def die(calm, key, done):
    """A client loses its lock with its connection, and another client comes and goes. When the
    change is done, the first client is started again and asks."""
    connection, lock = (await calm.at(), calm.lock(key, lease_ms=LEASE_MS,
                                                   release_on_disconnect=True))
    await lock.acquire(connection)
    await asyncio.sleep(calm.random.choice([0, 0.01, 0.1, 0.3]))
    calm.forget(lock)
    calm.close(connection)
    other = calm.lock(key, lease_ms=LEASE_MS)
    await other.acquire(await calm.at(), 6000)
    if calm.random.random() < 0.5:
        await other.release(await calm.at())
    await done.wait()
    late = await calm.at()
    if calm.random.random() < 0.7:
        await lock.extend(late, deadline_kept=False, name_token=calm.random.random() < 0.3)
    else:
        await lock.acquire(late)
    if other.believed():
        await other.extend(await calm.at())
    await other.release(await calm.at())
    await lock.release(await calm.at())


async def together(calm, keys, done):
    """A client asks for two keys at once, and the second one is held. So the first is rolled back,
    and another client acquires it."""
    blocker, group = (calm.lock(keys[1], lease_ms=LEASE_MS),
                      [calm.lock(key, lease_ms=LEASE_MS) for key in keys])
    await blocker.acquire(await calm.at())
    asked = asyncio.ensure_future(locks.acquire_all(await calm.at(), group,
                                                    calm.random.choice([50, 200])))
    await asked
    other = calm.lock(keys[0], lease_ms=LEASE_MS)
    await other.acquire(await calm.at(), 3000)
    await other.release(await calm.at())
    await blocker.release(await calm.at())
    await done.wait()
    await locks.acquire_all(await calm.at(), group, 2000)
    for lock in group:
        await lock.release(await calm.at())


async def change(calm, do, operators):
    """Lets one master and one spare node change places, and complains if that fails."""
    nodes, done = calm.cluster.nodes, asyncio.Event()
    out, into = calm.random.choice(calm.cluster.masters), calm.random.choice(calm.cluster.spares)
    masters = [m for m in calm.cluster.masters if m != out] + [into]
    replicas = [n for n in nodes if n not in masters]
    actors = [hold(calm, calm.key("held"), done)] + [share(calm, key, done)
                                                     for key in [calm.key("shares")] * 3]
    actors += [die(calm, calm.key("dies"), done) for _ in range(4)]
    actors += [together(calm, [calm.key("pair"), calm.key("pair")], done) for _ in range(3)]
    tasks = [asyncio.ensure_future(actor) for actor in actors]
    await asyncio.sleep(calm.random.uniform(0, 0.1))
    asked = nodes[calm.random.choice(sorted(calm.cluster.masters))]
    result, message = await do(lambda: operators.ask(
        asked, "cluster_set_nodes", masters=calm.cluster.named(masters),
        replicas=calm.cluster.named(replicas)))
    await asyncio.sleep(0.3)
    done.set()
    await asyncio.gather(*tasks)
    calm.close_all()
    if result != "ok":
        calm.complain("a change of the masters is answered %s although all nodes are well: %s"
                      % (result, message))
