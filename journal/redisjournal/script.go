package redisjournal

import (
	"crypto/sha1" // servers name scripts by it
	"encoding/hex"
)

// formatNumber is the layout of the keys that this package knows.
const formatNumber = 1

// script is one request. Its keys are the head, the log and the values, in this order.
type script struct {
	text, sha string
	writes    bool // is followed by the wait for replicas
}

// The first line of a script. Those that free memory or need little of it also run when memory is full.
const (
	growing = "#!lua\n"
	lasting = "#!lua flags=allow-oom\n"
)

func newScript(head, text string, writes bool) *script {
	text = head + text
	sum := sha1.Sum([]byte(text))
	return &script{text, hex.EncodeToString(sum[:]), writes}
}

// owned is the comparison of owners: the first two arguments of a script that compares are an epoch and a word.
const owned = `
local h = redis.call('HMGET', KEYS[1], 'epoch', 'word', 'tail', 'chain')
if h[1] ~= ARGV[1] or h[2] ~= ARGV[2] then return false end
`

// holds is owned, and the third argument is the least tail.
const holds = owned + `
if tonumber(h[3]) < tonumber(ARGV[3]) then return false end
`

// wait notes how many replicas each write waits for, which is in n, where that is more than before or
// was asked for.
const wait = `
if fixed == '1' or tonumber(n) > tonumber(redis.call('HGET', KEYS[1], 'replicas') or '0') then
	redis.call('HSET', KEYS[1], 'replicas', n)
end
`

// A script returns nil if its comparison failed.
var (
	// scriptHead has the number of replicas, and whether it was asked for.
	scriptHead = newScript(lasting, `
local n, fixed = ARGV[1], ARGV[2]
if redis.call('EXISTS', KEYS[1]) == 0 then return false end
redis.call('HINCRBY', KEYS[1], 'beat', 1)
`+wait+`
return redis.call('HMGET', KEYS[1], 'format', 'epoch', 'word', 'tail', 'chain', 'moved', 'server', 'replicas')
`, true)

	// scriptCreate has the epoch and word before, "" and "" if there is no head, the format, epoch, word, tail, chain,
	// moved, server and number of replicas, and the name and data of a value, or "" and "".
	scriptCreate = newScript(growing, `
local h = redis.call('HMGET', KEYS[1], 'epoch', 'word')
if (h[1] or '') ~= ARGV[1] or (h[2] or '') ~= ARGV[2] then return false end
redis.call('HSET', KEYS[1], 'format', ARGV[3], 'epoch', ARGV[4], 'word', ARGV[5], 'tail', ARGV[6], 'chain', ARGV[7],
	'moved', ARGV[8], 'server', ARGV[9], 'replicas', ARGV[10])
local version = redis.call('HINCRBY', KEYS[1], 'beat', 1)
if ARGV[11] ~= '' then redis.call('HSET', KEYS[3], 'v:' .. ARGV[11], version, 'd:' .. ARGV[11], ARGV[12]) end
return 1
`, true)

	// scriptFence has the next epoch and word, and whether the journal was moved.
	scriptFence = newScript(lasting, owned+`
redis.call('HSET', KEYS[1], 'epoch', ARGV[3], 'word', ARGV[4])
if ARGV[5] == '1' then redis.call('HSET', KEYS[1], 'moved', 1) end
return 1
`, true)

	// scriptAdopt has the server.
	scriptAdopt = newScript(lasting, owned+`
redis.call('HSET', KEYS[1], 'moved', 0, 'server', ARGV[3])
return 1
`, true)

	// scriptAppend has the tail and chain before and after, and the frame.
	scriptAppend = newScript(growing, owned+`
if h[3] ~= ARGV[3] or h[4] ~= ARGV[4] then return false end
redis.call('XADD', KEYS[2], ARGV[5] .. '-0', 'frame', ARGV[7])
redis.call('HSET', KEYS[1], 'tail', ARGV[5], 'chain', ARGV[6])
return 1
`, true)

	// scriptConfirm has the least tail, the number of replicas, and whether it was asked for.
	scriptConfirm = newScript(lasting, holds+`
local n, fixed = ARGV[4], ARGV[5]
redis.call('HINCRBY', KEYS[1], 'beat', 1)
`+wait+`
return 1
`, true)

	// scriptFrames has the first index and the limit.
	scriptFrames = newScript(lasting, `
return redis.call('XRANGE', KEYS[2], ARGV[1] .. '-0', '+', 'COUNT', ARGV[2])
`, false)

	// scriptDrop has the least tail, the index before which appends go, and how many at once: others wait for it. It
	// reads them one by one, because they can be large.
	scriptDrop = newScript(lasting, `
local last = ''
`+holds+`
for i = 1, tonumber(ARGV[5]) do
	local list = redis.call('XRANGE', KEYS[2], '-', '(' .. ARGV[4] .. '-0', 'COUNT', 1)
	if not list[1] then break end
	last = list[1][1]
	redis.call('XDEL', KEYS[2], last)
end
return last
`, true)

	// scriptGet has a name.
	scriptGet = newScript(lasting, `
return redis.call('HMGET', KEYS[3], 'v:' .. ARGV[1], 'd:' .. ARGV[1])
`, false)

	// scriptPut has the least tail, the name, the data and the version to replace. The new version is the
	// counter of writes.
	scriptPut = newScript(growing, holds+`
if ARGV[6] ~= '*' and ARGV[6] ~= (redis.call('HGET', KEYS[3], 'v:' .. ARGV[4]) or '') then return false end
redis.call('HINCRBY', KEYS[1], 'beat', 1)
local version = redis.call('HGET', KEYS[1], 'beat')
redis.call('HSET', KEYS[3], 'v:' .. ARGV[4], version, 'd:' .. ARGV[4], ARGV[5])
return version
`, true)

	// scriptPutEmpty is for a journal without a head: it has the name and the data.
	scriptPutEmpty = newScript(growing, `
if redis.call('EXISTS', KEYS[1]) == 1 then return false end
redis.call('HSET', KEYS[3], 'v:' .. ARGV[1], 1, 'd:' .. ARGV[1], ARGV[2])
return '1'
`, true)

	// scriptSwap has the name, the data and the version to replace.
	scriptSwap = newScript(lasting, `
if ARGV[3] ~= (redis.call('HGET', KEYS[3], 'v:' .. ARGV[1]) or '') then return false end
redis.call('HINCRBY', KEYS[3], 'v:' .. ARGV[1], 1)
redis.call('HSET', KEYS[3], 'd:' .. ARGV[1], ARGV[2])
return redis.call('HGET', KEYS[3], 'v:' .. ARGV[1])
`, true)

	// scriptNames returns the fields of all values. Comparing their names is not left to scripts, because the server's
	// locale decides there.
	scriptNames = newScript(lasting, `return redis.call('HKEYS', KEYS[3])`, false)

	// scriptRemove has the least tail and names.
	scriptRemove = newScript(lasting, holds+`
for i = 4, #ARGV do redis.call('HDEL', KEYS[3], 'v:' .. ARGV[i], 'd:' .. ARGV[i]) end
redis.call('HINCRBY', KEYS[1], 'beat', 1)
return 1
`, true)
)
