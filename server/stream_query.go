package server

import (
	"errors"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine"
	"github.com/interlockdev/interlock/proto"
)

// reading is what a query adds to its answer.
type reading struct {
	patterns []interlock.Pattern
	more     bool
	settings *interlock.Settings
}

// query answers an operation that only reads. What came before it on the stream
// is handed over first, so that it sees that, and the stream is not read on before
// the answer is there: whoever asks has to wait for it anyway. A refusal that it
// returns ends the stream.
func (st *stream) query(o *proto.Op) *interlock.Error {
	if refusal := st.submit(); refusal != nil {
		return refusal
	}
	st.cmds = st.cmds[:0]
	read := &reading{}
	at, err := st.d.s.shard.Read(st.life, st.namespace, func(e *engine.Engine, _ engine.Time) {
		if o.Kind == proto.OpListPatterns {
			read.patterns, read.more = patternsAfter(e.Patterns(st.namespace), o.Name)
			return
		}
		settings := e.Settings(st.namespace)
		read.settings = &settings
	})
	refusal, refused := errors.AsType[*interlock.Error](err)
	switch {
	case refused:
		st.refuse(o, refusal.Code, refusal.Message)
	case err == nil:
		st.deliver(&delivered{eff: engine.Effect{Outcome: engine.Done}, at: at, slot: o.Slot, seq: o.Seq, read: read}, true)
	}
	return nil // with another error the stream has ended
}

// maxListing bounds a listing's patterns, encoded, so that its reply stays small.
const maxListing = 256 << 10

// patternsAfter gives those of a sorted list that come after a name, as many as
// fit into a reply but at least one, and whether there are more.
func patternsAfter(list []interlock.Pattern, name string) (part []interlock.Pattern, more bool) {
	size := 0
	for i := range list {
		if list[i].Name <= name {
			continue
		}
		if size += proto.PatternSize(&list[i]); size > maxListing && len(part) > 0 {
			return part, true
		}
		part = append(part, list[i])
	}
	return part, false
}
