package scenariotest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/internal/test/history"
)

// hotKeys are those that all agents want. Only a holder may write their documents.
var hotKeys = []string{"hot/0", "hot/1", "hot/2"}

// Times to live: of leases that must never end by themselves, and of those that may.
const (
	lasting = 10 * time.Minute
	brief   = 1500 * time.Millisecond
)

// errEnded ends the work of an agent: its process was killed.
var errEnded = errors.New("the process has ended")

// agent takes the hot keys with a client of its own, and writes under them.
type agent struct {
	name    string
	process *process
	record  *history.Recorder
	random  *rand.Rand
	ttl     time.Duration
	// hasty means that its client does not retry for long, so that the outcome of its requests is unknown.
	hasty bool
	// fault counts a fault of its program.
	fault func(kind string)
	// holding, if set, is called once, while the agent holds a key in its second round.
	holding func() error
	// cancels, if set, has its next call be cancelled, after so many reads less one.
	cancels int
	calls   int
	granted int
}

// settings are those of its client.
func (a *agent) settings() settings {
	s := settings{Agent: a.name, SessionTTL: a.ttl.Milliseconds(), RetryFor: time.Minute.Milliseconds()}
	if a.hasty {
		s.RetryFor = 20
	}
	return s
}

// work takes a key so many times, and goes on until enough is closed.
func (a *agent) work(ctx context.Context, rounds int, enough <-chan struct{}) error {
	done := func() bool {
		select {
		case <-enough:
			return true
		default:
			return false
		}
	}
	for i := 0; i < rounds || !done(); i++ {
		if err := a.round(ctx); errors.Is(err, errEnded) {
			return nil
		} else if err != nil {
			return fmt.Errorf("%s: %w", a.name, err)
		}
	}
	return nil
}

// round takes a key, writes its document if what was read is current, and releases it.
func (a *agent) round(ctx context.Context) error {
	key := hotKeys[a.random.IntN(len(hotKeys))]
	wait := 0
	if a.random.IntN(4) > 0 {
		wait = 60_000
		if a.random.IntN(6) == 0 {
			a.fault("cancelled_call")
			a.cancels = 1 + a.random.IntN(3)
		}
	}
	lease, err := a.acquire(key, wait)
	if err != nil || lease == nil {
		return err
	}
	a.granted++
	if err := a.held(lease); err != nil {
		return err
	}
	version, err := a.read(key)
	if err != nil {
		return err
	}
	if a.granted == 2 && a.holding != nil {
		if err := a.holding(); err != nil {
			return err
		}
	}
	for _, do := range []func() error{
		func() error { return a.held(lease) },
		func() error { return a.commit(lease, key, version) },
		func() error { return a.checkFence(lease, key) },
		func() error { return a.leave(lease) },
		func() error { return a.checkFence(lease, key) },
	} {
		if err := do(); err != nil || ctx.Err() != nil {
			return err
		}
	}
	return nil
}

// do records an operation and carries it out. The result is nil if it did not succeed; the code is that of its refusal.
// With neither, its outcome is unknown.
func (a *agent) do(op *history.Op, do string, with map[string]any) (result map[string]any, r reply, err error) {
	a.calls++
	op.Client, op.ID, op.Sent = a.name, a.name+"-"+strconv.Itoa(a.calls), 1
	if op.Kind == history.Acquire {
		with["purpose"], with["flow"] = op.ID, op.ID
	}
	if op.Kind == history.Commit {
		with["writes"] = []any{map[string]any{"key": op.Writes[0].Key, "put": op.ID}}
	}
	a.record.Begin(op)
	if a.cancels > 0 {
		go a.cancel(op.ID, a.cancels)
		a.cancels = 0
	}
	r, ok := a.process.do(op.ID, map[string]any{"client": a.name, "do": do, "with": with, "as": op.ID})
	if !ok {
		return nil, r, errEnded
	}
	return r.Result, r, a.expected(op, r)
}

// cancel cancels a call, after so many reads less one. It is no mistake if the call has ended.
func (a *agent) cancel(id string, after int) {
	for n := range after - 1 {
		with := map[string]any{"key": hotKeys[0]}
		a.process.do(fmt.Sprintf("%s-read-%d", id, n), map[string]any{"client": a.name, "do": "read", "with": with})
	}
	a.process.send(map[string]any{"cancel": id})
}

// expected returns an error unless the work of the agents can lead to a reply.
func (a *agent) expected(op *history.Op, r reply) error {
	if r.Error == nil {
		return nil
	}
	kind, code := r.Error["kind"], interlock.Code(fmt.Sprint(r.Error["code"]))
	switch kind {
	case "cancelled":
		if op.Kind == history.Acquire && op.Wait {
			return nil
		}
	case "unknown", "unreachable":
		// A change under a lease is tried until the session's ttl is over.
		if a.hasty || a.ttl < lasting && (op.Kind == history.Release || op.Kind == history.Commit) {
			return nil
		}
	case "lost":
		if a.ttl < lasting {
			return nil
		}
	case "refused":
		if a.hasty && code.Transient() {
			return nil
		}
		switch code {
		case interlock.CodeHeld, interlock.CodeFenced, interlock.CodeStale:
			return nil
		case interlock.CodeExpired, interlock.CodeTaken, interlock.CodeReleased, interlock.CodeSessionEnded,
			interlock.CodeUnknownSession, interlock.CodeUnknownLease:
			if a.ttl < lasting {
				return nil
			}
		}
	}
	return fmt.Errorf("%s: unexpected: %v", op.Kind, r.Error)
}

// refusal returns the code of a refusal, or of a loss; "" if the outcome is unknown.
func (r *reply) refusal() interlock.Code {
	code := interlock.Code(fmt.Sprint(r.Error["code"]))
	switch kind := r.Error["kind"]; {
	case kind == "refused" && !code.Transient(), kind == "lost":
		return code
	}
	return ""
}

func (a *agent) acquire(key string, wait int) (*history.Op, error) {
	claims := []history.Claim{{Key: key, Mode: interlock.Exclusive}}
	op := &history.Op{Kind: history.Acquire, Claims: claims, TTL: a.ttl, Wait: wait > 0}
	result, r, err := a.do(op, "acquire", map[string]any{
		"keys": []string{key}, "wait_ms": wait, "ttl_ms": a.ttl.Milliseconds(), "grace_ms": 0,
	})
	if errors.Is(err, errEnded) {
		a.lapse(op)
	}
	if err != nil {
		return nil, err
	}
	if result == nil {
		switch code := r.refusal(); {
		case code == interlock.CodeHeld:
			a.record.End(op, history.Answer{Code: code, Holders: r.holders(claims[0])})
		case code != "", r.Error["kind"] == "unknown", r.Error["kind"] == "cancelled":
			// It was granted too late, or its client returns it.
			a.lapse(op)
		}
		return nil, nil
	}
	fence, err := strconv.ParseUint(fmt.Sprint(result["fence"]), 10, 64)
	a.record.End(op, history.Answer{Granted: &history.Grant{
		Lease: op.ID, Fence: interlock.Fence(fence), Claims: claims, TTL: a.ttl,
	}})
	if a.ttl < lasting {
		a.lapse(op)
	}
	return op, err
}

// lapse records that a lease may end by itself: with its session, as the history does not show the heartbeats, or
// because its client returns it.
func (a *agent) lapse(of *history.Op) {
	a.calls++
	op := &history.Op{Client: a.name, ID: a.name + "-" + strconv.Itoa(a.calls), Kind: history.Lapse, Lease: of.ID}
	a.record.Begin(op)
	op.Call = of.Call
}

func (r *reply) holders(claim history.Claim) (list []history.Holder) {
	all, _ := r.Error["holders"].([]any)
	for _, h := range all {
		h, _ := h.(map[string]any)
		purpose, _ := h["purpose"].(string)
		if value, ok := strings.CutPrefix(purpose, "redis "); ok {
			purpose, _ = strconv.Unquote(value)
		}
		list = append(list, history.Holder{Claim: claim, Request: purpose})
	}
	return list
}

// simple carries out an operation with no result.
func (a *agent) simple(op *history.Op, do string, with map[string]any) error {
	result, r, err := a.do(op, do, with)
	if err != nil {
		return err
	}
	if code := r.refusal(); result != nil || code != "" {
		a.record.End(op, history.Answer{Code: code})
	}
	return nil
}

func (a *agent) held(lease *history.Op) error {
	return a.simple(&history.Op{Kind: history.Held, Lease: lease.ID}, "check", map[string]any{"lease": "$" + lease.ID})
}

func (a *agent) checkFence(lease *history.Op, key string) error {
	fence := lease.Granted.Fence
	op := &history.Op{Kind: history.CheckFence, Key: key, Fence: fence}
	return a.simple(op, "check_fence", map[string]any{"key": key, "fence": fence.String()})
}

// leave ends the work under a lease: its program releases it, or its body fails, or it drops its handle.
func (a *agent) leave(lease *history.Op) error {
	op := &history.Op{Kind: history.Release, Lease: lease.ID}
	var err error
	switch way := a.random.IntN(3); {
	case way == 0:
		a.fault("failed_body")
		_, _, err = a.do(op, "fail", map[string]any{"lease": "$" + lease.ID})
	case way == 1 && a.ttl < lasting: // in Go such a lease ends by its ttl
		a.fault("dropped_handle")
		_, _, err = a.do(op, "drop", map[string]any{"name": lease.ID})
	default:
		return a.release(lease)
	}
	return err // the time of the release is not known
}

// release frees a key. A hasty client may do it in the background, at an unknown time.
func (a *agent) release(lease *history.Op) error {
	op := &history.Op{Kind: history.Release, Lease: lease.ID}
	with := map[string]any{"lease": "$" + lease.ID}
	if a.hasty {
		_, _, err := a.do(op, "release", with)
		return err
	}
	return a.simple(op, "release", with)
}

// read returns the version of a document; 0 if it is not known.
func (a *agent) read(key string) (interlock.Version, error) {
	op := &history.Op{Kind: history.Read, Keys: []string{key}}
	result, _, err := a.do(op, "read", map[string]any{"key": key})
	if err != nil || result == nil {
		return 0, err
	}
	version, err := strconv.ParseUint(fmt.Sprint(result["version"]), 10, 64)
	doc := history.Doc{Version: history.Version{Key: key, Version: interlock.Version(version)}}
	doc.Request, _ = result["value"].(string)
	a.record.End(op, history.Answer{Version: doc.Version.Version, Docs: []history.Doc{doc}})
	return doc.Version.Version, err
}

func (a *agent) commit(lease *history.Op, key string, read interlock.Version) error {
	op := &history.Op{
		Kind: history.Commit, Lease: lease.ID, Reads: []history.Version{{Key: key, Version: read}},
		Writes: []history.Write{{Key: key}},
	}
	current := map[string]any{"key": key, "version": read.String()}
	if read == 0 {
		current = map[string]any{"key": key, "absent": true}
	}
	result, r, err := a.do(op, "commit", map[string]any{"reads": []any{current}, "leases": []string{"$" + lease.ID}})
	if err != nil {
		return err
	}
	answer := history.Answer{Code: r.refusal()}
	if result != nil {
		version, err := strconv.ParseUint(fmt.Sprint(result["version"]), 10, 64)
		if err != nil {
			return err
		}
		answer.Version = interlock.Version(version)
	}
	if result != nil || answer.Code != "" {
		a.record.End(op, answer)
	}
	return nil
}
