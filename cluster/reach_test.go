package cluster_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/interlockdev/interlock/cluster"
)

// links is how servers reach each other: what a probe of the second by the first returns. Without an entry it is
// answered. A fault of "" is a line that drops or holds all: the probe ends with its time.
type links map[[2]string]error

var errHeld = errors.New("the line holds what is sent")

func (e *engine) probed(name string, l *links) func(*cluster.Config) {
	return func(c *cluster.Config) {
		c.Probe = func(ctx context.Context, m cluster.Member) error {
			e.mu.Lock()
			err := (*l)[[2]string{name, m.HTTP[len("http://"):]}]
			e.mu.Unlock()
			if errors.Is(err, errHeld) {
				<-ctx.Done()
				return ctx.Err()
			}
			return err
		}
	}
}

// After each kind of cut the owner of the shards leaves or stays, within the time that a lease of 10 s has.
func TestCutLinks(t *testing.T) {
	const reset = syscall.ECONNRESET
	for _, c := range []struct {
		name string
		cut  links
		// owners after the cut: they share the four shards
		want []string
		// unready are the servers that do not reach an owner at the end
		unready []string
	}{
		{"nothing", links{}, []string{"a", "b", "c"}, nil},
		{"one of three, from its peers", links{{"a", "b"}: errHeld, {"c", "b"}: errHeld}, []string{"a", "c"}, nil},
		{"one of three, closing", links{{"a", "b"}: reset, {"c", "b"}: reset}, []string{"a", "c"}, nil},
		{
			"one of three, both ways",
			links{{"a", "b"}: errHeld, {"c", "b"}: errHeld, {"b", "a"}: errHeld, {"b", "c"}: errHeld},
			[]string{"a", "c"},
			[]string{"b"},
		},
		{"two of three, one way", links{{"a", "b"}: errHeld}, []string{"a", "b", "c"}, []string{"a"}},
		{
			"two of three, both ways",
			links{{"a", "b"}: errHeld, {"b", "a"}: reset},
			[]string{"a", "b", "c"},
			[]string{"a", "b"},
		},
		{"only its own way out", links{{"b", "a"}: errHeld, {"b", "c"}: errHeld}, []string{"a", "b", "c"}, []string{"b"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e, cut := newEngine(4), &links{}
				names := []string{"a", "b", "c"}
				var nodes []*node
				for _, name := range names {
					nodes = append(nodes, e.start(t, name, e.probed(name, cut)))
				}
				<-time.After(time.Minute)
				e.mu.Lock()
				*cut = c.cut
				e.mu.Unlock()
				<-time.After(8 * time.Second)
				e.mu.Lock()
				owns := map[string]int{}
				for s, o := range e.owners {
					if o == nil {
						t.Errorf("shard %d has no owner", s)
					} else {
						owns[o.server]++
					}
				}
				e.mu.Unlock()
				if len(owns) != len(c.want) {
					t.Errorf("%v own shards, want %v", owns, c.want)
				}
				for _, name := range c.want {
					if owns[name] == 0 {
						t.Errorf("%v own shards, want %v", owns, c.want)
					}
				}
				var unready []string
				for i, n := range nodes {
					v := n.View()
					for _, m := range v.Holders {
						if m != nil && !v.Unreached[m.ID].IsZero() {
							unready = append(unready, names[i])
							break
						}
					}
				}
				if fmt.Sprint(unready) != fmt.Sprint(c.unready) {
					t.Errorf("%v do not reach an owner, want %v", unready, c.unready)
				}
				// When the link is mended, the shards are spread again, and no server is marked.
				e.mu.Lock()
				*cut = links{}
				e.mu.Unlock()
				<-time.After(2 * time.Minute)
				for _, n := range nodes {
					v := n.View()
					if len(v.Unreached) > 0 || len(v.Members) != 3 {
						t.Errorf("after the mend %d members, unreached %v", len(v.Members), v.Unreached)
					}
					n.stop()
				}
			})
		})
	}
}

// If neither of two servers reaches the other, one of them serves all shards.
func TestPeersCutFromEachOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, cut := newEngine(4), &links{}
		nodes := []*node{e.start(t, "a", e.probed("a", cut)), e.start(t, "b", e.probed("b", cut))}
		<-time.After(time.Minute)
		e.mu.Lock()
		*cut = links{{"a", "b"}: errHeld, {"b", "a"}: errHeld}
		moves := e.moves
		e.mu.Unlock()
		<-time.After(time.Minute)
		e.mu.Lock()
		changes := e.moves - moves
		e.mu.Unlock()
		<-time.After(time.Minute)
		e.mu.Lock()
		owners := map[string]int{}
		for _, o := range e.owners {
			if o != nil {
				owners[o.server]++
			}
		}
		if len(owners) != 1 || owners["a"]+owners["b"] != len(e.owners) {
			t.Errorf("%v own shards, want one server", owners)
		}
		// Each may have left its shards to the other one before it knew that both are cut off.
		if later := e.moves - moves - changes; changes > 2*len(e.owners) || later > 0 {
			t.Errorf("%d changes of owners in a minute, and %d in the next", changes, later)
		}
		e.mu.Unlock()
		for _, n := range nodes {
			n.stop()
		}
	})
}

// A process that is gone refuses connections: its shards have another owner long before its beats are missed. One
// that has never answered, because its address is wrong, is not dead: it leaves its shards in order.
func TestRefusedConnections(t *testing.T) {
	for name, answered := range map[string]bool{"it answered before": true, "it never answered": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				e, cut := newEngine(4), &links{}
				if !answered {
					*cut = links{{"a", "b"}: syscall.ECONNREFUSED}
				}
				a := e.start(t, "a", e.probed("a", cut))
				b := e.start(t, "b", e.probed("b", cut))
				<-time.After(30 * time.Second)
				e.mu.Lock()
				*cut = links{{"a", "b"}: syscall.ECONNREFUSED}
				e.mu.Unlock()
				if answered {
					b.stop()
				}
				<-time.After(1500 * time.Millisecond)
				e.mu.Lock()
				theirs := 0
				for _, o := range e.owners {
					if o == nil || o.server != "a" {
						theirs++
					}
				}
				e.mu.Unlock()
				if answered && theirs > 0 {
					t.Errorf("%d shards of the dead server have no owner after 1.5 s", theirs)
				}
				if n := len(a.View().Members); !answered && (n != 2 || theirs > 0) {
					t.Errorf("the server with the wrong address is one of %d members, and has %d shards", n, theirs)
				}
				b.stop()
				<-b.done
				a.stop()
			})
		})
	}
}

// A server without beats that answers nothing either has lost its shards within three seconds, and one with either of
// the two signs keeps them for longer: a slow engine delays beats, and a cut between two servers delays answers.
func TestTwoSignsOfLife(t *testing.T) {
	toB := links{{"a", "b"}: errHeld, {"c", "b"}: errHeld}
	lost := links{{"a", "b"}: syscall.ECONNRESET, {"c", "b"}: syscall.ECONNRESET}
	for _, c := range []struct {
		name   string
		beats  bool
		after  time.Duration // the cut comes so much later
		cut    links
		lasts  time.Duration
		leaves bool
	}{
		{"vanished", false, 0, toB, 2700 * time.Millisecond, true},
		{"vanished for one of the others", false, 0, links{{"a", "b"}: errHeld}, 2700 * time.Millisecond, true},
		{"no beats", false, 0, links{}, 1900 * time.Millisecond, false},
		{"no beats, and a connection lost", false, 1300 * time.Millisecond, lost, 1900 * time.Millisecond, false},
		{"no answers", true, 0, toB, 3800 * time.Millisecond, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			for seed := range uint64(40) {
				synctest.Test(t, func(t *testing.T) {
					rng := rand.New(rand.NewPCG(seed, 2))
					e, cut := newEngine(6), &links{}
					var nodes []*node
					for _, name := range []string{"a", "b", "c"} {
						nodes = append(nodes, e.start(t, name, e.probed(name, cut)))
					}
					<-time.After(time.Minute + time.Duration(rng.IntN(2000))*time.Millisecond)
					had := e.shares()["b"]
					e.mu.Lock()
					e.cut["b"] = !c.beats
					e.mu.Unlock()
					<-time.After(c.after)
					e.mu.Lock()
					*cut = c.cut
					e.mu.Unlock()
					<-time.After(c.lasts - c.after)
					if left := e.shares()["b"]; left != had && !c.leaves || left > 0 && c.leaves || had == 0 {
						t.Errorf("seed %d: after %v it has %d of %d shards", seed, c.lasts, left, had)
					}
					e.mu.Lock()
					*cut, e.cut["b"] = links{}, false
					e.mu.Unlock()
					for _, n := range nodes {
						n.kill()
					}
				})
			}
		})
	}
}

// A process that starts again at its address takes its shards at once.
func TestSameAddress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newEngine(4)
		first := e.start(t, "a")
		<-time.After(10 * time.Second)
		first.stop()
		<-first.done
		e.mu.Lock()
		clear(e.owners)
		e.mu.Unlock()
		next := e.start(t, "a")
		<-time.After(600 * time.Millisecond)
		e.mu.Lock()
		for s, o := range e.owners {
			if o == nil {
				t.Errorf("shard %d has no owner", s)
			}
		}
		e.mu.Unlock()
		next.stop()
	})
}
