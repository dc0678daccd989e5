package merge

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/interlockdev/interlock/internal/git"
)

// place is a target in one of the two places that it can be in: the merger's repository, and a remote one.
type place struct {
	*rig   // has the ref
	target Target
	// at are commits, each the child of the one before. The ref is at the first.
	at []string
}

const mainRef = "refs/heads/main"

// places runs a test for both ways of moving.
func places(t *testing.T, test func(t *testing.T, p *place)) {
	t.Run("transaction", func(t *testing.T) {
		r := newRig(t)
		test(t, (&place{rig: r, target: Target{Repository: r.git, Ref: mainRef}}).fill(r))
	})
	t.Run("push", func(t *testing.T) {
		mine, remote := newRig(t), newRig(t)
		p := &place{rig: remote, target: Target{Repository: mine.git, Ref: mainRef, Remote: remote.git.Dir}}
		test(t, p.fill(mine))
	})
}

func (p *place) fill(mine *rig) *place {
	parent := mine.commit(files{"a": text("0\n")})
	p.at = []string{parent}
	for i := range 4 {
		parent = mine.commit(files{"a": text(fmt.Sprintln(i + 1))}, parent)
		p.at = append(p.at, parent)
	}
	if err := copyObjects(p.t.Context(), mine.git, p.git, p.at[:1]); err != nil {
		p.t.Fatal(err)
	}
	p.run("update-ref", mainRef, p.at[0])
	return p
}

// expect fails the test unless the ref and the fence are there.
func (p *place) expect(head string, f Fence) {
	p.t.Helper()
	got, err := p.target.Read(p.t.Context())
	if err != nil || got.Head != head || got.Fence != f {
		p.t.Fatalf("the target is at %+v, %v, want %s with %+v", got, err, head, f)
	}
}

func (p *place) claim(token uint64) Position {
	p.t.Helper()
	at, err := p.target.Claim(p.t.Context(), token)
	if err != nil {
		p.t.Fatal(err)
	}
	return at
}

func (p *place) move(ctx context.Context, m Move) error {
	_, err := p.target.Move(ctx, m)
	return err
}

func (p *place) stale(err error, ref string) {
	p.t.Helper()
	if stale, ok := errors.AsType[*Stale](err); !ok || stale.Ref != ref {
		p.t.Errorf("got %v, want a stale %s", err, ref)
	}
}

func TestMove(t *testing.T) {
	places(t, func(t *testing.T, p *place) {
		ctx := t.Context()
		p.expect(p.at[0], Fence{})
		first := Move{Token: 5, Sequence: 1, Old: p.at[0], New: p.at[1]}
		p.stale(p.move(ctx, first), FenceRef(mainRef)) // no claim yet
		p.claim(5)
		p.expect(p.at[0], Fence{5, 0, p.at[0], ""})
		for range 2 {
			if err := p.move(ctx, first); err != nil {
				t.Fatal(err)
			}
			p.expect(p.at[1], Fence{5, 1, p.at[1], ""})
		}
		p.claim(5)
		p.expect(p.at[1], Fence{5, 1, p.at[1], ""})

		// A base that is not the ref's commit.
		p.stale(p.move(ctx, Move{5, 2, p.at[0], p.at[2]}), mainRef)
		p.expect(p.at[1], Fence{5, 1, p.at[1], ""})

		// A later merger. The earlier one moves nothing any more, with the right base or a wrong one.
		p.claim(6)
		p.stale(p.move(ctx, Move{5, 2, p.at[1], p.at[2]}), FenceRef(mainRef))
		_, err := p.target.Claim(ctx, 5)
		p.stale(err, FenceRef(mainRef))
		p.expect(p.at[1], Fence{6, 1, p.at[1], ""})
		if err := p.move(ctx, Move{6, 4, p.at[1], p.at[4]}); err != nil {
			t.Fatal(err)
		}
		p.expect(p.at[4], Fence{6, 4, p.at[4], ""})
	})
}

// A merger that was stopped between reading the target and moving it is refused by git itself.
func TestMoveAfterReading(t *testing.T) {
	places(t, func(t *testing.T, p *place) {
		ctx := t.Context()
		stopped := p.claim(5)
		write := func(f Fence) string {
			id, err := p.target.writeFence(ctx, f)
			if err != nil {
				t.Fatal(err)
			}
			return id
		}
		mine := write(Fence{5, 1, p.at[1], ""})
		steps := []step{{mainRef, p.at[0], p.at[1]}, {FenceRef(mainRef), stopped.fence, mine}}
		p.claim(6)
		p.stale(p.target.transact(ctx, steps...), FenceRef(mainRef))
		p.expect(p.at[0], Fence{6, 0, p.at[0], ""})

		// The same with the right fence and a ref that has moved.
		if err := p.move(ctx, Move{6, 1, p.at[0], p.at[2]}); err != nil {
			t.Fatal(err)
		}
		now, err := p.target.Read(ctx)
		if err != nil {
			t.Fatal(err)
		}
		steps = []step{{mainRef, p.at[0], p.at[1]}, {FenceRef(mainRef), now.fence, write(Fence{6, 2, p.at[1], ""})}}
		p.stale(p.target.transact(ctx, steps...), mainRef)
		p.expect(p.at[2], Fence{6, 1, p.at[2], ""})

		// Two first mergers: the fence does not exist for both.
		p.run("update-ref", "-d", FenceRef(mainRef))
		none := strings.Repeat("0", 40)
		if err := p.target.transact(ctx, step{FenceRef(mainRef), none, write(Fence{7, 0, p.at[2], ""})}); err != nil {
			t.Fatal(err)
		}
		p.stale(p.target.transact(ctx, step{FenceRef(mainRef), none, write(Fence{8, 0, p.at[2], ""})}), FenceRef(mainRef))
	})
}

// Git that was killed between the two refs has moved one of them. The same merger completes the move, and so does the
// next one.
func TestMoveOfOneRefIsCompleted(t *testing.T) {
	places(t, func(t *testing.T, p *place) {
		for name, token := range map[string]uint64{"same merger": 5, "next merger": 6} {
			for _, moved := range []string{"none", "ref", "fence"} {
				p.run("update-ref", mainRef, p.at[0])
				if found := p.run("for-each-ref", FenceRef(mainRef)); found != "" {
					p.run("update-ref", "-d", FenceRef(mainRef))
				}
				p.claim(5)
				switch moved {
				case "ref":
					if err := copyObjects(t.Context(), p.target.Repository, p.git, p.at[:2]); err != nil {
						t.Fatal(err)
					}
					p.run("update-ref", mainRef, p.at[1])
				case "fence":
					next := Fence{5, 1, p.at[1], ""}
					id, err := p.git.Feed(t.Context(), next.encode(), "hash-object", "-w", "--stdin")
					if err != nil {
						t.Fatal(err)
					}
					p.run("update-ref", FenceRef(mainRef), id)
				}
				p.claim(token)
				if err := p.move(t.Context(), Move{token, 1, p.at[0], p.at[1]}); err != nil {
					t.Fatalf("%s, %s moved: %v", name, moved, err)
				}
				p.expect(p.at[1], Fence{token, 1, p.at[1], ""})
			}
		}
	})
}

// The server's end of a push is killed before it moves the refs, and after. Both times the outcome is unknown to the
// merger, and a repetition settles it.
func TestKilledPush(t *testing.T) {
	for hook, moved := range map[string]bool{"pre-receive": false, "post-receive": true} {
		t.Run(hook, func(t *testing.T) {
			mine, remote := newRig(t), newRig(t)
			p := &place{rig: remote, target: Target{Repository: mine.git, Ref: mainRef, Remote: remote.git.Dir}}
			p.fill(mine)
			p.claim(5)
			name := filepath.Join(remote.git.Dir, "hooks", hook)
			if err := os.WriteFile(name, []byte("#!/bin/sh\nkill -9 $PPID\n"), 0o755); err != nil {
				t.Fatal(err)
			}
			move := Move{5, 1, p.at[0], p.at[1]}
			err := p.move(t.Context(), move)
			if _, ok := errors.AsType[*git.Error](err); !ok {
				t.Errorf("killed: %v, want an error of git", err)
			}
			if moved {
				p.expect(p.at[1], Fence{5, 1, p.at[1], ""})
			} else {
				p.expect(p.at[0], Fence{5, 0, p.at[0], ""})
			}
			if err := os.Remove(name); err != nil {
				t.Fatal(err)
			}
			if err := p.move(t.Context(), move); err != nil {
				t.Fatal(err)
			}
			p.expect(p.at[1], Fence{5, 1, p.at[1], ""})
		})
	}
}

// A hook of the server that refuses is no stale target. It gets the options of the push.
func TestPushOptions(t *testing.T) {
	mine, remote := newRig(t), newRig(t)
	p := &place{rig: remote, target: Target{Repository: mine.git, Ref: mainRef, Remote: remote.git.Dir}}
	p.fill(mine)
	p.run("config", "receive.advertisePushOptions", "true")
	hook := "#!/bin/sh\ntest \"$GIT_PUSH_OPTION_0\" = interlock-lease=l_1 || { echo no lease; exit 1; }\n"
	if err := os.WriteFile(filepath.Join(remote.git.Dir, "hooks", "pre-receive"), []byte(hook), 0o755); err != nil {
		t.Fatal(err)
	}
	_, err := p.target.Claim(t.Context(), 5)
	if failure, ok := errors.AsType[*git.Error](err); !ok || !failure.Mentions("no lease") {
		t.Errorf("without the option: %v, want the hook's refusal", err)
	}
	p.target.PushOptions = []string{"interlock-lease=l_1"}
	p.claim(5)
}

func TestTargetMistakes(t *testing.T) {
	r := newRig(t)
	p := (&place{rig: r, target: Target{Repository: r.git, Ref: mainRef}}).fill(r)
	for name, target := range map[string]Target{
		"short ref":   {Repository: r.git, Ref: "main"},
		"option":      {Repository: r.git, Ref: "--stdin"},
		"line":        {Repository: r.git, Ref: "refs/heads/a\ndelete refs/heads/main"},
		"no such ref": {Repository: r.git, Ref: "refs/heads/other"},
		"remote":      {Repository: r.git, Ref: mainRef, Remote: "--upload-pack=touch x"},
		"transport":   {Repository: r.git, Ref: mainRef, Remote: "ext::sh -c touch% x"},
		"push option": {Repository: r.git, Ref: mainRef, PushOptions: []string{"a\nb"}},
	} {
		if at, err := target.Claim(t.Context(), 5); err == nil {
			t.Errorf("%s: claimed at %+v", name, at)
		}
	}
	p.claim(5)
	for name, move := range map[string]Move{
		"name":   {5, 1, p.at[0], "main"},
		"line":   {5, 1, p.at[0], p.at[1] + "\n"},
		"no old": {5, 1, "", p.at[1]},
		"absent": {5, 1, p.at[0], strings.Repeat("1", 40)},
	} {
		if err := p.move(t.Context(), move); err == nil {
			t.Errorf("%s: moved", name)
		}
	}
	p.expect(p.at[0], Fence{5, 0, p.at[0], ""})
}

func TestFence(t *testing.T) {
	f := Fence{17, 41, strings.Repeat("8c", 20), ""}
	if got, err := parseFence(string(f.encode())); err != nil || got != f {
		t.Errorf("parsed as %+v, %v, want %+v", got, err, f)
	}
	whole := string(f.encode())
	for _, bad := range []string{
		"", "x", whole + "x", whole[:len(whole)-2], strings.Replace(whole, "17", "-1", 1),
		strings.Replace(whole, "41", "041", 1),
		strings.Replace(whole, "8c8c", "HEAD", 1), strings.Replace(whole, "fence 1", "fence 2", 1),
	} {
		if f, err := parseFence(bad); err == nil {
			t.Errorf("%q is the fence %+v", bad, f)
		}
	}
	for ref, want := range map[string]string{
		mainRef: "refs/interlock/fence/main", "refs/heads/release/1": "refs/interlock/fence/release/1",
		"refs/x": "refs/interlock/fence-of/x",
	} {
		if got := FenceRef(ref); got != want {
			t.Errorf("the fence of %s is %s, want %s", ref, got, want)
		}
	}
}
