package engine

import (
	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine/internal/store"
)

// showDocument returns edition x of a key's document, as of the present moment; nil is an empty
// one.
func (e *Engine) showDocument(key interlock.Key, x *store.DocumentVersion, bodies bool) interlock.Document {
	if x == nil {
		return interlock.Document{Key: key, Absent: true}
	}
	doc := interlock.Document{
		Key: key, Version: x.Version, Absent: x.Op == interlock.Delete, ContentType: x.ContentType, Size: len(x.Body),
		Op: x.Op, Agent: x.Agent, Session: x.Session, Flow: x.Flow, Principal: x.Principal, Fence: x.Fence, Note: x.Note,
		Age: e.Clock.Sub(x.At),
	}
	if bodies {
		doc.Body = x.Body
	}
	return doc
}
