package resp

import (
	"crypto/sha1"
	"encoding/hex"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/interlockdev/interlock/resp/script"
)

// scripts are the texts that were recognised, by their SHA-1. All clients share them: a text means the
// same for all.
type scripts struct {
	mu    sync.RWMutex
	known map[string]script.Form
}

// mostScripts bounds the texts that are remembered: a form has as many as blanks can be set. Beyond that
// all are forgotten, and clients send their texts again.
const mostScripts = 4096

func (s *scripts) find(sha string) script.Form {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.known[sha]
}

// learn recognises a text, and returns its SHA-1.
func (s *scripts) learn(text string) (sha string, form script.Form) {
	sum := sha1.Sum([]byte(text))
	sha = hex.EncodeToString(sum[:])
	if form = s.find(sha); form != script.Unknown {
		return sha, form
	}
	if form = script.Recognise(text); form == script.Unknown {
		return sha, form
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.known) >= mostScripts {
		clear(s.known)
	}
	s.known[sha] = form
	return sha, form
}

var (
	errNoScript = &wordError{"NOSCRIPT", "No matching script. Please use EVAL."}
	errLua      = &usageError{
		"interlock runs no Lua. It knows the release, extend and acquire scripts of redis-py, redlock, redsync, redislock, " +
			"pottery and aioredlock. For more use POST /v1/leases; see docs/redis.md",
	}
)

// script is SCRIPT LOAD, EXISTS or FLUSH. What is recognised stays known: FLUSH of one client must not
// concern others.
func (c *client) script(args [][]byte) error {
	switch word := strings.ToUpper(string(args[0])); {
	case word == "LOAD" && len(args) == 2:
		sha, form := c.door.scripts.learn(string(args[1]))
		if form == script.Unknown {
			return errLua
		}
		c.w.bulk(sha)
		return nil
	case word == "EXISTS" && len(args) > 1:
		c.w.array(len(args) - 1)
		for _, sha := range args[1:] {
			c.w.yes(c.door.scripts.find(strings.ToLower(string(sha))) != script.Unknown)
		}
		return nil
	case word == "FLUSH" && len(args) <= 2:
		return c.ok()
	}
	return &usageError{"unknown subcommand of SCRIPT: want LOAD, EXISTS or FLUSH"}
}

func (c *client) eval(args [][]byte) error {
	_, form := c.door.scripts.learn(string(args[0]))
	if form == script.Unknown {
		return errLua
	}
	return c.call(form, args[1:])
}

func (c *client) evalSHA(args [][]byte) error {
	form := c.door.scripts.find(strings.ToLower(string(args[0])))
	if form == script.Unknown {
		return errNoScript
	}
	return c.call(form, args[1:])
}

// call carries out a script. args are the number of its keys, the keys, and its arguments.
func (c *client) call(form script.Form, args [][]byte) error {
	n, err := strconv.Atoi(string(args[0]))
	if err != nil || n < 0 || n > len(args)-1 {
		return &usageError{"Number of keys can't be greater than number of args"}
	}
	keys, argv := c.keys(args[1:1+n]), args[1+n:]
	if !form.Takes(n, len(argv)) {
		return &usageError{"the script " + form.String() + " is called with other keys or arguments than its library sends"}
	}
	if c.isNoLock(keys) {
		if form != script.AcquireAll {
			return &wordError{"WRONGTYPE", "Operation against a key holding the wrong kind of value"}
		}
		c.w.int(0)
		return nil
	}
	value := string(argv[0])
	switch form {
	case script.AcquireAll:
		return c.acquireAll(keys, value, argv[1])
	case script.ExtendAll:
		return c.extendAll(keys, value, argv[1])
	case script.ReleaseAll:
		return c.releaseAll(keys, value)
	case script.Obtain:
		return c.obtain(keys[0], value, argv[1], argv[2])
	}
	return c.callOne(form, keys[0], value, argv[1:])
}

// callOne carries out a script about one key that compares its value.
func (c *client) callOne(form script.Form, key, value string, argv [][]byte) (err error) {
	var ttl time.Duration
	switch form {
	case script.CompareExpire, script.Extend, script.Reacquire, script.TouchOrSet, script.SetOrExtend:
		if ttl, err = after(argv[0], time.Millisecond); err != nil {
			return err
		}
	}
	switch form {
	case script.CompareDelete, script.Release, script.DeleteOrGone, script.Unset:
		state, done, err := c.withValue(key, value, c.delete([]string{key}))
		switch {
		case err != nil:
			return err
		case state == free && form == script.DeleteOrGone:
			c.w.int(-1)
		case state == free && form == script.Unset:
			return c.ok()
		case !done && form == script.Unset:
			c.w.fail("ERR ERROR")
		default:
			c.w.yes(done)
		}
	case script.CompareExpire, script.Reacquire:
		_, done, err := c.withValue(key, value, c.expire(key, ttl))
		if err != nil {
			return err
		}
		c.w.yes(done)
	case script.TouchOrSet, script.SetOrExtend:
		return c.touchOrSet(form, key, value, ttl)
	case script.Extend:
		return c.extend(key, value, ttl, string(argv[1]) == "0")
	default:
		return c.tellHolder(form, key, value)
	}
	return nil
}

// tellHolder answers the scripts that return the ttl of a key with a value.
func (c *client) tellHolder(form script.Form, key, value string) error {
	h, err := c.look(key)
	if err != nil {
		return err
	}
	same := h.state == ours && h.value == value
	switch {
	case form == script.CompareTTL && same:
		c.w.int(h.leftIn(time.Millisecond))
	case form == script.CompareTTL:
		c.w.int(-3)
	case form == script.Remaining && same:
		c.w.int(max(0, h.leftIn(time.Millisecond)))
	case form == script.Remaining:
		c.w.int(0)
	case same:
		c.w.int(h.leftIn(time.Second))
	default:
		c.w.fail("ERR ERROR")
	}
	return nil
}

// touchOrSet extends a key that has the value, and sets a free one.
func (c *client) touchOrSet(form script.Form, key, value string, ttl time.Duration) error {
	state, done, err := c.withValue(key, value, c.expire(key, ttl))
	if err == nil && state == free {
		if ttl <= 0 {
			return &usageError{"invalid expire time in 'set' command"}
		}
		done, err = c.acquire([]string{key}, value, ttl)
	}
	switch {
	case err != nil:
		return err
	case form == script.TouchOrSet:
		c.w.yes(done)
	case done:
		return c.ok()
	default:
		c.w.fail("ERR ERROR")
	}
	return nil
}

// extend adds to the ttl of a key that has the value, or replaces it.
func (c *client) extend(key, value string, ttl time.Duration, add bool) error {
	h, err := c.look(key)
	if err != nil {
		return err
	}
	if h.state != ours || h.value != value || h.permanent {
		c.w.int(0)
		return nil
	}
	if add {
		ttl += h.left
	}
	alive, err := c.expire(key, ttl)(&h)
	if err == nil {
		c.w.yes(alive)
	}
	return err
}

// obtain sets a free key, or one with a value that has the same token in front.
func (c *client) obtain(key, value string, length, px []byte) error {
	ttl, err := after(px, time.Millisecond)
	if err == nil && ttl <= 0 {
		err = &usageError{"invalid expire time in 'set' command"}
	}
	n, bad := strconv.Atoi(string(length))
	if bad != nil || n < 0 {
		return errNotInteger
	}
	if err != nil {
		return err
	}
	done, err := c.acquire([]string{key}, value, ttl)
	if err == nil && !done {
		var h held
		if h, err = c.look(key); err != nil {
			return err
		}
		token := value[:min(n, len(value))]
		if h.state == ours && h.value[:min(n, len(h.value))] == token {
			h.mine = true
			done, err = c.put(key, value, &setOptions{ttl: ttl}, &h)
		}
	}
	switch {
	case err != nil:
		return err
	case done:
		return c.ok()
	}
	c.w.null()
	return nil
}

// acquireAll sets all keys if all are free. They are one lease.
func (c *client) acquireAll(keys []string, value string, px []byte) error {
	ttl, err := after(px, time.Millisecond)
	if err == nil && ttl <= 0 {
		err = &usageError{"invalid expire time in 'set' command"}
	}
	if err != nil {
		return err
	}
	distinct := slices.Compact(slices.Sorted(slices.Values(keys)))
	done, err := c.acquire(distinct, value, ttl)
	switch {
	case err != nil:
		return err
	case done:
		c.w.int(int64(len(keys)))
	default:
		c.w.int(0)
	}
	return nil
}

// matching finds the leases with a value at keys, and the keys of each.
func (c *client) matching(keys []string, value string) (leases []held, of [][]string, err error) {
	for _, key := range slices.Compact(slices.Sorted(slices.Values(keys))) {
		h, err := c.look(key)
		if err != nil {
			return nil, nil, err
		}
		if h.state != ours || h.value != value {
			continue
		}
		i := slices.IndexFunc(leases, func(known held) bool { return known.lease == h.lease })
		if i < 0 {
			i = len(leases)
			leases, of = append(leases, h), append(of, nil)
		}
		of[i] = append(of[i], key)
	}
	return leases, of, nil
}

// extendAll sets the ttl of all keys if all have the value.
func (c *client) extendAll(keys []string, value string, px []byte) error {
	ttl, err := after(px, time.Millisecond)
	if err == nil && ttl <= 0 {
		err = &usageError{"invalid expire time in 'set' command"}
	}
	if err != nil {
		return err
	}
	leases, of, err := c.matching(keys, value)
	if err != nil {
		return err
	}
	alive := len(slices.Concat(of...)) == len(slices.Compact(slices.Sorted(slices.Values(keys))))
	for i := 0; alive && i < len(leases); i++ {
		if alive, err = c.expire(of[i][0], ttl)(&leases[i]); err != nil {
			return err
		}
	}
	if alive {
		c.w.int(int64(len(keys)))
	} else {
		c.w.int(0)
	}
	return nil
}

// releaseAll deletes the keys that have the value.
func (c *client) releaseAll(keys []string, value string) error {
	if len(keys) == 1 {
		_, done, err := c.withValue(keys[0], value, c.delete(keys))
		if err == nil {
			c.w.yes(done)
		}
		return err
	}
	leases, of, err := c.matching(keys, value)
	if err != nil {
		return err
	}
	count := 0
	for i := range leases {
		alive, err := c.delete(of[i])(&leases[i])
		if err != nil {
			return err
		}
		if alive {
			count += len(of[i])
		}
	}
	c.w.int(int64(count))
	return nil
}
