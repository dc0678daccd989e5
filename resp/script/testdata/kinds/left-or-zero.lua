if redis.call("get", KEYS[1]) == ARGV[1] then
  local left = redis.call("pttl", KEYS[1])
  if left > 0 then return left end
end
return 0
