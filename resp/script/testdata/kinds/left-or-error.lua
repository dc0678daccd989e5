if redis.call("get", KEYS[1]) == ARGV[1] then return redis.call("ttl", KEYS[1]) end
return redis.error_reply("OTHER")
