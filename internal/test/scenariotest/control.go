package scenariotest

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/interlockdev/interlock/internal/test/busy"
	"github.com/interlockdev/interlock/internal/test/tools"
)

// order is the object of a step with control.
type order struct {
	Fault, Of, Server, Revoke string

	Times, Ms    int
	Await        *occupancy
	SuspendUntil *occupancy `json:"suspend_until"`
}

// occupancy is a key with its numbers of holders and waiters.
type occupancy struct {
	Key              string
	Holders, Waiters int
}

// ServeHTTP carries out the orders of runners in other processes.
func (s *stage) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var text json.RawMessage
	err := json.NewDecoder(r.Body).Decode(&text)
	if err == nil {
		err = s.obey(r.Context(), text)
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
	}
}

// obey reads an order and carries it out.
func (s *stage) obey(ctx context.Context, text json.RawMessage) error {
	var o order
	if err := decode(text, &o); err != nil {
		return err
	}
	return s.carryOut(ctx, &o)
}

func (s *stage) carryOut(ctx context.Context, o *order) error {
	switch {
	case o.Await != nil:
		return s.await(ctx, o.Await)
	case o.Revoke != "":
		return s.revoke(ctx, o.Revoke)
	case o.SuspendUntil != nil:
		return s.suspend(ctx, o.SuspendUntil)
	case o.Server == "restart":
		s.kill()
		s.start()
		return nil
	case o.Server == "kill":
		s.kill()
		return nil
	case o.Server == "start":
		s.start()
		return nil
	}
	switch o.Fault {
	case "cut":
		s.cut()
	case "away":
		for _, g := range s.gates() {
			g.shut()
		}
	case "hollow":
		for _, g := range s.gates() {
			g.hollowOut(true)
		}
	case "silent":
		s.faults.silence(true)
	case "back":
		s.faults.silence(false)
		for _, g := range s.gates() {
			g.hollowOut(false)
			g.listen()
		}
	case loseRequest, loseAnswer, repeated, delayed, killing:
		path, err := pathOf(o.Of)
		if err != nil {
			return err
		}
		s.faults.arm(&fault{kind: o.Fault, path: path, times: o.Times, pause: time.Duration(o.Ms) * time.Millisecond})
	default:
		return fmt.Errorf("there is no order %+v", *o)
	}
	return nil
}

// cut breaks all connections.
func (s *stage) cut() {
	for _, g := range s.gates() {
		g.cut()
	}
}

// operations are the method and the path of each operation.
var operations = sync.OnceValues(func() (map[string]string, error) {
	text, err := os.ReadFile(filepath.Join(tools.Root(), "clients/schema.json"))
	if err != nil {
		return nil, err
	}
	var schema struct {
		Operations []struct{ ID, Method, Path string }
	}
	paths := map[string]string{}
	err = json.Unmarshal(text, &schema)
	for _, op := range schema.Operations {
		paths[op.ID] = op.Method + " " + op.Path
	}
	return paths, err
})

// pathOf returns a pattern for requests of an operation; nil without one.
func pathOf(id string) (*regexp.Regexp, error) {
	paths, err := operations()
	if id == "" || err != nil {
		return nil, err
	}
	path := paths[id]
	if path == "" {
		return nil, fmt.Errorf("there is no operation %s in clients/schema.json", id)
	}
	return regexp.Compile("^" + regexp.MustCompile(`\\\{\w+\\\}`).ReplaceAllString(regexp.QuoteMeta(path), "[^/]+") + "$")
}

// await follows the events of the server until a key has as many holders and waiters as ordered.
func (s *stage) await(ctx context.Context, want *occupancy) error {
	ctx, cancel := context.WithTimeout(ctx, busy.Patience())
	defer cancel()
	base := s.active()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, base+"/v1/events?follow=true", nil)
	if err != nil {
		return err
	}
	req.Header.Set("Accept", "text/event-stream")
	events, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer events.Body.Close()
	lines := bufio.NewScanner(events.Body)
	for {
		view, err := s.look(ctx, want.Key)
		if err != nil {
			return err
		}
		holders, waiters := len(view.Holders), view.Length
		if holders == want.Holders && waiters == want.Waiters {
			return nil
		}
		for lines.Scan() && !strings.HasPrefix(lines.Text(), "data:") {
		}
		if ctx.Err() != nil || lines.Err() != nil {
			return fmt.Errorf("%s has %d holders and %d waiters: %w", want.Key, holders, waiters, cmp.Or(ctx.Err(), lines.Err()))
		}
	}
}

// keyView is what the server shows of a key.
type keyView struct {
	Holders []struct{ Fence string }
	Length  int
}

// active returns the URL of the active server itself, not of its proxy.
func (s *stage) active() string {
	i := s.servers.Active()
	return "http://" + s.servers.Addrs()[i].HTTP
}

// look asks the server itself.
func (s *stage) look(ctx context.Context, key string) (view keyView, err error) {
	return view, s.ask(ctx, http.MethodGet, "/v1/keys/"+url.PathEscape(key), nil, &view)
}

// revoke ends the lease on a key, as an operator does.
func (s *stage) revoke(ctx context.Context, key string) error {
	view, err := s.look(ctx, key)
	if err != nil {
		return err
	}
	for _, holder := range view.Holders {
		body := map[string]string{"key": key, "fence": holder.Fence}
		if err := s.ask(ctx, http.MethodPost, "/v1/revocations", body, &struct{}{}); err != nil {
			return err
		}
	}
	return nil
}

func (s *stage) ask(ctx context.Context, method, path string, body, answer any) error {
	text, err := json.Marshal(body)
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, method, s.active()+path, bytes.NewReader(text))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	got, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer got.Body.Close()
	if got.StatusCode != http.StatusOK {
		return fmt.Errorf("%s %s is answered with %s", method, path, got.Status)
	}
	return json.NewDecoder(got.Body).Decode(answer)
}
