package sim

import (
	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/placement"
)

// ledger is one shard of the journal: where it is stored, and the checkers that follow it.
type ledger struct {
	w      *world
	number int
	store  store
	audit  *audit
}

// ledgerOf returns the shard of a namespace.
func (w *world) ledgerOf(name interlock.Namespace) *ledger {
	return w.ledgers[placement.Shard(string(name), len(w.ledgers))]
}

// served returns the owner that serves the shard; nil if there is none.
func (l *ledger) served() *owner {
	if o := l.audit.owner; o != nil && o.shard != nil {
		return o
	}
	return nil
}

// owned reports whether the newest owner of the shard serves.
func (l *ledger) owned() bool {
	o := l.served()
	return o != nil && o.epoch == l.audit.epoch
}
