package server

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine"
	"github.com/interlockdev/interlock/internal/prose"
)

// getOverview is GET /v1/overview: the sizes of the namespace, its keys by the time that is lost at them, and
// its waits. With Accept: text/event-stream it is the event "picture", and comes again when it has changed.
func (c *call) getOverview() {
	if c.past == nil && acceptsSSE(c.r.Header.Values("Accept")) {
		c.followOverview()
		return
	}
	o := engine.Overview{Namespace: c.namespace}
	at, ok := c.survey(&o)
	if !ok {
		return
	}
	j := c.reply()
	writeOverview(j, &o)
	c.send(http.StatusOK, j, at)
}

// The pace of pictures for viewers. A picture is made once for all viewers of a namespace, only while there are
// some, and at most each pictureEvery; if that takes long, the next one comes so much later that all pictures of the
// namespace take at most one part in pictureShare of a processor, with sending them to all viewers.
const (
	pictureEvery  = 500 * time.Millisecond
	pictureShare  = 50
	pictureAtRest = 5 * time.Second // while nothing has happened: only times go on

	// sendTime is the processor time in ns to send a picture to a viewer. One ns for each byte comes to it.
	sendTime = 20_000
)

// overviews makes the pictures of the namespaces that are watched.
type overviews struct {
	server *Server
	mu     sync.Mutex
	of     map[interlock.Namespace]*overview
}

// overview is the newest picture of a namespace, for all its viewers.
type overview struct {
	viewers int
	stop    context.CancelFunc

	// Guarded by overviews.mu.
	event []byte // as a server-sent event; immutable
	err   error  // why no more pictures come
	news  chan struct{}
}

// enter adds a viewer.
func (v *overviews) enter(ns interlock.Namespace) *overview {
	v.mu.Lock()
	defer v.mu.Unlock()
	o := v.of[ns]
	if o == nil || o.err != nil {
		ctx, stop := context.WithCancel(v.server.serving)
		o = &overview{stop: stop, news: make(chan struct{})}
		if v.of == nil {
			v.of = map[interlock.Namespace]*overview{}
		}
		v.of[ns] = o
		go v.make(ctx, ns, o)
	}
	o.viewers++
	return o
}

// leave takes a viewer away; with the last one the work ends.
func (v *overviews) leave(ns interlock.Namespace, o *overview) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if o.viewers--; o.viewers == 0 {
		o.stop()
		if v.of[ns] == o {
			delete(v.of, ns)
		}
	}
}

// look returns the newest picture, and a channel that is closed when there is another one.
func (v *overviews) look(o *overview) (event []byte, news <-chan struct{}, err error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	return o.event, o.news, o.err
}

func (v *overviews) show(o *overview, event []byte, err error) (viewers int) {
	v.mu.Lock()
	defer v.mu.Unlock()
	o.event, o.err = event, err
	close(o.news)
	o.news = make(chan struct{})
	return o.viewers
}

// make makes pictures until ctx ends.
func (v *overviews) make(ctx context.Context, ns interlock.Namespace, o *overview) {
	for size := 0; ; {
		began := time.Now()
		event, index, err := v.server.picture(ctx, ns, size)
		if ctx.Err() != nil {
			return
		}
		viewers := v.show(o, event, err)
		if err != nil {
			return
		}
		size = len(event)
		took := time.Since(began) + time.Duration(viewers*(sendTime+size))
		if !rest(ctx, max(pictureEvery, pictureShare*took)) {
			return
		}
		for v.server.shard.At().Index == index && time.Since(began) < pictureAtRest {
			if !rest(ctx, pictureEvery) {
				return
			}
		}
	}
}

// rest waits. It reports whether ctx has not ended.
func rest(ctx context.Context, d time.Duration) bool {
	select {
	case <-time.After(d):
		return true
	case <-ctx.Done():
		return false
	}
}

// picture makes one as a server-sent event. The one before had size bytes.
func (s *Server) picture(
	ctx context.Context, ns interlock.Namespace, size int,
) (event []byte, index interlock.Index, err error) {
	o := engine.Overview{Namespace: ns}
	at, err := s.shard.Survey(ctx, ns, func(e *engine.Engine, _ engine.Time) bool { return o.Look(e) })
	if err != nil {
		return nil, 0, err
	}
	j := &jsonOut{b: append(make([]byte, 0, size+size/8), "event: picture\ndata: "...)}
	j.open("")
	writeOverview(j, &o)
	j.at(at)
	j.serverTime()
	j.close()
	return append(j.b, '\n', '\n'), at.Index, nil
}

// followOverview sends a viewer the newest picture, and then each newer one that it takes. A slow viewer misses
// those between.
func (c *call) followOverview() {
	if c.s.isDraining() {
		c.refuse(interlock.CodeShuttingDown, "the server is shutting down: try again in a moment")
		return
	}
	if _, ok := c.confirm(); !ok {
		return
	}
	leave, ok := c.enterStreams()
	if !ok {
		return
	}
	defer leave()
	o := c.s.overviews.enter(c.namespace)
	defer c.s.overviews.leave(c.namespace, o)
	c.s.obs.figures.viewers.Inc()
	defer c.s.obs.figures.viewers.Dec()
	ctx, cancel := c.s.whileKnown(c.r.Context(), c.identity)
	defer cancel()
	defer context.AfterFunc(c.s.serving, cancel)()

	c.beginStream("text/event-stream")
	out := newEventOut(c, true, view{})
	for {
		event, news, err := c.s.overviews.look(o)
		if err == nil {
			err = out.sendBytes(event)
		}
		if err == nil {
			select {
			case <-news:
				continue
			case <-ctx.Done():
				err = context.Cause(ctx)
			}
		}
		if out.err == nil && c.r.Context().Err() == nil {
			out.end(c.whyPictureEnded(ctx, err))
		}
		return
	}
}

// whyPictureEnded is whyEnded for pictures, which do not read the journal.
func (c *call) whyPictureEnded(ctx context.Context, err error) *interlock.Error {
	if refusal := takenBack(ctx); refusal != nil || c.s.isDraining() {
		return c.whyEnded(ctx, err)
	}
	if refusal, ok := prose.Refusal(err); ok {
		return refusal
	}
	if refusal, ok := errors.AsType[*interlock.Error](err); ok {
		return refusal
	}
	return &interlock.Error{Code: interlock.CodeInternal, Message: "internal error: check the server's log"}
}

// writeOverview writes the members of an api.Overview but for its stamp.
func writeOverview(j *jsonOut, o *engine.Overview) {
	g := graphOf(o.Graph.Edges)
	cycles := g.cycles()
	j.text("verdict", verdict(o, g, cycles))
	writeOverviewSums(j, "sums", &o.Counts)
	j.openArray("keys")
	for i := range o.Keys {
		writeOverviewKey(j, "", &o.Keys[i])
	}
	j.closeArray()
	j.int("more_keys", int64(o.MoreKeys))
	j.openArray("nodes")
	for i := range g.parties {
		writeParty(j, "", &g.parties[i])
	}
	j.closeArray()
	j.openArray("edges")
	for i := range o.Graph.Edges {
		writeOverviewEdge(j, "", &o.Graph.Edges[i], g.ends[i])
	}
	j.closeArray()
	j.openArray("cycles")
	for _, cycle := range cycles {
		j.openArray("")
		for _, node := range cycle {
			j.int("", int64(node))
		}
		j.closeArray()
	}
	j.closeArray()
}

// waitGraph is the wait-for graph with numbered parties.
type waitGraph struct {
	parties []engine.FlowRef
	ends    [][2]int // of each edge; -1: no party is waited for
}

// graphOf numbers the parties. A flow of a session is one party, and each request without a session.
func graphOf(edges []engine.WaitEdge) *waitGraph {
	g := &waitGraph{}
	numbers := map[string]int{}
	number := func(p *engine.FlowRef) int {
		id := fmt.Sprint("r", p.Request)
		switch {
		case !p.Task.IsZero():
			id = p.Task.String()
		case p.Session != "":
			id = p.Session + " " + p.Flow
		}
		n, known := numbers[id]
		if !known {
			n = len(g.parties)
			numbers[id], g.parties = n, append(g.parties, *p)
		}
		return n
	}
	for i := range edges {
		e := &edges[i]
		ends := [2]int{number(&e.Waiter), -1}
		if e.Blocker != (engine.FlowRef{}) {
			ends[1] = number(&e.Blocker)
		}
		g.ends = append(g.ends, ends)
	}
	return g
}

// cycles returns parties that wait for each other, each in the order of one walk around. Parties are in one
// cycle at most.
func (g *waitGraph) cycles() (list [][]int) {
	next := make([][]int, len(g.parties))
	for _, e := range g.ends {
		if e[1] >= 0 {
			next[e[0]] = append(next[e[0]], e[1])
		}
	}
	const unseen, onPath, done = 0, 1, 2
	state := make([]int, len(next))
	var path []int
	var walk func(n int)
	walk = func(n int) {
		state[n], path = onPath, append(path, n)
		for _, m := range next[n] {
			switch state[m] {
			case unseen:
				walk(m)
			case onPath:
				cycle := slices.Clone(path[slices.Index(path, m):])
				if !slices.ContainsFunc(list, func(c []int) bool { return slices.Contains(c, cycle[0]) }) {
					list = append(list, cycle)
				}
			}
		}
		state[n], path = done, path[:len(path)-1]
	}
	for n := range next {
		if state[n] == unseen {
			walk(n)
		}
	}
	return list
}

// verdict is the state of the namespace in one paragraph, the most urgent first.
func verdict(o *engine.Overview, g *waitGraph, cycles [][]int) string {
	var said []string
	for _, cycle := range cycles {
		var names []string
		for _, n := range cycle {
			names = append(names, nameOf(&g.parties[n]))
		}
		said = append(said, fmt.Sprintf("Deadlock: %s wait for each other.", strings.Join(names, ", ")))
	}
	n := &o.Counts
	switch {
	case n.Waiters == 0:
		said = append(said, "No agent waits.")
	case len(o.Keys) > 0 && o.Keys[0].Lost > 0:
		k := &o.Keys[0]
		text := fmt.Sprintf("%s, most at %s: %s, %s lost so far", prose.Count(n.Waiters, "waiter", "waiters"), k.Key,
			prose.Count(k.Length, "waiter", "waiters"), prose.Short(k.Lost))
		if len(k.Holders) > 0 {
			h := &k.Holders[0]
			text += fmt.Sprintf("; %s holds it for %s", prose.AgentName(h.Agent), prose.Short(h.Held))
		}
		said = append(said, text+".")
	default:
		said = append(said, prose.Count(n.Waiters, "waiter", "waiters")+".")
	}
	if n.Approvals > 0 {
		said = append(said, prose.Count(n.Approvals, "task waits", "tasks wait")+" for an approval.")
	}
	if n.DeadLetters > 0 {
		said = append(said, prose.Count(n.DeadLetters, "dead letter", "dead letters")+".")
	}
	return strings.Join(said, " ")
}

func nameOf(p *engine.FlowRef) string {
	if !p.Task.IsZero() {
		return "task " + p.Task.String()
	}
	return prose.AgentName(p.Agent)
}
