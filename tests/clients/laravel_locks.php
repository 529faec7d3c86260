<?php
/* Laravel's Cache::lock: laravel_locks.php phpredis|predis|memcached PORT. The package of Laravel
 * for Debian carries no tests. */

require_once 'Illuminate/Redis/autoload.php';
require_once 'Illuminate/Cache/autoload.php';

use Illuminate\Cache\MemcachedStore;
use Illuminate\Cache\RedisStore;
use Illuminate\Contracts\Cache\LockTimeoutException;
use Illuminate\Redis\RedisManager;

[, $client, $port] = $argv;

function store(string $client, int $port) {
	if ($client === 'memcached') {
		$memcached = new Memcached();
		$memcached->addServer('127.0.0.1', $port);
		return new MemcachedStore($memcached, 'laravel:');
	}
	if ($client === 'predis') {
		require_once 'Predis/Autoloader.php';
		Predis\Autoloader::register();
	}
	$config = ['options' => ['prefix' => 'laravel:'],
		'default' => ['host' => '127.0.0.1', 'port' => $port, 'database' => 0]];
	return new RedisStore(new RedisManager(new stdClass, $client, $config), 'cache');
}

function check(bool $holds, string $what): void {
	if (!$holds) {
		throw new Exception("not so: $what");
	}
}

$store = store($client, (int)$port);
$tests = [
	'a lock is taken, refused, and released' => function ($store, $key) {
		$lock = $store->lock($key, 10);
		check($lock->get(), 'it is taken');
		check(!$store->lock($key, 10)->get(), 'it is refused');
		check($lock->release(), 'it is released');
		check($store->lock($key, 10)->get(), 'it is free');
		$store->lock($key)->forceRelease();
	},
	'a lock without an end' => function ($store, $key) {
		$lock = $store->lock($key);
		check($lock->get(), 'it is taken');
		check(!$store->lock($key)->get(), 'it is refused');
		check($lock->release(), 'it is released');
	},
	'a lock ends' => function ($store, $key) {
		check($store->lock($key, 1)->get(), 'it is taken');
		$lock = $store->lock($key, 1);
		$lock->block(20);
		$lock->release();
	},
	'one who waits too long is told' => function ($store, $key) {
		$lock = $store->lock($key, 10);
		$lock->get();
		try {
			$store->lock($key, 10)->block(1);
			check(false, 'the other must not have it');
		} catch (LockTimeoutException $e) {
			$lock->release();
		}
	},
	'another owner does not release it' => function ($store, $key) {
		$lock = $store->lock($key, 10);
		$lock->get();
		check(!$store->lock($key, 10)->release(), 'another one releases nothing');
		check(!$store->lock($key, 10)->get(), 'it is held');
		check($store->restoreLock($key, $lock->owner())->release(), 'its owner releases it');
	},
	'a lock is released by force' => function ($store, $key) {
		$store->lock($key, 10)->get();
		$store->lock($key, 10)->forceRelease();
		check($store->lock($key, 10)->get(), 'it is free');
		$store->lock($key)->forceRelease();
	},
	'a closure runs under the lock' => function ($store, $key) {
		$said = $store->lock($key, 10)->get(function () use ($store, $key) {
			return $store->lock($key, 10)->get() ? 'two' : 'one';
		});
		check($said === 'one', 'one is inside');
		check($store->lock($key, 10)->get(), 'it is free afterwards');
		$store->lock($key)->forceRelease();
	},
];

$passed = $failed = 0;
foreach ($tests as $name => $test) {
	try {
		$test($store, bin2hex(random_bytes(8)));
		$passed++;
	} catch (Throwable $e) {
		$failed++;
		echo "FAILED $name: ", get_class($e), ': ', $e->getMessage(), "\n";
	}
}
echo "passed=$passed failed=$failed\n";
exit($failed ? 1 : 0);
