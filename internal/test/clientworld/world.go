package clientworld

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing/synctest"
	"time"

	"github.com/interlockdev/interlock/journal/memjournal"
	"github.com/interlockdev/interlock/server"
	"github.com/interlockdev/interlock/shard"
)

// A Command is one line that the pipe reads.
type Command struct {
	Do string `json:"do"` // world, send, cut, pass or restart

	// Of send and cut. The id is the caller's.
	ID      int               `json:"id"`
	Method  string            `json:"method"`
	Target  string            `json:"target"`
	Headers map[string]string `json:"headers"`
	Body    string            `json:"body"`

	// The time that passes: before send and restart, and at most until one is answered for pass.
	Microseconds int64 `json:"us"`

	Seed uint64 `json:"seed"` // of world: what the server draws by chance follows from it
}

// An Answer is one line that the pipe writes.
type Answer struct {
	Now  int64  `json:"now"` // the virtual time in microseconds
	Done []Done `json:"done"`
}

// Done is a request that was answered, or broken off with the status 0.
type Done struct {
	ID      int               `json:"id"`
	Status  int               `json:"status"`
	Headers map[string]string `json:"headers,omitempty"`
	Body    string            `json:"body"`
}

// A world is one server, and the requests that it has not answered yet.
type world struct {
	store   *memjournal.Store
	shard   *shard.Shard
	handler http.Handler
	done    chan Done
	cut     map[int]context.CancelFunc
	began   time.Time
	random  func(seed uint64)
}

// Serve carries out commands until the input ends. It is called in a synctest bubble. random has what is drawn by
// chance from then on follow from a seed.
func Serve(in io.Reader, out io.Writer, random func(seed uint64)) error {
	w := &world{done: make(chan Done, 1<<16), cut: map[int]context.CancelFunc{}, began: time.Now(), random: random}
	defer w.end()
	lines, answers := bufio.NewReaderSize(in, 1<<20), json.NewEncoder(out)
	for {
		line, err := lines.ReadBytes('\n')
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		var c Command
		if err := json.Unmarshal(line, &c); err != nil {
			return fmt.Errorf("command %q: %w", line, err)
		}
		a, err := w.carryOut(&c)
		if err != nil {
			return err
		}
		if err := answers.Encode(a); err != nil {
			return err
		}
	}
}

func (w *world) carryOut(c *Command) (a Answer, err error) {
	a.Done = []Done{}
	switch c.Do {
	case "world":
		w.end()
		w.random(c.Seed)
		w.store = new(memjournal.Store)
		time.Sleep(time.Second - time.Since(w.began)%time.Second) // what is rounded is rounded in the same way
		err = w.begin()
	case "send":
		time.Sleep(time.Duration(c.Microseconds) * time.Microsecond)
		w.send(c)
	case "cut":
		if cut := w.cut[c.ID]; cut != nil {
			cut()
		}
	case "restart":
		time.Sleep(time.Duration(c.Microseconds) * time.Microsecond)
		w.stop()
		err = w.begin()
	case "pass":
		timer := time.NewTimer(time.Duration(c.Microseconds) * time.Microsecond)
		select {
		case d := <-w.done:
			a.Done = append(a.Done, w.settled(d))
		case <-timer.C:
		}
		timer.Stop()
	default:
		err = fmt.Errorf("unknown command %q", c.Do)
	}
	synctest.Wait()
	for len(w.done) > 0 {
		a.Done = append(a.Done, w.settled(<-w.done))
	}
	a.Now = time.Since(w.began).Microseconds()
	return a, err
}

func (w *world) settled(d Done) Done {
	delete(w.cut, d.ID)
	return d
}

func (w *world) begin() error {
	ctx := context.Background()
	j, err := w.store.Open(ctx)
	if err != nil {
		return err
	}
	observer := server.NewObserver(nil, nil)
	if w.shard, err = shard.Open(ctx, shard.Config{Journal: j, Observer: observer, SnapshotBytes: -1}); err != nil {
		return err
	}
	s, err := server.New(server.Config{Shard: w.shard, Observer: observer, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return err
	}
	w.handler = s.HTTPHandler()
	return nil
}

// stop ends the server, and with it the requests under way.
func (w *world) stop() {
	for _, cut := range w.cut {
		cut()
	}
	if w.shard != nil {
		_ = w.shard.Close(context.Background())
		w.shard = nil
	}
	synctest.Wait()
}

// end ends the world.
func (w *world) end() {
	w.stop()
	for len(w.done) > 0 {
		w.settled(<-w.done)
	}
}

func (w *world) send(c *Command) {
	ctx, cancel := context.WithCancel(context.Background())
	w.cut[c.ID] = cancel
	r := httptest.NewRequestWithContext(ctx, c.Method, c.Target, strings.NewReader(c.Body))
	r.Host = "localhost:7420"
	for name, value := range c.Headers {
		r.Header.Set(name, value)
	}
	handler, id := w.handler, c.ID
	go func() {
		defer cancel()
		answer := httptest.NewRecorder()
		d := Done{ID: id}
		if !breaksOff(func() { handler.ServeHTTP(answer, r) }) && ctx.Err() == nil {
			d.Status, d.Body, d.Headers = answer.Code, answer.Body.String(), map[string]string{}
			for name := range answer.Header() {
				d.Headers[strings.ToLower(name)] = answer.Header().Get(name)
			}
		}
		w.done <- d
	}()
}

// breaksOff reports whether a handler breaks its answer off.
func breaksOff(serve func()) (broken bool) {
	defer func() {
		switch v := recover(); v {
		case nil:
		case http.ErrAbortHandler:
			broken = true
		default:
			panic(v)
		}
	}()
	serve()
	return false
}
