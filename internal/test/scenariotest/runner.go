package scenariotest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/client"
)

// scenario is a file of clients/scenarios.
type scenario struct {
	Title string
	first
	Clients map[string]settings
	Steps   []step
}

// first is what is wrong with the first of two addresses.
type first struct {
	DeadFirst   bool `json:"dead_first"`
	HollowFirst bool `json:"hollow_first"`
}

type settings struct {
	Agent      string `json:"agent"`
	SessionTTL int64  `json:"session_ttl_ms,omitempty"`
	RetryFor   int64  `json:"retry_for_ms,omitempty"`
}

type step struct {
	Title, Client, Do, As, Start, Join, Cancel string

	With, Expect, Error map[string]any
	Control             json.RawMessage
}

func readScenario(file string) (s scenario, err error) {
	text, err := os.ReadFile(file)
	if err == nil {
		err = decode(text, &s)
	}
	return s, err
}

// runner carries out steps with the client library in Go.
type runner struct {
	addrs []string

	mu       sync.Mutex
	begun    map[string]*operation
	settings map[string]settings
	clients  map[string]*client.Client
	results  results
}

// operation is one that was begun.
type operation struct {
	as     string
	result map[string]any
	err    error
	cancel context.CancelCauseFunc
	ended  chan struct{}
}

func newRunner(addrs []string) *runner {
	return &runner{
		addrs: addrs, clients: map[string]*client.Client{}, results: results{}, begun: map[string]*operation{},
	}
}

// run carries out a scenario.
func (r *runner) run(ctx context.Context, x *scenario) error {
	r.settings = x.Clients
	defer r.end(ctx)
	for i := range x.Steps {
		if err := r.step(ctx, &x.Steps[i]); err != nil {
			return fmt.Errorf("step %d: %w", i+1, err)
		}
	}
	return nil
}

// end ends everything that is under way.
func (r *runner) end(ctx context.Context) {
	r.mu.Lock()
	begun := slices.Collect(maps.Values(r.begun))
	r.mu.Unlock()
	for _, o := range begun {
		o.cancel(nil)
		<-o.ended
	}
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second) // the server may be away
	defer cancel()
	for name := range r.clients {
		_ = r.close(ctx, name)
	}
}

// serve carries out the steps that come, each at once, and writes the result of each when it is there.
func (r *runner) serve(ctx context.Context, in io.Reader, out io.Writer) error {
	var writing sync.Mutex
	lines := json.NewEncoder(out)
	defer r.end(ctx)
	for steps := json.NewDecoder(in); ; {
		var s line
		if err := steps.Decode(&s); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		if s.Clients != nil {
			r.settings = s.Clients
			continue
		}
		if s.Cancel != "" {
			if o := r.beginning(s.Cancel); o != nil {
				o.cancel(context.Canceled)
			}
			continue
		}
		o, err := r.begin(ctx, &s.step)
		if err != nil {
			return err
		}
		r.note(s.ID, o)
		go func() {
			<-o.ended
			r.note(s.ID, nil)
			answer := map[string]any{"id": s.ID}
			if o.err != nil {
				answer["error"] = describe(o.err)
			} else {
				answer["result"] = shown(o.result)
			}
			writing.Lock()
			defer writing.Unlock()
			_ = lines.Encode(answer)
		}()
	}
}

// line is one line of standard input: the clients, or a step.
type line struct {
	Clients map[string]settings
	ID      string
	step
}

// shown returns a result without what only this process can use.
func shown(result map[string]any) map[string]any {
	x := maps.Clone(result)
	delete(x, "lease")
	return x
}

func (r *runner) step(ctx context.Context, s *step) error {
	switch {
	case s.Control != nil:
		return control(ctx, s.Control)
	case s.Join != "" || s.Cancel != "":
		o := r.beginning(s.Join + s.Cancel)
		if o == nil {
			return fmt.Errorf("nothing was begun as %s%s", s.Join, s.Cancel)
		}
		if s.Cancel != "" {
			o.cancel(context.Canceled)
		}
		return r.judge(s, o)
	}
	o, err := r.begin(ctx, s)
	if err != nil {
		return err
	}
	if s.Start != "" {
		r.note(s.Start, o)
		return nil
	}
	return r.judge(s, o)
}

// beginning returns an operation that was begun, nil if there is none.
func (r *runner) beginning(name string) *operation {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.begun[name]
}

// note keeps an operation, or with nil none.
func (r *runner) note(name string, o *operation) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.begun[name] = o; o == nil {
		delete(r.begun, name)
	}
}

// drop forgets a result, so that nothing refers to its lease any more.
func (r *runner) drop(name string) {
	r.mu.Lock()
	delete(r.results, name)
	r.mu.Unlock()
	runtime.GC()
}

// begin begins an operation.
func (r *runner) begin(ctx context.Context, s *step) (*operation, error) {
	with, err := r.resolve(s.With)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	o := &operation{as: s.As, cancel: cancel, ended: make(chan struct{})}
	go func() {
		defer close(o.ended)
		defer cancel(nil)
		c, err := r.client(ctx, s.Client)
		if err != nil {
			o.err = err
			return
		}
		if o.result, o.err = r.do(ctx, c, s, with.(map[string]any)); o.as != "" && o.err == nil {
			r.keep(o.as, o.result)
		}
	}()
	return o, nil
}

// judge waits for the end of an operation, and compares it with what is expected.
func (r *runner) judge(s *step, o *operation) error {
	<-o.ended
	if s.Error != nil {
		if o.err == nil {
			return fmt.Errorf("it succeeds with %v, and should fail with %v", o.result, s.Error)
		}
		return match("error", s.Error, describe(o.err))
	}
	if o.err != nil || o.result == nil || s.Expect == nil {
		return o.err
	}
	want, err := r.resolve(s.Expect)
	if err != nil {
		return err
	}
	return match("result", want, o.result)
}

func (r *runner) keep(name string, result map[string]any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.results[name] = result
}

func (r *runner) resolve(v any) (any, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.results.resolve(v)
}

// client returns the client of a name, and makes it first if there is none.
func (r *runner) client(ctx context.Context, name string) (*client.Client, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if c := r.clients[name]; c != nil {
		return c, nil
	}
	set, ok := r.settings[name]
	if !ok {
		return nil, fmt.Errorf("there is no client %s", name)
	}
	c, err := client.Dial(ctx, client.Config{
		Addrs: r.addrs, Agent: set.Agent, SessionTTL: millis(set.SessionTTL), RetryFor: millis(set.RetryFor),
	})
	if err == nil {
		r.clients[name] = c
	}
	return c, err
}

func (r *runner) close(ctx context.Context, name string) error {
	r.mu.Lock()
	c := r.clients[name]
	delete(r.clients, name)
	r.mu.Unlock()
	return c.Close(ctx)
}

func millis[N int64 | float64](n N) time.Duration { return time.Duration(n) * time.Millisecond }

var (
	errWaited = errors.New("the wait is over")
	errLost   = errors.New("the lease is lost")
)

// describe returns the members of an error.
func describe(err error) map[string]any {
	refusal, refused := errors.AsType[*interlock.Error](err)
	x := map[string]any{"message": err.Error()}
	switch {
	case errors.Is(err, errLost):
		x["kind"] = "lost"
	case errors.Is(err, errWaited):
		x["kind"] = "timeout"
	case errors.Is(err, context.Canceled):
		x["kind"] = "cancelled"
	case errors.Is(err, client.ErrUnreachable):
		x["kind"] = "unreachable"
	case refused && refusal.Code == interlock.CodeOutcomeUnknown:
		x["kind"] = "unknown"
	case refused:
		x["kind"] = "refused"
	}
	if stale, ok := errors.AsType[*client.StaleError](err); ok {
		x["kind"], refusal = "refused", stale.Refusal
	}
	if refusal != nil {
		x["code"], x["key"] = string(refusal.Code), string(refusal.Key)
		holders := []any{}
		for i := range refusal.Holders {
			holders = append(holders, map[string]any{
				"agent": refusal.Holders[i].Agent, "purpose": refusal.Holders[i].Purpose,
			})
		}
		x["holders"] = holders
	}
	return x
}

func digits[N ~uint64](n N) string { return strconv.FormatUint(uint64(n), 10) }
