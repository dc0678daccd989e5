local held = redis.call('GET', KEYS[1])
if held == false then
  redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2])
elseif held == ARGV[1] then
  redis.call('PEXPIRE', KEYS[1], ARGV[2])
else
  return false
end
return true
