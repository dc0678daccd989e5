package hook

import (
	"crypto/sha256"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/internal/api"
)

// Limits of the memory. The one that was used longest ago is forgotten first.
const (
	maxConversations = 10_000
	maxFlows         = 256    // of a conversation
	maxCalls         = 256    // of a conversation
	maxKnown         = 2_000  // files of a flow
	maxWritten       = 50_000 // files in all; half of them are forgotten at once
	maxEdited        = 5      // names in a note
	maxSkips         = 1_000
)

// memory is what the door remembers. A restart may lose it: leases, places in line and notes are the server's.
type memory struct {
	mu            sync.Mutex
	conversations map[[sha256.Size]byte]*conversation
	written       [2]map[string]write // by namespace and key: the present half, and the one before
	skips         map[string]skip     // by namespace and key
}

// write is the last time that an agent wrote a file.
type write struct {
	by                   *conversation
	agent, flow, purpose string
	at                   time.Time
}

// conversation is a session of a harness.
type conversation struct {
	opening sync.Mutex
	opened  bool // guarded by opening
	// space is the namespace that its agents write in; without the right to see its name it is the conversation's own.
	space string

	mu      sync.Mutex
	used    time.Time
	touched time.Time
	purpose string
	session string // the public name of its session
	reads   bool   // the harness reports when a file is read
	flows   map[string]*flow
	calls   map[string]*once
}

// flow is an agent of a conversation: the main one, or a sub-agent.
type flow struct {
	used time.Time
	// knows has when the agent last saw the contents of a file.
	knows map[interlock.Key]time.Time
	// refused has when others began to hold files that it was refused and is not known to have seen. What it knows of
	// them is older.
	refused map[interlock.Key]time.Time
	// edited are the files of its leases that it has written or was about to, the last ones last; sure after the first
	// that the harness has reported as written.
	edited  []File
	sure    bool
	message string
	// purpose is the first line of the prompt of a sub-agent that has a conversation of its own.
	purpose string
	// steps counts its events that are no questions for a tool, and questions at its turn.
	steps int
	// waits are the files of its tickets, told the tickets with a turn that it knows of.
	waits map[api.TicketID][]File
	told  map[api.TicketID]bool
	// taken are the leases that it took by tools of the MCP server, the last ones last. Some may be over.
	taken []api.LeaseID
	// seen are the leases that it was granted and has heard of.
	seen map[api.LeaseID]bool
}

// once is a call of a tool that is being decided, or was decided lately.
type once struct {
	done    chan struct{}
	at      time.Time // of the end
	verdict Verdict
	err     error
}

func newMemory() *memory {
	return &memory{
		conversations: map[[sha256.Size]byte]*conversation{}, written: [2]map[string]write{{}, {}}, skips: map[string]skip{},
	}
}

// conversation returns the one of a credential, a namespace and an id.
func (m *memory) conversation(credential, namespace, id string) *conversation {
	key := sha256.Sum256(fmt.Appendf(nil, "%d:%s%d:%s%s", len(credential), credential, len(namespace), namespace, id))
	now := time.Now()
	m.mu.Lock()
	defer m.mu.Unlock()
	c := m.conversations[key]
	if c == nil {
		forgetOldest(m.conversations, maxConversations, func(c *conversation) time.Time { return c.lastUse() })
		c = &conversation{space: fmt.Sprintf("%x", key), flows: map[string]*flow{}, calls: map[string]*once{}}
		m.conversations[key] = c
	}
	c.mu.Lock()
	c.used = now
	c.mu.Unlock()
	return c
}

// forget forgets a conversation.
func (m *memory) forget(c *conversation) {
	m.mu.Lock()
	defer m.mu.Unlock()
	maps.DeleteFunc(m.conversations, func(_ [sha256.Size]byte, one *conversation) bool { return one == c })
}

func (c *conversation) lastUse() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.used
}

// forgetOldest makes room for one more.
func forgetOldest[K comparable, V any](m map[K]V, most int, at func(V) time.Time) {
	if len(m) < most {
		return
	}
	var oldest K
	var since time.Time
	for key, value := range m {
		if t := at(value); since.IsZero() || t.Before(since) {
			oldest, since = key, t
		}
	}
	delete(m, oldest)
}

// flow returns an agent of a conversation. c.mu is held.
func (c *conversation) flow(name string) *flow {
	f := c.flows[name]
	if f == nil {
		forgetOldest(c.flows, maxFlows, func(f *flow) time.Time { return f.used })
		f = &flow{
			knows: map[interlock.Key]time.Time{}, refused: map[interlock.Key]time.Time{},
			waits: map[api.TicketID][]File{}, told: map[api.TicketID]bool{},
			seen: map[api.LeaseID]bool{},
		}
		c.flows[name] = f
	}
	f.used = time.Now()
	return f
}

// purposeOf returns the purpose of an agent: its own, else that of the session. c.mu is held.
func (c *conversation) purposeOf(name string) string {
	if f := c.flows[name]; f != nil && f.purpose != "" {
		return f.purpose
	}
	return c.purpose
}

// with calls do with an agent's memory.
func (c *conversation) with(name string, do func(*flow)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	do(c.flow(name))
}

// know notes that the agent knows the contents of files now.
func (f *flow) know(files []File) {
	now := time.Now()
	for _, file := range files {
		forgetOldest(f.knows, maxKnown, func(t time.Time) time.Time { return t })
		f.knows[file.self()] = now
		delete(f.refused, file.self())
	}
}

// refuse notes that others hold files which the agent wanted to edit.
func (f *flow) refuse(files []File, holders []api.Holder, at time.Time) {
	for _, h := range holders {
		for _, file := range files {
			if _, known := f.knows[file.self()]; !known && overlaps(string(h.Key), []File{file}) {
				forgetOldest(f.refused, maxKnown, func(t time.Time) time.Time { return t })
				f.refused[file.self()] = at.Add(-milliseconds(h.Held) - time.Millisecond) // it is cut to milliseconds
			}
		}
	}
}

// edit notes the names of files for the note to the next holders.
func (f *flow) edit(files []File) {
	for _, file := range files {
		f.unedit([]File{file})
		f.edited = append(f.edited, file)
	}
	f.edited = f.edited[max(0, len(f.edited)-maxKnown):]
}

// unedit takes back that files were about to be written.
func (f *flow) unedit(files []File) {
	f.edited = slices.DeleteFunc(f.edited, func(one File) bool {
		return slices.ContainsFunc(files, func(file File) bool { return file.self() == one.self() })
	})
}

// unwrote takes back that an agent was about to write files.
func (m *memory) unwrote(c *conversation, flow string, files []File) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, file := range files {
		key := c.space + "\x00" + string(file.self())
		for _, half := range m.written {
			if w := half[key]; w.by == c && w.flow == flow {
				delete(half, key)
			}
		}
	}
}

// wrote notes that an agent has written files.
func (m *memory) wrote(c *conversation, agent, flow string, files []File) {
	w := write{by: c, agent: agent, flow: flow, at: time.Now()}
	c.mu.Lock()
	w.purpose = c.purposeOf(flow)
	c.mu.Unlock()
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, file := range files {
		if len(m.written[0]) == maxWritten/2 {
			m.written[0], m.written[1] = map[string]write{}, m.written[0]
		}
		m.written[0][c.space+"\x00"+string(file.self())] = w
	}
}

// lastWrite returns the last time that another agent wrote a file, if it is known.
func (m *memory) lastWrite(c *conversation, flow string, key interlock.Key) (write, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	w, ok := m.written[0][c.space+"\x00"+string(key)]
	if !ok {
		w, ok = m.written[1][c.space+"\x00"+string(key)]
	}
	return w, ok && (w.by != c || w.flow != flow)
}

const (
	// sameCall is how long the answer to a call of a tool is that of a second hook for the same call.
	sameCall = time.Minute
	// samePrint is that where the harness has no ids of calls. Then a repetition may be a new call, and is one if the
	// agent had another event in between, or its turn has come.
	samePrint = time.Second
)

// decide calls do, or returns what it returned for the same call before.
func (c *conversation) decide(ev *Event, do func() (Verdict, error)) (Verdict, error) {
	if ev.Call == "" && ev.Print == "" {
		return do()
	}
	c.mu.Lock()
	id, window := ev.Flow+"\x00"+ev.Call, sameCall
	if ev.Call == "" {
		id, window = fmt.Sprintf("%s\x00%s\x00%d", ev.Flow, ev.Print, c.flow(agentFlow(ev.Flow)).steps), samePrint
	}
	if o := c.calls[id]; o != nil && (o.at.IsZero() || time.Since(o.at) < window) {
		c.mu.Unlock()
		<-o.done
		return o.verdict, o.err
	}
	forgetOldest(c.calls, maxCalls, func(o *once) time.Time { return o.at })
	o := &once{done: make(chan struct{})}
	c.calls[id] = o
	c.mu.Unlock()
	defer func() {
		c.mu.Lock()
		o.at = time.Now()
		if o.err != nil {
			delete(c.calls, id)
		}
		c.mu.Unlock()
		close(o.done)
	}()
	o.verdict, o.err = do()
	return o.verdict, o.err
}
