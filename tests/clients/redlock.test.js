/* Locks of redlock 5 and of @sesamecare-oss/redlock, whose packages carry no tests. The environment
 * says which: LIBRARY, and the server's PORT. */
'use strict';

const { test, before, after } = require('node:test');
const assert = require('node:assert');
const { randomUUID } = require('node:crypto');
const Redis = require('ioredis').default;
const library = require(process.env.LIBRARY);

const Redlock = library.Redlock || library.default;
const { ExecutionError, ResourceLockedError } = library;
const port = Number(process.env.PORT);
const OPTIONS = { retryCount: 3, retryDelay: 30, retryJitter: 10 };

// One database, and three databases in place of three servers.
for (const [name, databases] of [['one server', [0]], ['three databases', [1, 2, 3]]]) {
	let clients, redlock;

	// Each client of @sesamecare-oss/redlock selects the database of its settings.
	const settings = (db) => ({ ...OPTIONS, db });
	const key = () => `redlock/${randomUUID()}`;
	const held = async (k) => (await Promise.all(clients.map((c) => c.get(k)))).filter(Boolean);
	const locked = (error) => error instanceof ExecutionError;
	const one = databases.length === 1;

	before(() => {
		clients = databases.map((db) => new Redis(port, { db }));
		redlock = new Redlock(clients, settings(databases[0]));
		redlock.on('error', (e) => assert(e instanceof ResourceLockedError, e));
	});
	after(() => Promise.all(clients.map((c) => c.quit())));

	// With settings.db all clients of @sesamecare-oss/redlock use that one database.
	const skip = !one && process.env.LIBRARY !== 'redlock';
	const it = (what, body) => test(`${name}: ${what}`, { skip }, body);

	it('a lock is taken and released', async () => {
		const k = key();
		const lock = await redlock.acquire([k], 5000);
		assert.strictEqual((await held(k))[0], lock.value);
		assert(lock.expiration > Date.now());
		await lock.release();
		assert.deepStrictEqual(await held(k), []);
	});

	it('a lock that is held is not taken', async () => {
		const k = key();
		const lock = await redlock.acquire([k], 5000);
		await assert.rejects(redlock.acquire([k], 5000), locked);
		await lock.release();
	});

	it('who waits gets the lock after its release', async () => {
		const k = key();
		const lock = await redlock.acquire([k], 5000);
		const next = redlock.acquire([k], 5000, { retryCount: -1 });
		await lock.release();
		await (await next).release();
	});

	it('a lock ends', async () => {
		const k = key();
		await redlock.acquire([k], 200);
		const lock = await redlock.acquire([k], 5000, { retryCount: -1 });
		await lock.release();
	});

	it('a lock is extended', async () => {
		const k = key();
		let lock = await redlock.acquire([k], 1000);
		const before = lock.expiration;
		lock = await lock.extend(20000);
		assert(lock.expiration > before + 15000);
		assert(await clients[0].pttl(k) > 15000);
		await lock.release();
	});

	it('a lock that was released is neither extended nor released again', async () => {
		const k = key();
		const lock = await redlock.acquire([k], 5000);
		const again = { ...lock };
		await lock.release();
		await assert.rejects(redlock.release(Object.assign(Object.create(
			Object.getPrototypeOf(lock)), again)), locked);
		await assert.rejects(lock.extend(5000));
	});

	it('another holder\'s lock is not released', async () => {
		const k = key();
		const lost = await redlock.acquire([k], 200);
		const lock = await redlock.acquire([k], 5000, { retryCount: -1 });
		await assert.rejects(lost.release(), locked);
		assert.strictEqual((await held(k))[0], lock.value);
		await lock.release();
	});

	it('of several resources all are taken or none', async () => {
		const [a, b] = [key(), key()];
		const lock = await redlock.acquire([b], 5000);
		await assert.rejects(redlock.acquire([a, b], 5000), locked);
		assert.deepStrictEqual(await held(a), []);
		await lock.release();
		const both = await redlock.acquire([a, b], 5000);
		assert.strictEqual((await held(a))[0], both.value);
		assert.strictEqual((await held(b))[0], both.value);
		await both.extend(6000).then((l) => l.release());
		assert.deepStrictEqual(await held(a), []);
	});

	it('a routine runs under a lock that is extended by itself', async () => {
		const k = key();
		const options = { automaticExtensionThreshold: 400 };
		await redlock.using([k], 800, options, async (signal) => {
			const began = Date.now();
			while (Date.now() < began + 1200) {
				await assert.rejects(redlock.acquire([k], 500, { retryCount: 0 }), locked);
			}
			assert(!signal.aborted);
		});
		assert.deepStrictEqual(await held(k), []);
	});

	it('of many who come at once one is inside', async () => {
		const k = key();
		let inside = 0, turns = 0;
		await Promise.all(Array.from({ length: 10 }, async () => {
			const lock = await redlock.acquire([k], 10000, { retryCount: -1 });
			assert.strictEqual(++inside, 1);
			turns++;
			await clients[0].get(k);
			inside--;
			await lock.release();
		}));
		assert.strictEqual(turns, 10);
	});
}
