if redis.call("get", KEYS[1]) ~= ARGV[1] then return -3 end
return redis.call("pttl", KEYS[1])
