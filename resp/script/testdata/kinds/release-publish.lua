local held = redis.call("get", KEYS[1])
if held == ARGV[1] and redis.call("unlink", KEYS[1]) == 1 then
  redis.call("publish", ARGV[2], KEYS[1])
  return true
end
return false
