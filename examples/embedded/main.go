package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"sync"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/client"
	"github.com/interlockdev/interlock/journal/filejournal"
	"github.com/interlockdev/interlock/server"
	"github.com/interlockdev/interlock/shard"
)

func main() {
	dir := flag.String("data-dir", "", "directory for the journal and the counter (required)")
	flag.Parse()
	if *dir == "" {
		fmt.Fprintln(os.Stderr, "name a directory: -data-dir DIR")
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, *dir, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, dir string, out io.Writer) (err error) {
	interlocked, end, err := embed(ctx, filepath.Join(dir, "journal"))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, end()) }()

	counter := filepath.Join(dir, "counter")
	var workers sync.WaitGroup
	failures := make(chan error, 4)
	for range 4 {
		workers.Go(func() {
			for range 25 {
				if err := count(ctx, interlocked, counter); err != nil {
					failures <- err
					return
				}
			}
		})
	}
	workers.Wait()
	select {
	case err := <-failures:
		return err
	default:
	}
	n, err := read(counter)
	if err != nil {
		return err
	}
	fmt.Fprintln(out, "4 workers counted 25 times each; the counter says", n)
	return nil
}

// embed starts Interlock in this process and connects a client to it.
func embed(ctx context.Context, dir string) (c *client.Client, end func() error, err error) {
	journal, err := filejournal.Open(ctx, dir, filejournal.Options{})
	if err != nil {
		return nil, nil, err
	}
	s, err := shard.Open(ctx, shard.Config{Journal: journal})
	if err != nil {
		return nil, nil, errors.Join(err, journal.Close())
	}
	srv, err := server.New(server.Config{Shard: s})
	if err != nil {
		return nil, nil, errors.Join(err, s.Close(ctx))
	}
	streams := server.NewStreams(srv, server.StreamConfig{})
	c, err = client.New(ctx, streams.Dial, client.Config{Agent: "embedded"})
	if err != nil {
		return nil, nil, errors.Join(err, s.Close(ctx))
	}
	return c, func() error {
		ctx := context.Background() // also when the program was interrupted
		return errors.Join(c.Close(ctx), s.Close(ctx))
	}, nil
}

// count adds one to the counter, under a lease. Each call is a flow of its own, so
// the workers exclude each other although they share a client.
func count(ctx context.Context, c *client.Client, counter string) error {
	lease, err := c.Acquire(ctx, client.Request{
		Keys: []interlock.Key{"file:counter"}, Purpose: "count", OnConflict: interlock.Wait,
	})
	if err != nil {
		return err
	}
	n, err := read(counter)
	if err == nil && lease.Err() == nil {
		err = os.WriteFile(counter, fmt.Appendln(nil, n+1), 0o600)
	}
	return errors.Join(err, lease.Release(ctx, client.Outcome{}))
}

func read(counter string) (int, error) {
	b, err := os.ReadFile(counter)
	if errors.Is(err, os.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(strings.TrimSpace(string(b)))
}
