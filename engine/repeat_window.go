package engine

import (
	"github.com/interlockdev/interlock/engine/internal/store"
	"github.com/interlockdev/interlock/engine/record"
)

// madeBy returns the kind of object that ev's command creates, 0 for none.
func madeBy(ev *record.Event) store.ObjectKind {
	switch ev.Kind {
	case record.Queued, record.Granted:
		return store.MadeRequest
	case record.SessionOpened:
		return store.MadeSession
	case record.TaskSubmitted:
		return store.MadeTask
	case record.EffectChanged:
		if len(ev.Blob) > 0 {
			return store.MadeEffect
		}
	}
	return 0
}
