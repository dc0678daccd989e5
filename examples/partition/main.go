package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/client"
	"github.com/interlockdev/interlock/examples/internal/program"
)

func main() { program.Main(run) }

var namespace = program.Namespace("partition")

const (
	site  = interlock.Key("crawl:example.com")
	parts = 6
)

func run(ctx context.Context, addr string, out io.Writer) error {
	index := newIndex()
	first, err := hire(ctx, addr, "ann", index)
	if err != nil {
		return err
	}
	defer first.close()
	if err := index.until(ctx, out, map[string]int{"ann": 6}); err != nil {
		return err
	}
	old := first.member.Parts()

	// Another one comes: half of the parts move to it.
	second, err := hire(ctx, addr, "ben", index)
	if err != nil {
		return err
	}
	defer second.close()
	if err := index.until(ctx, out, map[string]int{"ann": 3, "ben": 3}); err != nil {
		return err
	}

	// The first one leaves, and the other has them all.
	if err := first.member.Leave(ctx); err != nil {
		return err
	}
	if err := index.until(ctx, out, map[string]int{"ben": 6}); err != nil {
		return err
	}

	// A late write of the first one is refused, to any part.
	for _, part := range old {
		err := second.client.CheckFence(ctx, part.Key, part.Fence)
		if !errors.Is(err, &interlock.Error{Code: interlock.CodeFenced}) {
			return fmt.Errorf("a late write to %s is not refused: %w", part.Key, err)
		}
	}
	fmt.Fprintln(out, "late writes of ann are refused")
	return second.member.Leave(ctx)
}

// crawler is one process of the crew.
type crawler struct {
	client *client.Client
	member *client.Member
}

func hire(ctx context.Context, addr, name string, index *index) (*crawler, error) {
	c, err := client.Dial(ctx, client.Config{Addrs: []string{addr}, Namespace: namespace, Agent: name})
	if err != nil {
		return nil, err
	}
	member, err := c.Join(ctx, client.Membership{
		Key: site, Parts: parts, Purpose: "crawl",
		Work: func(ctx context.Context, part client.Part) {
			index.begin(part.Index, name)
			<-ctx.Done() // a real one fetches pages until then, and shows part.Fence where it stores them
			index.end(part.Index)
		},
	})
	if err != nil {
		return nil, errors.Join(err, c.Close(ctx))
	}
	return &crawler{client: c, member: member}, nil
}

// close ends a session, also when the program was interrupted.
func (w *crawler) close() {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	_ = w.client.Close(ctx) // the session ends by its ttl otherwise
}

// index is the crew's shared work.
type index struct {
	mu      sync.Mutex
	at      [parts]string // the crawler at each part
	clashes int
	changed chan struct{}
}

func newIndex() *index { return &index{changed: make(chan struct{}, 1)} }

func (x *index) begin(part int, name string) {
	x.mu.Lock()
	if x.at[part] != "" {
		x.clashes++
	}
	x.at[part] = name
	x.mu.Unlock()
	x.ring()
}

func (x *index) end(part int) {
	x.mu.Lock()
	x.at[part] = ""
	x.mu.Unlock()
	x.ring()
}

func (x *index) ring() {
	select {
	case x.changed <- struct{}{}:
	default:
	}
}

// until waits until each crawler is at so many parts.
func (x *index) until(ctx context.Context, out io.Writer, want map[string]int) error {
	for {
		have, clashes := x.count()
		if clashes > 0 {
			return fmt.Errorf("two crawlers were at one part %d times", clashes)
		}
		if have["ann"] == want["ann"] && have["ben"] == want["ben"] {
			fmt.Fprintf(out, "ann crawls %d parts, ben %d\n", have["ann"], have["ben"])
			return nil
		}
		select {
		case <-x.changed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

func (x *index) count() (have map[string]int, clashes int) {
	x.mu.Lock()
	defer x.mu.Unlock()
	have = map[string]int{}
	for _, name := range x.at {
		have[name]++
	}
	return have, x.clashes
}
