package engine

import (
	"github.com/interlockdev/interlock"
)

// Contention gives how commits and leases fare, by pattern and class, in the order of
// their names.
func (e *Engine) Contention(ns interlock.Namespace) []interlock.Contention { return nil }
