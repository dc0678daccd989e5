local held = redis.call("get", KEYS[1])
if not held then
  return -1
elseif held ~= ARGV[1] then
  return 0
end
return redis.call("del", KEYS[1])
