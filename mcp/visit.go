package mcp

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/interlockdev/interlock/internal/agent"
	"github.com/interlockdev/interlock/internal/api"
)

const (
	// maxCall is the longest time of a call. Clients cut calls off after 60 s.
	maxCall = 50 * time.Second
	// maxWait is the longest wait within a call: it leaves time for the answer.
	maxWait = 49 * time.Second
	// reportEvery is the longest time without progress for a client that asked for it.
	reportEvery = 10 * time.Second
	// lookEvery is how often a waiting call looks for a change of its queue position.
	lookEvery = 2 * time.Second
	// cleanUp bounds what is done for a client that has gone.
	cleanUp = 10 * time.Second
)

// visit is one call of a tool.
type visit struct {
	door  *door
	agent *agent.Caller
	*memory
	keyed bool   // the agent has a session
	flow  string // the strand of work within the session
	id    string // the Idempotency-Key, "" for none

	delivery *delivery
	several  bool // another conversation has the agent's name and leases at the same time

	ctx       context.Context // ends when the client cancels the call
	began     time.Time
	tool      string
	arguments json.RawMessage

	notify   func(progress float64, message string) // nil if the client does not ask for progress
	reported float64
}

// arrival is what the transport knows of a call.
type arrival struct {
	origin         agent.Origin
	header         http.Header
	gone           context.Context // ends when the client is gone
	call           string          // the conversation and the id of its call, "" for a batch
	apart, several bool            // as talks.hear returns them

	mu         sync.Mutex
	deliveries []*delivery // of its calls
}

type arrivalKey struct{}

// arrived returns how the call of ctx came.
func (d *door) arrived(ctx context.Context) *arrival {
	if a, ok := ctx.Value(arrivalKey{}).(*arrival); ok {
		return a
	}
	return &arrival{header: http.Header{}, gone: d.open}
}

// handle is the handler of a tool.
func (d *door) handle(def *definition) sdk.ToolHandler {
	return func(ctx context.Context, r *sdk.CallToolRequest) (result *sdk.CallToolResult, err error) {
		defer d.recovered("tool "+def.name, &err)
		from := d.arrived(ctx)
		inner, cancel := context.WithCancel(ctx)
		defer cancel()
		defer context.AfterFunc(from.gone, cancel)()

		defer d.active.begin()()
		who := d.identify(from, r.Params.Meta, r.ClientInfo())
		v := &visit{
			door: d, agent: d.hub.Caller(who.Identity), keyed: who.Key != "", flow: who.flow,
			ctx: inner, began: time.Now(), tool: def.name, arguments: r.Params.Arguments,
		}
		v.memory = memoryOf(v.agent)
		call := from.call
		if extra := r.GetExtra(); d.process != "" && extra != nil {
			call = extra.Header.Get(requestHeader)
		}
		v.delivery = d.deliveries.begin(call, v.agent.Party, cancel)
		from.add(v.delivery)
		defer d.deliveries.end(v.delivery)
		id, answered := v.repeats(requestID(r.Params.Meta), def.name, r.Params.Arguments)
		defer answered()
		v.id = id
		if token := r.Params.GetProgressToken(); token != nil {
			v.notify = func(progress float64, message string) {
				_ = r.Session.NotifyProgress(ctx, &sdk.ProgressNotificationParams{
					ProgressToken: token, Progress: progress, Message: message,
				})
			}
		}
		// A call renews the session. One that needs a session and has none reports it by itself.
		_ = v.agent.Touch(inner)
		d.noted(v.agent)
		before := v.introduce(from, text(r.Params.Meta, "threadId"), who.Identity)
		a, err := def.call(v)
		before(a)
		if inner.Err() != nil {
			d.deliveries.lose(v.delivery)
		}
		return v.result(a, err)
	}
}

// add notes the delivery of one of its calls.
func (a *arrival) add(d *delivery) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.deliveries = append(a.deliveries, d)
}

// each calls do for the deliveries of its calls.
func (a *arrival) each(do func(*delivery)) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, d := range a.deliveries {
		do(d)
	}
}

// introduce notes a call of a conversation. In the answer of the first one, before tells the agent of leases from
// before, which it may not know of: those of an earlier conversation, process or server.
func (v *visit) introduce(from *arrival, thread string, party agent.Identity) (before func(*answer)) {
	before = func(*answer) {}
	if !v.keyed {
		return before
	}
	session := from.header.Get(sessionHeader)
	if thread != "" && session != "" && v.door.talks != nil {
		v.door.talks.thread(scoped(from, party.Key), party, scoped(from, session))
	}
	v.several = from.several
	if !v.hear(session) || v.agent.Joins() {
		return before
	}
	work, err := v.agent.Work(v.ctx)
	if err != nil {
		v.forget(session) // the next call tells
		return before
	}
	return func(a *answer) {
		for i := range work.Leases {
			l := &work.Leases[i]
			tell := func(context.Context) { v.tell(v.flow, introduce(l)) }
			switch {
			case l.Flow != v.flow || v.agent.Follows(l.ID):
			case a != nil && api.Digits(l.ID) == api.Digits(a.about): // this answer tells, if it arrives
				v.door.deliveries.grant(v.ctx, v.delivery, l.ID, tell, nil)
			default:
				tell(v.ctx)
			}
		}
	}
}

// recovered turns a panic of ours into an error of the call: the calls of other agents go on.
func (d *door) recovered(what string, err *error) {
	if broken := recover(); broken != nil {
		d.log.Error("an MCP call failed because of an internal error", "call", what, "panic", broken,
			"stack", string(debug.Stack()))
		*err = fmt.Errorf("internal error in %s: check the server's log", what)
	}
}

// identity is an agent with its strand of work.
type identity struct {
	agent.Identity
	flow string
}

// identify finds out which agent calls, in which strand of its work. A process has one agent, and threads are strands
// of its work. A call over HTTP belongs to the thread that the client names, else to the name that its user configured,
// else to the conversation of an older revision, else to no agent that is known. Threads and names outlive
// conversations: a client that begins another one, as after a restart, is the same agent, and has its leases.
func (d *door) identify(from *arrival, meta sdk.Meta, client *sdk.Implementation) identity {
	thread := text(meta, "threadId")
	name, session := from.header.Get(agentHeader), from.header.Get(sessionHeader)
	id := identity{Identity: agent.Identity{Origin: from.origin}, flow: "main"}
	switch {
	case d.process != "":
		id.Key, id.Join = d.process, d.join.Session
		id.flow = cmp.Or(d.join.Flow, id.flow)
	case thread != "":
		id.Key = "thread:" + thread
	case name != "" && !from.apart:
		id.Key = "agent:" + name
	case session != "":
		id.Key = "session:" + session
	}
	if thread != "" && d.process != "" {
		id.flow = "thread-" + fingerprint(thread)[:8]
	}
	switch {
	case d.process != "":
		id.Agent = d.processName(client)
	case name != "":
		id.Agent = short(name, maxName)
	case id.Key != "":
		id.Agent = clientName(client, from) + "-" + fingerprint(id.Key)[:4]
	default:
		id.Agent = clientName(client, from)
	}
	return id
}

// maxName is how many bytes of the name of an agent or a client are kept.
const maxName = 64

// clientName is what a client calls itself: older revisions say it once only, in the session's id.
func clientName(client *sdk.Implementation, from *arrival) string {
	name := ""
	if client != nil {
		name = client.Name
	}
	if name == "" {
		name, _, _ = strings.Cut(from.header.Get(sessionHeader), sessionMark)
	}
	if name == "" {
		name, _, _ = strings.Cut(from.header.Get("User-Agent"), "/")
	}
	if name = short(name, maxName-5); name == "" {
		name = "mcp"
	}
	return name
}

// text returns a text among the meta data of a call.
func text(meta sdk.Meta, name string) string {
	s, _ := meta[name].(string)
	return s
}

// requestID is the id that the client has for a call, "" for none: a hint that the call may repeat an earlier one. A
// call without one is a new one each time, since asking twice on purpose is legal.
func requestID(meta sdk.Meta) string {
	if id := text(meta, "claudecode/toolUseId"); id != "" {
		return fingerprint("claudecode", id)
	}
	if thread, call := text(meta, "threadId"), text(meta, "callId"); thread != "" && call != "" {
		return fingerprint("thread", thread, call)
	}
	return ""
}

// fingerprint is a hash of texts, in hexadecimal digits.
func fingerprint(texts ...string) string {
	sum := sha256.New()
	for _, t := range texts {
		fmt.Fprintf(sum, "%d:%s", len(t), t)
	}
	return hex.EncodeToString(sum.Sum(nil))
}

// do makes a call of the API and reads its answer into v, in the time that is left.
func (v *visit) do(r api.Request, into any) (*api.Answer, error) {
	ctx, cancel := context.WithDeadline(v.ctx, v.began.Add(maxCall))
	defer cancel()
	answer, err := v.agent.Do(ctx, r)
	if err != nil {
		return answer, err
	}
	if err := json.Unmarshal(answer.Body, into); err != nil {
		return nil, fmt.Errorf("the answer of the API cannot be read: %w", err)
	}
	return answer, nil
}

// lasting is a context for work that must be finished although the client may have gone.
func (v *visit) lasting() (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(v.ctx), cleanUp)
}

// report tells the client how the call stands. Progress is the time of the call in milliseconds, and
// increases strictly.
func (v *visit) report(message string) {
	if v.notify == nil {
		return
	}
	v.reported = max(v.reported+1, float64(time.Since(v.began).Milliseconds()))
	v.notify(v.reported, message)
}
