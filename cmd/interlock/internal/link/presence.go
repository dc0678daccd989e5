package link

import (
	"cmp"
	"context"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/interlockdev/interlock/cmd/interlock/internal/cli"
	"github.com/interlockdev/interlock/internal/api"
)

// Presence is a session over HTTP that shows that this process lives. A session that is
// over is replaced by a new one: what was held under the old one is lost with it.
type Presence struct {
	API   *cli.API
	Agent string
	TTL   time.Duration // 0: the server's usual one, and as long as its leases need. Then Open comes before Beat.

	mu   sync.Mutex
	id   string
	life time.Duration // of the session
	Name string        // the public one
}

// Open opens a session, or returns the one that is open.
func (p *Presence) Open(ctx context.Context) (id string, err error) {
	if id = p.session(); id != "" {
		return id, nil
	}
	body := &api.OpenSessionRequest{Agent: p.Agent, TTL: p.TTL.Milliseconds()}
	_, answer, err := p.API.Insist(
		ctx, cli.Request{Method: http.MethodPost, Path: "/v1/sessions", Body: body, ID: cli.FreshID(), Again: true}, false,
	)
	if err != nil {
		return "", err
	}
	var got api.SessionView
	if err := cli.Decode(answer, &got); err != nil {
		return "", err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.id, p.life, p.Name = got.Session.ID, cli.Millis(got.Session.TTL), got.Session.Name
	return p.id, nil
}

func (p *Presence) session() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.id
}

// lives is how long the session outlives its last sign of life.
func (p *Presence) lives() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	return cmp.Or(p.life, p.TTL)
}

// Forget drops a session that is over.
func (p *Presence) Forget(id string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.id == id {
		p.id = ""
	}
}

// Beat shows that this process lives, until ctx ends.
func (p *Presence) Beat(ctx context.Context) {
	tick := time.NewTicker(p.API.BeatAfter(p.lives()))
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
		err := p.beat(ctx, id)
		if cli.ExitCode(err) == cli.ExitLost {
			p.Forget(id)
		}
	}
}

// beat shows it once, for as long as the session may still live: a single server that is silent gets
// a quarter of that where there are others.
func (p *Presence) beat(ctx context.Context, id string) error {
	ctx, cancel := context.WithTimeout(ctx, p.lives())
	defer cancel()
	_, _, err := p.API.Do(
		ctx, cli.Request{Method: http.MethodPost, Path: sessionPath(id) + "/heartbeat", Body: struct{}{}, Again: true},
	)
	return err
}

// Close ends the session.
func (p *Presence) Close() {
	if id := p.session(); id != "" {
		ctx, cancel := context.WithTimeout(context.Background(), hangUpTimeout)
		defer cancel()
		_, _, _ = p.API.Do(ctx, cli.Request{Method: http.MethodDelete, Path: sessionPath(id)})
	}
}

func sessionPath(id string) string { return "/v1/sessions/" + url.PathEscape(id) }
