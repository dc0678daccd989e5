for n = 1, #KEYS do
  if redis.call("exists", KEYS[n]) ~= 0 then return 0 end
end
for n = 1, #KEYS do redis.call("psetex", KEYS[n], ARGV[2], ARGV[1]) end
return #KEYS
