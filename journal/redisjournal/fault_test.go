package redisjournal_test

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/interlockdev/interlock/internal/test/busy"
	"github.com/interlockdev/interlock/internal/test/redisserver"
	"github.com/interlockdev/interlock/internal/test/remotetest"
	"github.com/interlockdev/interlock/journal"
	"github.com/interlockdev/interlock/journal/redisjournal"
	"github.com/interlockdev/interlock/journal/remote"
)

// durable starts a server that keeps what it has answered.
func durable(t testing.TB, k redisserver.Kind, args ...string) *redisserver.Server {
	t.Helper()
	return redisserver.Start(t, k, append(redisserver.Durable, args...)...)
}

// place reads a URL.
func place(t testing.TB, url string) redisjournal.Place {
	t.Helper()
	at, err := redisjournal.ParsePlace(url)
	if err != nil {
		t.Fatalf("%s: %v", url, err)
	}
	return at
}

// A server that stops in any way, and starts again, costs time and nothing else: the owner goes on.
func TestServerStops(t *testing.T) {
	kinds(t, func(t *testing.T, k redisserver.Kind) {
		server := durable(t, k)
		for name, by := range map[string]syscall.Signal{"Asked": syscall.SIGTERM, "Killed": syscall.SIGKILL} {
			t.Run(name, func(t *testing.T) {
				j := remotetest.Own(t, connect(t, place(t, server.URL(name))))
				want := ""
				for round := range 3 {
					for i := range 10 {
						text := fmt.Sprint(round, "-", i)
						remotetest.Add(t, j, text)
						want += " " + text
					}
					if err := j.SaveSnapshot(t.Context(), j.Tail(), func(w io.Writer) error {
						_, err := io.WriteString(w, want)
						return err
					}); err != nil {
						t.Fatal(err)
					}
					server.Stop(t, by)
					down := make(chan error, 1)
					go func() { down <- j.Append(t.Context(), j.Tail()+1, [][]byte{[]byte("meanwhile")}) }()
					server.Restart(t)
					if err := <-down; err != nil {
						t.Fatalf("an append while the server was down: %v", err)
					}
					want += " meanwhile"
					if err := j.Barrier(t.Context()); err != nil {
						t.Fatalf("barrier: %v", err)
					}
					if got := remotetest.Texts(t, j); got != want {
						t.Fatalf("the journal holds %q, want %q", got, want)
					}
				}
			})
		}
	})
}

// A server that stays away ends the ownership, and nothing is acknowledged.
func TestServerStaysAway(t *testing.T) {
	server := durable(t, redisserver.Valkey)
	at := place(t, server.URL("j"))
	at.Patience = 2 * time.Second
	s := connect(t, at)
	j, k := remotetest.Own(t, s), remotetest.Own(t, connect(t, place(t, server.URL("k"))))
	remotetest.Add(t, j, "sure")
	server.Stop(t, syscall.SIGKILL)
	if err := j.Append(t.Context(), 3, [][]byte{[]byte("perhaps")}); !errors.Is(err, journal.ErrFailed) {
		t.Fatalf("append: %v", err)
	}
	ended := make(chan error, 1)
	go func() { ended <- k.Barrier(t.Context()) }()
	server.Restart(t)
	if err := <-ended; err != nil {
		t.Errorf("a barrier that waited for the server: %v", err)
	}
	if err := j.Barrier(t.Context()); !errors.Is(err, journal.ErrFailed) {
		t.Errorf("barrier after a failure: %v", err)
	}
	if got := remotetest.Texts(t, remotetest.Own(t, s)); got != " sure " {
		t.Errorf("the journal holds %q", got)
	}
}

// A server that may forget what it has acknowledged is refused, unless loss is allowed.
func TestUnsafeServer(t *testing.T) {
	server := durable(t, redisserver.Valkey)
	at := place(t, server.URL("j"))
	for setting, is := range map[string]string{
		"appendonly": "no", "appendfsync": "everysec", "no-appendfsync-on-rewrite": "yes", "maxmemory-policy": "allkeys-lru",
	} {
		t.Run(setting, func(t *testing.T) {
			was := strings.Split(server.Do(t, "CONFIG", "GET", setting), "\n")[1]
			server.Do(t, "CONFIG", "SET", setting, is)
			defer server.Do(t, "CONFIG", "SET", setting, was)
			_, err := connect(t, at).Open(t.Context())
			for _, want := range []string{setting + ` is "` + is + `"`, "--allow-loss"} {
				if err == nil || !strings.Contains(err.Error(), want) || !errors.Is(err, remote.ErrUnsafe) {
					t.Errorf("got %v, want %s", err, want)
				}
			}
			allowed := at
			allowed.AllowLoss = true
			remotetest.Own(t, connect(t, allowed))
		})
	}
	t.Run("replicas", func(t *testing.T) {
		replica := server.Replica(t, redisserver.Durable...)
		replica.Caught(t, server)
		none := at
		none.Replicas = 0
		_, err := connect(t, none).Open(t.Context())
		if err == nil || !strings.Contains(err.Error(), "replicas=0 although") {
			t.Errorf("got %v", err)
		}
	})
}

// When memory is full, entries are refused and nothing of them is written; barriers, truncation and another owner work.
func TestMemoryIsFull(t *testing.T) {
	kinds(t, func(t *testing.T, k redisserver.Kind) {
		server := durable(t, k)
		s := connect(t, place(t, server.URL("j")))
		j := remotetest.Own(t, s)
		big := [][]byte{[]byte(strings.Repeat("0123456789", 50_000))}
		for range 8 {
			if err := j.Append(t.Context(), j.Tail()+1, big); err != nil {
				t.Fatal(err)
			}
		}
		if err := j.SaveSnapshot(t.Context(), j.Tail(), func(w io.Writer) error {
			_, err := io.WriteString(w, "state")
			return err
		}); err != nil {
			t.Fatal(err)
		}
		server.Do(t, "CONFIG", "SET", "maxmemory", "3000000")
		if err := j.Append(t.Context(), j.Tail()+1, [][]byte{{1}}); !errors.Is(err, journal.ErrNoSpace) {
			t.Fatalf("append: %v", err)
		}
		if err := j.Barrier(t.Context()); err != nil {
			t.Fatalf("barrier: %v", err)
		}
		busy.Wait(t, "the journal to notice", j.Low)
		if err := j.Truncate(t.Context(), j.Tail()); err != nil {
			t.Fatalf("truncate: %v", err)
		}
		server.Do(t, "CONFIG", "SET", "maxmemory", "100mb")
		remotetest.Add(t, j, "small")
		next := remotetest.Own(t, s)
		if got := remotetest.Texts(t, next); !strings.HasSuffix(got, " small ") {
			t.Errorf("the journal ends in %q", got[max(0, len(got)-20):])
		}
	})
}

func TestSeed(t *testing.T) {
	remotetest.Seed(t, connect(t, place(t, durable(t, redisserver.Valkey).URL("j"))))
}

func TestFilling(t *testing.T) {
	server := durable(t, redisserver.Valkey)
	remotetest.Filling(t, func(t *testing.T, name string) *remote.Store { return connect(t, place(t, server.URL(name))) },
		func(t *testing.T, f func(*testing.T)) { f(t) })
}

// Several that open a store at once have epochs of their own.
func TestOpenTogether(t *testing.T) {
	at := place(t, durable(t, redisserver.Valkey).URL("j"))
	remotetest.OpenTogether(t, func() *remote.Store { return connect(t, at) })
}

func TestShare(t *testing.T) {
	at := place(t, durable(t, redisserver.Valkey).URL("j"))
	remotetest.Share(t, func() *remote.Store { return connect(t, at) })
}
