package server_test

import (
	"context"
	"testing"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/client"
	"github.com/interlockdev/interlock/internal/test/busy"
)

// dialMembers connects package client to session addresses.
func dialMembers(t *testing.T, namespace, agent string, addrs ...string) *client.Client {
	t.Helper()
	c, err := client.Dial(
		busy.Context(t), client.Config{Addrs: addrs, Namespace: interlock.Namespace(namespace), Agent: agent},
	)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		short, cancel := context.WithTimeout(context.Background(), busy.Patience())
		defer cancel()
		_ = c.Close(short)
	})
	return c
}

// A client with a relayed stream goes to the owner, over either protocol. Until it gets there the relay serves it,
// and what it holds and waits for goes with it.
func TestStreamGoesToOwner(t *testing.T) {
	for over, scheme := range map[string]string{"Framed": "", "GRPC": "grpc://"} {
		t.Run(over, func(t *testing.T) {
			ctx := busy.Context(t)
			members := serveMembers(t, nil)
			ns, owner, relay := namespaceOf(0), members[0], members[1]
			other := dialMembers(t, ns, "other", owner.grpc)
			owner.sessions.visitor(t)
			theirs, err := other.Acquire(ctx, client.Request{Keys: []interlock.Key{"account:2"}})
			if err != nil {
				t.Fatal(err)
			}

			owner.sessions.shut.Store(true)
			dialled := make(chan *client.Client)
			go func() { dialled <- dialMembers(t, ns, "a", scheme+relay.grpc, scheme+owner.grpc) }()
			relayed := relay.sessions.visitor(t)
			close(owner.sessions.visitor(t).admitted) // the relay's
			c := <-dialled
			direct := owner.sessions.visitor(t) // and it waits at the door
			mine, err := c.Acquire(ctx, client.Request{Keys: []interlock.Key{"account:1"}})
			if err != nil {
				t.Fatal(err)
			}
			queued, granted := make(chan struct{}, 10), make(chan error, 1)
			go func() {
				l, err := c.Acquire(ctx, client.Request{
					Keys: []interlock.Key{"account:2"}, OnConflict: interlock.Wait,
					OnQueued: func(interlock.Ticket, []interlock.Holder) { queued <- struct{}{} },
				})
				if err == nil {
					err = l.Release(ctx, client.Outcome{})
				}
				granted <- err
			}()
			standsInLine(t, queued)

			close(direct.admitted)
			relayed.leaves(t)
			standsInLine(t, queued) // again, at the owner
			if err := theirs.Release(ctx, client.Outcome{}); err != nil {
				t.Error(err)
			}
			if err := <-granted; err != nil {
				t.Errorf("the wait: %v", err)
			}
			if err := mine.Err(); err != nil {
				t.Errorf("the lease: %v", err)
			}
			if err := mine.Release(ctx, client.Outcome{}); err != nil {
				t.Errorf("the end of the lease: %v", err)
			}
			select {
			case v := <-owner.sessions.came:
				t.Errorf("another connection from %v", v.RemoteAddr())
			case v := <-relay.sessions.came:
				t.Errorf("another connection from %v", v.RemoteAddr())
			default:
			}
		})
	}
}

func standsInLine(t *testing.T, queued chan struct{}) {
	t.Helper()
	select {
	case <-queued:
	case <-time.After(busy.Patience()):
		t.Fatal("the client does not stand in line")
	}
}

// An owner that is not on the client's list is not connected to: the stream stays relayed. A client decides that before
// it connects again, so its second connection shows the decision about the first.
func TestStreamDoesNotFollowStrangers(t *testing.T) {
	ctx := busy.Context(t)
	members := serveMembers(t, nil)
	ns, owner, relay := namespaceOf(0), members[0], members[1]
	away := busy.Ports(t, 1)[0]
	c := dialMembers(t, ns, "a", relay.grpc, away)
	first := relay.sessions.visitor(t)
	owner.sessions.visitor(t) // the relay's
	_ = first.Conn.Close()
	relay.sessions.visitor(t)
	owner.sessions.visitor(t) // the relay's second
	l, err := c.Acquire(ctx, client.Request{Keys: []interlock.Key{"account:1"}})
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Release(ctx, client.Outcome{}); err != nil {
		t.Error(err)
	}
	select {
	case v := <-owner.sessions.came:
		t.Errorf("the client connected to the owner from %v", v.RemoteAddr())
	default:
	}
}

// An owner on the list that cannot be reached from the client costs an attempt. The stream stays relayed.
func TestStreamStaysRelayed(t *testing.T) {
	ctx := busy.Context(t)
	members := serveMembers(t, nil)
	ns, owner, relay := namespaceOf(0), members[0], members[1]
	owner.sessions.shut.Store(true)
	dialled := make(chan *client.Client)
	go func() { dialled <- dialMembers(t, ns, "a", relay.grpc, owner.grpc) }()
	relayed := relay.sessions.visitor(t)
	close(owner.sessions.visitor(t).admitted) // the relay's
	c := <-dialled
	direct := owner.sessions.visitor(t)
	_ = direct.Close()
	close(direct.admitted)
	l, err := c.Acquire(ctx, client.Request{Keys: []interlock.Key{"account:1"}})
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Release(ctx, client.Outcome{}); err != nil {
		t.Error(err)
	}
	select {
	case <-relayed.left:
		t.Error("the relayed stream was ended")
	case v := <-relay.sessions.came:
		t.Errorf("another connection from %v", v.RemoteAddr())
	default:
	}
}
