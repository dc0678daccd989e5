package engine

import (
	"github.com/interlockdev/interlock/engine/internal/store"
)

func partyOf(r *store.Request) FlowRef {
	p := FlowRef{Agent: r.AgentName(), Flow: r.FlowName()}
	if s := r.Session(); s != nil {
		p.Session = s.Name
	}
	if t := r.Task; t != nil && r.Phase == store.Waiting {
		p.Task = t.ID
	}
	return p
}
