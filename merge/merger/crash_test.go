package merger

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/interlockdev/interlock/merge"
)

// deadRef is a ref of a merger that dies at a move: before it, or after it and before the merger learns of it.
type deadRef struct {
	Ref
	after bool
	die   func()
	dead  bool
}

func (d *deadRef) Move(ctx context.Context, m merge.Move) (string, error) {
	if d.dead {
		return "", errors.New("a dead merger moves the ref")
	}
	d.dead = true
	if d.after {
		if _, err := d.Ref.Move(ctx, m); err != nil {
			return "", err
		}
	}
	d.die()
	<-ctx.Done()
	return "", ctx.Err()
}

// A merger dies between two steps of a landing, and the next one ends the landing: nothing is lost, nothing lands
// twice, and the commits are those that were staged.
func TestDeathBetweenTheSteps(t *testing.T) {
	for _, after := range []bool{false, true} {
		t.Run(fmt.Sprintf("moved=%v", after), func(t *testing.T) {
			r := newRig(t)
			r.signer = &merge.Signer{Format: "ssh", Key: "any", Program: r.program(anySignature)}
			r.work(good)
			a := r.submit(Submission{ID: "a", Head: r.commit(r.begin, files{"a": "1\n"})})
			b := r.submit(Submission{ID: "b", Head: r.commit(r.begin, files{"b": "1\n"})})
			c := r.config("victim")
			died := make(chan struct{})
			c.Target = &deadRef{Ref: c.Target, after: after, die: func() { close(died) }}
			victim, err := New(c)
			if err != nil {
				t.Fatal(err)
			}
			ctx, kill := context.WithCancel(t.Context())
			defer kill()
			ended := make(chan error, 1)
			go func() { ended <- victim.Run(ctx) }()
			<-died
			var staged Target
			if _, err := read(t.Context(), r.author, web.Key(), &staged); err != nil || staged.Staged == nil {
				t.Fatalf("nothing is staged: %+v, %v", staged, err)
			}
			if moved := r.head() != r.begin; moved != after {
				t.Fatalf("the ref has moved: %v, want %v", moved, after)
			}
			_ = c.Client.Close(t.Context()) // its session ends, with the seat and all tasks
			kill()
			<-ended
			r.start(r.config("heir"))
			for _, id := range []Outcome{r.result(a), r.result(b)} {
				if id.Code != Landed {
					t.Errorf("%+v", id)
				}
			}
			if got := r.landings(); !slices.Equal(got, []string{"a", "b"}) {
				t.Errorf("landed %v", got)
			}
			first := staged.Staged.Landings[0]
			if !slices.Contains(slices.Collect(lines(r.run("rev-list", "--first-parent", "refs/heads/main"))), first.Commit) {
				t.Errorf("landing %+v was staged, and another one landed", first)
			}
		})
	}
}

// Two mergers: the first stops inside its move until the second has landed. Then it moves on, and git refuses it.
func TestStoppedMergerCannotMove(t *testing.T) {
	r := newRig(t)
	r.work(good)
	a := r.submit(Submission{ID: "a", Head: r.commit(r.begin, files{"a": "1\n"})})
	c := r.config("stopped")
	stopped, goOn, refused := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	c.Target = &stoppedRef{c.Target, stopped, goOn, refused}
	first, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	ctx, kill := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- first.Run(ctx) }()
	<-stopped
	_ = c.Client.Close(t.Context())
	r.start(r.config("second"))
	if o := r.result(a); o.Code != Landed {
		t.Fatalf("%+v", o)
	}
	b := r.submit(Submission{ID: "b", Head: r.commit(r.begin, files{"b": "1\n"})})
	r.result(b)
	head := r.head()
	close(goOn)
	if err := <-refused; err == nil {
		t.Error("the stopped merger has moved the ref")
	} else if _, stale := errors.AsType[*merge.Stale](err); !stale {
		t.Errorf("the stopped merger: %v, want a stale fence", err)
	}
	kill()
	<-ended
	if r.head() != head {
		t.Errorf("the head is %s, and was %s", r.head(), head)
	}
}

// stoppedRef stops in a move, and carries it out later whatever its context.
type stoppedRef struct {
	Ref
	stopped chan struct{}
	goOn    chan struct{}
	refused chan error
}

func (s *stoppedRef) Move(ctx context.Context, m merge.Move) (string, error) {
	close(s.stopped)
	<-s.goOn
	head, err := s.Ref.Move(context.WithoutCancel(ctx), m)
	s.refused <- err
	return head, err
}

// The ref is moved by others while a chain is checked: the merger begins again on the new head.
func TestTargetMovedByOthers(t *testing.T) {
	r := newRig(t)
	r.work(good)
	c := r.config("merger")
	hotfix := r.commit(r.begin, files{"hotfix": "1\n"})
	c.Target = &movedRef{Ref: c.Target, move: func() { r.run("update-ref", "refs/heads/main", hotfix) }}
	a := r.submit(Submission{ID: "a", Head: r.commit(r.begin, files{"a": "1\n"})})
	r.start(c)
	if o := r.result(a); o.Code != Landed || o.Landing.Parent != hotfix {
		t.Errorf("%+v, want a landing on %s", o, hotfix)
	}
}

// movedRef has its ref moved by others right before the first move.
type movedRef struct {
	Ref
	move func()
}

func (m *movedRef) Move(ctx context.Context, to merge.Move) (string, error) {
	if m.move != nil {
		m.move()
		m.move = nil
	}
	return m.Ref.Move(ctx, to)
}

// Several mergers run at a time, and end one after the other: each submission lands once.
func TestMergersTakeTurns(t *testing.T) {
	r := newRig(t)
	r.work(good)
	stops := []func() error{r.start(r.config("m1")), r.start(r.config("m2")), r.start(r.config("m3"))}
	var want []string
	for i, stop := range stops {
		for j := range 3 {
			id := fmt.Sprintf("s-%d-%d", i, j)
			want = append(want, id)
			if o := r.result(r.submit(Submission{ID: id, Head: r.commit(r.begin, files{id: "1\n"})})); o.Code != Landed {
				t.Fatalf("%+v", o)
			}
		}
		if i == len(stops)-1 {
			break
		}
		if err := stop(); err != nil {
			t.Fatal(err)
		}
	}
	if got := r.landings(); !slices.Equal(got, want) {
		t.Errorf("landed %v, want %v", got, want)
	}
}
