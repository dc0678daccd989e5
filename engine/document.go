package engine

import (
	"github.com/interlockdev/interlock"
)

// Documents gives the state of several keys at one moment, and the version of the
// namespace's last commit; with bodies only if they are asked for.
func (e *Engine) Documents(ns interlock.Namespace, keys []interlock.Key, bodies bool) (list []interlock.Document, asOf interlock.Version, err error) {
	return nil, 0, nil
}

// DocumentAt gives the state that a key had with a version of the namespace: what was
// written last at or before it. The error has CodeHistoryTrimmed or CodeFutureVersion.
func (e *Engine) DocumentAt(ns interlock.Namespace, key interlock.Key, version interlock.Version) (interlock.Document, error) {
	return interlock.Document{}, nil
}

// Versions gives what is kept of a key's history, the newest first, and whether there
// was more.
func (e *Engine) Versions(ns interlock.Namespace, key interlock.Key) (list []interlock.Document, trimmed bool, err error) {
	return nil, false, nil
}

// DocumentList lists the documents of a namespace in the order of their keys.
type DocumentList struct {
	Namespace interlock.Namespace
	Prefix    string
	After     interlock.Key // begin after this key
	Limit     int           // 0: 100
	Bodies    bool

	Rows []interlock.Document // those that are not absent
	More bool
	AsOf interlock.Version
}

func (l *DocumentList) Look(e *Engine) (done bool) { return true }

func (e *Engine) commit(c *Commit) {
	e.refuse(interlock.CodeUnsupported, "commits are not carried out yet")
}
