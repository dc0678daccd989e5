package shard

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine"
	"github.com/interlockdev/interlock/internal/prose"
)

// The work of the busy tenant in the rows of BenchmarkLimits.

// numbered is a key with a number.
func numbered(prefix string, i int) interlock.Key {
	return interlock.Key(fmt.Sprintf("%s%05d", prefix, i))
}

// deepClaims are as many claims as a request may have, each with as many ancestors as a
// key may, and none in common.
func deepClaims(mode interlock.Mode) (claims []interlock.Claim) {
	for i := range interlock.MaxClaims {
		key := fmt.Sprintf("s%d/x", i) + strings.Repeat("/a", interlock.MaxKeySegments-2)
		claims = append(claims, interlock.Claim{Key: interlock.Key(key), Mode: mode})
	}
	return claims
}

func manyClaims(count int) (claims []interlock.Claim) {
	for i := range count {
		claims = append(claims, interlock.Claim{Key: numbered("k", i), Mode: interlock.Exclusive})
	}
	return claims
}

// jsonText is a JSON string of about so many bytes.
func jsonText(size int) []byte {
	return append(append([]byte{'"'}, bytes.Repeat([]byte{'x'}, size)...), '"')
}

// members is a JSON object with so many members.
func members(count int) []byte {
	m := make(map[string]int, count)
	for i := range count {
		m[fmt.Sprintf("m%06d", i)] = i
	}
	body, err := json.Marshal(m)
	if err != nil {
		panic(err)
	}
	return body
}

// all carries out very many commands, many at a time.
func (n *neighbour) all(count int, command func(i int) engine.Command) {
	const batch = 1024
	for begin := 0; begin < count; begin += batch {
		size := min(batch, count-begin)
		got := make(anyEffect, size)
		n.to = got
		cmds := make([]engine.Command, size)
		for i := range cmds {
			cmds[i] = command(begin + i)
		}
		if err := n.s.Submit(cmds...); err != nil {
			n.b.Fatal(err)
		}
		for range cmds {
			n.must(<-got)
		}
	}
	n.to = nil
}

// must ends the benchmark when something was refused: it would measure nothing.
func (n *neighbour) must(eff engine.Effect) {
	if eff.Outcome == engine.Refused {
		n.b.Errorf("%s: %s", eff.Code, prose.Sentence(eff.Message))
	}
}

// insist repeats a command as long as it is refused with overloaded.
func (n *neighbour) insist(command func() engine.Command) {
	eff := n.do(command())
	for eff.Code == interlock.CodeOverloaded {
		eff = n.do(command())
	}
	n.must(eff)
}

func (n *neighbour) read(query func(*engine.Engine)) {
	if _, err := n.s.Read(n.b.Context(), n.namespace, func(e *engine.Engine, _ engine.Time) { query(e) }); err != nil {
		n.b.Error(err)
	}
}

func (n *neighbour) survey(q engine.Scan) {
	if _, err := n.s.Survey(
		n.b.Context(), n.namespace, func(e *engine.Engine, _ engine.Time) bool { return q.Look(e) },
	); err != nil {
		n.b.Error(err)
	}
}

// until waits for a state.
func (n *neighbour) until(reached func(engine.Counts) bool) {
	for ok := false; !ok; {
		n.read(func(e *engine.Engine) { ok = reached(e.Counts()) })
	}
}

// rest waits until no step is due in the namespace.
func (n *neighbour) rest() {
	for due := true; due; {
		n.read(func(e *engine.Engine) {
			at, ok := e.Due(n.namespace)
			due = ok && at <= n.clock.Now()
		})
	}
}

// leap puts the clock forward.
func (n *neighbour) leap(d time.Duration) {
	n.clock.ahead.Add(int64(d))
	n.read(func(*engine.Engine) {})
}

// reopen closes the session, waits until it has neither leases nor waits, and opens
// another one.
func (n *neighbour) reopen() {
	n.do(&engine.CloseSession{Head: n.head()})
	n.session = interlock.SessionID{}
	n.until(func(c engine.Counts) bool { return c.Leases <= n.keep && c.Waiters == 0 })
	n.open()
}

func (n *neighbour) nameOf(id interlock.SessionID) string { return n.names[id] }

// take is the command that acquires a key.
func (n *neighbour) take(flow string, key interlock.Key) *engine.Acquire {
	return &engine.Acquire{
		Head: n.head(), ID: newID(), LeaseRequest: interlock.LeaseRequest{
			Flow: flow, Terms: interlock.Terms{TTL: interlock.MaxTTL}, OnConflict: interlock.Wait,
			Claims: []interlock.Claim{{Key: key, Mode: interlock.Exclusive}},
		}, Agent: "busy",
	}
}

// takeShared is the command of a flow of its own that shares a key.
func (n *neighbour) takeShared(key interlock.Key) *engine.Acquire {
	n.next++
	c := n.take(fmt.Sprint("f", n.next), key)
	c.Claims[0].Mode = interlock.Shared
	return c
}

func (n *neighbour) takePart(flow string) *engine.Acquire {
	c := n.take(flow, "parts")
	c.Claims[0].Mode, c.Claims[0].Count = interlock.Member, interlock.MaxParts
	return c
}

// own holds very many keys.
func (n *neighbour) own(count int, prefix string) {
	n.all(count, func(i int) engine.Command { return n.take("", numbered(prefix+"k", i)) })
}

// lineUp holds a key and fills its line to the limit.
func (n *neighbour) lineUp() {
	n.lease = n.ask("", "hot", engine.Acquire{})
	n.all(interlock.MaxWaitersPerKey, func(i int) engine.Command { return n.take(fmt.Sprint(i), "hot") })
}

// lines are the keys that together have as many waiters as a namespace may.
const lines = interlock.MaxWaiters / interlock.MaxWaitersPerKey

func (n *neighbour) holdLines() {
	n.all(lines, func(i int) engine.Command { return n.take("", numbered("hot", i)) })
	n.keep = lines + 1
}

func (n *neighbour) joinLines() {
	n.all(interlock.MaxWaiters, func(i int) engine.Command { return n.take(fmt.Sprint(i), numbered("hot", i%lines)) })
}

func (n *neighbour) run(i int) *engine.StartRun {
	return &engine.StartRun{
		Head: n.head(), ID: newID(), Org: "o", Workflow: fmt.Sprint("w", i%1000), Agent: "busy", TTL: interlock.MaxTTL,
	}
}

// fillPatterns registers as many patterns as may be, but for one.
func (n *neighbour) fillPatterns() {
	n.all(interlock.MaxPatterns-1, func(i int) engine.Command {
		return &engine.SetPattern{
			Head: n.head(), Pattern: interlock.Pattern{Name: fmt.Sprint("p", i), Shape: fmt.Sprintf("s%d/{rest...}", i)},
		}
	})
}

func (n *neighbour) put(key interlock.Key, body []byte) {
	n.must(n.do(&engine.Commit{Head: n.head(), CommitRequest: interlock.CommitRequest{
		Writes: []interlock.Write{{Key: key, Op: interlock.Put, Body: body}},
	}}))
}

// replace changes an existing document, of any version.
func (n *neighbour) replace(w interlock.Write) {
	n.must(n.do(&engine.Commit{Head: n.head(), CommitRequest: interlock.CommitRequest{
		Reads: []interlock.Read{{Key: w.Key, Present: true}}, Writes: []interlock.Write{w},
	}}))
}

// documents writes very many documents.
func (n *neighbour) documents(count, size int) {
	each := min(interlock.MaxWrites, interlock.MaxCommitBytes/(size+100))
	n.all((count+each-1)/each, func(i int) engine.Command {
		c := &engine.Commit{Head: n.head()}
		for j := i * each; j < min(count, (i+1)*each); j++ {
			c.Writes = append(c.Writes, interlock.Write{Key: numbered("d", j), Op: interlock.Put, Body: jsonText(size)})
		}
		return c
	})
}

func (n *neighbour) effect() *engine.ClaimEffect {
	n.next++
	return &engine.ClaimEffect{
		Head: n.head(), ID: newID(), Action: fmt.Sprintf(`{"pay":%d}`, n.next), TTL: interlock.MaxEffectTTL,
	}
}

func (n *neighbour) fillEffects() {
	n.open()
	n.all(interlock.MaxEffects-1, func(int) engine.Command { return n.effect() })
}

// queue registers a queue with as many groups as it may list.
func (n *neighbour) queue(name string) {
	q := interlock.TaskQueue{Name: name}
	for i := range interlock.MaxShares {
		q.Groups = append(q.Groups, interlock.Share{Group: fmt.Sprint("g", i), Weight: 1 + i%9})
	}
	n.must(n.do(&engine.SetQueue{Head: n.head(), Queue: q}))
}

func (n *neighbour) fillQueues() {
	n.open()
	for i := range interlock.MaxQueues {
		n.queue(fmt.Sprint("q", i))
	}
}

func (n *neighbour) submission(i int) *engine.Submit {
	return &engine.Submit{Head: n.head(), Agent: "busy", Task: engine.TaskSpec{
		ID: newID(), TaskSpec: interlock.TaskSpec{
			Queue: "q", Claims: []interlock.Claim{{Key: interlock.Key("t"), Mode: interlock.Shared}},
			Payload: []byte("{}"), Group: fmt.Sprint("g", i%interlock.MaxShares),
		},
	}}
}

func (n *neighbour) fillQueue() {
	n.queue("q")
	n.all(100_000, func(i int) engine.Command { return n.submission(i) })
}

// takeAgain releases the lease that tasks wait for, and acquires its key again.
func (n *neighbour) takeAgain() {
	n.release(n.lease)
	n.lease = n.ask("", "t", engine.Acquire{})
}

// askAboutNext has a person asked about the next task.
func (n *neighbour) askAboutNext() interlock.TaskID {
	h := n.pull(1)[0]
	n.must(n.do(&engine.AskHuman{
		Head: n.head(), Lease: h.Lease.ID, Question: interlock.Question{Text: "May it?", OnLimit: interlock.Denied},
	}))
	return h.Task.ID
}

func (n *neighbour) fillQuestions() {
	n.open()
	n.queue("q")
	n.all(10_000, func(i int) engine.Command { return n.submission(i) })
	for range 10_000 {
		n.askAboutNext()
	}
}

// parkMany parks very many leases, which free their keys.
func (n *neighbour) parkMany() {
	const count = 100_000
	ids := make([]interlock.LeaseID, count)
	n.all(count, func(i int) engine.Command {
		c := n.take("", numbered("k", i))
		ids[i] = c.ID
		return c
	})
	n.all(count, func(i int) engine.Command {
		return &engine.Park{Head: n.head(), Lease: ids[i], Free: true, Reason: "r"}
	})
}

// readEvents reads all events of the namespace, from the oldest.
func (n *neighbour) readEvents() {
	all := errors.New("all was read")
	newest := n.s.At().Index
	err := n.s.Follow(n.b.Context(), Follower{Namespace: n.namespace, Reached: func(index interlock.Index) error {
		if index < newest {
			return nil
		}
		return all
	}})
	if err != all {
		n.b.Error(err)
	}
}

func (n *neighbour) pull(count int) []engine.Assignment {
	c := &engine.Pull{Head: n.head(), ID: newID(), Queue: "q", Max: count, TTL: interlock.MaxTTL}
	for range count {
		c.Leases = append(c.Leases, newID())
	}
	return n.do(c).Handed
}
