package resp

import (
	"crypto/sha1"
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/interlockdev/interlock/internal/invisible"
	"github.com/interlockdev/interlock/resp/script"
)

// scripts are the texts that were recognised, by their SHA-1. All clients share them: a text means the
// same for all.
type scripts struct {
	mu    sync.RWMutex
	known map[string]*script.Program
}

// mostScripts bounds the texts that are remembered: a form has as many as blanks can be set. Beyond that
// all are forgotten, and clients send their texts again.
const mostScripts = 4096

func (s *scripts) find(sha string) *script.Program {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.known[sha]
}

// learn recognises a text. The SHA-1 is also that of one that is refused.
func (s *scripts) learn(text string) (sha string, p *script.Program, err error) {
	sum := sha1.Sum([]byte(text))
	sha = hex.EncodeToString(sum[:])
	if p = s.find(sha); p != nil {
		return sha, p, nil
	}
	if p, err = script.Recognise(text); err != nil {
		return sha, nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.known) >= mostScripts {
		clear(s.known)
	}
	s.known[sha] = p
	return sha, p, nil
}

var errNoScript = &wordError{"NOSCRIPT", "No matching script. Please use EVAL."}

// learn recognises a text of the client. The operator learns of a refusal, too, since programs ignore the errors of
// their releases.
func (c *client) learn(text string) (sha string, p *script.Program, err error) {
	sha, p, err = c.door.scripts.learn(text)
	if err == nil {
		return sha, p, nil
	}
	const line = "a program's script is refused, so its locks may end by their ttl alone"
	c.complain("script", sha, line, "sha1", sha, "reason", err)
	return sha, nil, &usageError{fmt.Sprintf(
		"interlock runs no Lua: it knows scripts that compare a key's value with an argument, and then delete, extend or "+
			"set the key. This one is another, %v. Write it so, or use SET NX, SET IFEQ and DELEX IFEQ; see docs/redis.md", err,
	)}
}

// script is SCRIPT LOAD, EXISTS or FLUSH. What is recognised stays known: FLUSH of one client must not
// concern others.
func (c *client) script(args [][]byte) error {
	switch word := strings.ToUpper(string(args[0])); {
	case word == "LOAD" && len(args) == 2:
		sha, _, err := c.learn(string(args[1]))
		if err != nil {
			return err
		}
		c.w.bulk(sha)
		return nil
	case word == "EXISTS" && len(args) > 1:
		c.w.array(len(args) - 1)
		for _, sha := range args[1:] {
			c.w.yes(c.door.scripts.find(strings.ToLower(string(sha))) != nil)
		}
		return nil
	case word == "FLUSH" && len(args) <= 2:
		return c.ok()
	}
	return &usageError{"unknown subcommand of SCRIPT: want LOAD, EXISTS or FLUSH"}
}

func (c *client) eval(args [][]byte) error {
	_, p, err := c.learn(string(args[0]))
	if err != nil {
		return err
	}
	return c.call(p, args[1:])
}

func (c *client) evalSHA(args [][]byte) error {
	p := c.door.scripts.find(strings.ToLower(string(args[0])))
	if p == nil {
		return errNoScript
	}
	return c.call(p, args[1:])
}

// call carries out a script. args are the number of its keys, the keys, and its arguments.
func (c *client) call(p *script.Program, args [][]byte) error {
	n, err := strconv.Atoi(string(args[0]))
	if err != nil || n < 0 || n > len(args)-1 {
		return &usageError{"Number of keys can't be greater than number of args"}
	}
	keys, argv := c.keys(args[1:1+n]), args[1+n:]
	if !p.Takes(n, len(argv)) {
		return &usageError{fmt.Sprintf(
			"the script uses a key and ARGV[%d], and is called with %d keys and %d arguments", p.Args, n, len(argv),
		)}
	}
	value := string(argv[p.Value-1])
	if p.Number > 0 {
		if _, err := strconv.ParseInt(string(argv[p.Number-1]), 10, 64); err != nil {
			return errNotInteger
		}
	}
	switch {
	case c.isNoLock(keys):
		if p.All == nil || p.All.Op != script.Set {
			return &wordError{"WRONGTYPE", "Operation against a key holding the wrong kind of value"}
		}
		return c.answer(&p.All.Fail, 0)
	case p.All != nil:
		return c.callAll(p.All, keys, value, argv)
	}
	return c.callOne(p, keys[0], value, argv)
}

// answer writes what a case of a script answers. left is the ttl that the key had.
func (c *client) answer(answers *script.Case, left time.Duration) error {
	switch answers.Answer {
	case script.Int:
		c.w.int(answers.N)
	case script.Text:
		c.w.bulk(answers.S)
	case script.Status:
		c.w.simple(answers.S)
	case script.Error:
		c.w.fail(invisible.Line(answers.S))
	case script.TTL:
		h := held{state: ours, left: max(left, time.Millisecond)}
		c.w.int(h.leftIn(answers.Unit))
	default:
		c.w.null()
	}
	return nil
}

// amount reads a ttl of a script.
func amount(a script.Amount, argv [][]byte) (time.Duration, error) {
	if a.Arg == 0 {
		return a.Fixed, nil
	}
	return after(argv[a.Arg-1], a.Unit)
}

// setAmount reads a ttl with which a script sets a key; 0 is none.
func setAmount(a script.Amount, argv [][]byte) (time.Duration, error) {
	ttl, err := amount(a, argv)
	if err == nil && ttl <= 0 && a != (script.Amount{}) {
		err = &usageError{"invalid expire time in 'set' command"}
	}
	return ttl, err
}

// callOne carries out a script about one key.
func (c *client) callOne(p *script.Program, key, value string, argv [][]byte) error {
	cases := p.For(argv)
	e := &cases.Equal
	blind := e.Op == script.Delete || e.Op == script.Expire && !e.TTL.More // it needs no look at the key
	if blind && p.Prefix == 0 && *e == cases.Lasting && e.Answer != script.TTL {
		state, done, err := c.withValue(key, value, func(h *held) (bool, error) { return c.write(e, key, value, argv, h) })
		if err == nil && !done && e.Op == script.Delete {
			c.door.grants.arrivedWith(c.nameOf(key), value)
		}
		switch {
		case err != nil:
			return err
		case done:
			return c.answer(e, 0)
		case state != free:
			return c.answer(&cases.Other, 0)
		case cases.Free.Op == script.Nothing:
			return c.answer(&cases.Free, 0)
		}
	}
	for range mostTurns {
		h, err := c.look(key)
		if err != nil {
			return err
		}
		now, err := c.caseOf(p, cases, &h, value, argv)
		if err != nil {
			return err
		}
		if now.Op == script.Nothing {
			return c.answer(now, h.left)
		}
		if done, err := c.write(now, key, value, argv, &h); err != nil || done {
			if err != nil {
				return err
			}
			return c.answer(now, h.left)
		}
	}
	return &usageError{"the key changed hands again and again while the script was at work; send it again"}
}

// mostTurns is how often a script looks again at a key that has changed since it looked.
const mostTurns = 8

// caseOf returns the case in which a key is.
func (c *client) caseOf(
	p *script.Program, cases *script.Cases, h *held, value string, argv [][]byte,
) (*script.Case, error) {
	switch {
	case h.state == free:
		return &cases.Free, nil
	case h.state == ours && h.value == value && h.permanent:
		return &cases.Lasting, nil
	case h.state == ours && h.value == value:
		return &cases.Equal, nil
	case h.state == ours && p.Prefix > 0:
		n, err := strconv.Atoi(string(argv[p.Prefix-1]))
		if err != nil || n <= 0 {
			return nil, errNotInteger
		}
		if h.value[:min(n, len(h.value))] == value[:min(n, len(value))] {
			return &cases.Akin, nil
		}
	}
	return &cases.Other, nil
}

// write does what a case of a script does to a key that was found so. done is false if the key has changed since.
func (c *client) write(now *script.Case, key, value string, argv [][]byte, h *held) (done bool, err error) {
	switch now.Op {
	case script.Delete:
		return c.delete([]string{key})(h)
	case script.Expire:
		ttl, err := amount(now.TTL, argv)
		if err != nil {
			return false, err
		}
		if now.TTL.More {
			ttl += h.left
		}
		return c.expire([]string{key}, ttl)(h)
	}
	ttl, err := setAmount(now.TTL, argv)
	if err != nil {
		return false, err
	}
	if h.state == free {
		return c.acquire([]string{key}, value, ttl)
	}
	return c.put(key, value, ttl, h)
}

// callAll carries out a script about all of its keys.
func (c *client) callAll(a *script.All, keys []string, value string, argv [][]byte) error {
	distinct := slices.Compact(slices.Sorted(slices.Values(keys)))
	if a.Op == script.Delete {
		return c.releaseAll(distinct, value)
	}
	ttl, err := setAmount(a.TTL, argv)
	if err != nil {
		return err
	}
	var done bool
	if a.Op == script.Set {
		done, err = c.acquire(distinct, value, ttl)
	} else {
		done, err = c.extendAll(distinct, value, ttl)
	}
	switch {
	case err != nil:
		return err
	case !done:
		return c.answer(&a.Fail, 0)
	case a.Count:
		c.w.int(int64(len(keys)))
	default:
		c.w.int(a.N)
	}
	return nil
}

// matching finds the leases with a value at keys, and the keys of each.
func (c *client) matching(keys []string, value string) (leases []held, of [][]string, err error) {
	for _, key := range keys {
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
func (c *client) extendAll(keys []string, value string, ttl time.Duration) (alive bool, err error) {
	leases, of, err := c.matching(keys, value)
	if err != nil {
		return false, err
	}
	alive = len(slices.Concat(of...)) == len(keys)
	for i := 0; alive && i < len(leases); i++ {
		if alive, err = c.expire(of[i], ttl)(&leases[i]); err != nil {
			return false, err
		}
	}
	return alive, nil
}

// releaseAll deletes the keys that have the value, and answers how many.
func (c *client) releaseAll(keys []string, value string) error {
	if len(keys) == 1 {
		_, done, err := c.deleteWith(keys[0], value)
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
