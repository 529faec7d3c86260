"""Tests of locks that may be asked for, when nodes have little room for watches."""

from pawl._link.msgpack import pack

import pawl
from scripted import GRANT, Refuse, Script, ScriptedCase


class Room(Script):
    """A node that has room for so many watches."""

    def __init__(self, room):
        super().__init__(acquire=self.grant, watch=self.watch, unwatch=self.unwatch)
        self.room, self.numbers, self.watched = room, 0, {}

    @staticmethod
    def grant(params):
        items = [dict(GRANT, key=item["key"], lock_id=item["lock_id"])
                 for item in params.get("locks", ())]
        return {**GRANT, "lock_id": params.get("lock_id"), "locks": items}

    def watch(self, params):
        if len(self.watched) >= self.room:
            return Refuse("full", field="watches_per_client")
        self.numbers += 1
        self.watched[params["key"]] = self.numbers
        return {"watch": self.numbers, "position": b"", "held": False}

    def unwatch(self, params):
        self.watched = {key: number for key, number in self.watched.items()
                        if number != params["watch"]}
        return {}

    def ask(self, key):
        self.writers[0].write(pack([2, "event", [{"watch": self.watched[key], "type": "asked",
                                                  "key": key, "owner": b"x"}]]))


class Crowded(ScriptedCase):
    async def take(self, node, *keys):
        client = await self.client(node, timeout=20)
        self.heard = []
        return [await client.lock(key, on_asked=lambda lock, asked: self.heard.append(lock.key))
                for key in keys]

    async def test_a_lock_that_no_node_has_room_to_watch_is_held_and_is_heard_later(self):
        node = Room(1)
        first, second = await self.take(node, "first", "second")
        await self.until(lambda: second.asked_error is not None)
        self.assertIsInstance(second.asked_error, pawl.FullError)
        self.assertEqual((second.held, first.asked_error), (True, None))
        await first.release()
        await self.until(lambda: second.asked_error is None)
        node.ask(b"second")
        await self.until(lambda: self.heard == [b"second"])
        await second.release()
        self.assertIsNone(second.asked_error)

    async def test_locks_that_wait_to_be_heard_do_not_depend_on_one_of_them(self):
        node = Room(1)
        locks = await self.take(node, *("k%d" % i for i in range(6)))
        await self.until(lambda: all(lock.asked_error for lock in locks[1:]))
        asked = len(node.of("watch"))
        # The one that asks for all of them goes.
        await locks[1].release()
        node.room = 5
        await self.until(lambda: not any(lock.asked_error for lock in locks))
        self.assertEqual(len(node.watched), 5)
        # The others have not asked each on its own: some refusals, and one grant for each.
        self.assertLess(len(node.of("watch")) - asked, 4 + 4)

    async def test_a_node_that_takes_over_is_asked_for_all_of_them(self):
        small, large = Room(1), Room(100)
        client = await self.client(small, large, timeout=20)
        locks = [await client.lock("k%d" % i, on_asked=lambda lock, asked: None)
                 for i in range(3)]
        await self.until(lambda: all(lock.asked_error for lock in locks[1:]))
        for writer in small.writers:
            writer.close()
        small.answers = {method: lambda params: Script.HANG_UP for method in small.answers}
        await self.until(lambda: len(large.watched) == 3)
        await self.until(lambda: not any(lock.asked_error for lock in locks))

    async def test_an_error_that_is_final_is_told(self):
        node = Room(1)
        node.answers["watch"] = lambda params: Refuse("denied")
        lock, = await self.take(node, "k")
        await self.until(lambda: lock.asked_error is not None)
        self.assertIsInstance(lock.asked_error, pawl.DeniedError)
        self.assertTrue(lock.held)
