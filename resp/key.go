package resp

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/interlockdev/interlock"
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
	if o.nx && o.xx {
		return o, errSyntax
	}
	return o, nil
}

// set is SET key value [NX | XX] [GET] [EX | PX | EXAT | PXAT time].
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
	done, err := c.put(key, value, &o, &before)
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

// put sets a key that was as it is before, unless NX was asked for.
func (c *client) put(key, value string, o *setOptions, before *held) (done bool, err error) {
	if o.nx {
		return c.acquire([]string{key}, value, o.ttl)
	}
	switch {
	case before.state == free && o.xx:
		return false, nil
	case before.state == free:
	case before.state != ours || !before.mine && before.value != value:
		return false, c.refuseSet(key, before)
	case before.value == value && before.permanent == (o.ttl == 0):
		ttl := o.ttl
		if ttl == 0 {
			ttl = permanentTTL
		}
		if alive, err := c.expire(key, ttl)(before); err != nil || alive {
			return alive, err
		}
	default:
		if _, err := c.delete([]string{key})(before); err != nil {
			return false, err
		}
	}
	done, err = c.acquire([]string{key}, value, o.ttl)
	if err == nil && !done {
		return false, c.refuseSet(key, before)
	}
	return done, err
}

// refuseSet refuses to take a key away from its holder.
func (c *client) refuseSet(key string, h *held) error {
	return &usageError{fmt.Sprintf(
		"key %s is held by %s: SET without NX would take it away; use SET NX with a ttl, and INTERLOCK.WHY to see who has it",
		key, orOther(h.agent),
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

// del is DEL: it releases the keys that the client took itself. Those of others stay, since nothing proves
// that the client may have them.
func (c *client) del(args [][]byte) error {
	deleted := int64(0)
	for _, key := range c.keys(args) {
		x := c.door.grants.get(c.nameOf(key))
		if x == nil || x.owner != c.owner() {
			continue
		}
		alive, err := c.delete([]string{key})(&held{lease: x.lease, keys: c.door.grants.count(x)})
		if err != nil {
			return err
		}
		if alive {
			deleted++
		}
	}
	c.w.int(deleted)
	return nil
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

// setTTL sets the ttl of a key that the client took itself: 1, else 0.
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
	if h.state == ours && h.mine {
		if alive, err = c.expire(key, ttl)(&h); err != nil {
			return err
		}
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
