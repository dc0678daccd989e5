package client_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/client"
	"github.com/interlockdev/interlock/journal/memjournal"
	"github.com/interlockdev/interlock/server"
	"github.com/interlockdev/interlock/shard"
)

// Two flows of one process want the same key.
func Example() {
	ctx := context.Background()
	c, end := inThisProcess(ctx)
	defer end()

	lease, err := c.Acquire(ctx, client.Request{Keys: []interlock.Key{"repo:web/src"}, Purpose: "refactor"})
	if err != nil {
		fmt.Println(err)
		return
	}
	// Calls under the lease's context belong to its flow, so they may ask again for what it
	// holds.
	again, err := c.Acquire(lease.Context(), client.Request{Keys: []interlock.Key{"repo:web/src/auth.ts"}})
	fmt.Println("the same flow:", err, again.ID() == lease.ID())

	_, err = c.Acquire(ctx, client.Request{Keys: []interlock.Key{"repo:web/src/auth.ts"}})
	if refusal, ok := errors.AsType[*interlock.Error](err); ok {
		fmt.Println("another flow:", refusal.Code, refusal.ConflictKind, refusal.Holders[0].Purpose)
	}

	_ = again.Release(ctx, client.Outcome{})
	fmt.Println("after one of two releases:", lease.Err())
	fmt.Println(lease.Release(ctx, client.Outcome{Outcome: "done"}), context.Cause(lease.Context()))
	// Output:
	// the same flow: <nil> true
	// another flow: held ancestor refactor
	// after one of two releases: <nil>
	// <nil> released: the lease on repo:web/src was released
}

// inThisProcess starts a server in this process and connects a client to it.
func inThisProcess(ctx context.Context) (c *client.Client, end func()) {
	connect, end := serve(ctx)
	return connect("web-1"), end
}

// serve starts a server in this process, with its journal in memory. A client that connects is
// an agent with a session of its own; end closes all of them.
func serve(ctx context.Context) (connect func(agent string) *client.Client, end func()) {
	must := func(err error) {
		if err != nil {
			panic(err)
		}
	}
	j, err := (&memjournal.Store{}).Open(ctx)
	must(err)
	s, err := shard.Open(ctx, shard.Config{Journal: j})
	must(err)
	srv, err := server.New(server.Config{Shard: s, Logger: slog.New(slog.DiscardHandler)})
	must(err)
	streams := server.NewStreams(srv, server.StreamConfig{})
	var clients []*client.Client
	connect = func(agent string) *client.Client {
		c, err := client.New(ctx, streams.Dial, client.Config{Agent: agent})
		must(err)
		clients = append(clients, c)
		return c
	}
	return connect, func() {
		for _, c := range clients {
			must(c.Close(ctx))
		}
		must(s.Close(ctx))
	}
}

// Two agents change one document; the slower one learns what the other did.
func ExampleClient_Commit() {
	ctx := context.Background()
	c, end := inThisProcess(ctx)
	defer end()

	const key = interlock.Key("doc:plan")
	first, err := c.Commit(ctx, client.Commit{Writes: []interlock.Write{client.Put(key, []byte(`{"step":1}`))}})
	if err != nil {
		fmt.Println(err)
		return
	}
	read, _ := c.Document(ctx, key)
	fmt.Println("version", first.Version, string(read.Body))

	// While one thinks, another commits.
	_, err = c.Commit(
		ctx,
		client.Commit{
			Note: "step 1 is done", Reads: client.Seen(read),
			Writes: []interlock.Write{client.Merge(key, []byte(`{"step":2}`))},
		},
	)
	fmt.Println("the faster one:", err)

	_, err = c.Commit(ctx, client.Commit{Reads: client.Seen(read), Writes: []interlock.Write{client.Delete(key)}})
	if stale, ok := errors.AsType[*client.StaleError](err); ok {
		change := stale.Changes[0]
		fmt.Printf("the slower one: %s, because %q: %s\n", stale.Refusal.Code, change.Now.Note, change.Diff.Text)
	}
	// Output:
	// version 1 {"step":1}
	// the faster one: <nil>
	// the slower one: stale, because "step 1 is done": [{"op":"replace","path":"/step","value":2}]
}

// A charge that two flows plan happens once.
func ExampleClient_Do() {
	ctx := context.Background()
	c, end := inThisProcess(ctx)
	defer end()

	charge := client.Action{Tool: "stripe.charge", Target: "account:12345", Arguments: map[string]string{"amount": "3.00"}}
	for range 2 {
		result, err := c.Do(ctx, charge, func(ctx context.Context, effect interlock.Effect) (any, error) {
			fmt.Println("charging")
			return "ch_1", nil // what the target answered; an error would mean an unknown outcome
		})
		fmt.Println(string(result), err)
	}
	// Output:
	// charging
	// "ch_1" <nil>
	// "ch_1" <nil>
}

// A task waits for its key instead of its agent, and a worker does it.
func ExampleClient_Work() {
	ctx := context.Background()
	c, end := inThisProcess(ctx)
	defer end()
	working, stop := context.WithCancel(ctx)
	defer stop()

	if err := c.SetQueue(ctx, interlock.TaskQueue{Name: "fees"}); err != nil {
		fmt.Println(err)
		return
	}
	ended := make(chan error, 1)
	go func() {
		ended <- c.Work(working, client.Worker{
			Queue: "fees", Concurrency: 4,
			Handle: func(ctx context.Context, job *client.Job) (client.Done, error) {
				var fee struct{ Cents int }
				if err := job.Decode(&fee); err != nil {
					return client.Done{}, client.Dead(err) // no attempt could do it
				}
				key := job.Lease().Key()
				// ... think, under the lease on the key ...
				return client.Done{
					Result: "charged",
					Reads:  client.Seen(job.Document(key)),
					Writes: []interlock.Write{client.Put(key, fmt.Appendf(nil, `{"owed":%d}`, fee.Cents))},
				}, nil
			},
		})
	}()

	task, err := c.Submit(ctx, client.TaskSpec{
		Queue: "fees", Claims: []interlock.Claim{{Key: "account:12345"}}, Payload: map[string]int{"cents": 300},
		Purpose: "late fee",
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	task, err = c.Await(ctx, task.ID)
	fmt.Println(task.State, string(task.Result), err)
	account, _ := c.Document(ctx, "account:12345")
	fmt.Println(string(account.Body))

	stop() // what is being done may finish
	fmt.Println(<-ended)
	// Output:
	// done "charged" <nil>
	// {"owed":300}
	// <nil>
}

// The keys of a pattern are changed by one writer, and all others ask it.
func ExampleClient_Ask() {
	ctx := context.Background()
	c, end := inThisProcess(ctx)
	defer end()
	working, stop := context.WithCancel(ctx)
	defer stop()

	if err := errors.Join(
		c.SetQueue(ctx, interlock.TaskQueue{Name: "stock"}),
		c.SetPattern(
			ctx, interlock.Pattern{Name: "item", Shape: "item:{id}", Write: interlock.WriteSingle, WriterQueue: "stock"},
		),
	); err != nil {
		fmt.Println(err)
		return
	}
	go func() {
		_ = c.Work(working, client.Worker{Queue: "stock", Handle: func(ctx context.Context, job *client.Job) (client.Done, error) {
			key := job.Lease().Key()
			return client.Done{Result: "reserved for " + job.Task().Agent, Writes: []interlock.Write{client.Add(key, -1)}}, nil
		}})
	}()

	reply, err := c.Ask(ctx, client.Message{Key: "item:7", Kind: "reserve"})
	fmt.Println(string(reply), err)
	for entry := range c.Log(ctx, "item:7", 0) {
		fmt.Println(entry.Seq, entry.Kind, entry.State, string(entry.Document.Body))
	}
	// Output:
	// "reserved for web-1" <nil>
	// 1 reserve done -1
}
