-- KEYS[1] the highest fence, KEYS[2...] what the command touches. ARGV[1] the fence, ARGV[2...] the command; none: enter only.
-- Fences are compared as decimal text: a number of Lua is exact up to 2^53 only.
local fence, seen = ARGV[1], redis.call('GET', KEYS[1]) or ''
if not string.match(fence, '^[1-9]%d*$') then
    return redis.error_reply('NOFENCE this is not a fence: do not write')
end
if #fence < #seen or #fence == #seen and fence < seen then
    return redis.error_reply('FENCED fence ' .. fence .. ' is stale, ' .. seen .. ' was seen: do not write; acquire the key anew and read again')
end
redis.call('SET', KEYS[1], fence)
if #ARGV > 1 then
    return redis.call(unpack(ARGV, 2))
end
return redis.status_reply('OK')
