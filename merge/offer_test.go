package merge

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// offering is a place at a remote repository that forbids pushes to the branch, as a forge does.
func offering(t *testing.T) *place {
	mine, remote := newRig(t), newRig(t)
	p := &place{rig: remote, target: Target{Repository: mine.git, Ref: mainRef, Remote: remote.git.Dir}}
	p.fill(mine)
	hooks := filepath.Join(remote.git.Dir, "hooks")
	if err := os.MkdirAll(hooks, 0o777); err != nil {
		t.Fatal(err)
	}
	hook := "#!/bin/sh\nwhile read old new ref; do\n" +
		"case $ref in refs/heads/main) echo GH006: protected; exit 1;; esac\ndone\n"
	if err := os.WriteFile(filepath.Join(hooks, "pre-receive"), []byte(hook), 0o755); err != nil {
		t.Fatal(err)
	}
	return p
}

// branches lists the branches of landings at the remote repository.
func (p *place) branches() string { return p.run("for-each-ref", "--format=%(refname)", offerFolder) }

// merge merges an offer at the remote repository, as a forge does: with its tree, or with another one.
func (p *place) merge(parents ...string) string {
	p.t.Helper()
	args := []string{"commit-tree", "-m", "Merge pull request #7", parents[len(parents)-1] + "^{tree}"}
	for _, id := range parents {
		args = append(args, "-p", id)
	}
	c := p.run(args...)
	p.run("update-ref", mainRef, c)
	return c
}

func (p *place) offer(ctx context.Context, m Move) error {
	_, err := p.target.Offer(ctx, m)
	return err
}

func (p *place) taken(m Move, want string) {
	p.t.Helper()
	at, err := p.target.Read(p.t.Context())
	if err != nil {
		p.t.Fatal(err)
	}
	if got, err := p.target.Taken(p.t.Context(), m, at.Head); err != nil || got != want {
		p.t.Errorf("taken as %q, %v, want %q", got, err, want)
	}
}

// An offer is a branch, pushed with the fence. It can be repeated, and is taken back or settled with the fence.
func TestOffer(t *testing.T) {
	p := offering(t)
	ctx := t.Context()
	m := Move{Token: 5, Sequence: 1, Old: p.at[0], New: p.at[1]}
	p.stale(p.offer(ctx, m), FenceRef(mainRef)) // no claim yet
	p.claim(5)
	p.stale(p.offer(ctx, Move{5, 1, p.at[1], p.at[2]}), mainRef)
	branch := OfferRef(mainRef, p.at[1]+"-5")
	for range 2 {
		if err := p.offer(ctx, m); err != nil {
			t.Fatal(err)
		}
		p.expect(p.at[0], Fence{5, 0, p.at[0], p.at[1] + "-5"})
		if got := p.branches(); got != branch || p.run("rev-parse", branch) != p.at[1] {
			t.Fatalf("the branches are %q", got)
		}
	}
	p.taken(m, "")

	// Others move or remove the branch: it is offered again.
	for _, args := range [][]string{{"update-ref", branch, p.at[0]}, {"update-ref", "-d", branch}} {
		p.run(args...)
		if err := p.offer(ctx, m); err != nil {
			t.Fatal(err)
		}
		if got := p.run("rev-parse", branch); got != p.at[1] {
			t.Errorf("after %v the branch is at %s", args, got)
		}
		p.expect(p.at[0], Fence{5, 0, p.at[0], p.at[1] + "-5"})
	}

	// A later merger finds the offer in the fence. The earlier one offers nothing any more, also what it has offered.
	if at := p.claim(6); at.Fence.Offer != p.at[1]+"-5" {
		t.Errorf("%+v", at)
	}
	m.Token = 6
	if err := p.offer(ctx, m); err != nil || p.branches() != branch {
		t.Errorf("it does not go on: %v, %s", err, p.branches())
	}
	m.Token = 5
	if at, err := p.target.Revoke(ctx, 6); err != nil || at.Head != p.at[0] {
		t.Errorf("%+v, %v", at, err)
	}
	p.expect(p.at[0], Fence{6, 0, p.at[0], ""})
	if got := p.branches(); got != "" {
		t.Errorf("the branches are %q", got)
	}
	p.stale(p.offer(ctx, m), FenceRef(mainRef))
	_, err := p.target.Revoke(ctx, 5)
	p.stale(err, FenceRef(mainRef))

	// An offer that was never revoked makes room for the next one.
	m.Token = 6
	other := Move{6, 1, p.at[0], p.at[2]}
	for _, m := range []Move{m, other} {
		if err := p.offer(ctx, m); err != nil {
			t.Fatal(err)
		}
	}
	if got := p.branches(); got != OfferRef(mainRef, p.at[2]+"-6") {
		t.Errorf("the branches are %q", got)
	}
	c := p.merge(p.at[0], p.at[2])
	p.taken(other, c)
	for range 2 {
		if err := p.target.Settle(ctx, other, c); err != nil {
			t.Fatal(err)
		}
		p.expect(c, Fence{6, 1, c, ""})
	}
	if got := p.branches(); got != "" {
		t.Errorf("the branches are %q", got)
	}
}

// A fence moved on between the reading and the push of an offer: git refuses the branch as well.
func TestOfferAfterReading(t *testing.T) {
	p := offering(t)
	stopped := p.claim(5)
	next := stopped.Fence
	next.Offer = p.at[1] + "-5"
	id, err := p.target.writeFence(t.Context(), next)
	if err != nil {
		t.Fatal(err)
	}
	none := strings.Repeat("0", 40)
	p.claim(6)
	p.stale(p.target.transact(
		t.Context(), step{OfferRef(mainRef, next.Offer), none, p.at[1]}, step{FenceRef(mainRef), stopped.fence, id},
	), FenceRef(mainRef))
	if got := p.branches(); got != "" {
		t.Errorf("the branches are %q", got)
	}
}

// What counts as the landing of an offer: the offer itself, and a merge commit of it on the old head with its tree.
func TestTaken(t *testing.T) {
	for name, make := range map[string]func(p *place) (want string){
		"nothing": func(*place) string { return "" },
		"a fast forward": func(p *place) string {
			p.run("update-ref", mainRef, p.at[2])
			return p.at[2]
		},
		"a fast forward, and others behind it": func(p *place) string {
			p.run("update-ref", mainRef, p.at[3])
			return p.at[2]
		},
		"a merge commit": func(p *place) string { return p.merge(p.at[0], p.at[2]) },
		"a merge commit, and others behind it": func(p *place) string {
			c := p.merge(p.at[0], p.at[2])
			p.merge(c)
			return c
		},
		"a squash":                              func(p *place) string { p.merge(p.at[0]); return "" },
		"a part":                                func(p *place) string { p.run("update-ref", mainRef, p.at[1]); return "" },
		"a merge of a part":                     func(p *place) string { p.merge(p.at[0], p.at[1]); return "" },
		"a merge of another commit":             func(p *place) string { p.merge(p.at[0], p.at[3]); return "" },
		"a fast forward, and a merge behind it": func(p *place) string { p.merge(p.at[2], p.at[0]); return p.at[2] },
		"a merge onto the commit of others": func(p *place) string {
			p.merge(p.merge(p.at[0]), p.at[2])
			return ""
		},
		"a merge with another tree": func(p *place) string {
			c := p.run("commit-tree", "-m", "x", p.at[0]+"^{tree}", "-p", p.at[0], "-p", p.at[2])
			p.run("update-ref", mainRef, c)
			return ""
		},
		"an octopus": func(p *place) string { p.merge(p.at[0], p.at[3], p.at[2]); return "" },
	} {
		t.Run(name, func(t *testing.T) {
			p := offering(t)
			p.claim(5)
			m := Move{Token: 5, Sequence: 2, Old: p.at[0], New: p.at[2]}
			if err := p.offer(t.Context(), m); err != nil {
				t.Fatal(err)
			}
			if err := copyObjects(t.Context(), p.target.Repository, p.git, p.at); err != nil {
				t.Fatal(err)
			}
			p.taken(m, make(p))
			m.New = strings.Repeat("d", 40) // of a document that others wrote
			p.taken(m, "")
			m.Old, m.New = m.New, p.at[2]
			p.taken(m, "")
			m.Old = "--all"
			p.taken(m, "")
		})
	}
}

// A repository that refuses offers is quoted.
func TestProbeOffer(t *testing.T) {
	p := offering(t)
	p.claim(5)
	if err := p.target.ProbeOffer(t.Context(), p.at[0]); err != nil {
		t.Errorf("an empty offer: %v", err)
	}
	if got := p.branches(); got != "" {
		t.Errorf("the branches are %q", got)
	}
	hook := "#!/bin/sh\necho GH013: no branches here; exit 1\n"
	if err := os.WriteFile(filepath.Join(p.git.Dir, "hooks", "pre-receive"), []byte(hook), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, err := range []error{
		p.target.ProbeOffer(t.Context(), p.at[0]),
		p.offer(t.Context(), Move{Token: 5, Sequence: 1, Old: p.at[0], New: p.at[1]}),
	} {
		if no, ok := errors.AsType[*Rejected](err); !ok || !no.Answered || !strings.Contains(no.Words, "GH013") {
			t.Errorf("%v, want the words of the hook", err)
		}
	}
}

// A branch with landings that a forge has merged is verified and replayed like another one: each landing is computed
// again, and the commit of the forge may only have the tree of its second parent.
func TestVerifyRequests(t *testing.T) {
	r := newRig(t)
	b := r.boundary()
	base := r.commit(files{"a": text("1\n")})
	carry := func(tree, old, landing string) string {
		return r.run("commit-tree", "-m", "Merge pull request #7", tree+"^{tree}", "-p", old, "-p", landing)
	}
	land := func(n int, parent, name string) string {
		next := turn(n, parent, r.commit(files{name: text("1\n")}, base))
		return r.land(b, next).Commit
	}
	first := land(1, base, "b")
	second := land(2, first, "c")
	one := carry(second, base, second) // a batch of two
	third := land(3, one, "d")         // a fast forward
	fourth := land(4, third, "e")
	head := carry(fourth, third, fourth)
	report := r.verify(b, head, 0)
	if report.Landings != 4 || report.Same != 4 || report.Requests != 3 || report.Damaged() {
		t.Errorf("%+v, want 4 landings alike, 3 of them by requests", report)
	}
	for from, want := range map[uint64]int{2: 3, 3: 2, 4: 1} {
		if report := r.verify(b, head, from); report.Landings != want || report.Same != want {
			t.Errorf("from %d: %+v, want %d alike", from, report, want)
		}
	}
	turns, err := b.Turns(t.Context(), head, 0)
	if err != nil {
		t.Fatal(err)
	}
	again := newRig(t)
	to := again.boundary()
	if got, err := Replay(t.Context(), to, r.git, turns); err != nil || got != fourth {
		t.Errorf("replay: %s, %v, want %s", got, err, fourth)
	}
	if err := to.Carry(t.Context(), r.git, head, fourth); err != nil || again.run("rev-parse", head+"^2") != fourth {
		t.Errorf("the commit of the forge: %v", err)
	}
	if err := to.Carry(t.Context(), r.git, one, fourth); err == nil {
		t.Error("a commit of the forge is taken for that of another landing")
	}
	for name, head := range map[string]string{
		"another tree":               carry(base, third, fourth),
		"a parent that it is not on": carry(fourth, second, fourth),
		"an octopus": r.run(
			"commit-tree", "-m", "x", fourth+"^{tree}", "-p", third, "-p", fourth, "-p", base,
		),
		"a squash": r.run("commit-tree", "-m", "x", fourth+"^{tree}", "-p", third),
	} {
		report := r.verify(b, land(5, head, "f"), 0) // it lies between landings
		foreign := 0
		for _, f := range report.Findings {
			if f.Kind == FoundForeign && f.Commit == head {
				foreign++
			}
		}
		if foreign != 1 {
			t.Errorf("%s: %+v", name, report)
		}
	}
}
