package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/client"
	"github.com/interlockdev/interlock/examples/internal/program"
)

func main() { program.Main(run) }

var namespace = program.Namespace("phases")

const barrier = interlock.Key("release:42/phase")

var (
	agents = []string{"api", "docs", "web"}
	phases = []string{"plan", "write", "review"}
)

func run(ctx context.Context, addr string, out io.Writer) error {
	// An agent that fails stops the others.
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	book := &logbook{}
	var team sync.WaitGroup
	for _, agent := range agents {
		team.Go(func() {
			if err := work(ctx, addr, agent, book); err != nil {
				stop(fmt.Errorf("%s: %w", agent, err))
			}
		})
	}
	team.Wait()
	if err := context.Cause(ctx); err != nil {
		return err
	}
	for _, phase := range append(slices.Clone(phases), "end") {
		for _, line := range book.of(phase) {
			fmt.Fprintf(out, "%s: %s\n", phase, line)
		}
	}
	if early := book.early(); early > 0 {
		return fmt.Errorf("%d phases were begun before the one before had ended", early)
	}
	return nil
}

// work is one agent's way through all phases.
func work(ctx context.Context, addr, agent string, book *logbook) error {
	c, err := client.Dial(ctx, client.Config{Addrs: []string{addr}, Namespace: namespace, Agent: agent})
	if err != nil {
		return err
	}
	defer leave(c)

	// The first phase begins when all are there.
	party, err := c.Acquire(ctx, client.Request{
		Claims:     []interlock.Claim{{Key: barrier, Mode: interlock.Barrier, Count: uint32(len(agents))}},
		OnConflict: interlock.Wait, Terms: interlock.Terms{MaxWait: time.Minute}, Purpose: "release 42",
	})
	if err != nil {
		return err
	}
	for i, phase := range phases {
		if i > 0 {
			if err := party.Arrive(ctx, client.Arrival{MaxWait: time.Minute}); err != nil {
				return err
			}
		}
		book.write(phase, agent, fmt.Sprintf("%s is at it, generation %d", agent, party.Generation()))
	}

	// There is no fourth phase for docs, and the others notice.
	if agent == "docs" {
		book.write("end", agent, "docs has left")
		return party.Release(ctx, client.Outcome{Outcome: "done"})
	}
	err = party.Arrive(ctx, client.Arrival{MaxWait: time.Minute})
	if !errors.Is(err, &interlock.Error{Code: interlock.CodeBroken}) {
		return fmt.Errorf("it waited for a fourth phase: %w", err)
	}
	book.write("end", agent, agent+" is told that the barrier is broken")
	return nil
}

// logbook is the agents' actions, by phase, in their order.
type logbook struct {
	mu    sync.Mutex
	lines []entry
}

type entry struct{ phase, agent, text string }

func (b *logbook) write(phase, agent, text string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.lines = append(b.lines, entry{phase, agent, text})
}

// of returns a phase's lines, sorted.
func (b *logbook) of(phase string) (texts []string) {
	for _, l := range b.lines {
		if l.phase == phase {
			texts = append(texts, l.text)
		}
	}
	slices.Sort(texts)
	return texts
}

// early counts the lines of a phase that were written before all of the phase
// before it.
func (b *logbook) early() (n int) {
	for i, l := range b.lines {
		at := slices.Index(phases, l.phase)
		for _, later := range b.lines[i+1:] {
			if before := slices.Index(phases, later.phase); at > 0 && before >= 0 && before < at {
				n++
			}
		}
	}
	return n
}

// leave ends a session, also when the program was interrupted.
func leave(c *client.Client) {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	_ = c.Close(ctx) // the session ends by its ttl otherwise
}
