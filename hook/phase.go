package hook

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/interlockdev/interlock"
)

// Two agents that hold two regions of a file may edit it at the same time. A harness reads the whole file, replaces a
// text, and writes the file back. So their writes take turns, from the event before the tool to that after it:
//
//	before ─► region leased ─► the file's write is this agent's ─► the harness reads, replaces, writes ─► after
//
// The turn is kept in memory, and it lapses after writeLife: a harness may ask a person about the edit, and no event
// follows a refusal. A restart or a lapse leaves the milliseconds unprotected in which a harness writes; the lease on
// the region is as durable as any.
const (
	writeLife   = 30 * time.Second
	maxPhases   = 10_000
	maxPrepared = 256 // calls of a conversation
)

// phase is the time in which one agent writes a file.
type phase struct {
	by    *conversation
	flow  string
	calls int
	until time.Time
	over  chan struct{}
}

// beginWrite waits until no other agent writes a file, at most until ctx ends or the time that is passed.
func (m *memory) beginWrite(
	ctx context.Context, c *conversation, flow string, key interlock.Key, latest time.Time,
) bool {
	at := c.space + "\x00" + string(key)
	for {
		now := time.Now()
		m.mu.Lock()
		p := m.phases[at]
		if p == nil || !now.Before(p.until) || p.by == c && p.flow == flow {
			if p == nil || p.by != c || p.flow != flow {
				forgetOldest(m.phases, maxPhases, func(p *phase) time.Time { return p.until })
				p = &phase{by: c, flow: flow, over: make(chan struct{})}
				m.phases[at] = p
			}
			p.calls++
			p.until = now.Add(writeLife)
			m.mu.Unlock()
			return true
		}
		end := p.until
		m.mu.Unlock()
		if !now.Before(latest) {
			return false
		}
		if latest.Before(end) {
			end = latest
		}
		timer := time.NewTimer(time.Until(end))
		select {
		case <-p.over:
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return false
		}
		timer.Stop()
	}
}

// endWrite ends a call's write of a file, or all of the agent's if all is set.
func (m *memory) endWrite(c *conversation, flow string, key interlock.Key, all bool) {
	at := c.space + "\x00" + string(key)
	m.mu.Lock()
	defer m.mu.Unlock()
	p := m.phases[at]
	if p == nil || p.by != c || p.flow != flow {
		return
	}
	if p.calls--; all || p.calls <= 0 {
		delete(m.phases, at)
		close(p.over)
	}
}

// beginWrites begins the writes of regions. deny is why the tool may not run now.
func (v *visit) beginWrites(ctx context.Context, files []File) (deny string) {
	if !slices.ContainsFunc(files, func(file File) bool { return file.In != "" }) {
		return ""
	}
	for i, file := range files {
		if v.o.mode == "warn" || v.memory.beginWrite(ctx, v.conversation, v.flowName(), file.whole(), v.until) {
			continue
		}
		for _, begun := range files[:i] {
			v.memory.endWrite(v.conversation, v.flowName(), begun.whole(), false)
		}
		return writtenNowText(file.Name)
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if len(v.prepared) >= maxPrepared { // their ends were not reported
		clear(v.prepared)
	}
	v.prepared[v.ev.asked()] = files
	return ""
}

// written returns the files of a tool that has run: those that it was let through for, since the text of a region is
// another one now.
func (v *visit) written() []File {
	v.mu.Lock()
	files, ok := v.prepared[v.ev.asked()]
	delete(v.prepared, v.ev.asked())
	v.mu.Unlock()
	if !ok {
		return v.files(v.ev.Writes)
	}
	for _, file := range files {
		v.memory.endWrite(v.conversation, v.flowName(), file.whole(), false)
	}
	return files
}

// endWrites ends all writes of an agent: its turn has ended, or another one has begun. A sub-agent may end without a
// report, as at an interruption. Its writes end with those of the main agent, unless that goes on in the background.
func (v *visit) endWrites() {
	all := v.ev.Flow == mainFlow && (v.ev.Kind != TurnEnd || v.ev.Alone)
	ended := map[string][]File{}
	v.mu.Lock()
	for asked, files := range v.prepared {
		if flow := asked[:strings.LastIndexByte(asked, 0)]; all || flow == v.ev.Flow {
			ended[flow] = append(ended[flow], files...)
			delete(v.prepared, asked)
		}
	}
	v.mu.Unlock()
	for flow, files := range ended {
		for _, file := range files {
			v.memory.endWrite(v.conversation, agentFlow(flow), file.whole(), true)
		}
	}
}
