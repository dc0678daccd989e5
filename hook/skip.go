package hook

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/hook/shell"
	"github.com/interlockdev/interlock/internal/agent"
	"github.com/interlockdev/interlock/internal/api"
	"github.com/interlockdev/interlock/internal/hookclient"
	"github.com/interlockdev/interlock/internal/invisible"
)

const (
	// skipName stands in the path of a skip where others have the name of a harness.
	skipName = "skip"
	// skipLife is how long a skip waits for its edit.
	skipLife = 10 * time.Minute
)

// skip is a person's permission for one edit of a file that another agent holds.
type skip struct {
	reason string
	until  time.Time
}

// allow notes a skip. It weakens the lease of another agent, so it needs the right of an operator.
func (h *Handler) allow(w http.ResponseWriter, r *http.Request, body []byte) {
	var in hookclient.Skip
	if err := decode(body, &in); err != nil {
		fail(w, interlock.CodeInvalidRequest, err.Error())
		return
	}
	l := newLocator(r, h.sees(r), in.Dir)
	full := shell.Join(in.Dir, in.Path)
	if in.Path == "" || full == "" {
		fail(w, interlock.CodeInvalidRequest, "field path is missing, or relative without a folder in cwd: want a file")
		return
	}
	caller := h.hub.Caller(agent.Identity{Origin: agent.OriginOf(r)})
	var status api.ServerStatus
	answer, err := caller.Do(r.Context(), api.Request{Method: http.MethodGet, Path: "/v1/status"})
	if err == nil {
		err = json.Unmarshal(answer.Body, &status)
	}
	if err == nil { // a read that only operators may make
		_, err = caller.Do(r.Context(), api.Request{Method: http.MethodGet, Path: "/v1/journal/head"})
	}
	if p, ok := errors.AsType[*api.Problem](err); ok && p.Code == interlock.CodeForbidden {
		p.Detail = "a skip lets an edit pass the lease of another agent: " + p.Detail
	}
	if err != nil {
		h.failWith(w, err)
		return
	}
	space := spaceOf(&status)
	l.named = func(repo string) string { return h.memory.named(space, repo) }
	file, reason := l.file(full), invisible.Clip(invisible.Line(in.Reason), maxLine)
	h.memory.allow(space, file.Key, skip{reason: reason, until: time.Now().Add(skipLife)})
	h.log.Info("one edit may pass another agent's lease", "key", string(file.Key), "reason", reason)
	send(w, http.StatusOK, "application/json", hookclient.Skipped{
		Key: string(file.Key), File: file.Name, ExpiresIn: skipLife.Milliseconds(),
	})
}

// pass lets an edit pass although others have its files, if a person has allowed that for some of them and the
// agent can have the rest. done is false if no person has.
func (v *visit) pass(ctx context.Context, reply *agent.Reply, files []File) (deny, tell string, done bool, err error) {
	skips := v.memory.takeSkips(v.space, files)
	if len(skips) == 0 {
		return "", "", false, nil
	}
	defer func() {
		if deny != "" || err != nil {
			for key, s := range skips {
				v.memory.allow(v.space, key, s)
			}
		}
	}()
	if q := reply.Queued; q != nil {
		v.with(v.flowName(), func(f *flow) { delete(f.waits, q.Ticket.ID) })
		if err := ignoreProblem(v.caller.Leave(ctx, q.Ticket.ID)); err != nil {
			return "", "", true, err
		}
	}
	var passed, rest []File
	for _, file := range files {
		if _, ok := skips[file.whole()]; ok {
			passed = append(passed, file)
		} else {
			rest = append(rest, file)
		}
	}
	if len(rest) > 0 {
		if deny, tell, err = v.take(ctx, rest); err != nil || deny != "" {
			return deny, tell, true, err
		}
	}
	// The holder hears of it at its next edit.
	v.memory.wrote(v.conversation, v.caller.Agent(), v.flowName(), passed)
	for _, file := range passed {
		tell = lines(tell, passedText(file.Name, skips[file.whole()].reason))
		v.log.Info("an edit passes another agent's lease", "key", string(file.whole()), "agent", v.caller.Agent(),
			"reason", skips[file.whole()].reason)
	}
	return "", tell, true, nil
}

// spaceOf identifies the namespace of a caller that may see its name.
func spaceOf(status *api.ServerStatus) string { return "namespace " + status.Namespace.Namespace }

// allow keeps a skip for the next edit of a file.
func (m *memory) allow(space string, key interlock.Key, s skip) {
	m.mu.Lock()
	defer m.mu.Unlock()
	forgetOldest(m.skips, maxSkips, func(s skip) time.Time { return s.until })
	m.skips[space+"\x00"+string(key)] = s
}

// allowed reports whether takeSkips would find one.
func (m *memory) allowed(space string, files []File) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.ContainsFunc(files, func(file File) bool {
		s, ok := m.skips[space+"\x00"+string(file.whole())]
		return ok && time.Now().Before(s.until)
	})
}

// takeSkips returns the skips for files, and uses them up.
func (m *memory) takeSkips(space string, files []File) map[interlock.Key]skip {
	m.mu.Lock()
	defer m.mu.Unlock()
	taken := map[interlock.Key]skip{}
	for _, file := range files {
		at := space + "\x00" + string(file.whole())
		if s, ok := m.skips[at]; ok {
			delete(m.skips, at)
			if time.Now().Before(s.until) {
				taken[file.whole()] = s
			}
		}
	}
	return taken
}
