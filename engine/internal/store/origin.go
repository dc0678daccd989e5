package store

import (
	"github.com/interlockdev/interlock/engine/record"
)

// Where tasks come from.
//
// An agent submits many tasks, and all that is said of where they come from and where
// they go is the same for most of them. So that is kept once, for as long as there is a
// task that has it.

// origin is an address that tasks have in common.
type origin struct {
	record.Address
	users int
}

// origins are those of a namespace, by the prints of their addresses. Of two with one
// print, the later one is not listed, and not shared.
type origins map[record.Fingerprint]*origin

// share returns the kept address that equals a, for one more task.
func (l *origins) share(a record.Address) *record.Address {
	at := a.Hash()
	o := (*l)[at]
	if o == nil || o.Address != a {
		listed := o != nil
		if o = (&origin{Address: a}); !listed {
			if *l == nil {
				*l = origins{}
			}
			(*l)[at] = o
		}
	}
	o.users++
	return &o.Address
}

// leave takes a task from those that have an address. One that is not listed has no other.
func (l origins) leave(a *record.Address) {
	at := a.Hash()
	o := l[at]
	if o == nil || &o.Address != a {
		return
	}
	if o.users--; o.users == 0 {
		delete(l, at)
	}
}
