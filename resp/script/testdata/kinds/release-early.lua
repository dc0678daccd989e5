local held, mine = redis.call('get', KEYS[1]), ARGV[1]
if held ~= mine then return 0 end
redis.call('del', KEYS[1])
return 1
