package resp

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/internal/invisible"
)

// key returns the key of an argument.
func (c *client) key(arg []byte) string {
	return strings.TrimPrefix(string(arg), c.door.cfg.Strip)
}

func (c *client) keys(args [][]byte) []string {
	list := make([]string, len(args))
	for i, arg := range args {
		list[i] = c.key(arg)
	}
	return list
}

var errNotInteger = &usageError{"value is not an integer or out of range"}

// after reads a number of units as a duration.
func after(arg []byte, unit time.Duration) (time.Duration, error) {
	n, err := strconv.ParseInt(string(arg), 10, 64)
	if err != nil || n > int64(math.MaxInt64/unit) || n < int64(math.MinInt64/unit) {
		return 0, errNotInteger
	}
	return time.Duration(n) * unit, nil
}

// until reads a time, as a number of units since 1970, and returns how far it is.
func until(arg []byte, unit time.Duration) (time.Duration, error) {
	since, err := after(arg, unit)
	if err != nil {
		return 0, err
	}
	return time.Until(time.Unix(0, int64(since))), nil
}

// setOptions are those of SET.
type setOptions struct {
	nx, xx, get bool
	ifEqual     bool
	equal       string        // what the key must hold with ifEqual
	ttl         time.Duration // 0: none
}

func readSet(args [][]byte) (o setOptions, err error) {
	timed := false
	for len(args) > 0 {
		option := strings.ToUpper(string(args[0]))
		args = args[1:]
		read, unit := after, time.Millisecond
		switch option {
		case "NX":
			o.nx = true
			continue
		case "XX":
			o.xx = true
			continue
		case "GET":
			o.get = true
			continue
		case "IFEQ":
			if o.ifEqual || len(args) == 0 {
				return o, errSyntax
			}
			o.ifEqual, o.equal, args = true, string(args[0]), args[1:]
			continue
		case "IFNE", "IFDEQ", "IFDNE", "KEEPTTL":
			return o, &usageError{"SET with " + option + " is not answered: use NX, XX or IFEQ, with EX, PX, EXAT or PXAT"}
		case "EX":
			unit = time.Second
		case "PX":
		case "EXAT":
			read, unit = until, time.Second
		case "PXAT":
			read = until
		default:
			return o, errSyntax
		}
		if timed || len(args) == 0 {
			return o, errSyntax
		}
		if o.ttl, err = read(args[0], unit); err != nil {
			return o, err
		}
		if o.ttl <= 0 {
			return o, &usageError{"invalid expire time in 'set' command"}
		}
		timed, args = true, args[1:]
	}
	if o.nx && o.xx || o.ifEqual && (o.nx || o.xx) {
		return o, errSyntax
	}
	return o, nil
}

// set is SET key value [NX | XX | IFEQ value] [GET] [EX | PX | EXAT | PXAT time].
func (c *client) set(args [][]byte) error {
	o, err := readSet(args[2:])
	if err != nil {
		return err
	}
	key, value := c.key(args[0]), string(args[1])
	var before held
	if o.get || !o.nx {
		if before, err = c.look(key); err != nil {
			return err
		}
	}
	done, err := c.replace(key, value, &o, &before)
	if err != nil {
		return err
	}
	switch {
	case o.get && before.state != free:
		c.w.bulk(before.shows())
	case o.get || !done:
		c.w.null()
	default:
		return c.ok()
	}
	return nil
}

// replace sets a key that was as it is before, if the options and the client's rights allow it.
func (c *client) replace(key, value string, o *setOptions, before *held) (done bool, err error) {
	same := before.state == ours && before.value == value
	switch {
	case o.nx:
		return c.acquire([]string{key}, value, o.ttl)
	case o.ifEqual:
		if before.state != ours || before.value != o.equal {
			return false, nil
		}
	case before.state == free:
		if o.xx {
			return false, nil
		}
	case o.xx && before.claim == lost:
		return false, nil // what it wants to renew is over
	case o.xx && before.claim == unclear:
		return false, c.refuseUnclear(key, before)
	case o.xx && (same || before.claim == mine), before.replaceable, same && before.renewable:
	default:
		return false, c.refuseSet(key, before)
	}
	return c.put(key, value, o.ttl, before)
}

// put sets a key that was as it is before, with a ttl; 0 is none.
func (c *client) put(key, value string, ttl time.Duration, before *held) (done bool, err error) {
	switch {
	case before.state == free:
	case before.value == value && before.permanent == (ttl == 0):
		longest := ttl
		if ttl == 0 {
			longest = permanentTTL
		}
		if alive, err := c.expire([]string{key}, longest)(before); err != nil || alive {
			return alive, err
		}
	default:
		if _, err := c.delete([]string{key})(before); err != nil {
			return false, err
		}
	}
	done, err = c.acquireFor([]string{key}, value, ttl, false)
	if err == nil && !done {
		return false, c.refuseSet(key, before)
	}
	return done, err
}

// refuseSet refuses to take a key away from its holder.
func (c *client) refuseSet(key string, h *held) error {
	c.complain("not_owner", key, "a program's SET would take a key away from its holder", "key", key, "holder", h.agent)
	return &usageError{fmt.Sprintf(
		"key %s is held by %s: SET without NX would take it away. Take a key with SET NX and a ttl, and renew it with "+
			"SET XX, EXPIRE or a script; INTERLOCK.WHY shows who has it", key, orOther(h.agent),
	)}
}

// refuseOther refuses to change a key of another client.
func (c *client) refuseOther(key string, h *held) error {
	const text = "a program deletes or extends a key of another client without its value"
	c.complain("not_owner", key, text, "key", key, "holder", h.agent)
	elsewhere := ""
	if h.state == foreign {
		elsewhere = " (under another credential, or outside of this port)"
	}
	return &usageError{fmt.Sprintf(
		"key %s is held by %s%s, and not by this client, %s, so it stays as it is. Name its value: DELEX key IFEQ value, "+
			"or a script; or let all connections of a program have one user, redis://NAME@HOST:PORT. INTERLOCK.WHY shows "+
			"who has it",
		key, orOther(h.agent), elsewhere, c.agent(),
	)}
}

// refuseUnclear refuses to change a key that the client may have, or have had before.
func (c *client) refuseUnclear(key string, h *held) error {
	const text = "a program deletes or extends a key without its value, and may not have it any more"
	c.complain("unclear_owner", key, text, "key", key)
	return &usageError{fmt.Sprintf(
		"it is not clear whose key %s is, so it stays until its ttl ends: a lock of %s on it ran out without a DEL, and "+
			"it was taken again. Give each process a name of its own, redis://NAME@HOST:PORT or CLIENT SETNAME, or each "+
			"lock a value of its own, and delete it by that: DELEX key IFEQ value, or a script",
		key, c.agent(),
	)}
}

func orOther(agent string) string {
	if agent == "" {
		return "another client"
	}
	return agent
}

func (c *client) setNX(args [][]byte) error {
	done, err := c.acquire([]string{c.key(args[0])}, string(args[1]), 0)
	if err == nil {
		c.w.yes(done)
	}
	return err
}

func (c *client) get(args [][]byte) error {
	h, err := c.look(c.key(args[0]))
	switch {
	case err != nil:
		return err
	case h.state == free:
		c.w.null()
	default:
		c.w.bulk(h.shows())
	}
	return nil
}

// del is DEL: it deletes the keys that the client has. Those of others stay, since nothing proves that the client may
// have them.
func (c *client) del(args [][]byte) error {
	deleted := int64(0)
	var refusal error
	for _, key := range c.keys(args) {
		_, done, err := c.drop(key)
		if err != nil && refusal == nil {
			refusal = err
		}
		if done {
			deleted++
		}
	}
	switch {
	case refusal != nil && deleted > 0:
		return &usageError{fmt.Sprintf("%s (%d of the keys were deleted)", errorLine(refusal)[len("ERR "):], deleted)}
	case refusal != nil:
		return refusal
	}
	c.w.int(deleted)
	return nil
}

// drop deletes a key without its value, and returns what it was.
func (c *client) drop(key string) (h held, done bool, err error) {
	if h, err = c.look(key); err != nil {
		return h, false, err
	}
	switch {
	case h.state == free || h.claim == lost:
		c.door.grants.arrived(c.nameOf(key), c.owner())
		return held{}, false, nil
	case h.state == ours && h.claim == mine:
		done, err = c.delete([]string{key})(&h)
		return h, done, err
	case h.claim == unclear:
		if x := c.door.grants.byLease(c.nameOf(key), h.lease); x != nil {
			c.door.grants.ask(x)
		}
		return h, false, c.refuseUnclear(key, &h)
	}
	return h, false, c.refuseOther(key, &h)
}

// getDel is GETDEL: DEL that answers the value.
func (c *client) getDel(args [][]byte) error {
	h, done, err := c.drop(c.key(args[0]))
	switch {
	case err != nil:
		return err
	case done:
		c.w.bulk(h.value)
	default:
		c.w.null()
	}
	return nil
}

// delEx is DELEX key [IFEQ value].
func (c *client) delEx(args [][]byte) error {
	switch {
	case len(args) == 1:
		return c.del(args)
	case len(args) != 3:
		return errSyntax
	case strings.EqualFold(string(args[1]), "IFEQ"):
		return c.delIfEqual([][]byte{args[0], args[2]})
	}
	return &usageError{"DELEX with " + invisible.Line(string(args[1])) + " is not answered: use IFEQ, with a value"}
}

// delIfEqual is DELIFEQ key value, as Valkey has it.
func (c *client) delIfEqual(args [][]byte) error {
	_, done, err := c.deleteWith(c.key(args[0]), string(args[1]))
	if err == nil {
		c.w.yes(done)
	}
	return err
}

func (c *client) exists(args [][]byte) error {
	count := int64(0)
	for _, key := range c.keys(args) {
		h, err := c.look(key)
		if err != nil {
			return err
		}
		if h.state != free {
			count++
		}
	}
	c.w.int(count)
	return nil
}

// left returns the ttl of a key as Redis does: -2 for a free one, -1 for one without a ttl.
func (h *held) leftIn(unit time.Duration) int64 {
	switch {
	case h.state == free:
		return -2
	case h.permanent || h.left <= 0:
		return -1
	}
	return int64((h.left + unit/2) / unit)
}

func (c *client) ttl(args [][]byte) error  { return c.tellTTL(args[0], time.Second) }
func (c *client) pttl(args [][]byte) error { return c.tellTTL(args[0], time.Millisecond) }

func (c *client) tellTTL(arg []byte, unit time.Duration) error {
	h, err := c.look(c.key(arg))
	if err == nil {
		c.w.int(h.leftIn(unit))
	}
	return err
}

func (c *client) expireS(args [][]byte) error    { return c.setTTL(args, after, time.Second) }
func (c *client) expireMS(args [][]byte) error   { return c.setTTL(args, after, time.Millisecond) }
func (c *client) expireAtS(args [][]byte) error  { return c.setTTL(args, until, time.Second) }
func (c *client) expireAtMS(args [][]byte) error { return c.setTTL(args, until, time.Millisecond) }

// setTTL sets the ttl of a key that the client has: 1, or 0 if it has it no more.
func (c *client) setTTL(
	args [][]byte, read func([]byte, time.Duration) (time.Duration, error), unit time.Duration,
) error {
	ttl, err := read(args[1], unit)
	if err != nil {
		return err
	}
	key := c.key(args[0])
	h, err := c.look(key)
	if err != nil {
		return err
	}
	alive := false
	switch {
	case h.state == free || h.claim == lost:
	case h.state == ours && h.claim == mine:
		if alive, err = c.expire([]string{key}, ttl)(&h); err != nil {
			return err
		}
	case h.claim == unclear:
		return c.refuseUnclear(key, &h)
	default:
		return c.refuseOther(key, &h)
	}
	c.w.yes(alive)
	return nil
}

// fence is INTERLOCK.FENCE key value: the fencing token of the lease, for the writes that it protects.
func (c *client) fence(args [][]byte) error {
	h, err := c.look(c.key(args[0]))
	switch {
	case err != nil:
		return err
	case h.state != ours || h.value != string(args[1]):
		c.w.null()
	default:
		c.w.bulk(strconv.FormatUint(uint64(h.fence), 10))
	}
	return nil
}

// why is INTERLOCK.WHY key: its holder, its waiters, and what to do.
func (c *client) why(args [][]byte) error {
	x, err := c.caller.Why(c.ctx, interlock.Key(c.key(args[0])))
	if err != nil {
		return err
	}
	text := x.Text
	if x.Advice.Message != "" {
		text += " Next: " + x.Advice.Message + "."
	}
	c.w.bulk(text)
	return nil
}
