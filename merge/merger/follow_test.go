package merger

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/interlockdev/interlock/merge"
)

// overtaken is the branch of a remote repository. Another merger acts right after each first answer.
type overtaken struct {
	Ref
	head  string
	other func()
}

func (o *overtaken) answer() (at merge.Position, err error) {
	at.Head = o.head
	if other := o.other; other != nil {
		o.other = nil
		other()
	}
	return at, nil
}

func (o *overtaken) Read(context.Context) (merge.Position, error)           { return o.answer() }
func (o *overtaken) Claim(context.Context, uint64) (merge.Position, error)  { return o.answer() }
func (o *overtaken) Revoke(context.Context, uint64) (merge.Position, error) { return o.answer() }
func (o *overtaken) Move(context.Context, merge.Move) (string, error) {
	at, err := o.answer()
	return at.Head, err
}

// A merger that is overtaken by a later one with the same repository does not set the branch back there.
func TestFollowedIsOvertaken(t *testing.T) {
	r := newRig(t)
	first := r.commit(r.begin, files{"a": "1\n"})
	second := r.commit(first, files{"a": "2\n"})
	const branch = "refs/heads/followed"
	for step, take := range map[string]func(*Followed) error{
		"read":   func(p *Followed) error { _, err := p.Read(t.Context()); return err },
		"claim":  func(p *Followed) error { _, err := p.Claim(t.Context(), 1); return err },
		"move":   func(p *Followed) error { _, err := p.Move(t.Context(), merge.Move{}); return err },
		"revoke": func(p *Followed) error { _, err := p.Revoke(t.Context(), 1); return err },
	} {
		for name, c := range map[string]struct{ own, head, then, want string }{
			"alone":                   {r.begin, first, "", first},
			"without a branch":        {"", first, "", first},
			"the branch is there":     {first, first, "", first},
			"the forge was set back":  {second, r.begin, "", r.begin},
			"overtaken":               {r.begin, first, second, second},
			"overtaken at the start":  {"", first, second, second},
			"overtaken by a set back": {first, second, r.begin, r.begin},
			"by the same step":        {r.begin, first, first, first},
		} {
			t.Run(step+"/"+name, func(t *testing.T) {
				if r.run("update-ref", "-d", branch); c.own != "" {
					r.run("update-ref", branch, c.own)
				}
				ref := &overtaken{head: c.head}
				if c.then != "" {
					ref.other = func() {
						r.run("update-ref", branch, c.then)
						ref.head = c.then
					}
				}
				p := &Followed{ref, &merge.Target{Repository: r.git, Ref: branch, Remote: r.git.Dir}, r.git}
				if err := take(p); err != nil {
					t.Fatal(err)
				}
				if got := r.run("rev-parse", branch); got != c.want {
					t.Errorf("the own branch is at %s, want %s", got, c.want)
				}
			})
		}
		t.Run(step+"/locked", func(t *testing.T) {
			r.run("update-ref", branch, r.begin)
			lock := filepath.Join(r.git.Dir, branch+".lock")
			if err := os.WriteFile(lock, nil, 0o600); err != nil {
				t.Fatal(err)
			}
			defer os.Remove(lock)
			if take(&Followed{&overtaken{head: first}, &merge.Target{Ref: branch}, r.git}) == nil {
				t.Error("the branch was not moved, and there is no error")
			}
		})
	}
}
