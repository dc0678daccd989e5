package endpoint

import (
	"context"
	"errors"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/interlockdev/interlock/internal/test/busy"
)

func TestListStaysWithWhatWorks(t *testing.T) {
	l := New([]string{"a:1", "b:1", "c:1"})
	for _, step := range []struct {
		what string
		do   func()
		want int
	}{
		{"at first", func() {}, 0},
		{"the first fails", func() { l.Failed(0) }, 1},
		{"a slower attempt at the first fails, too", func() { l.Failed(0) }, 1},
		{"a standby names the third", func() { l.Follow("c:1") }, 2},
		{"it names a stranger", func() { l.Follow("evil:1") }, 2},
		{"the last fails", func() { l.Failed(2) }, 0},
	} {
		if step.do(); l.Current() != step.want {
			t.Fatalf("%s: current is %d, want %d", step.what, l.Current(), step.want)
		}
	}
	if l.Follow("evil:1") || !l.Follow("b:1") {
		t.Error("only addresses of the list are followed")
	}
}

// A silent server is passed over although another one names it, until it has answered by way of that one.
func TestFollowOwner(t *testing.T) {
	l := New([]string{"a:1", "b:1"})
	l.Silent(0)
	if l.Follow("a:1") || l.Current() != 1 {
		t.Error("a server that was silent is followed")
	}
	if l.FollowOwner("evil:1") {
		t.Error("an address that is not on the list is followed")
	}
	if !l.FollowOwner("a:1") || l.Current() != 0 {
		t.Error("an owner that has answered by way of another server is not followed")
	}
}

// listen returns a listener on an address of loopback with a port, and the addresses of accepted connections.
func listen(t *testing.T, host, port string) (at string, accepted chan string) {
	t.Helper()
	l, err := net.Listen("tcp", net.JoinHostPort(host, port))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	accepted = make(chan string, 16)
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			accepted <- conn.LocalAddr().String()
			conn.Close()
		}
	}()
	return l.Addr().String(), accepted
}

// A name with two addresses is two servers: after a failure the other one is connected to, and the
// one that a standby names by its address is.
func TestNameWithTwoAddresses(t *testing.T) {
	one, atOne := listen(t, "127.0.0.1", "0")
	_, port, _ := net.SplitHostPort(one)
	two, atTwo := listen(t, "127.0.0.2", port)
	name := net.JoinHostPort("servers.test", port)
	l := New([]string{name})
	found := []string{"127.0.0.1", "127.0.0.2"}
	l.Lookup = func(_ context.Context, host string) ([]string, error) {
		if host != "servers.test" {
			t.Errorf("looked up %s", host)
		}
		return append([]string(nil), found...), nil
	}
	if l.Places() != 1 {
		t.Errorf("%d places before the name was looked up", l.Places())
	}
	reaches := func(want chan string) {
		t.Helper()
		conn, err := l.DialContext(t.Context(), "tcp", name)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		select {
		case <-want:
		case <-time.After(busy.Patience()):
			t.Fatalf("the wrong server was reached: %s", conn.RemoteAddr())
		}
	}
	reaches(atOne)
	if l.Places() != 2 {
		t.Errorf("%d places", l.Places())
	}
	reaches(atOne)
	l.Failed(0)
	reaches(atTwo)
	found = []string{"127.0.0.2", "127.0.0.1", "127.0.0.3"} // the resolver's order changes
	reaches(atTwo)
	if !l.Follow(one) {
		t.Errorf("%s is an address of the name", one)
	}
	reaches(atOne)
	if !l.Follow(two) {
		t.Errorf("%s is an address of the name", two)
	}
	reaches(atTwo)
}

// One dead address of a name costs nothing; if all are dead, the error is about a dial.
func TestDeadAddresses(t *testing.T) {
	at, accepted := listen(t, "127.0.0.1", "0")
	_, port, _ := net.SplitHostPort(at)
	found := []string{"127.0.0.3", "127.0.0.1"}
	d := Dialer{Lookup: func(context.Context, string) ([]string, error) { return found, nil }}
	conn, err := d.DialContext(t.Context(), "tcp", "servers.test:"+port)
	if err != nil {
		t.Fatal(err)
	}
	conn.Close()
	<-accepted
	found = []string{"127.0.0.3", "127.0.0.4"}
	_, err = d.DialContext(t.Context(), "tcp", "others.test:"+port)
	if op, ok := errors.AsType[*net.OpError](err); !ok || op.Op != "dial" {
		t.Errorf("got %v", err)
	}
	found = nil
	_, err = d.DialContext(t.Context(), "tcp", "nothing.test:"+port)
	if op, ok := errors.AsType[*net.OpError](err); !ok || op.Op != "dial" {
		t.Errorf("got %v", err)
	}
}

func TestPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for round := range 100 {
			began := time.Now()
			if err := Pause(t.Context(), round); err != nil {
				t.Fatal(err)
			}
			most := min(100*time.Millisecond<<min(round, 8), MostPause)
			if took := time.Since(began); took > most {
				t.Errorf("round %d: a pause of %v", round, took)
			}
		}
		ctx, cancel := context.WithCancelCause(t.Context())
		why := errors.New("given up")
		cancel(why)
		if err := Pause(ctx, 0); !errors.Is(err, why) {
			t.Errorf("got %v", err)
		}
	})
}

func TestShare(t *testing.T) {
	for left, want := range map[time.Duration]time.Duration{
		10 * time.Second: 2500 * time.Millisecond, time.Second: 500 * time.Millisecond,
		100 * time.Millisecond: 100 * time.Millisecond, 0: 0,
	} {
		if got := Share(left); got != want {
			t.Errorf("of %v: %v, want %v", left, got, want)
		}
	}
}
