package script

// Form is a known script. The comments call ARGV[1] the value: it is what the key must hold.
type Form uint8

const (
	// Unknown is any other script.
	Unknown Form = iota
	// CompareDelete deletes the key if it holds the value: 1, else 0. redislock, redlock-py, pottery.
	CompareDelete
	// CompareExpire sets the ttl of the key to ARGV[2] ms if it holds the value: 1, else 0. redislock,
	// redsync, pottery.
	CompareExpire
	// CompareTTL returns the ttl of the key in ms, or -3 if it does not hold the value. redislock.
	CompareTTL
	// Obtain sets a free key, or one that begins with the first ARGV[2] bytes of the value, with a ttl of
	// ARGV[3] ms: OK, else nil. redislock.
	Obtain
	// Release deletes the key if it holds the value: 1, else 0. redis-py.
	Release
	// Extend adds ARGV[2] ms to the ttl of the key if it holds the value, or replaces the ttl if ARGV[3] is
	// not "0": 1, else 0. redis-py.
	Extend
	// Reacquire is CompareExpire in the words of redis-py.
	Reacquire
	// DeleteOrGone is CompareDelete with -1 for a free key. redsync.
	DeleteOrGone
	// TouchOrSet sets the ttl of the key to ARGV[2] ms if it holds the value, and sets a free key: 1,
	// else 0. redsync.
	TouchOrSet
	// Remaining returns the ttl of the key in ms, 0 if it does not hold the value. pottery.
	Remaining
	// SetOrExtend sets a key that is free or holds the value, with a ttl of ARGV[2] ms: OK, else an error.
	// aioredlock.
	SetOrExtend
	// Unset deletes the key if it holds the value: 1; OK for a free key, else an error. aioredlock.
	Unset
	// HolderTTL returns the ttl of the key in seconds if it holds the value, else an error. aioredlock.
	HolderTTL
	// AcquireAll sets all keys, with a ttl of ARGV[2] ms, if all are free: their number, else 0. redlock.
	AcquireAll
	// ExtendAll sets the ttl of all keys to ARGV[2] ms if all hold the value: their number, else 0. redlock.
	ExtendAll
	// ReleaseAll deletes the keys that hold the value, and returns their number. redlock.
	ReleaseAll
)

// forms has a text of each form, its name, and how many keys and arguments it must have; keys is -1 for
// one or more.
var forms = [...]struct {
	name       string
	keys, args int
	text       string
}{
	CompareDelete: {"compare and delete", 1, 1, `
		if redis.call("get", KEYS[1]) == ARGV[1] then return redis.call("del", KEYS[1]) else return 0 end`},
	CompareExpire: {"compare and expire", 1, 2, `
		if redis.call("get", KEYS[1]) == ARGV[1] then return redis.call("pexpire", KEYS[1], ARGV[2]) else return 0 end`},
	CompareTTL: {"compare and ttl", 1, 1, `
		if redis.call("get", KEYS[1]) == ARGV[1] then return redis.call("pttl", KEYS[1]) else return -3 end`},
	Obtain: {"obtain", 1, 3, `
		if redis.call("set", KEYS[1], ARGV[1], "nx", "px", ARGV[3]) then return redis.status_reply("ok") end
		local offset = tonumber(ARGV[2])
		if redis.call("getrange", KEYS[1], 0, offset-1) == string.sub(ARGV[1], 1, offset) then
			return redis.call("set", KEYS[1], ARGV[1], "px", ARGV[3])
		end`},
	Release: {"release", 1, 1, `
		local token = redis.call("get", KEYS[1])
		if not token or token ~= ARGV[1] then return 0 end
		redis.call("del", KEYS[1])
		return 1`},
	Extend: {"extend", 1, 3, `
		local token = redis.call("get", KEYS[1])
		if not token or token ~= ARGV[1] then return 0 end
		local expiration = redis.call("pttl", KEYS[1])
		if not expiration then expiration = 0 end
		if expiration < 0 then return 0 end
		local newttl = ARGV[2]
		if ARGV[3] == "0" then newttl = ARGV[2] + expiration end
		redis.call("pexpire", KEYS[1], newttl)
		return 1`},
	Reacquire: {"reacquire", 1, 2, `
		local token = redis.call("get", KEYS[1])
		if not token or token ~= ARGV[1] then return 0 end
		redis.call("pexpire", KEYS[1], ARGV[2])
		return 1`},
	DeleteOrGone: {"delete or gone", 1, 1, `
		local val = redis.call("get", KEYS[1])
		if val == ARGV[1] then return redis.call("del", KEYS[1])
		elseif val == false then return -1
		else return 0 end`},
	TouchOrSet: {"touch or set", 1, 2, `
		if redis.call("get", KEYS[1]) == ARGV[1] then return redis.call("pexpire", KEYS[1], ARGV[2])
		elseif redis.call("set", KEYS[1], ARGV[1], "px", ARGV[2], "nx") then return 1
		else return 0 end`},
	Remaining: {"remaining", 1, 1, `
		if redis.call("get", KEYS[1]) == ARGV[1] then
			local pttl = redis.call("pttl", KEYS[1])
			return (pttl > 0) and pttl or 0
		else return 0 end`},
	SetOrExtend: {"set or extend", 1, 2, `
		local identifier = redis.call("get", KEYS[1])
		if not identifier or identifier == ARGV[1] then return redis.call("set", KEYS[1], ARGV[1], "px", ARGV[2])
		else return redis.error_reply("error") end`},
	Unset: {"unset", 1, 1, `
		local identifier = redis.call("get", KEYS[1])
		if not identifier then return redis.status_reply("ok")
		elseif identifier == ARGV[1] then return redis.call("del", KEYS[1])
		else return redis.error_reply("error") end`},
	HolderTTL: {"holder's ttl", 1, 1, `
		local identifier = redis.call("get", KEYS[1])
		if not identifier then return redis.error_reply("error")
		elseif identifier == ARGV[1] then return redis.call("ttl", KEYS[1])
		else return redis.error_reply("error") end`},
	AcquireAll: {"acquire all", -1, 2, `
		for i, key in ipairs(KEYS) do if redis.call("exists", key) == 1 then return 0 end end
		for i, key in ipairs(KEYS) do redis.call("set", key, ARGV[1], "px", ARGV[2]) end
		return #KEYS`},
	ExtendAll: {"extend all", -1, 2, `
		for i, key in ipairs(KEYS) do if redis.call("get", key) ~= ARGV[1] then return 0 end end
		for i, key in ipairs(KEYS) do redis.call("set", key, ARGV[1], "px", ARGV[2]) end
		return #KEYS`},
	ReleaseAll: {"release all", -1, 1, `
		local count = 0
		for i, key in ipairs(KEYS) do
			if redis.call("get", key) == ARGV[1] then redis.pcall("del", key) count = count + 1 end
		end
		return count`},
}

// byCanonical finds the form of a canonical text.
var byCanonical = func() map[string]Form {
	index := map[string]Form{}
	for form := CompareDelete; int(form) < len(forms); form++ {
		text, ok := Canonical(forms[form].text)
		if !ok || index[text] != Unknown {
			panic("script: the text of " + forms[form].name + " is malformed, or that of another form")
		}
		index[text] = form
	}
	return index
}()

// Recognise returns the form of a script, or Unknown.
func Recognise(text string) Form {
	canonical, _ := Canonical(text)
	return byCanonical[canonical]
}

// String returns the name of the form.
func (f Form) String() string {
	if f == Unknown || int(f) >= len(forms) {
		return "unknown"
	}
	return forms[f].name
}

// Takes reports whether a script of the form can be called with so many keys and arguments.
func (f Form) Takes(keys, args int) bool {
	if f == Unknown || int(f) >= len(forms) {
		return false
	}
	want := &forms[f]
	return (keys == want.keys || want.keys < 0 && keys > 0) && args >= want.args
}
