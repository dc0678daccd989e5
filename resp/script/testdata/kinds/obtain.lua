local free = redis.call("set", KEYS[1], ARGV[1], "PX", ARGV[3], "NX")
if free then return redis.status_reply("OK") end
local length = tonumber(ARGV[2])
if string.sub(ARGV[1], 1, length) == redis.call("getrange", KEYS[1], 0, length - 1) then
  return redis.call("set", KEYS[1], ARGV[1], "PX", ARGV[3])
end
