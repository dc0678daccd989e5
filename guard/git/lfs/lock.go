package lfs

import (
	"strconv"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/guard/apiclient"
)

// lock is a lease as git-lfs sees it.
type lock struct {
	ID       string `json:"id"`
	Path     string `json:"path"`
	LockedAt string `json:"locked_at"`
	Owner    owner  `json:"owner"`

	key   interlock.Key
	fence interlock.Fence
}

type owner struct {
	Name string `json:"name"`
}

func lockOf(path string, h *apiclient.Holder) lock {
	return lock{
		ID: strconv.FormatUint(uint64(h.Fence), 10), Path: path,
		LockedAt: time.Now().Add(-h.Held).UTC().Format(time.RFC3339),
		Owner:    owner{h.Agent},
		key:      h.Key, fence: h.Fence,
	}
}

// locking reports whether a holder keeps writers of its very key out. Intents do not: they
// announce that something below it will be held.
func locking(h *apiclient.Holder) bool {
	switch h.Mode {
	case interlock.Shared, interlock.SharedIntentExclusive, interlock.Exclusive:
		return true
	}
	return false
}

// Bounds of one page.
const (
	defaultLimit = 100
	maxLimit     = 1000
)

// locks returns a page of the locks that there are. A page may have fewer than limit and yet be
// followed by another.
func (c *call) locks(cursor string, limit int) (locks []lock, next string, err error) {
	if limit <= 0 {
		limit = defaultLimit
	}
	held, next, err := c.cfg.API.List(c.r.Context(), c.cfg.Keys.Prefix(), cursor, min(limit, maxLimit))
	for i := range held {
		if path, ok := c.cfg.Keys.Path(held[i].Key); ok {
			locks = appendLocks(locks, path, held[i].Holders)
		}
	}
	return locks, next, err
}

// locksAt returns the locks of one path.
func (c *call) locksAt(path string) (locks []lock, err error) {
	holders, _, err := c.cfg.API.Holders(c.r.Context(), c.cfg.Keys.Key(path))
	for i := range holders {
		if at, ok := c.cfg.Keys.Path(holders[i].Key); ok && at == path {
			locks = appendLocks(locks, path, holders[i:i+1])
		}
	}
	return locks, err
}

func appendLocks(locks []lock, path string, holders []apiclient.Holder) []lock {
	for i := range holders {
		if locking(&holders[i]) {
			locks = append(locks, lockOf(path, &holders[i]))
		}
	}
	return locks
}

// find looks for the lock with an id, on all pages: a fence does not show which key it is for.
// nil means that there is none.
func (c *call) find(id string) (*lock, error) {
	for cursor := ""; ; {
		locks, next, err := c.locks(cursor, maxLimit)
		if err != nil {
			return nil, err
		}
		for i := range locks {
			if locks[i].ID == id {
				return &locks[i], nil
			}
		}
		if next == "" {
			return nil, nil
		}
		cursor = next
	}
}
