#!/usr/bin/env node
// lock_redlock.js HOST:PORT KEY: takes a lock of Pawl with redlock 5 and ioredis, and says which
// fencing token it has.
'use strict';

const { default: Redis } = require('ioredis');
const { default: Redlock, ExecutionError, ResourceLockedError } = require('redlock');

async function main(address, key) {
	const [host, port] = address.split(':');
	const client = new Redis(Number(port), host, { maxRetriesPerRequest: 1 });
	const redlock = new Redlock([client], { retryCount: 0 }); // one client: Pawl has the quorum
	try {
		const lock = await redlock.acquire([key], 10000);
		const token = await client.call('PAWL.TOKEN', key, lock.value);
		console.log(`mine, with token ${token}`);
		await lock.release();
	} catch (error) {
		if (!(error instanceof ExecutionError)) {
			throw error;
		}
		const { votesAgainst } = await error.attempts[0];
		const [why] = votesAgainst.values();
		console.log(why instanceof ResourceLockedError ? 'somebody else has it'
			: `not known: ${why.message}`);
		process.exitCode = 1;
	} finally {
		client.disconnect();
	}
}

main(...process.argv.slice(2));
