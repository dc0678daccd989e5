package server

import (
	"errors"
	"fmt"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine"
	"github.com/interlockdev/interlock/engine/message"
	"github.com/interlockdev/interlock/internal/prose"
	"github.com/interlockdev/interlock/proto"
	"github.com/interlockdev/interlock/shard"
)

// query makes the command of an operation that only reads. It keeps its place among
// the others: it sees what came before it on the stream and nothing that came after.
// A refusal that it returns ends the stream.
func (st *stream) query(o *proto.Op) *interlock.Error {
	if refusal := st.waitForQuery(); refusal != nil {
		return refusal
	}
	r := &queryResult{eff: engine.Effect{Outcome: engine.Done}}
	slot, seq, look := o.Slot, o.Seq, r.looking(st.namespace, *o)
	st.enqueue(shard.Query(
		st.namespace,
		func(e *engine.Engine, _ engine.Time) (done bool) { return look(e) },
		func(at interlock.At, err error) {
			if err != nil {
				refusal, _ := errors.AsType[*interlock.Error](err)
				if refusal != nil && (refusal.Code == interlock.CodeOutcomeUnknown || refusal.Code == interlock.CodeNotOwner ||
					refusal.Code == interlock.CodeMoving) {
					st.cut(refusal) // the client asks again on its next stream
					return
				}
				*r = queryResult{}
				r.refuse(err)
			}
			st.deliver(&r.eff, address{at: at, slot: slot, seq: seq, read: r}, true)
		},
	))
	return nil
}

// waitForQuery waits until another query may be on its way. Earlier commands are handed over
// first where it has to wait, because it may wait for them.
func (st *stream) waitForQuery() *interlock.Error {
	st.mu.Lock()
	full := st.tooManyQueries()
	st.mu.Unlock()
	if full {
		if refusal := st.submit(); refusal != nil {
			return refusal
		}
		st.cmds = st.cmds[:0]
	}
	st.mu.Lock()
	defer st.mu.Unlock()
	for !st.ended && st.tooManyQueries() {
		st.room.Wait()
	}
	st.queries++
	return nil
}

// tooManyQueries is called with mu held.
func (st *stream) tooManyQueries() bool { return st.queries >= maxQueries || st.bulk > maxBulk }

// queryResult is the result of a query: eff as far as commands are answered in the same way,
// and the rest.
type queryResult struct {
	eff        engine.Effect
	patterns   []interlock.Pattern
	more       bool
	next       uint64 // the place where a listing of tasks continues
	settings   *interlock.Settings
	effects    []engine.SideEffect
	contention []interlock.Contention
	tasks      []engine.Task
	queues     []interlock.QueueStatus
	log        []engine.LogEntry
}

// looking returns the function of a query in the engine, which fills in r when it is done.
func (r *queryResult) looking(ns interlock.Namespace, o proto.Op) func(*engine.Engine) (done bool) {
	once := func(look func(*engine.Engine)) func(*engine.Engine) bool {
		return func(e *engine.Engine) bool {
			look(e)
			return true
		}
	}
	if look := r.lookAtTasks(ns, o); look != nil {
		return look
	}
	switch o.Kind {
	case proto.OpReadState:
		if len(o.State.Keys) == 0 {
			return r.listing(ns, o)
		}
		return once(func(e *engine.Engine) { r.documents(e, ns, o) })
	case proto.OpReadHistory:
		return once(func(e *engine.Engine) { r.history(e, ns, o) })
	case proto.OpGetEffect:
		return once(func(e *engine.Engine) {
			effect, known := e.Effect(ns, o.Effect.Digest)
			if !known {
				r.refuse(&interlock.Error{
					Code:    interlock.CodeUnknownEffect,
					Message: "no effect has this digest: it was never claimed, or was deleted",
				})
				return
			}
			r.effects = []engine.SideEffect{effect}
		})
	case proto.OpListEffects:
		list := engine.EffectList{Namespace: ns, State: o.Effect.State, After: o.Effect.Digest, Limit: int(o.Effect.Limit)}
		return func(e *engine.Engine) bool {
			done := list.Look(e)
			r.effects, r.more = list.Rows, list.More
			return done
		}
	case proto.OpGetContention:
		return once(func(e *engine.Engine) { r.contention = e.Contention(ns) })
	case proto.OpListPatterns:
		return once(func(e *engine.Engine) { r.patterns, r.more = patternsAfter(e.Patterns(ns), o.Name) })
	}
	return once(func(e *engine.Engine) {
		settings := e.Settings(ns)
		r.settings = &settings
	})
}

// documents reads those of some keys, as they are or as they were with a version.
func (r *queryResult) documents(e *engine.Engine, ns interlock.Namespace, o proto.Op) {
	list, asOf, err := e.Documents(ns, o.State.Keys, o.Bodies && o.AsOf == 0)
	if err == nil && o.AsOf != 0 {
		err = rewind(e, ns, list, o.AsOf, o.Bodies)
	}
	if err != nil {
		r.refuse(err)
		return
	}
	r.eff.Documents, r.eff.Version = list, asOf
}

// rewind replaces documents by their editions as of a version of the namespace.
func rewind(
	e *engine.Engine, ns interlock.Namespace, list []interlock.Document, to interlock.Version, bodies bool,
) error {
	size := 0
	for i := range list {
		doc, err := e.DocumentAt(ns, list[i].Key, to)
		if err != nil {
			return err
		}
		if !bodies {
			doc.Body = nil
		}
		if size += len(doc.Body); size > interlock.MaxReadBytes {
			return &interlock.Error{Code: interlock.CodeBodyTooLarge, Key: doc.Key, Message: fmt.Sprintf(
				"the documents up to %s have more than %d bytes together: read fewer at once", doc.Key, interlock.MaxReadBytes,
			)}
		}
		list[i] = doc
	}
	return nil
}

// listing lists documents.
func (r *queryResult) listing(ns interlock.Namespace, o proto.Op) func(*engine.Engine) (done bool) {
	list := engine.DocumentList{
		Namespace: ns, Prefix: o.Prefix, After: o.State.After, Limit: int(o.State.Limit), Bodies: o.Bodies,
	}
	return func(e *engine.Engine) bool {
		done := list.Look(e)
		r.eff.Documents, r.eff.Version, r.more = list.Rows, list.AsOf, list.More
		return done
	}
}

// history reads the kept versions of a key.
func (r *queryResult) history(e *engine.Engine, ns interlock.Namespace, o proto.Op) {
	list, trimmed, err := e.Versions(ns, o.Key)
	if err != nil {
		r.refuse(err)
		return
	}
	if !o.Bodies {
		for i := range list {
			list[i].Body = nil
		}
	}
	r.eff.Documents, r.more = list, trimmed
}

func (r *queryResult) refuse(err error) {
	refusal, ok := prose.Refusal(err)
	if !ok {
		refusal = &interlock.Error{Code: interlock.CodeInternal, Message: err.Error()}
	}
	r.eff = engine.Effect{Outcome: engine.Refused, Code: refusal.Code, Message: message.Plain(refusal.Message)}
	if refusal.Key != "" {
		r.eff.Conflict = &engine.Conflict{Conflict: interlock.Conflict{Key: refusal.Key}}
	}
}

// maxListing bounds a listing's patterns, encoded, so that its reply stays small.
const maxListing = 256 << 10

// patternsAfter returns those of a sorted list that come after a name, as many as fit into a reply
// but at least one, and whether there are more.
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
