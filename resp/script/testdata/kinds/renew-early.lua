local key = KEYS[1]
if redis.call("get", key) ~= ARGV[1] then return 0 end
redis.call("pexpire", key, tonumber(ARGV[2]))
return 1
