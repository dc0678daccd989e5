package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/client"
	"github.com/interlockdev/interlock/examples/internal/program"
)

func main() { program.Main(run) }

var namespace = program.Namespace("writer")

const bolts interlock.Key = "stock:bolts"

func run(ctx context.Context, addr string, out io.Writer) error {
	shop := &shop{addr: addr, out: out}
	defer shop.close()

	// An operator's setup: the queue, and the keys that only its workers change.
	operator, err := shop.hire(ctx, "operator")
	if err != nil {
		return err
	}
	if err := operator.SetQueue(ctx, interlock.TaskQueue{Name: "stockkeepers"}); err != nil {
		return err
	}
	if err := operator.SetPattern(
		ctx,
		interlock.Pattern{Name: "stock", Shape: "stock:{item}", Write: interlock.WriteSingle, WriterQueue: "stockkeepers"},
	); err != nil {
		return err
	}

	// The writer. As many of them as you like may run: each message goes to one.
	keeper, err := shop.hire(ctx, "stockkeeper")
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancel(ctx)
	working := make(chan error, 1)
	go func() { working <- keeper.Work(ctx, client.Worker{Queue: "stockkeepers", Handle: handle}) }()

	err = shop.play(ctx)
	stop()
	return errors.Join(err, <-working)
}

// shop is where the agents work. Each has a session of its own.
type shop struct {
	addr  string
	out   io.Writer
	staff []*client.Client
}

func (s *shop) play(ctx context.Context) error {
	for _, step := range []struct {
		agent, kind string
		n           int
	}{{"truck", "deliver", 10}, {"alice", "reserve", 7}, {"bob", "reserve", 5}, {"bob", "reserve", 3}} {
		if err := s.ask(ctx, step.agent, step.kind, step.n); err != nil {
			return err
		}
	}

	// No agent gets around the writer.
	mallory, err := s.hire(ctx, "mallory")
	if err != nil {
		return err
	}
	_, err = mallory.Commit(ctx, client.Commit{Writes: []interlock.Write{client.Put(bolts, []byte(`{"left":1000}`))}})
	refusal, ok := errors.AsType[*interlock.Error](err)
	if !ok {
		return fmt.Errorf("somebody else has written the stock: %w", err)
	}
	fmt.Fprintf(s.out, "mallory writes the stock: %s\n", refusal.Code)

	// The decisions, their requesters, and the resulting states.
	for entry, err := range mallory.Log(ctx, bolts, 0) {
		if err != nil {
			return err
		}
		fmt.Fprintf(s.out, "%d. %s: %s %s -> %s\n", entry.Seq, entry.Agent, entry.Kind, entry.Body, entry.Reply)
	}
	return nil
}

// ask sends a message and waits for the reply.
func (s *shop) ask(ctx context.Context, agent, kind string, n int) error {
	c, err := s.hire(ctx, agent)
	if err != nil {
		return err
	}
	text, err := c.Ask(ctx, client.Message{Key: bolts, Kind: kind, Body: units{n}})
	if err != nil {
		return err
	}
	var r reply
	if err := json.Unmarshal(text, &r); err != nil {
		return err
	}
	if r.Done {
		fmt.Fprintf(s.out, "%s may %s %d: %d left\n", agent, kind, n, r.Left)
	} else {
		fmt.Fprintf(s.out, "%s may not %s %d: %s\n", agent, kind, n, r.Next)
	}
	return nil
}

func (s *shop) hire(ctx context.Context, agent string) (*client.Client, error) {
	c, err := client.Dial(ctx, client.Config{Addrs: []string{s.addr}, Namespace: namespace, Agent: agent})
	if err == nil {
		s.staff = append(s.staff, c)
	}
	return c, err
}

// close ends all sessions, also when the program was interrupted.
func (s *shop) close() {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	for _, c := range s.staff {
		_ = c.Close(ctx) // a session ends by its ttl otherwise
	}
}
