/* The mutexes of redis-semaphore, whose package carries no tests: Mutex, and RedlockMutex with three
 * databases in place of three servers. The environment has the server's PORT. */
'use strict';

const { test, before, after } = require('node:test');
const assert = require('node:assert');
const { randomUUID } = require('node:crypto');
const Redis = require('ioredis').default;
const { Mutex, RedlockMutex, LostLockError, TimeoutError } = require('redis-semaphore');

const port = Number(process.env.PORT);
const QUICK = { acquireTimeout: 150, retryInterval: 20, refreshInterval: 0 };

for (const [name, databases] of [['Mutex', [0]], ['RedlockMutex', [1, 2, 3]]]) {
	let clients;
	const key = () => randomUUID();
	const make = (k, options) => (databases.length === 1
		? new Mutex(clients[0], k, options) : new RedlockMutex(clients, k, options));
	const value = (k) => clients[0].get(`mutex:${k}`);
	const it = (what, body) => test(`${name}: ${what}`, body);

	before(() => { clients = databases.map((db) => new Redis(port, { db })); });
	after(() => Promise.all(clients.map((c) => c.quit())));

	it('is taken and released', async () => {
		const mutex = make(key());
		await mutex.acquire();
		assert(mutex.isAcquired);
		await mutex.release();
		assert(!mutex.isAcquired);
	});

	it('has its identifier as value', async () => {
		const k = key();
		const mutex = make(k, QUICK);
		await mutex.acquire();
		assert.strictEqual(await value(k), mutex.identifier);
		await mutex.release();
		assert.strictEqual(await value(k), null);
	});

	it('is not taken while another has it', async () => {
		const k = key();
		const mutex = make(k);
		await mutex.acquire();
		await assert.rejects(make(k, QUICK).acquire(), TimeoutError);
		assert.strictEqual(await make(k, QUICK).tryAcquire(), false);
		await mutex.release();
	});

	it('is handed on to one who waits', async () => {
		const k = key();
		const mutex = make(k), next = make(k, { acquireTimeout: 20000, retryInterval: 20 });
		await mutex.acquire();
		const turn = next.acquire();
		await mutex.release();
		await turn;
		await next.release();
	});

	it('ends', async () => {
		const k = key();
		await make(k, { ...QUICK, lockTimeout: 200 }).acquire();
		const next = make(k, { acquireTimeout: 20000, retryInterval: 20 });
		await next.acquire();
		await next.release();
	});

	it('is refreshed by itself', async () => {
		const k = key();
		const mutex = make(k, { lockTimeout: 400, refreshInterval: 100 });
		await mutex.acquire();
		const began = Date.now();
		while (Date.now() < began + 900) {
			assert.strictEqual(await make(k, QUICK).tryAcquire(), false);
		}
		assert(mutex.isAcquired);
		await mutex.release();
	});

	it('says that it is lost', async () => {
		const k = key();
		const lost = new Promise((tell) => {
			const mutex = make(k, { lockTimeout: 2000, refreshInterval: 100, onLockLost: tell });
			mutex.acquire().then(() => Promise.all(clients.map((c) => c.del(`mutex:${k}`))));
		});
		assert(await lost instanceof LostLockError);
	});

	it('is not released by another', async () => {
		const k = key();
		const mutex = make(k, QUICK), other = make(k, QUICK);
		await mutex.acquire();
		await other.release();
		assert.strictEqual(await value(k), mutex.identifier);
		await mutex.release();
	});

	it('is carried on by another process that knows its identifier', async () => {
		const k = key();
		const mutex = make(k, QUICK);
		await mutex.acquire();
		const other = make(k, { ...QUICK, identifier: mutex.identifier,
			acquiredExternally: true });
		await other.acquire();
		await other.release();
		assert.strictEqual(await value(k), null);
	});
}
