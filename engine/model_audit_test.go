package engine_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine"
	"github.com/interlockdev/interlock/engine/record"
)

// recordedRefusal is a refusal at a key with a pattern that records refusals.
type recordedRefusal struct {
	pattern patternName
	at      engine.Time
	what    string // the caller, the operation, the key and the code
	left    bool   // it was left out of the trail
}

// namedKeys are the keys that a command names, those that it is refused at first in front.
func (m *model) namedKeys(cmd engine.Command, refusedAt interlock.Key) (operation, agent string, keys []interlock.Key) {
	claimed := func(claims []interlock.Claim) {
		for _, c := range claims {
			keys = append(keys, c.Key)
		}
	}
	commit := func(writes []interlock.Write, reads []interlock.Read) {
		for _, w := range writes {
			keys = append(keys, w.Key)
		}
		for _, r := range reads {
			keys = append(keys, r.Key)
		}
	}
	switch c := cmd.(type) {
	case *engine.Acquire:
		operation, agent = "acquire", c.Agent
		claimed(c.Claims)
	case *engine.Convert:
		operation = "convert"
		claimed(c.Claims)
	case *engine.StartRun:
		operation, agent = "start_run", c.Agent
		keys = interlock.RunKeys(c.Org, c.Workflow)
	case *engine.Commit:
		operation, agent = "commit", c.Agent
		commit(c.Writes, c.Reads)
	case *engine.Ack:
		operation = "ack_task"
		commit(c.Writes, c.Reads)
	case *engine.Submit:
		operation, agent = "submit_task", c.Agent
		if claimed(c.Task.Claims); c.Task.Message {
			keys = []interlock.Key{c.Task.Key}
		}
	case *engine.CheckFence:
		operation, keys = "check_fence", []interlock.Key{c.Key}
	case *engine.Revoke:
		operation, keys = "revoke", []interlock.Key{c.Key}
	}
	ns := cmd.Header().Namespace
	if i := slices.IndexFunc(
		keys, func(key interlock.Key) bool { return key == refusedAt || m.spell(ns, key) == refusedAt },
	); i > 0 {
		keys[0], keys[i] = keys[i], keys[0]
	}
	return operation, agent, keys
}

// fenceOf returns the fence that a command proves itself with, or 0.
func fenceOf(cmd engine.Command) interlock.Fence {
	switch c := cmd.(type) {
	case *engine.CheckFence:
		return c.Fence
	case *engine.Revoke:
		return c.Fence
	}
	return 0
}

// checkAudit: a refusal is in the trail if the first key with such a pattern asks for it, the
// same one was not recorded within a minute, and fewer than 20 were. The event has the number
// that were left out before it. Requests that stood in line have events of their own.
func (m *model) checkAudit(cmd engine.Command, known bool, first *engine.Effect, out *engine.Output) error {
	var got *record.Event
	for i := range out.Events {
		if out.Events[i].Kind != record.Refused {
			continue
		}
		if got != nil {
			return errors.New("one refusal is recorded twice")
		}
		got = &out.Events[i]
	}
	stood := slices.ContainsFunc(out.Events, func(ev record.Event) bool { // or was granted, and forfeit at once
		return (ev.Kind == record.Queued || ev.Kind == record.Granted) && !ev.Part
	})
	if first == nil || first.Outcome != engine.Refused || first.Repeated ||
		known && first.Code == interlock.CodeRequestIDReused || stood {
		if got != nil {
			return fmt.Errorf("a refusal is recorded that was none: %v", got)
		}
		return nil
	}
	head := cmd.Header()
	refusedAt := interlock.Key("")
	if first.Conflict != nil {
		refusedAt = first.Conflict.Key
	}
	operation, agent, keys := m.namedKeys(cmd, refusedAt)
	if s := m.sessionByID(head.Namespace, head.Session); s != nil {
		agent = fmt.Sprint(s.num, " ", s.agent)
	}
	for _, key := range keys {
		if slices.Contains(strings.Split(string(key), "/"), "") {
			continue // it is no key
		}
		key = m.spell(head.Namespace, key)
		p := m.pattern(head.Namespace, key)
		if p == nil || !p.AuditRefusals {
			continue
		}
		r := recordedRefusal{pattern: patternName{head.Namespace, p.Name}, at: m.now}
		r.what = fmt.Sprintf("%q of %q: %s %s %s", agent, head.Actor, operation, key, first.Code)
		lately, left := 0, 0
		for _, x := range m.recorded {
			switch {
			case x.pattern != r.pattern:
			case x.left:
				left++
			case m.now.Sub(x.at) < time.Minute:
				left, lately, r.left = 0, lately+1, r.left || x.what == r.what
			default:
				left = 0
			}
		}
		r.left = r.left || lately >= 20
		if s := m.sessionByID(head.Namespace, head.Session); s != nil && s.ended {
			r.left = got == nil // which session it was need not be known any more
		}
		m.recorded = append(m.recorded, r)
		switch {
		case r.left && got != nil:
			return fmt.Errorf("%s is to be left out of the trail", r.what)
		case r.left:
		case got == nil:
			return fmt.Errorf("%s is missing in the trail", r.what)
		case len(got.Claims) != 1 || got.Claims[0].Key != key || got.Code != first.Code || got.Outcome != operation ||
			got.Actor != head.Actor || got.Fence != fenceOf(cmd) ||
			got.PatternName != p.Name || got.Num != uint64(left):
			return fmt.Errorf("%s, with %d left out, is recorded as %+v", r.what, left, got)
		}
		return nil
	}
	if got != nil {
		return fmt.Errorf("no pattern asks to record %+v", got)
	}
	return nil
}
