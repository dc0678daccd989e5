for _, key in ipairs(KEYS) do
  if not (redis.call("get", key) == ARGV[1]) then return 0 end
end
for _, key in ipairs(KEYS) do redis.call("pexpire", key, ARGV[2]) end
return #KEYS
