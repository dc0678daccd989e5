package mcp

import (
	"context"
	"crypto/rand"
	"errors"
	"io"
	"log/slog"
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

// StdioConfig describes the door of one agent.
type StdioConfig struct {
	// API is how the server is reached.
	API *api.Client
	// Agent is the name that others see. "" makes one of the client's name, the host's and four digits.
	Agent string
	// Join is the session around the process, which the agent works in; the zero value is none.
	Join Join
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
	return slices.ContainsFunc(keys, func(key string) bool {
		return slices.ContainsFunc(j.Keys, func(own string) bool {
			return own != "" && (key == own || strings.HasPrefix(key, own+"/") || strings.HasPrefix(own, key+"/"))
		})
	})
}

// blocks returns the holder of the lease around the process among those that a request waits for, nil for none.
func (j *Join) blocks(q *api.Queued) *api.Holder {
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
	d.process, d.name, d.join = rand.Text(), cfg.Agent, cfg.Join

	var beating sync.WaitGroup
	var once sync.Once
	var caller *agent.Caller
	d.noted = func(c *agent.Caller) {
		once.Do(func() {
			caller = c
			beating.Go(func() { d.beat(open, c) })
		})
	}
	err := d.server().Run(open, &sdk.IOTransport{
		Reader: &reader{Reader: in, ended: shut}, Writer: writer{out},
	})
	shut()
	once.Do(func() {}) // no call begins any more
	beating.Wait()
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

// beat keeps the session alive.
func (d *door) beat(ctx context.Context, c *agent.Caller) {
	tick := time.NewTicker(processTTL / 3)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			if err := c.Touch(ctx); err != nil && ctx.Err() == nil {
				d.log.Warn("the session could not be kept alive", "error", err)
			}
		}
	}
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

// reader notices the end of the input, which ends the calls that wait: the protocol would let them
// finish.
type reader struct {
	io.Reader
	ended context.CancelFunc
}

func (r *reader) Read(b []byte) (int, error) {
	n, err := r.Reader.Read(b)
	if err != nil {
		r.ended()
	}
	return n, err
}

func (r *reader) Close() error {
	if c, ok := r.Reader.(io.Closer); ok {
		return c.Close()
	}
	return nil
}

type writer struct{ io.Writer }

func (writer) Close() error { return nil }
