# Locks by hand with ruby-redis: SET with NX and PX, and the usual scripts, which compare the value.
# ruby_locks.rb PORT
require "minitest/autorun"
require "redis"
require "securerandom"

PORT = Integer(ARGV.shift)
COMPARE = 'if redis.call("get", KEYS[1]) == ARGV[1] then return %s else return 0 end'.freeze
UNLOCK = format(COMPARE, 'redis.call("del", KEYS[1])')
PROLONG = format(COMPARE, 'redis.call("pexpire", KEYS[1], ARGV[2])')

class Locks < Minitest::Test
  def setup
    @redis = Redis.new(host: "127.0.0.1", port: PORT)
    @key = SecureRandom.uuid
  end

  def teardown
    @redis.close
  end

  def take(value, ms = 5000)
    @redis.set(@key, value, nx: true, px: ms)
  end

  def unlock(value)
    @redis.eval(UNLOCK, keys: [@key], argv: [value])
  end

  def test_a_lock_is_taken_refused_and_released
    assert take("one")
    refute take("other")
    assert_equal "one", @redis.get(@key)
    assert_equal 0, unlock("other")
    assert_equal 1, unlock("one")
    assert_nil @redis.get(@key)
  end

  def test_a_lock_is_prolonged_by_its_holder_only
    take("one", 2000)
    sha = @redis.script(:load, PROLONG)
    assert_equal 0, @redis.evalsha(sha, keys: [@key], argv: ["other", 9000])
    assert_equal 1, @redis.evalsha(sha, keys: [@key], argv: ["one", 9000])
    assert_operator @redis.pttl(@key), :>, 7000
    assert_equal 1, unlock("one")
  end

  def test_a_lock_ends
    take("one", 200)
    nil until take("other")
    assert_equal 0, unlock("one")
    assert_equal 1, unlock("other")
  end

  def test_a_pipeline_is_answered_in_order
    answers = @redis.pipelined do |p|
      p.set(@key, "one", nx: true, px: 5000)
      p.set(@key, "other", nx: true, px: 5000)
      p.get(@key)
      p.eval(UNLOCK, keys: [@key], argv: ["one"])
    end
    assert_equal [true, false, "one", 1], answers
  end

  def test_an_unknown_script_is_asked_for
    error = assert_raises(Redis::CommandError) { @redis.evalsha("0" * 40, keys: [@key]) }
    assert_match(/NOSCRIPT/, error.message)
  end

  def test_setnx_and_setex
    assert_equal true, @redis.setnx(@key, "one")
    assert_equal false, @redis.setnx(@key, "other")
    assert_equal 1, @redis.del(@key)
    assert_equal "OK", @redis.setex(@key, 10, "one")
    assert_equal 1, unlock("one")
  end
end
