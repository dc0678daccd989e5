local held = redis.call("get", KEYS[1])
if held and held ~= ARGV[1] then return redis.error_reply("OTHER") end
if held then return redis.call("del", KEYS[1]) end
return redis.status_reply("OK")
