package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"sync"
	"time"
)

// presence is a session over HTTP that shows that this process lives. A session that is
// over is replaced by a new one: what was held under the old one is lost with it.
type presence struct {
	api   *httpAPI
	agent string
	ttl   time.Duration

	mu   sync.Mutex
	id   string
	name string // the public one
}

// open opens a session, or returns the one that is open.
func (p *presence) open(ctx context.Context) (id string, err error) {
	if id = p.session(); id != "" {
		return id, nil
	}
	body := map[string]any{"agent": p.agent, "ttl_ms": p.ttl.Milliseconds()}
	_, answer, err := p.api.insist(
		ctx, request{Method: http.MethodPost, Path: "/v1/sessions", Body: body, ID: freshID(), Again: true}, false,
	)
	if err != nil {
		return "", err
	}
	var got struct{ Session struct{ ID, Name string } }
	if err := json.Unmarshal(answer, &got); err != nil || got.Session.ID == "" {
		return "", fmt.Errorf("the answer cannot be read (%w): is this client older than the server?", err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.id, p.name = got.Session.ID, got.Session.Name
	return p.id, nil
}

func (p *presence) session() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.id
}

// forget drops a session that is over.
func (p *presence) forget(id string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.id == id {
		p.id = ""
	}
}

// beat shows that this process lives, until ctx ends.
func (p *presence) beat(ctx context.Context) {
	tick := time.NewTicker(p.ttl / 3)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		id := p.session()
		if id == "" {
			continue
		}
		_, _, err := p.api.do(ctx, request{Method: http.MethodPost, Path: sessionPath(id) + "/heartbeat", Body: struct{}{}})
		if exitCode(err) == exitLost {
			p.forget(id)
		}
	}
}

// close ends the session.
func (p *presence) close() {
	if id := p.session(); id != "" {
		ctx, cancel := context.WithTimeout(context.Background(), hangUpTimeout)
		defer cancel()
		_, _, _ = p.api.do(ctx, request{Method: http.MethodDelete, Path: sessionPath(id)})
	}
}

func sessionPath(id string) string { return "/v1/sessions/" + url.PathEscape(id) }
