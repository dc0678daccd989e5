local held = redis.call("get", KEYS[1])
if held == ARGV[1] or not held then return redis.call("set", KEYS[1], ARGV[1], "PX", ARGV[2]) end
return redis.error_reply("OTHER")
