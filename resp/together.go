package resp

import (
	"bytes"
	"crypto/subtle"
	"strconv"
	"strings"
	"sync"
)

// Many clients share one connection between the tasks of a process, and send the commands of all of them
// without waiting for answers. Carried out one after the other, each would wait for the disk. So those that
// came together and are about unrelated keys are carried out at the same time, and share what is written to
// the disk. The answers keep their order, and commands about related keys keep theirs.

// mostTogether bounds the commands of one connection that are carried out at the same time.
const mostTogether = 64

// together returns the commands at the front of c.in that may be carried out at the same time, and the
// length of all. The first one is known, with its length.
func (c *client) together(first [][]byte, length int) ([][][]byte, int) {
	list := [][][]byte{first}
	if len(c.in) == length || !c.admitted {
		return list, length
	}
	taken := map[string]bool{}
	if !c.takeRoots(first, taken) {
		return list, length
	}
	for len(list) < mostTogether {
		args, n, _, err := parse(c.in[length:], c.limits())
		if err != nil || len(args) == 0 || !c.takeRoots(args, taken) {
			break // its own turn comes
		}
		list, length = append(list, args), length+n
	}
	return list, length
}

// takeRoots adds the roots of the keys of a command to those that are taken. It reports false if one of them
// was taken, or if the command is about no key or about all.
//
// The root of a key is its first segment, in small letters. Keys with different roots neither contain each
// other nor are confused with each other.
func (c *client) takeRoots(args [][]byte, taken map[string]bool) bool {
	keys := subjects(args)
	roots := make([]string, len(keys))
	for i, key := range keys {
		root, _, _ := strings.Cut(c.key(key), "/")
		if roots[i] = strings.ToLower(root); taken[roots[i]] {
			return false
		}
	}
	for _, root := range roots {
		taken[root] = true
	}
	return len(keys) > 0
}

// subjects returns the keys that a command is about; none if it is not a correct command about some.
func subjects(args [][]byte) [][]byte {
	var small [32]byte
	name := upper(small[:0], args[0])
	cmd, args := commands[string(name)], args[1:]
	switch {
	case cmd == nil || !cmd.takes(len(args)):
		return nil
	case bytes.HasPrefix(name, []byte("EVAL")):
		if n, err := strconv.Atoi(string(args[1])); err == nil && n > 0 && n <= len(args)-2 {
			return args[2 : 2+n]
		}
		return nil
	case cmd.keys < 0:
		return args
	default:
		return args[:cmd.keys]
	}
}

// carryOut carries out commands at the same time, and writes their answers in order.
func (c *client) carryOut(list [][][]byte) {
	if len(list) == 1 {
		c.execute(list[0])
		return
	}
	c.agent() // once, for all lanes
	lanes := make([]*client, len(list)-1)
	func() {
		var under sync.WaitGroup
		defer under.Wait()
		for i, args := range list[1:] {
			lane := c.lane()
			lanes[i] = lane
			under.Go(func() {
				defer lane.recover()
				lane.execute(args)
			})
		}
		c.execute(list[0])
	}()
	for _, lane := range lanes {
		c.w.b = append(c.w.b, lane.w.b...)
		c.over = c.over || lane.over
		if lane.broken {
			c.broken = true
			return // the answers behind it would be taken for its own
		}
		if cap(lane.w.b) <= 4*idleBytes {
			*lane = client{caller: lane.caller, bearer: lane.bearer, namespace: lane.namespace, w: lane.w}
			c.door.lanes.Put(lane)
		}
	}
}

// lane returns a copy of the client that carries out one command about keys beside it.
func (c *client) lane() *client {
	lane, known := c.door.lanes.Get().(*client)
	if !known {
		lane = new(client)
	}
	caller, answers := lane.caller, lane.w.b[:0]
	if subtle.ConstantTimeCompare([]byte(lane.bearer), []byte(c.bearer)) == 0 || lane.namespace != c.namespace {
		caller = nil
	}
	*lane = *c
	lane.in, lane.room, lane.held, lane.caller, lane.w.b = nil, nil, 0, caller, answers
	return lane
}
