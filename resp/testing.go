package resp

import (
	"slices"
	"strconv"
)

// With Config.Test a door serves the test suites of libraries: they clean up after each other, use
// several databases, and make keys that are no locks. No other server should let its clients do that.

// anyOwner owns all keys at a door for tests.
const anyOwner = "test"

// chooseForTest is SELECT of a door for tests: each database but 0 is a namespace of its own.
func (c *client) chooseForTest(database string) error {
	n, err := strconv.Atoi(database)
	if err != nil || n < 0 || n > 15 {
		return &usageError{"DB index is out of range"}
	}
	c.forget()
	if c.namespace = ""; n > 0 {
		c.namespace = "db" + strconv.Itoa(n)
	}
	if err := c.identify(); err != nil {
		return noAuth(err)
	}
	return c.ok()
}

// flushDB is FLUSHDB and FLUSHALL: it releases what this process has taken in the namespace.
func (c *client) flushDB(_ [][]byte) error {
	if !c.door.cfg.Test {
		return &usageError{
			"FLUSHDB would end the leases of others, and is for servers of tests: interlock serve --resp-test. An operator " +
				"takes a single lease back with interlock lease revoke KEY",
		}
	}
	for _, x := range c.door.grants.of(c.caller.Namespace()) {
		if _, err := c.release(&held{lease: x.lease}); err != nil {
			return err
		}
		c.door.grants.drop(x)
	}
	return c.ok()
}

// setAdd is SADD: suites make a key that is no lock with it, and want every lock of the key to fail.
func (c *client) setAdd(args [][]byte) error {
	if !c.door.cfg.Test {
		return unknown("SADD")
	}
	key := c.key(args[0])
	c.door.mu.Lock()
	c.door.noLocks[c.nameOf(key)] = true
	c.door.mu.Unlock()
	c.w.int(int64(len(args) - 1))
	return nil
}

// isNoLock reports whether one of the keys is no lock.
func (c *client) isNoLock(keys []string) bool {
	if !c.door.cfg.Test {
		return false
	}
	c.door.mu.Lock()
	defer c.door.mu.Unlock()
	return slices.ContainsFunc(keys, func(key string) bool { return c.door.noLocks[c.nameOf(key)] })
}
