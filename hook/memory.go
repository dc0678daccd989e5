package hook

import (
	"crypto/sha256"
	"fmt"
	"maps"
	"slices"
	"strings"
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
	maxCopies        = 10_000 // then all of them are forgotten
)

// memory is what the door remembers. A restart may lose it: leases, places in line and notes are the server's.
type memory struct {
	mu            sync.Mutex
	conversations map[[sha256.Size]byte]*conversation
	written       [2]map[string]write // by namespace and key: the present half, and the one before
	skips         map[string]skip     // by namespace and key
	names         map[string]string   // of copies, by namespace and id: the first ones
	phases        map[string]*phase   // by namespace and key of a file
}

// write is the last time that an agent wrote a file.
type write struct {
	by                   *conversation
	agent, flow, purpose string
	name                 string // of the file
	at                   time.Time
	// before is the last write of the whole file, of an entry for one of a region; nil if none is known.
	before *write
	region bool
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
	// prepared are the files of calls that were let through to write regions, by their questions.
	prepared map[string][]File
	copies   map[string]string // the names of copies that its agents worked in, by their top folders
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
	// running counts the edits of a file that were let through, and have not ended.
	running map[interlock.Key]int
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
	call    string // the harness's id
	flow    string
	done    chan struct{}
	at      time.Time // of the end
	verdict Verdict
	err     error
}

func newMemory() *memory {
	return &memory{
		conversations: map[[sha256.Size]byte]*conversation{}, written: [2]map[string]write{{}, {}}, skips: map[string]skip{},
		names: map[string]string{}, phases: map[string]*phase{},
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
		c = &conversation{
			space: fmt.Sprintf("%x", key), flows: map[string]*flow{}, calls: map[string]*once{}, copies: map[string]string{},
			prepared: map[string][]File{},
		}
		m.conversations[key] = c
	}
	c.mu.Lock()
	c.used = now
	c.mu.Unlock()
	return c
}

// named returns the name that a copy was first known by in a namespace. Its own one changes with the folder of a
// repository without a remote, or with the address of that.
func (m *memory) named(space, repo string) string {
	i := strings.LastIndexByte(repo, '@')
	if i < 0 {
		return repo
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	id := space + "\x00" + repo[i:]
	if first := m.names[id]; first != "" {
		return first
	}
	if len(m.names) == maxCopies {
		clear(m.names)
	}
	m.names[id] = repo
	return repo
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
			seen: map[api.LeaseID]bool{}, running: map[interlock.Key]int{},
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

// lastSaw returns when the agent last saw the contents of a file, or of the region.
func (f *flow) lastSaw(file File) (at time.Time, known bool) {
	at, known = f.knows[file.self()]
	if whole, also := f.knows[file.In]; also && whole.After(at) {
		return whole, true
	}
	return at, known
}

// refuse notes that others hold files which the agent wanted to edit.
func (f *flow) refuse(files []File, holders []api.Holder, at time.Time) {
	for _, h := range holders {
		for _, file := range files {
			if _, known := f.lastSaw(file); !known && file.meets(string(h.Key)) {
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

// run counts edits that are let through.
func (f *flow) run(files []File) {
	if len(f.running) > maxKnown { // their ends were not reported
		clear(f.running)
	}
	for _, file := range files {
		f.running[file.self()]++
	}
}

// ran counts edits that have ended, and returns the files that no other edit of the agent is writing.
func (f *flow) ran(files []File) (idle []File) {
	for _, file := range files {
		if f.running[file.self()]--; f.running[file.self()] <= 0 {
			delete(f.running, file.self())
			idle = append(idle, file)
		}
	}
	return idle
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
		for _, key := range file.keys() {
			key := c.space + "\x00" + string(key)
			for _, half := range m.written {
				switch w := half[key]; {
				case w.by != c || w.flow != flow:
				case w.before != nil:
					half[key] = *w.before
				default:
					delete(half, key)
				}
			}
		}
	}
}

// keys are that of the file itself, and of a region also that of its file.
func (f File) keys() []interlock.Key {
	if f.In == "" {
		return []interlock.Key{f.self()}
	}
	return []interlock.Key{f.self(), f.In}
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
		for _, key := range file.keys() {
			if len(m.written[0]) >= maxWritten/2 {
				m.written[0], m.written[1] = map[string]write{}, m.written[0]
			}
			w := w
			w.name = file.Name
			if key == file.In {
				last, ok := m.writeOf(c, key)
				w.name = file.InName
				if w.region, w.before = true, last.before; ok && !last.region {
					w.before = &last
				}
			}
			m.written[0][c.space+"\x00"+string(key)] = w
		}
	}
}

// lastWrite returns the last time that another agent wrote a file, or the region, if it is known.
func (m *memory) lastWrite(c *conversation, flow string, file File) (write, bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	w, ok := m.writeOf(c, file.self())
	if whole, also := m.writeOf(c, file.In); also && file.In != "" {
		if whole.region && whole.before != nil {
			whole = *whole.before
		}
		if !whole.region && whole.at.After(w.at) {
			w, ok = whole, true
		}
	}
	return w, ok && (w.by != c || w.flow != flow)
}

// writeOf returns the last write of a key. m.mu is held.
func (m *memory) writeOf(c *conversation, key interlock.Key) (w write, ok bool) {
	for _, half := range m.written {
		if w, ok = half[c.space+"\x00"+string(key)]; ok {
			break
		}
	}
	return w, ok
}

// sameCall is how long the answer to a call of a tool is that of a second hook for the same call: harnesses that share
// their settings call both hooks at once, or one right after the other.
const sameCall = time.Second

// decide calls do, or returns what it returned for the same call before. Calls are the same that one agent makes with
// one tool and one input, until the tool has run. An id of the harness tells two calls apart, and never that they are
// the same: providers number calls anew in each answer.
//
//	before ─► deciding ─► decided ─► forgotten: after the tool, at the end of a turn, as one comes, or in a second;
//	             ▲____________│      a refusal also after any other tool, with which the agent may have read again
//	a second hook waits, and has the same answer
func (c *conversation) decide(ev *Event, do func() (Verdict, error)) (Verdict, error) {
	for {
		c.mu.Lock()
		o := c.calls[ev.asked()]
		another := o != nil && o.call != ev.Call && o.call != "" && ev.Call != ""
		if o == nil || another || !o.at.IsZero() && time.Since(o.at) >= sameCall {
			break
		}
		c.mu.Unlock()
		<-o.done
		if o.err == nil {
			return o.verdict, nil
		} // else the first hook went away, or failed: this one is decided by itself
	}
	forgetOldest(c.calls, maxCalls, func(o *once) time.Time { return o.at })
	o := &once{call: ev.Call, flow: ev.Flow, done: make(chan struct{})}
	c.calls[ev.asked()] = o
	c.mu.Unlock()
	defer func() {
		c.mu.Lock()
		o.at = time.Now()
		if o.err != nil && c.calls[ev.asked()] == o {
			delete(c.calls, ev.asked())
		}
		c.mu.Unlock()
		close(o.done)
	}()
	o.verdict, o.err = do()
	return o.verdict, o.err
}

// asked identifies what an event asks for, or has asked for.
func (ev *Event) asked() string { return ev.Flow + "\x00" + ev.Print }

// forgetCalls forgets answers after an event: to the tool that has run, and refusals of others, or all of the agent if
// its turn ends, or one has come.
func (c *conversation) forgetCalls(ev *Event, came bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case ev.Kind == AfterTool || ev.Kind == FailedTool:
		delete(c.calls, ev.asked())
		maps.DeleteFunc(c.calls, func(_ string, o *once) bool {
			return o.flow == ev.Flow && (ev.Call != "" && o.call == ev.Call || !o.at.IsZero() && o.verdict.Deny != "")
		})
	case ev.Kind != BeforeTool || came:
		maps.DeleteFunc(c.calls, func(_ string, o *once) bool {
			return !o.at.IsZero() && (o.flow == ev.Flow || ev.Flow == mainFlow && ev.Kind != BeforeTool)
		})
	}
}
