if (redis.call('get', KEYS[1]) == ARGV[1]) then
  redis.call('unlink', KEYS[1])
  return true
end
return false
