package demo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/client"
	"github.com/interlockdev/interlock/guard/file"
)

// The stale scene: billing reads an account and a source file, and thinks for six seconds. One
// second later support reads the same, and writes both while billing still thinks. Billing's
// write is then based on a state that is gone.
//
//	seconds   0        1                 4          6
//	billing   read ─── think ──────────────────────► write
//	support            read ─── think ─► write
//
// It is played in four ways at once, each with an account and a file of its own.
const (
	accountOpens  cents = 10_000
	supportStarts       = time.Second
)

// editor is one of the two agents of the stale scene.
type editor struct {
	name    string
	thinks  time.Duration
	amount  cents
	note    string
	comment string // what it adds to the file, behind the line after
	after   string
}

var (
	billing = editor{
		"billing", 6 * time.Second, 3500, "late fee of 35.00",
		"  audit(user, \"login\");", "export function login(user: User): Session {",
	}
	support = editor{
		"support", 3 * time.Second, -1200, "credit of 12.00, as promised",
		"  session.revoke();", "export function logout(session: Session): void {",
	}
)

const sourceFile = "auth.ts"

const source = `import { audit, sessions } from "./store";

export function login(user: User): Session {
  const session = sessions.open(user);
  return session;
}

export function find(id: string): Session {
  return sessions.get(id);
}

export function logout(session: Session): void {
  sessions.close(session);
}
`

// bookedDocument is the document that both agents change.
type bookedDocument struct {
	Balance cents    `json:"balance"`
	Entries []string `json:"entries"`
}

// stage is one way of playing the scene: its account, its file, and what happened.
type stage struct {
	strategy strategy
	speed    int
	dir      string
	files    *file.Dir
	account  interlock.Key
	balance  interlock.Key // the counter of the agents that add
	source   interlock.Key // of a lease on the file

	billing, support *client.Client
	// billingRead is closed when billing has read; supportWrote, when support has
	// written. They keep the scene's order on a slow machine.
	billingRead, supportWrote chan struct{}

	mu       sync.Mutex
	began    time.Time
	told     []moment
	packet   string // what billing received
	thinking time.Duration
	repeated time.Duration
	waiting  time.Duration
	took     time.Duration
	merged   int
}

// moment is one thing that happened on a stage.
type moment struct {
	at   time.Duration
	text string
}

// Stale plays the scene and prints what each strategy costs. It returns an error that
// is ErrClaim when a change is lost under a strategy, or none is without.
func Stale(ctx context.Context, cfg Config) (err error) {
	cfg.Speed = orDefault(cfg.Speed, 2)
	if cfg, err = cfg.complete(); err != nil {
		return err
	}
	dir, err := makeDir(cfg.Dir)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, 2*time.Minute, errors.New("the scene was not over after two minutes"))
	defer cancel()
	if cfg.Server == "" {
		server, err := startServer(ctx, cfg.Binary, dir)
		if err != nil {
			return err
		}
		cfg.Server = server.GRPC
		cfg.ready(server, "")
		defer func() { err = cfg.stopServer(ctx, server, err) }()
	}
	var stages []*stage
	for _, s := range strategies {
		g, err := newStage(ctx, cfg, s, dir)
		if err != nil {
			return err
		}
		defer g.close()
		stages = append(stages, g)
	}
	if !cfg.JSON {
		fmt.Fprintf(
			cfg.Out,
			"Two agents change one account and one file, in %d ways at once. Think times are divided by %d, and told as they "+
				"were.\n",
			len(stages), cfg.Speed,
		)
	}
	if err := playAll(ctx, stages); err != nil {
		return err
	}
	return conclude(ctx, cfg, stages)
}

func playAll(ctx context.Context, stages []*stage) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var all sync.WaitGroup
	for _, g := range stages {
		all.Go(func() {
			if err := g.play(ctx); err != nil {
				cancel(fmt.Errorf("%s: %w", g.strategy.name, err))
			}
		})
	}
	all.Wait()
	return context.Cause(ctx)
}

func newStage(ctx context.Context, cfg Config, s strategy, dir string) (*stage, error) {
	g := &stage{
		strategy: s, speed: cfg.Speed, dir: filepath.Join(dir, s.id),
		account:     interlock.Key("stale:" + s.id + "/account:12345"),
		balance:     interlock.Key("stale:" + s.id + "/balance:12345"),
		source:      interlock.Key("stale:" + s.id + "/" + sourceFile),
		billingRead: make(chan struct{}), supportWrote: make(chan struct{}),
	}
	if err := os.MkdirAll(g.dir, 0o755); err != nil {
		return nil, err
	}
	if err := os.WriteFile(filepath.Join(g.dir, sourceFile), []byte(source), 0o644); err != nil {
		return nil, err
	}
	var err error
	if g.files, err = file.Open(g.dir); err != nil {
		return nil, err
	}
	for _, agent := range []struct {
		name string
		c    **client.Client
	}{{billing.name, &g.billing}, {support.name, &g.support}} {
		c, err := client.Dial(ctx, client.Config{
			Addrs: []string{cfg.Server}, Namespace: interlock.Namespace(cfg.Namespace), Credential: cfg.Credential,
			Agent: agent.name,
		})
		if err != nil {
			g.close()
			return nil, err
		}
		*agent.c = c
	}
	opened, err := json.Marshal(bookedDocument{
		Balance: accountOpens, Entries: []string{"opened with " + accountOpens.String()},
	})
	if err != nil {
		return nil, err
	}
	counter, err := json.Marshal(int64(accountOpens))
	if err != nil {
		return nil, err
	}
	_, err = g.billing.Commit(ctx, client.Commit{
		Writes: []interlock.Write{client.Put(g.account, opened), client.Put(g.balance, counter)}, Note: "opened",
	})
	return g, err
}

func (g *stage) close() {
	ctx, cancel := context.WithTimeout(context.Background(), stopTimeout)
	defer cancel()
	for _, c := range []*client.Client{g.billing, g.support} {
		if c != nil {
			_ = c.Close(ctx)
		}
	}
	if g.files != nil {
		_ = g.files.Close()
	}
}

// play lets both agents do their work.
func (g *stage) play(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	g.began = time.Now()
	var both sync.WaitGroup
	both.Go(func() {
		w := &editAgent{stage: g, editor: billing, client: g.billing, read: g.billingRead}
		if !g.strategy.inTurn {
			w.before = g.supportWrote
		}
		if err := w.work(ctx); err != nil {
			cancel(err)
		}
	})
	both.Go(func() {
		defer close(g.supportWrote)
		select {
		case <-g.billingRead:
		case <-ctx.Done():
			return
		}
		w := &editAgent{stage: g, editor: support, client: g.support, read: make(chan struct{})}
		err := pause(ctx, supportStarts/time.Duration(g.speed))
		if err == nil {
			err = w.work(ctx)
		}
		if err != nil {
			cancel(err)
		}
	})
	both.Wait()
	g.took = g.since()
	return context.Cause(ctx)
}

// since is the scene's time.
func (g *stage) since() time.Duration { return time.Since(g.began) * time.Duration(g.speed) }

func (g *stage) say(format string, args ...any) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.told = append(g.told, moment{g.since(), fmt.Sprintf(format, args...)})
}

// editAgent is one agent at its work on a stage.
type editAgent struct {
	*stage
	editor
	client *client.Client
	read   chan struct{}   // closed when it has read for the first time
	before <-chan struct{} // it writes after this is closed; nil: whenever it is done

	thought time.Duration
}

func (w *editAgent) work(ctx context.Context) error { return w.strategy.work(w, ctx) }

// hasRead reports that the agent has read.
func (w *editAgent) hasRead() {
	select {
	case <-w.read:
	default:
		close(w.read)
	}
}

// think is an agent's pause between reading and writing.
func (w *editAgent) think(ctx context.Context) error {
	again := w.thought > 0
	if err := pause(ctx, w.thinks/time.Duration(w.speed)); err != nil {
		return err
	}
	if w.before != nil {
		select {
		case <-w.before:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	w.thought += w.thinks
	w.mu.Lock()
	defer w.mu.Unlock()
	w.thinking += w.thinks
	if again {
		w.repeated += w.thinks
	}
	return nil
}
