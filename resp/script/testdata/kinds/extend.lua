if redis.call("get", KEYS[1]) ~= ARGV[1] then return 0 end
local left = redis.call("pttl", KEYS[1])
if left < 0 then return 0 end
if ARGV[3] == "0" then
  redis.call("pexpire", KEYS[1], left + ARGV[2])
else
  redis.call("pexpire", KEYS[1], ARGV[2])
end
return 1
