package hook

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/hook/place"
	"github.com/interlockdev/interlock/hook/shell"
	"github.com/interlockdev/interlock/internal/agent"
	"github.com/interlockdev/interlock/internal/api"
	"github.com/interlockdev/interlock/internal/invisible"
)

// visit is one event of an agent on its way through the door.
type visit struct {
	*Handler
	*conversation
	caller  *agent.Caller
	ev      *Event
	o       settings
	locator *locator
	around  string // the ids of the leases around the agent's process
	hears   bool   // the harness passes texts to the model with this event
	asks    bool   // the harness can ask its user
	// rewrites means that the harness runs another command in place of this one, if the answer has one.
	rewrites bool
	until    time.Time
}

// touchEvery is how often a session is renewed at most. It is far below its ttl.
const touchEvery = 20 * time.Second

// act does what an event asks for. An error means that the door could not do it.
func (h *Handler) act(
	r *http.Request, kind string, from *harness, ev *Event, o settings, at *locator,
) (Verdict, error) {
	if ev.Kind == Other {
		return Verdict{}, nil
	}
	ctx := r.Context()
	v := &visit{
		Handler: h, ev: ev, o: o, locator: at, hears: from.hears(ev),
		asks: from.asks, rewrites: from.rewrites && ev.Field != "", until: time.Now().Add(o.wait),
		around: r.Header.Get(place.HeaderLease),
		conversation: h.memory.conversation(
			r.Header.Get("Authorization"), r.Header.Get("Interlock-Namespace"), ev.Session,
		),
	}
	v.caller = h.hub.Caller(agent.Identity{Origin: agent.OriginOf(r), Key: ev.Session, Agent: agentName(kind, ev.Session)})
	if err := v.open(ctx); err != nil {
		h.memory.forget(v.conversation)
		return Verdict{}, err
	}
	v.locator.named = func(repo string) string { return h.memory.named(v.space, repo) }
	if ev.Kind == Prompt && !o.noPrompts {
		v.with(v.flowName(), func(f *flow) {
			if f.purpose = ev.Prompt; ev.Flow == mainFlow {
				v.purpose = ev.Prompt
			}
		})
	}
	v.forgetCalls(ev, len(v.caller.News(v.flowName())) > 0)
	switch ev.Kind {
	case Prompt, TurnEnd, SubagentEnd, SessionEnd:
		v.endWrites()
	}
	switch ev.Kind {
	case SessionEnd:
		return Verdict{}, v.end(ctx)
	case TurnEnd, SubagentEnd, WorktreeRemoved:
		return Verdict{}, v.leave(ctx)
	}
	if err := v.touch(ctx); err != nil {
		return Verdict{}, err
	}
	switch ev.Kind {
	case BeforeTool:
		return v.decide(ev, func() (Verdict, error) { return v.before(ctx) })
	case AfterTool, FailedTool:
		if err := v.after(ctx); err != nil {
			return Verdict{}, err
		}
	}
	return Verdict{Tell: v.news()}, nil
}

// files returns the files of targets, and notes which copies they are in.
func (v *visit) files(targets []shell.Target) []File {
	files := v.locator.files(targets)
	v.mu.Lock()
	defer v.mu.Unlock()
	for root, repo := range v.locator.seen {
		if len(v.copies) < maxFlows {
			v.copies[root] = repo
		}
	}
	return files
}

// agentName is the name that others see: claude-code/3f2a9c1e. It has the end of the session's id: in the ids of
// OpenCode, and in UUIDs of version 7, sessions of the same minute begin alike.
func agentName(kind, session string) string {
	var name []byte
	for i := len(session) - 1; i >= 0 && len(name) < 8; i-- {
		if c := session[i]; c == '-' || c == '_' || '0' <= c && c <= '9' || 'a' <= c|0x20 && c|0x20 <= 'z' {
			name = append(name, c)
		}
	}
	slices.Reverse(name)
	return kind + "/" + string(name)
}

// agentFlow is the flow that the API knows a sub-agent by.
func agentFlow(flow string) string { return invisible.Clip(segment(flow), interlock.MaxNameBytes) }

func (v *visit) flowName() string { return agentFlow(v.ev.Flow) }

// touch renews the session, unless that was done a moment ago.
func (v *visit) touch(ctx context.Context) error {
	v.mu.Lock()
	fresh := time.Since(v.touched) < touchEvery
	v.mu.Unlock()
	if fresh {
		return nil
	}
	if err := v.caller.Touch(ctx); err != nil {
		return err
	}
	v.mu.Lock()
	v.touched = time.Now()
	v.mu.Unlock()
	return nil
}

// open prepares a conversation that this process does not know: it learns the name of its namespace, and takes
// up what its agents were granted through an earlier process. Without the right to see either, it goes on without;
// a caller without a valid credential is refused here.
func (v *visit) open(ctx context.Context) error {
	v.opening.Lock()
	defer v.opening.Unlock()
	if v.opened {
		return nil
	}
	var status api.ServerStatus
	err := v.get(ctx, "/v1/status", nil, &status)
	if p, ok := errors.AsType[*api.Problem](err); err != nil && (!ok || p.Status != http.StatusForbidden) {
		return err
	}
	if status.Namespace.Namespace != "" {
		v.space = spaceOf(&status)
	}
	v.opened = true
	// An event that ends a turn renews no session, and the agent may wait in one from before a restart.
	if _, err := v.caller.Session(ctx); err != nil {
		return nil
	}
	var list api.LeaseList
	if v.get(ctx, "/v1/leases", url.Values{"agent": {v.caller.Agent()}, "limit": {"100"}}, &list) != nil {
		return nil
	}
	for _, lease := range list.Leases {
		r := api.AcquireRequest{Flow: lease.Flow, OnConflict: "fail", TTL: sessionTTL.Milliseconds()}
		for _, claim := range lease.Claims {
			r.Claims = append(r.Claims, api.ClaimRequest{Key: claim.Key, Mode: claim.Mode})
		}
		if reply, err := v.caller.Acquire(ctx, r, ""); err == nil && reply.Granted != nil {
			v.learnSession(reply.Granted)
			v.with(lease.Flow, func(f *flow) { f.seen[reply.Granted.Lease.ID] = true })
		}
	}
	return nil
}

// learnSession keeps the public name of the session.
func (v *visit) learnSession(g *api.Granted) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.session = g.Lease.Holder.Session
}

// own is the public name of the session, "" while it never held anything.
func (v *visit) own() string {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.session
}

// get reads an answer of the API.
func (v *visit) get(ctx context.Context, path string, query url.Values, into any) error {
	answer, err := v.caller.Do(ctx, api.Request{Method: http.MethodGet, Path: path, Query: query})
	if err != nil {
		return err
	}
	return json.Unmarshal(answer.Body, into)
}

// news tells of the turns that have come, each once.
func (v *visit) news() string {
	if !v.hears {
		return ""
	}
	var texts []string
	for _, place := range v.caller.News(v.flowName()) {
		v.with(v.flowName(), func(f *flow) {
			if f.told[place.Ticket] {
				return
			}
			f.told[place.Ticket] = true
			files := f.waits[place.Ticket]
			if len(files) == 0 {
				for _, key := range place.Keys {
					files = append(files, File{Key: interlock.Key(key), Name: shown(key)})
				}
			}
			c := v.changeIn(place.Reply.Granted)
			if c != nil {
				c.ago += time.Since(place.Came)
			}
			texts = append(texts, turnText(files, time.Until(place.Until), c))
		})
	}
	return strings.Join(texts, "\n")
}

// changeIn returns the newest change that the notes of a grant tell of, nil if its last holder wrote nothing.
func (v *visit) changeIn(g *api.Granted) *change {
	for _, note := range slices.Backward(g.Notes) {
		switch {
		case note.Agent == v.caller.Agent(), note.Outcome == notTakenUp:
		case (note.Outcome == edited || note.Outcome == untouched) && intends(g, note.Key): // of an edit in another copy
		case note.Outcome == untouched:
			return nil
		default:
			return &change{agent: invisible.Line(note.Agent), ago: milliseconds(note.Age), text: note.Text}
		}
	}
	return &change{}
}

// intends reports whether a lease has an intent on a key.
func intends(g *api.Granted, key interlock.Key) bool {
	return slices.ContainsFunc(g.Lease.Claims, func(c api.Claim) bool { return c.Key == key && isIntent(c.Mode) })
}

// notTakenUp is the outcome of a lease that was kept for an agent that did not come.
const notTakenUp = "not taken up"

// conflict reports whether a refusal means that others have the key.
func conflict(p *api.Problem) bool {
	switch p.Code {
	case interlock.CodeHeld, interlock.CodeDeadlock, interlock.CodeAtCapacity, interlock.CodeTooManyWaiters,
		interlock.CodeInGrace, interlock.CodeWaitLimit, interlock.CodeOfferLapsed, interlock.CodeParked,
		interlock.CodeBroken:
		return true
	}
	return false
}

// failed returns the refusal as an error if it is about the caller or the server, not about the request.
func failed(p *api.Problem) error {
	if p.Status == http.StatusUnauthorized || p.Status >= 500 ||
		p.Status == http.StatusForbidden && p.Code != interlock.CodeModeForbidden {
		return p
	}
	return nil
}

// ignoreProblem is for calls that end something: a refusal means that it is over already.
func ignoreProblem(err error) error {
	if p, ok := errors.AsType[*api.Problem](err); ok && failed(p) == nil {
		return nil
	}
	return err
}
