"""Tests that a request which a node refuses for a quota is sent again when the node says, if the
request has that much time."""

import asyncio
import time
import unittest

import pawl
from scripted import GRANT, Refuse, Script, ScriptedCase


def refusing(times, retry_after_ms, answer):
    """Returns an answer for a script: it refuses the first requests, as many as `times` says, and
    then answers."""
    left = [times]

    def say(params):
        left[0] -= 1
        return (Refuse("quota", field="rate_per_identity", retry_after_ms=retry_after_ms)
                if left[0] >= 0 else answer)

    return say


class Resting(ScriptedCase):
    async def test_a_refused_request_is_sent_again_when_the_node_says_and_not_before(self):
        node = Script(acquire=refusing(2, 100, GRANT))
        began = time.monotonic()
        lock = await (await self.client(node)).lock("k", lease=10)
        self.assertGreaterEqual(time.monotonic() - began, 0.2)
        self.assertEqual(len(node.of("acquire")), 3)
        self.assertEqual({asked["lock_id"] for asked in node.of("acquire")}, {lock.lock_id})
        self.assertEqual(node.of("release"), [])

    async def test_the_refusal_is_the_answer_if_the_node_names_no_time_or_too_long_a_time(self):
        for retry_after_ms in (5000, None):
            node = Script(acquire=refusing(9, retry_after_ms, GRANT))
            client = await self.client(node, timeout=1)
            with self.assertRaises(pawl.QuotaError) as caught:
                await client.lock("k", wait=0)
            self.assertEqual(caught.exception.field, "rate_per_identity")
            await client.ping()  # This would come after a release.
            self.assertEqual((len(node.of("acquire")), node.of("release")), (1, []))

    async def test_an_update_is_sent_again_although_it_is_never_repeated_otherwise(self):
        node = Script(update=refusing(1, 50, {"value_seq": b"1" * 20}))
        await (await self.client(node)).call("update", key=b"k", lock_id="1" * 32, value=b"v")
        self.assertEqual(len(node.of("update")), 2)

    async def test_a_resting_request_can_be_canceled_and_ends_with_its_client(self):
        node = Script(get=refusing(9, 2000, {"held": False}))
        client = await self.client(node)
        first, second = (asyncio.ensure_future(client.get("k")),
                         asyncio.ensure_future(client.get("k")))
        await self.until(lambda: len(node.of("get")) == 2)
        await client.ping()  # Its answer comes after the refusals.
        first.cancel()
        await client.close()
        with self.assertRaises(pawl.ClosedError):
            await second
        self.assertTrue(first.cancelled())
        self.assertEqual(len(node.of("get")), 2)


if __name__ == "__main__":
    unittest.main()
