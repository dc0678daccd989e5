//go:build unix

package client_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/client"
	"github.com/interlockdev/interlock/internal/test/busy"
)

// A process that is killed leaves its seat, and the next one goes on with its leases ahead of the line.
func TestSeat(t *testing.T) {
	path := filepath.Join(t.TempDir(), "seat")
	if addr := os.Getenv("INTERLOCK_TEST_SEAT"); addr != "" {
		if err := holdSeat(addr, os.Getenv("INTERLOCK_TEST_SEAT_FILE")); err != nil {
			t.Fatal(err)
		}
		return
	}
	addr := inMemory(t).listen()
	ctx, cancel := context.WithTimeout(t.Context(), busy.Patience())
	defer cancel()
	dial := func(seat string) (*client.Client, error) {
		return client.Dial(ctx, client.Config{Addrs: []string{addr}, Seat: seat})
	}
	must := func(c *client.Client, err error) *client.Client {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	cmd, _, lines := startSelf(ctx, t, "INTERLOCK_TEST_SEAT="+addr, "INTERLOCK_TEST_SEAT_FILE="+path)
	var fence interlock.Fence
	if lines.Scan(); func() error { _, err := fmt.Sscan(lines.Text(), &fence); return err }() != nil {
		t.Fatalf("the process printed %q", lines.Text())
	}
	if c, err := dial(path); err == nil || !strings.Contains(err.Error(), "still runs") {
		t.Fatalf("a second process in the seat: %v, %v", c, err)
	}

	other := must(dial(""))
	defer closeClient(t, other)
	queued, granted := make(chan struct{}), make(chan *client.Lease, 1)
	go func() {
		lease, err := other.Acquire(ctx, client.Request{
			Keys: []interlock.Key{"k"}, OnConflict: interlock.Wait,
			OnQueued: func(interlock.Ticket, []interlock.Holder) { close(queued) },
		})
		if err != nil {
			t.Error(err)
		}
		granted <- lease
	}()
	<-queued
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()

	next := must(dial(path))
	lease, err := next.Acquire(ctx, client.Request{Keys: []interlock.Key{"k"}})
	if err != nil || lease.Fence() <= fence {
		t.Fatalf("the next process gets %v, %v; want a fence above %d", lease, err, fence)
	}
	select {
	case l := <-granted:
		t.Fatalf("the waiter got %v first", l)
	default:
	}
	if err := lease.Release(ctx, client.Outcome{}); err != nil {
		t.Fatal(err)
	}
	if l := <-granted; l == nil || l.Fence() <= lease.Fence() {
		t.Fatalf("the waiter gets %v", l)
	}
	closeClient(t, next)
	if text, err := os.ReadFile(path); err != nil || len(text) > 0 {
		t.Errorf("after Close the seat has %q, %v", text, err)
	}
}

// The id of a session is a secret: a file that others may read is no seat, and is left as it was.
func TestOpenSeat(t *testing.T) {
	path := filepath.Join(t.TempDir(), "seat")
	if err := os.WriteFile(path, []byte("here"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, mode := range []os.FileMode{0o640, 0o604, 0o620, 0o602} {
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		_, err := client.Dial(t.Context(), client.Config{Addrs: []string{"127.0.0.1:1"}, Seat: path})
		if err == nil || !strings.Contains(err.Error(), "chmod 600") {
			t.Errorf("%v: %v", mode, err)
		}
	}
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := client.Dial(t.Context(), client.Config{Addrs: []string{"127.0.0.1:1"}, Seat: pipe})
	if err == nil || !strings.Contains(err.Error(), "is no file") {
		t.Errorf("a pipe: %v", err)
	}
	if text, err := os.ReadFile(path); err != nil || string(text) != "here" {
		t.Errorf("the file has %q, %v", text, err)
	}
}

// holdSeat is the program of a process that is killed.
func holdSeat(addr, path string) error {
	ctx := context.Background()
	c, err := client.Dial(ctx, client.Config{Addrs: []string{addr}, Seat: path})
	if err != nil {
		return err
	}
	lease, err := c.Acquire(ctx, client.Request{Keys: []interlock.Key{"k"}})
	if err != nil {
		return err
	}
	fmt.Println(uint64(lease.Fence()))
	<-lease.Context().Done()
	return context.Cause(lease.Context())
}
