package mcp

import (
	"bufio"
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/internal/agent"
	"github.com/interlockdev/interlock/internal/api"
)

// processTTL is how long the session of a process lives after its last heartbeat.
const processTTL = 30 * time.Second

// DefaultIdle is how long after its last call the leases of a silent agent are released by default.
const DefaultIdle = time.Hour

// StdioConfig describes the door of one agent.
type StdioConfig struct {
	// API is how the server is reached.
	API *api.Client
	// Agent is the name that others see. "" makes one of the client's name, the host's and four digits.
	Agent string
	// Join is the session around the process, which the agent works in; the zero value is none.
	Join Join
	// Key is a secret name of the agent's conversation: a later process with the same one takes over what this one holds
	// if it is killed. "" makes one.
	Key string
	// Resume means that a process with Key was killed a moment ago: its leases are kept alive at once.
	Resume bool
	// Idle is how long after its last call the leases of a silent agent are released; 0 means never.
	Idle time.Duration
	// Version is that of the program.
	Version string
	// Log receives what goes wrong without a caller; nil discards it.
	Log *slog.Logger
}

// Join names what is around a process: the session and the flow of an interlock run or of a task, and the lease there.
type Join struct {
	// Session and Flow are "" for an agent with another name, which has a session of its own. It is refused at once
	// where it would wait for the lease.
	Session, Flow string
	Keys          []string
	Fence         interlock.Fence
}

// covers reports whether one of some keys is one of the lease, or lies above or below one.
func (j *Join) covers(keys []string) bool {
	return slices.ContainsFunc(keys, j.has)
}

// has reports whether a key is one of the lease, or lies above or below one.
func (j *Join) has(key string) bool {
	return slices.ContainsFunc(j.Keys, func(own string) bool {
		return own != "" && (key == own || strings.HasPrefix(key, own+"/") || strings.HasPrefix(own, key+"/"))
	})
}

// blocks returns the holder of the lease around the process among those that a request waits for, nil for none. Of a
// request for one of several keys the holders are those of one alone: all of them have to be in the way.
func (j *Join) blocks(q *api.Queued, any bool, keys []string) *api.Holder {
	if any && slices.ContainsFunc(keys, func(key string) bool { return !j.has(key) }) {
		return nil
	}
	if i := slices.IndexFunc(q.Holders, func(h api.Holder) bool { return h.Fence == j.Fence && j.Fence > 0 }); i >= 0 {
		return &q.Holders[i]
	}
	return nil
}

// ServeStdio is the door of one agent: it reads messages from in, and writes to out, one a line. The
// agent has one session, which the process keeps alive, until in ends or ctx is done. Then the
// session ends, and all that it holds is released.
func ServeStdio(ctx context.Context, cfg StdioConfig, in io.Reader, out io.Writer) error {
	open, shut := context.WithCancel(ctx)
	defer shut()
	d := newDoor(open, agent.Config{API: cfg.API, TTL: processTTL, Alone: true, Log: cfg.Log}, cfg.Version)
	defer d.hub.Close()
	d.process, d.name, d.join, d.idle = cmp.Or(cfg.Key, rand.Text()), cfg.Agent, cfg.Join, cfg.Idle

	var beating sync.WaitGroup
	var once sync.Once
	var caller *agent.Caller
	d.noted = func(c *agent.Caller) {
		once.Do(func() {
			caller = c
			beating.Go(func() { d.beat(open, c) })
		})
	}
	if d.active.last = time.Now(); cfg.Resume {
		again := d.hub.Caller(d.identify(&arrival{header: http.Header{}}, nil, nil).Identity)
		d.noted(again)
		beating.Go(func() { _ = again.Touch(open) }) // what fails here, the next heartbeat or call does
	}
	err := d.server().Run(open, &lines{
		in: bufio.NewReader(in), out: out, ended: shut, cancel: d.deliveries.cancel, sent: d.deliveries.sentTo,
	})
	shut()
	once.Do(func() {}) // no call begins any more
	beating.Wait()
	d.deliveries.busy.Wait()
	if caller != nil {
		last, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanUp)
		defer cancel()
		if err := caller.End(last); err != nil {
			d.log.Warn("the session ends by itself", "within", processTTL, "error", err)
		}
	}
	if errors.Is(err, io.EOF) || errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

// beat keeps the session alive, unless the agent is silent for too long.
func (d *door) beat(ctx context.Context, c *agent.Caller) {
	every := processTTL / 3
	if d.idle > 0 {
		every = max(min(every, d.idle/2), time.Second/10)
	}
	tick := time.NewTicker(every)
	defer tick.Stop()
	for released := false; ; {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		silent := d.active.silent()
		if d.idle == 0 || silent < d.idle {
			released = false
			if err := c.Touch(ctx); err != nil && ctx.Err() == nil {
				d.log.Warn("the session could not be kept alive", "error", err)
			}
			continue
		}
		if !released {
			released = d.lapse(ctx, c)
		}
	}
}

// lapse releases what a silent agent holds. Its next answer tells it. It reports whether that is done.
func (d *door) lapse(ctx context.Context, c *agent.Caller) (done bool) {
	work, err := c.Work(ctx)
	if err == nil {
		err = c.End(ctx)
	}
	if err != nil {
		d.log.Warn("the leases of a silent agent could not be released", "error", err)
		return false
	}
	for i := range work.Leases {
		l := &work.Leases[i]
		if c.Joins() && c.Lent(l.ID) {
			continue
		}
		memoryOf(c).tell(l.Flow, fmt.Sprintf(
			"Your lease on %s was released, because you made no call for %s: acquire it again, and read again, before you "+
				"continue.", clip(several(agent.KeysOf(l.Claims)), keyShare/2), span(d.idle.Milliseconds()),
		))
	}
	return true
}

// activity is when an agent called last.
type activity struct {
	mu    sync.Mutex
	calls int // under way
	last  time.Time
}

// begin notes the beginning of a call, and end its end.
func (a *activity) begin() (end func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.calls++
	return func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.calls--
		a.last = time.Now()
	}
}

// silent is how long the agent has been silent.
func (a *activity) silent() time.Duration {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.calls > 0 {
		return 0
	}
	return time.Since(a.last)
}

// processName is the name of a process's agent.
func (d *door) processName(client *sdk.Implementation) string {
	if d.name != "" {
		return short(d.name, maxName)
	}
	name := "mcp"
	if client != nil && client.Name != "" {
		name = client.Name
	}
	host, err := os.Hostname()
	if err != nil {
		host = "localhost"
	}
	return short(name, 32) + "@" + short(host, 24) + "-" + fingerprint(d.process)[:4]
}
