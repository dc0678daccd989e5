package engine

import (
	"strings"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine/internal/keypath"
	"github.com/interlockdev/interlock/engine/message"
)

// Queries of the guarded state.

// Documents returns the state of several keys at one moment, and the version of the
// namespace's last commit; with bodies only if they are asked for. The error is
// ParseKey's, or has CodeInvalidRequest or CodeBodyTooLarge if it is too much for one
// answer.
func (e *Engine) Documents(ns interlock.Namespace, keys []interlock.Key, bodies bool) (list []interlock.Document, asOf interlock.Version, err error) {
	if len(keys) > interlock.MaxReads {
		return nil, 0, &message.Error{Code: interlock.CodeInvalidRequest, Text: message.New(message.TooManyReads, message.Num(len(keys)), message.Num(interlock.MaxReads))}
	}
	size := 0
	for _, key := range keys {
		docs, spelled, err := e.docsAt(ns, key)
		if err != nil {
			return nil, 0, err
		}
		doc := e.present(docs, spelled, bodies)
		if size += len(doc.Body); size > interlock.MaxReadBytes {
			return nil, 0, &message.Error{Code: interlock.CodeBodyTooLarge, Key: spelled, Text: message.New(message.DocumentsReadTooLarge, message.Str(spelled), message.Num(interlock.MaxReadBytes))}
		}
		list = append(list, doc)
	}
	if s := e.turnTo(ns); s != nil {
		asOf = s.docs.version
	}
	return list, asOf, nil
}

// DocumentAt returns the state that a key had with a version of the namespace: what was
// written last at or before it. The error has CodeHistoryTrimmed or CodeFutureVersion,
// or is ParseKey's.
func (e *Engine) DocumentAt(ns interlock.Namespace, key interlock.Key, version interlock.Version) (interlock.Document, error) {
	docs, key, err := e.docsAt(ns, key)
	if err != nil {
		return interlock.Document{}, err
	}
	if version > docs.version {
		return interlock.Document{}, &message.Error{Code: interlock.CodeFutureVersion, Key: key, Text: futureWords(version, docs.version)}
	}
	x, known := docs.asOf(key, version)
	if !known {
		return interlock.Document{}, &message.Error{Code: interlock.CodeHistoryTrimmed, Key: key, Text: message.New(message.VersionNotKept, message.Str(key), message.Num(version))}
	}
	return e.showDocument(key, x, true), nil
}

// Versions returns what is kept of a key's history, the newest first, and whether there
// was more. The error is ParseKey's.
func (e *Engine) Versions(ns interlock.Namespace, key interlock.Key) (list []interlock.Document, trimmed bool, err error) {
	docs, key, err := e.docsAt(ns, key)
	if err != nil {
		return nil, false, err
	}
	d := docs.known[key]
	if d == nil {
		return nil, false, nil
	}
	list = append(list, e.showDocument(key, d.now, true))
	for i := len(d.earlier) - 1; i >= 0; i-- {
		list = append(list, e.showDocument(key, d.earlier[i], true))
	}
	return list, d.isTrimmed(), nil
}

// docsAt enters a namespace and returns its documents, and the canonical spelling of a key.
func (e *Engine) docsAt(ns interlock.Namespace, key interlock.Key) (*documents, interlock.Key, error) {
	if _, err := keypath.Parse(string(key)); err != nil {
		return nil, key, err
	}
	s := e.turnTo(ns)
	if s == nil {
		return &documents{}, key, nil
	}
	_, key = s.fit(key)
	return &s.docs, key, nil
}

// present shows a key's state as it is now.
func (e *Engine) present(s *documents, key interlock.Key, bodies bool) interlock.Document {
	if d := s.known[key]; d != nil {
		return e.showDocument(key, d.now, bodies)
	}
	return interlock.Document{Key: key, Version: s.floor, Absent: true}
}

// asOf returns what stood at a key with a version, if that is known: see document.asOf.
func (s *documents) asOf(key interlock.Key, v interlock.Version) (x *poolEdition, known bool) {
	if d := s.known[key]; d != nil {
		return d.asOf(v)
	}
	return nil, v >= s.floor
}

func futureWords(v, last interlock.Version) *message.Text {
	return message.New(message.FutureVersion, message.Num(v), message.Num(last))
}

// clockAnomaly returns the reason why no caller can have read as of a version in a namespace
// with the given last commit, or "". When the journal was restored, versions jumped over those
// that may have been assigned since the backup, and reads as of these are not from this
// history. (It is not known which earlier versions are from before the backup, so all of them
// count as old once there was a commit since.)
func (e *Engine) clockAnomaly(asOf, last interlock.Version) *message.Text {
	switch {
	case asOf > last:
		return futureWords(asOf, last)
	case asOf > 0 && asOf <= e.base && last > e.base:
		return message.New(message.NotRestored, message.Num(asOf))
	}
	return nil
}

// begins returns the version with which the command's namespace began, or would begin.
func (e *Engine) begins() interlock.Version {
	if s := e.pendingWork.ns; s != nil {
		return interlock.Version(s.born)
	}
	return interlock.Version(e.past)
}

// latest returns the version of the last commit in the command's namespace; for one that is
// to be made, what its versions begin above.
func (e *Engine) latest() interlock.Version {
	if s := e.pendingWork.ns; s != nil {
		return s.docs.version
	}
	return interlock.Version(e.past)
}

// DocumentList lists the documents of a namespace in the order of their keys.
type DocumentList struct {
	Namespace interlock.Namespace
	Prefix    string
	After     interlock.Key // begin after this key
	Limit     int           // 0: 100, and at most 1000; with Bodies also as many as interlock.MaxReadBytes has room for
	Bodies    bool

	Rows []interlock.Document // those that are not absent
	More bool
	AsOf interlock.Version

	found first[*document]
	next  int
	size  int
}

func (l *DocumentList) Look(e *Engine) (done bool) {
	s := e.turnTo(l.Namespace)
	if s == nil {
		return true
	}
	l.AsOf = s.docs.version
	limit := rowsOf(l.Limit)
	l.found.limit = limit + 1
	if !sift(&l.found, s.docs.present.Part, &l.next, l.wants, byKey) {
		return false
	}
	for range glances {
		n := len(l.Rows)
		if n == len(l.found.list) {
			return true
		}
		doc := e.showDocument(l.found.list[n].key, l.found.list[n].now, l.Bodies)
		if l.size += len(doc.Body); n == limit || l.size > interlock.MaxReadBytes {
			l.More = true
			return true
		}
		l.Rows = append(l.Rows, doc)
	}
	return false
}

func (l *DocumentList) wants(d *document) bool {
	return strings.HasPrefix(string(d.key), l.Prefix) && d.key > l.After
}

func byKey(a, b *document) int { return strings.Compare(string(a.key), string(b.key)) }
