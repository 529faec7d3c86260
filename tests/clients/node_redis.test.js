/* Locks by hand with node-redis 4: SET with NX and PX, and the usual two scripts, which compare the
 * value. The environment has the server's PORT. */
'use strict';

const { test, before, after } = require('node:test');
const assert = require('node:assert');
const { randomUUID } = require('node:crypto');
const { createClient, defineScript } = require('redis');

function script(act) {
	return `if redis.call("get", KEYS[1]) == ARGV[1] then return ${act} else return 0 end`;
}

const scripts = {
	unlock: defineScript({
		NUMBER_OF_KEYS: 1, SCRIPT: script('redis.call("del", KEYS[1])'),
		transformArguments: (key, value) => [key, value], transformReply: (reply) => reply,
	}),
	prolong: defineScript({
		NUMBER_OF_KEYS: 1, SCRIPT: script('redis.call("pexpire", KEYS[1], ARGV[2])'),
		transformArguments: (key, value, ms) => [key, value, String(ms)],
		transformReply: (reply) => reply,
	}),
};
let client;

before(async () => {
	client = createClient({ socket: { host: '127.0.0.1', port: Number(process.env.PORT) },
		scripts });
	await client.connect();
});
after(() => client.quit());

const take = (key, value, PX = 5000) => client.set(key, value, { NX: true, PX });

test('a lock is taken, refused to another, and released', async () => {
	const key = randomUUID();
	assert.strictEqual(await take(key, 'one'), 'OK');
	assert.strictEqual(await take(key, 'other'), null);
	assert.strictEqual(await client.get(key), 'one');
	assert.strictEqual(await client.unlock(key, 'other'), 0);
	assert.strictEqual(await client.unlock(key, 'one'), 1);
	assert.strictEqual(await client.get(key), null);
	assert.strictEqual(await client.unlock(key, 'one'), 0);
});

test('a lock is prolonged by its holder only', async () => {
	const key = randomUUID();
	await take(key, 'one', 2000);
	assert.strictEqual(await client.prolong(key, 'other', 9000), 0);
	assert(await client.pTTL(key) <= 2000);
	assert.strictEqual(await client.prolong(key, 'one', 9000), 1);
	assert(await client.pTTL(key) > 7000);
	await client.unlock(key, 'one');
});

test('a lock ends', async () => {
	const key = randomUUID();
	await take(key, 'one', 200);
	while (await take(key, 'other') !== 'OK') {
		assert.strictEqual(await client.unlock(key, 'other'), 0);
	}
	assert.strictEqual(await client.unlock(key, 'other'), 1);
});

test('commands of a pipeline are answered in order', async () => {
	const keys = [randomUUID(), randomUUID()];
	assert.deepStrictEqual(await Promise.all([take(keys[0], 'a'), take(keys[0], 'b'),
		client.get(keys[0]), take(keys[1], 'c'), client.unlock(keys[0], 'a'),
		client.unlock(keys[1], 'c')]), ['OK', null, 'a', 'OK', 1, 1]);
});

test('a lock with seconds, and whether keys exist', async () => {
	const key = randomUUID();
	assert.strictEqual(await client.set(key, 'one', { NX: true, EX: 10 }), 'OK');
	assert.strictEqual(await client.exists(key), 1);
	assert(await client.ttl(key) > 5);
	assert.strictEqual(await client.del(key), 1);
	assert.strictEqual(await client.exists(key), 0);
});
