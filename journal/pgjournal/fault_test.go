package pgjournal_test

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/interlockdev/interlock/internal/test/postgrestest"
	"github.com/interlockdev/interlock/internal/test/remotetest"
	"github.com/interlockdev/interlock/journal"
	"github.com/interlockdev/interlock/journal/pgjournal"
	"github.com/interlockdev/interlock/journal/remote"
)

// durable are the settings of a server that loses nothing.
var durable = []string{"-c", "fsync=on"}

// place reads a URL.
func place(t testing.TB, url string) pgjournal.Place {
	t.Helper()
	at, err := pgjournal.ParsePlace(url)
	if err != nil {
		t.Fatalf("%s: %v", url, err)
	}
	return at
}

// A server that stops in any way, and starts again, costs time and nothing else: the owner goes on.
func TestServerStops(t *testing.T) {
	server := postgrestest.Start(t, durable...)
	for name, by := range map[string]syscall.Signal{
		"Fast": syscall.SIGINT, "Immediate": syscall.SIGQUIT, "Killed": syscall.SIGKILL,
	} {
		t.Run(name, func(t *testing.T) {
			j := remotetest.Own(t, connect(t, place(t, server.URL(t))))
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
				if j.Copied() {
					t.Fatal("a restart makes fences jump")
				}
			}
		})
	}
}

// A server that stays away ends the ownership, and nothing is acknowledged.
func TestServerStaysAway(t *testing.T) {
	server := postgrestest.Start(t, durable...)
	at := place(t, server.URL(t))
	at.Patience = 2 * time.Second
	s := connect(t, at)
	j, k := remotetest.Own(t, s), remotetest.Own(t, connect(t, place(t, server.URL(t))))
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

// A standby that lags behind is promoted. The living owner notices at its next append or barrier, and
// fences jump at the next Open.
func TestLostTail(t *testing.T) {
	for _, name := range []string{"Append", "Barrier"} {
		t.Run(name, func(t *testing.T) {
			primary := postgrestest.Start(t, durable...)
			standby := primary.Standby(t, durable...)
			s := connect(t, place(t, primary.URL(t, standby)))
			j := remotetest.Own(t, s)
			remotetest.Add(t, j, "kept")
			standby.Caught(t, primary)
			standby.Stop(t, syscall.SIGINT)
			remotetest.Add(t, j, "lost")
			primary.Stop(t, syscall.SIGKILL)
			standby.Restart(t)
			standby.Promote(t)
			if err := remotetest.Writes[name](t.Context(), j); !errors.Is(err, journal.ErrLost) {
				t.Fatalf("got %v", err)
			}
			next := remotetest.Own(t, s)
			if !next.Copied() {
				t.Error("fences do not jump")
			}
			if got := remotetest.Texts(t, next); got != " kept " {
				t.Errorf("the journal holds %q", got)
			}
			if err := next.Adopt(); err != nil {
				t.Fatal(err)
			}
			if again := remotetest.Own(t, s); again.Copied() {
				t.Error("fences jump twice")
			}
		})
	}
}

// A disk that is put back to an earlier state under the living owner has the old timeline. Each write and the barrier
// compare the end of the log, and change nothing.
func TestLostEntries(t *testing.T) {
	url := postgrestest.Start(t, durable...).URL(t)
	for name, write := range remotetest.Writes {
		t.Run(name, func(t *testing.T) {
			at := place(t, url)
			at.Name = name
			s := connect(t, at)
			j := remotetest.Own(t, s)
			remotetest.Add(t, j, "kept")
			remotetest.Save(t, j, "kept")
			kept := j.Tail()
			remotetest.Add(t, j, "lost")
			postgrestest.Execute(t, url, fmt.Sprintf(
				"DELETE FROM interlock_log WHERE journal = '%s' AND last > %d", name, kept,
			))
			postgrestest.Execute(t, url, fmt.Sprintf(
				"UPDATE interlock_head SET tail = %d WHERE journal = '%s'", kept, name,
			))
			if err := write(t.Context(), j); !errors.Is(err, journal.ErrLost) {
				t.Fatalf("got %v", err)
			}
			// The chain of the head is that of a lost entry, so the journal is damaged beyond this test.
			remotetest.Saved(t, j, "kept")
		})
	}
}

// Without a living owner it is the server's new timeline that makes fences jump.
func TestPromotedWithoutOwner(t *testing.T) {
	primary := postgrestest.Start(t, durable...)
	standby := primary.Standby(t, durable...)
	s := connect(t, place(t, primary.URL(t, standby)))
	j := remotetest.Own(t, s)
	remotetest.Add(t, j, "kept")
	standby.Caught(t, primary)
	j.Close()
	primary.Stop(t, syscall.SIGKILL)
	standby.Promote(t)
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
}

// With a synchronous standby nothing is acknowledged that it does not have, and a primary that lost it
// confirms nothing.
func TestSynchronousStandby(t *testing.T) {
	primary := postgrestest.Start(t, append(durable, "-c", "synchronous_standby_names=standby")...)
	standby := primary.Standby(t, durable...)
	at := place(t, primary.URL(t, standby))
	at.Patience = 3 * time.Second
	s := connect(t, at)
	j := remotetest.Own(t, s)
	remotetest.Add(t, j, "kept")
	standby.Stop(t, syscall.SIGKILL)
	if err := j.Barrier(t.Context()); !errors.Is(err, journal.ErrFailed) {
		t.Fatalf("barrier of a primary without its standby: %v", err)
	}
	primary.Stop(t, syscall.SIGKILL)
	standby.Restart(t)
	standby.Promote(t)
	next := remotetest.Own(t, s)
	if got := remotetest.Texts(t, next); got != " kept " {
		t.Errorf("the journal holds %q", got)
	}
}

// An append that was committed locally, and not at the standby, is not taken for done after the primary
// has crashed and is back.
func TestCommittedLocally(t *testing.T) {
	primary := postgrestest.Start(t, append(durable, "-c", "synchronous_standby_names=standby")...)
	standby := primary.Standby(t, durable...)
	at := place(t, primary.URL(t, standby))
	at.Patience = 4 * time.Second
	j := remotetest.Own(t, connect(t, at))
	remotetest.Add(t, j, "kept")
	standby.Stop(t, syscall.SIGKILL)
	result := make(chan error, 1)
	go func() { result <- j.Append(t.Context(), 3, [][]byte{[]byte("local")}) }()
	// Wait until the commit waits for the standby, and let it become visible by a crash.
	for primary.Value(t, "SELECT count(*)::text FROM pg_stat_activity WHERE wait_event = 'SyncRep'") == "0" {
		continue
	}
	primary.Stop(t, syscall.SIGKILL)
	primary.Restart(t)
	if err := <-result; !errors.Is(err, journal.ErrFailed) {
		t.Fatalf("an append that only the primary has: %v", err)
	}
}

// Through a pooler in transaction mode, where sessions change from statement to statement.
func TestPooler(t *testing.T) {
	server := postgrestest.Start(t, durable...)
	at := place(t, server.Bouncer(t))
	s := connect(t, at)
	j := remotetest.Own(t, s)
	want := ""
	for i := range 50 {
		remotetest.Add(t, j, fmt.Sprint(i))
		want += fmt.Sprint(" ", i)
	}
	if err := j.Barrier(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := remotetest.Texts(t, j); got != want {
		t.Errorf("the journal holds %q", got)
	}
	server.Stop(t, syscall.SIGQUIT)
	server.Restart(t)
	remotetest.Add(t, j, "after")
	next := remotetest.Own(t, s)
	if err := j.Barrier(t.Context()); !errors.Is(err, journal.ErrFenced) {
		t.Errorf("the owner before: %v", err)
	}
	if got := remotetest.Texts(t, next); got != want+" after " {
		t.Errorf("the journal holds %q", got)
	}
}

// A server that may forget what it has acknowledged is refused, unless loss is allowed.
func TestUnsafeServer(t *testing.T) {
	for _, setting := range []string{"fsync=off", "full_page_writes=off", "synchronous_commit=off"} {
		t.Run(setting, func(t *testing.T) {
			server := postgrestest.Start(t, append(durable, "-c", setting)...)
			at := place(t, server.URL(t))
			_, err := connect(t, at).Open(t.Context())
			name, _, _ := strings.Cut(setting, "=")
			for _, want := range []string{name + " is off", "--allow-loss"} {
				if err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("got %v, want %s", err, want)
				}
			}
			at.AllowLoss = true
			remotetest.Own(t, connect(t, at))
		})
	}
}

func TestSeed(t *testing.T) {
	remotetest.Seed(t, connect(t, place(t, postgrestest.Start(t, durable...).URL(t))))
}

func TestFilling(t *testing.T) {
	server := postgrestest.Start(t, durable...)
	url := server.URL(t)
	open := func(t *testing.T, name string) *remote.Store { return connect(t, place(t, url+"&journal="+name)) }
	remotetest.Filling(t, open, func(t *testing.T, f func(*testing.T)) { f(t) })
}

// A role that may only use tables, or make them, is enough, and knows which server it talks to.
func TestPlainRole(t *testing.T) {
	server := postgrestest.Start(t, durable...)
	url := server.URL(t)
	postgrestest.Execute(t, url, "CREATE ROLE plain LOGIN; REVOKE CREATE ON SCHEMA public FROM public")
	plain := strings.Replace(url, "postgres@", "plain@", 1)
	_, err := connect(t, place(t, plain)).Open(t.Context())
	if err == nil || !strings.Contains(err.Error(), "GRANT CREATE") {
		t.Fatalf("without the right to make tables: %v", err)
	}
	postgrestest.Execute(t, url, "GRANT CREATE ON SCHEMA public TO plain")
	remotetest.Add(t, remotetest.Own(t, connect(t, place(t, plain))), "made")
	postgrestest.Execute(t, url, "REVOKE CREATE ON SCHEMA public FROM plain")
	remotetest.Add(t, remotetest.Own(t, connect(t, place(t, plain+"&journal=other"))), "used")
	if name := postgrestest.Value(t, url, "SELECT min(server) FROM interlock_head"); !strings.Contains(name, "/") {
		t.Errorf("the server is known as %q", name)
	}
}

// A standby is promoted that lacks a takeover, so the owner before is the newest one again. It ends all the same, and
// fences jump: the later one may have given some out.
func TestLostTakeover(t *testing.T) {
	primary := postgrestest.Start(t, durable...)
	standby := primary.Standby(t, durable...)
	s, other := connect(t, place(t, primary.URL(t, standby))), connect(t, place(t, primary.URL(t, standby)))
	j := remotetest.Own(t, s)
	remotetest.Add(t, j, "kept")
	standby.Caught(t, primary)
	standby.Stop(t, syscall.SIGINT)
	remotetest.Add(t, remotetest.Own(t, other), "of a later owner")
	primary.Stop(t, syscall.SIGKILL)
	standby.Restart(t)
	standby.Promote(t)
	if err := j.Append(t.Context(), j.Tail()+1, [][]byte{{1}}); !errors.Is(err, journal.ErrFailed) {
		t.Fatalf("the owner before the lost takeover appends: %v", err)
	}
	next := remotetest.Own(t, s)
	if !next.Copied() {
		t.Error("fences do not jump")
	}
	if got := remotetest.Texts(t, next); got != " kept " {
		t.Errorf("the journal holds %q", got)
	}
}
