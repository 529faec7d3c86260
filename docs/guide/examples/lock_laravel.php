#!/usr/bin/env php
<?php
// lock_laravel.php HOST:PORT KEY: takes a lock of Pawl with Laravel's cache and phpredis, and says
// which fencing token it has.

require_once 'Illuminate/Redis/autoload.php';
require_once 'Illuminate/Cache/autoload.php';

use Illuminate\Cache\RedisStore;
use Illuminate\Redis\RedisManager;

[, $address, $key] = $argv;
[$host, $port] = explode(':', $address);

// In an application config/database.php and config/cache.php say this.
$prefix = 'app:';
$manager = new RedisManager(new stdClass, 'phpredis', [
	'options' => ['prefix' => $prefix],
	'default' => ['host' => $host, 'port' => $port, 'database' => 0]]);
$cache = new RedisStore($manager, 'cache');

try {
	$lock = $cache->lock($key, 10);
	if (!$lock->get()) {
		echo "somebody else has it\n";
		exit(1);
	}
	// phpredis puts its prefix before the keys of its own commands, but not here.
	$token = $manager->connection()->client()->rawCommand('PAWL.TOKEN', "{$prefix}cache:$key",
		$lock->owner());
	echo "mine, with token $token\n";
	$lock->release();
} catch (RedisException $e) {
	echo "not known: {$e->getMessage()}\n";
	exit(1);
}
