-- The value comes last, and the ttl is in seconds.
if redis.call('get', KEYS[1]) == ARGV[2] then return redis.call('expire', KEYS[1], ARGV[1]) end
