package redisjournal_test

import (
	"errors"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/interlockdev/interlock/internal/test/redisserver"
	"github.com/interlockdev/interlock/internal/test/remotetest"
	"github.com/interlockdev/interlock/journal"
)

// group is a primary with replicas that have what it has.
func group(t *testing.T, k redisserver.Kind, replicas int) (primary *redisserver.Server, others []*redisserver.Server) {
	t.Helper()
	primary = durable(t, k)
	for range replicas {
		r := primary.Replica(t, redisserver.Durable...)
		r.Caught(t, primary)
		others = append(others, r)
	}
	return primary, others
}

// Of two replicas the one that lags behind becomes the primary. The living owner notices at its next write or barrier,
// which changes nothing, and fences jump at the next Open.
func TestLostTail(t *testing.T) {
	kinds(t, func(t *testing.T, k redisserver.Kind) {
		for name, write := range remotetest.Writes {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				primary, replicas := group(t, k, 2)
				current, stale := replicas[0], replicas[1]
				s := connect(t, place(t, primary.URL("j", current, stale)))
				j := remotetest.Own(t, s)
				remotetest.Add(t, j, "kept")
				remotetest.Save(t, j, "kept")
				stale.Caught(t, primary)
				stale.Stop(t, syscall.SIGKILL)
				remotetest.Add(t, j, "lost")
				primary.Stop(t, syscall.SIGKILL)
				stale.Restart(t)
				stale.Promote(t)
				current.Follow(t, stale)
				if err := write(t.Context(), j); !errors.Is(err, journal.ErrLost) {
					t.Fatalf("got %v", err)
				}
				next := remotetest.Own(t, s)
				if !next.Copied() {
					t.Error("fences do not jump")
				}
				if got := remotetest.Texts(t, next); got != " kept " {
					t.Errorf("the journal holds %q", got)
				}
				remotetest.Saved(t, next, "kept")
				if err := next.Adopt(); err != nil {
					t.Fatal(err)
				}
				if again := remotetest.Own(t, s); again.Copied() {
					t.Error("fences jump twice")
				}
			})
		}
	})
}

// Without a living owner it is the server's new replication id that makes fences jump.
func TestPromotedWithoutOwner(t *testing.T) {
	kinds(t, func(t *testing.T, k redisserver.Kind) {
		primary, replicas := group(t, k, 1)
		at := place(t, primary.URL("j", replicas...))
		j := remotetest.Own(t, connect(t, at))
		remotetest.Add(t, j, "kept")
		if again := remotetest.Own(t, connect(t, at)); again.Copied() {
			t.Error("fences jump without a reason")
		}
		primary.Stop(t, syscall.SIGKILL)
		replicas[0].Promote(t)
		replicas[0].Replica(t, redisserver.Durable...).Caught(t, replicas[0])
		s := connect(t, at)
		next := remotetest.Own(t, s)
		if !next.Copied() {
			t.Error("fences do not jump")
		}
		if err := next.Adopt(); err != nil {
			t.Fatal(err)
		}
		if remotetest.Own(t, s).Copied() {
			t.Error("fences jump twice")
		}
	})
}

// Nothing is acknowledged that only the primary has, also not after a new connection. When the primary is killed and
// its replica promoted, all that was acknowledged is there.
func TestReplicaHasIt(t *testing.T) {
	kinds(t, func(t *testing.T, k redisserver.Kind) {
		for _, name := range []string{"Append", "Barrier"} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				primary, replicas := group(t, k, 1)
				at := place(t, primary.URL("j", replicas...))
				at.Patience = 2 * time.Second
				j := remotetest.Own(t, connect(t, at))
				remotetest.Add(t, j, "kept")
				replicas[0].Stop(t, syscall.SIGKILL)
				if err := remotetest.Writes[name](t.Context(), j); !errors.Is(err, journal.ErrFailed) {
					t.Fatalf("a primary without its replica: %v", err)
				}
				if _, err := connect(t, at).Open(t.Context()); err == nil {
					t.Fatal("a primary without its replica accepts an owner")
				}
				primary.Stop(t, syscall.SIGKILL)
				replicas[0].Restart(t)
				replicas[0].Promote(t)
				replicas[0].Replica(t, redisserver.Durable...).Caught(t, replicas[0])
				next := remotetest.Own(t, connect(t, at))
				if got := remotetest.Texts(t, next); !strings.HasPrefix(got, " kept ") {
					t.Errorf("the journal holds %q", got)
				}
			})
		}
	})
}

// Valkey waits until the replica has synced an append, and not only until it has heard of it.
func TestReplicaHasSynced(t *testing.T) {
	primary, replicas := group(t, redisserver.Valkey, 1)
	at := place(t, primary.URL("j", replicas...))
	at.Patience = 2 * time.Second
	j := remotetest.Own(t, connect(t, at))
	remotetest.Add(t, j, "kept")
	replicas[0].Do(t, "CONFIG", "SET", "appendonly", "no")
	if err := j.Append(t.Context(), j.Tail()+1, [][]byte{{1}}); !errors.Is(err, journal.ErrFailed) {
		t.Fatalf("an append that the replica does not sync: %v", err)
	}
}

// A primary that was cut off, and does not know that another one was promoted, confirms nothing: an owner that still
// reaches it leaves it for the new one.
func TestCutOffPrimary(t *testing.T) {
	primary, replicas := group(t, redisserver.Valkey, 1)
	at := place(t, primary.URL("j", replicas...))
	j := remotetest.Own(t, connect(t, at))
	remotetest.Add(t, j, "kept")
	replicas[0].Promote(t)
	replicas[0].Replica(t, redisserver.Durable...).Caught(t, replicas[0])
	reversed := place(t, replicas[0].URL("j", primary))
	next := remotetest.Own(t, connect(t, reversed))
	if err := j.Barrier(t.Context()); !errors.Is(err, journal.ErrFenced) {
		t.Errorf("the owner at the old primary: %v", err)
	}
	remotetest.Add(t, next, "after")
	if got := remotetest.Texts(t, next); got != " kept  after" {
		t.Errorf("the journal holds %q", got)
	}
}

// How many replicas each write waits for can be lowered on purpose, and not otherwise.
func TestFewerReplicas(t *testing.T) {
	primary, replicas := group(t, redisserver.Valkey, 1)
	at := place(t, primary.URL("j"))
	at.Patience = 2 * time.Second
	remotetest.Add(t, remotetest.Own(t, connect(t, at)), "one")
	replicas[0].Stop(t, syscall.SIGKILL)
	tooFew := func(when string) {
		t.Helper()
		for {
			_, err := connect(t, at).Open(t.Context())
			var e net.Error
			switch {
			case err != nil && strings.Contains(err.Error(), "too few"):
				return
			case !errors.As(err, &e) || !e.Timeout(): // a busy machine may have had no time for an answer
				t.Fatalf("%s: %v", when, err)
			}
		}
	}
	tooFew("without the replica")
	primary.Stop(t, syscall.SIGKILL)
	primary.Restart(t) // which has not seen the replica
	tooFew("after a restart without the replica")
	none := at
	none.Replicas = 0
	remotetest.Add(t, remotetest.Own(t, connect(t, none)), "two")
	if got := remotetest.Texts(t, remotetest.Own(t, connect(t, at))); got != " one  two " {
		t.Errorf("the journal holds %q", got)
	}
}

// A copy of the files at another server continues there, and fences jump. The original goes on.
func TestCopiedFiles(t *testing.T) {
	server, other := durable(t, redisserver.Valkey), durable(t, redisserver.Valkey)
	j := remotetest.Own(t, connect(t, place(t, server.URL("j"))))
	remotetest.Add(t, j, "before")
	other.Stop(t, syscall.SIGKILL)
	if err := os.RemoveAll(other.Dir); err != nil {
		t.Fatal(err)
	}
	if err := os.CopyFS(other.Dir, os.DirFS(server.Dir)); err != nil {
		t.Fatal(err)
	}
	remotetest.Add(t, j, "after")
	other.Restart(t)
	copied := remotetest.Own(t, connect(t, place(t, other.URL("j"))))
	if !copied.Copied() {
		t.Error("fences do not jump")
	}
	if got := remotetest.Texts(t, copied); got != " before " {
		t.Errorf("the copy holds %q", got)
	}
	if err := j.Barrier(t.Context()); err != nil || remotetest.Texts(t, j) != " before after" {
		t.Errorf("the original: %v", err)
	}
}

// An owner that the promoted replica has never heard of is not mistaken for the one that has its epoch there.
func TestLostEpoch(t *testing.T) {
	primary, replicas := group(t, redisserver.Redis, 2)
	current, stale := replicas[0], replicas[1]
	s := connect(t, place(t, primary.URL("j", current, stale)))
	remotetest.Own(t, s)
	stale.Caught(t, primary)
	stale.Stop(t, syscall.SIGKILL)
	lost := remotetest.Own(t, s)
	primary.Stop(t, syscall.SIGKILL)
	stale.Restart(t)
	stale.Promote(t)
	current.Follow(t, stale)
	next := remotetest.Own(t, connect(t, place(t, stale.URL("j"))))
	if next.Epoch() != lost.Epoch() {
		t.Fatalf("the owners have the epochs %d and %d: the test would show nothing", next.Epoch(), lost.Epoch())
	}
	remotetest.Add(t, next, "after")
	if err := lost.Barrier(t.Context()); !errors.Is(err, journal.ErrLost) {
		t.Errorf("the lost owner: %v", err)
	}
}
