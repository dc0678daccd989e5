package engine

import (
	"strings"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine/internal/keypath"
	"github.com/interlockdev/interlock/engine/internal/store"
	"github.com/interlockdev/interlock/engine/message"
)

// Queries of the guarded state.

// Documents returns the state of several keys at one moment, and the version of the
// namespace's last commit; with bodies only if they are asked for. The error is
// ParseKey's, or has CodeInvalidRequest or CodeBodyTooLarge if it is too much for one
// answer.
func (e *Engine) Documents(
	ns interlock.Namespace, keys []interlock.Key, bodies bool,
) (list []interlock.Document, asOf interlock.Version, err error) {
	if len(keys) > interlock.MaxReads {
		return nil, 0, &message.Error{
			Code: interlock.CodeInvalidRequest,
			Text: message.New(message.TooManyReads, message.Num(len(keys)), message.Num(interlock.MaxReads)),
		}
	}
	size := 0
	for _, key := range keys {
		docs, spelled, err := e.docsAt(ns, key)
		if err != nil {
			return nil, 0, err
		}
		doc := docs.Show(spelled, bodies, e.Clock)
		if size += len(doc.Body); size > interlock.MaxReadBytes {
			return nil, 0, &message.Error{
				Code: interlock.CodeBodyTooLarge, Key: spelled,
				Text: message.New(message.DocumentsReadTooLarge, message.Str(spelled), message.Num(interlock.MaxReadBytes)),
			}
		}
		list = append(list, doc)
	}
	if s := e.turnTo(ns); s != nil {
		asOf = s.Documents.Version
	}
	return list, asOf, nil
}

// DocumentAt returns the document that a key had at a version of the namespace: the last one written
// at or before it. The error has CodeHistoryTrimmed or CodeFutureVersion,
// or is ParseKey's.
func (e *Engine) DocumentAt(
	ns interlock.Namespace, key interlock.Key, version interlock.Version,
) (interlock.Document, error) {
	docs, key, err := e.docsAt(ns, key)
	if err != nil {
		return interlock.Document{}, err
	}
	if version > docs.Version {
		return interlock.Document{}, &message.Error{
			Code: interlock.CodeFutureVersion, Key: key, Text: store.FutureWords(version, docs.Version),
		}
	}
	x, known := docs.AsOf(key, version)
	if !known {
		return interlock.Document{}, &message.Error{
			Code: interlock.CodeHistoryTrimmed, Key: key,
			Text: message.New(message.VersionNotKept, message.Str(key), message.Num(version)),
		}
	}
	return x.Show(key, true, e.Clock), nil
}

// Versions returns the kept history of a key, the newest version first. trimmed reports whether older
// versions are gone. The error is ParseKey's.
func (e *Engine) Versions(
	ns interlock.Namespace, key interlock.Key,
) (list []interlock.Document, trimmed bool, err error) {
	docs, key, err := e.docsAt(ns, key)
	if err != nil {
		return nil, false, err
	}
	d := docs.Known[key]
	if d == nil {
		return nil, false, nil
	}
	list = append(list, d.Now.Show(key, true, e.Clock))
	for i := len(d.Earlier) - 1; i >= 0; i-- {
		list = append(list, d.Earlier[i].Show(key, true, e.Clock))
	}
	return list, d.IsTrimmed(), nil
}

// docsAt enters a namespace and returns its documents, and the canonical spelling of a key.
func (e *Engine) docsAt(ns interlock.Namespace, key interlock.Key) (*store.Documents, interlock.Key, error) {
	if _, err := keypath.Parse(string(key)); err != nil {
		return nil, key, err
	}
	s := e.turnTo(ns)
	if s == nil {
		return &store.Documents{}, key, nil
	}
	_, key = s.Fit(key)
	return &s.Documents, key, nil
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

	found first[*store.Document]
	next  int
	size  int
}

func (l *DocumentList) Look(e *Engine) (done bool) {
	s := e.turnTo(l.Namespace)
	if s == nil {
		return true
	}
	l.AsOf = s.Documents.Version
	limit := rowsOf(l.Limit)
	l.found.limit = limit + 1
	if !sift(&l.found, s.Documents.Present.Part, &l.next, l.wants, byKey) {
		return false
	}
	for range glances {
		n := len(l.Rows)
		if n == len(l.found.list) {
			return true
		}
		doc := l.found.list[n].Now.Show(l.found.list[n].Key, l.Bodies, e.Clock)
		if l.size += len(doc.Body); n == limit || l.size > interlock.MaxReadBytes {
			l.More = true
			return true
		}
		l.Rows = append(l.Rows, doc)
	}
	return false
}

func (l *DocumentList) wants(d *store.Document) bool {
	return strings.HasPrefix(string(d.Key), l.Prefix) && d.Key > l.After
}

func byKey(a, b *store.Document) int { return strings.Compare(string(a.Key), string(b.Key)) }
