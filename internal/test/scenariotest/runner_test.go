package scenariotest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strconv"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/client"
)

// scenario is a file of clients/scenarios.
type scenario struct {
	Title     string
	DeadFirst bool `json:"dead_first"`
	Clients   map[string]settings
	Steps     []step
}

type settings struct {
	Agent      string
	SessionTTL int64 `json:"session_ttl_ms"`
	RetryFor   int64 `json:"retry_for_ms"`
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

// runner carries out a scenario with the client library in Go.
type runner struct {
	scenario
	addrs   []string
	control func(context.Context, json.RawMessage) error
	clients map[string]*client.Client
	results results
	begun   map[string]*operation
}

// operation is one that was begun.
type operation struct {
	as     string
	result map[string]any
	err    error
	cancel context.CancelCauseFunc
	ended  chan struct{}
}

func (r *runner) run(ctx context.Context) error {
	r.clients, r.results, r.begun = map[string]*client.Client{}, results{}, map[string]*operation{}
	defer func() {
		for _, o := range r.begun {
			o.cancel(nil)
			<-o.ended
		}
		ctx, cancel := context.WithTimeout(ctx, 2*time.Second) // the server may be away
		defer cancel()
		for name := range r.clients {
			_ = r.close(ctx, name)
		}
	}()
	for i := range r.Steps {
		if err := r.step(ctx, &r.Steps[i]); err != nil {
			return fmt.Errorf("step %d: %w", i+1, err)
		}
	}
	return nil
}

func (r *runner) step(ctx context.Context, s *step) error {
	switch {
	case s.Control != nil:
		return r.control(ctx, s.Control)
	case s.Join != "" || s.Cancel != "":
		o := r.begun[s.Join+s.Cancel]
		if o == nil {
			return fmt.Errorf("nothing was begun as %s%s", s.Join, s.Cancel)
		}
		if s.Cancel != "" {
			o.cancel(context.Canceled)
		}
		return r.judge(s, o)
	}
	c, err := r.client(ctx, s.Client)
	if err != nil {
		return err
	}
	with, err := r.results.resolve(s.With)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	o := &operation{as: s.As, cancel: cancel, ended: make(chan struct{})}
	go func() {
		defer close(o.ended)
		o.result, o.err = r.do(ctx, c, s, with.(map[string]any))
	}()
	if s.Start != "" {
		r.begun[s.Start] = o
		return nil
	}
	return r.judge(s, o)
}

// judge waits for the end of an operation, and compares it with what is expected.
func (r *runner) judge(s *step, o *operation) error {
	<-o.ended
	o.cancel(nil)
	if s.Error != nil {
		if o.err == nil {
			return fmt.Errorf("it succeeds with %v, and should fail with %v", o.result, s.Error)
		}
		return match("error", s.Error, describe(o.err))
	}
	if o.err != nil || o.result == nil {
		return o.err
	}
	if o.as != "" {
		r.results[o.as] = o.result
	}
	if s.Expect == nil {
		return nil
	}
	want, err := r.results.resolve(s.Expect)
	if err != nil {
		return err
	}
	return match("result", want, o.result)
}

func (r *runner) client(ctx context.Context, name string) (*client.Client, error) {
	if c := r.clients[name]; c != nil {
		return c, nil
	}
	set, ok := r.Clients[name]
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
	c := r.clients[name]
	delete(r.clients, name)
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
			holders = append(holders, map[string]any{"agent": refusal.Holders[i].Agent})
		}
		x["holders"] = holders
	}
	return x
}

func digits[N ~uint64](n N) string { return strconv.FormatUint(uint64(n), 10) }
