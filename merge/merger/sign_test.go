package merger

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/interlockdev/interlock/merge"
)

// anySignature is a program that signs everything, each time in another way.
const anySignature = `echo "-----BEGIN A-----"; od -An -N8 -tx8 /dev/urandom; echo; echo "-----END A-----"`

// program writes a shell script, and returns its path.
func (r *rig) program(text string) string {
	r.t.Helper()
	name := filepath.Join(r.t.TempDir(), "program")
	if err := os.WriteFile(name+".new", []byte("#!/bin/sh\n"+text+"\n"), 0o755); err != nil {
		r.t.Fatal(err)
	}
	if err := os.Rename(name+".new", name); err != nil {
		r.t.Fatal(err)
	}
	return name
}

// A program that does not sign is the merger's failure, at its start and at a landing: nothing comes back or lands, the
// health has its words, and all lands when it signs again.
func TestSigningFails(t *testing.T) {
	for name, begin := range map[string]string{"at the start": "false", "at a landing": "true"} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			works := filepath.Join(t.TempDir(), "works")
			if begin == "true" {
				if err := os.WriteFile(works, nil, 0o666); err != nil {
					t.Fatal(err)
				}
			}
			r.signer = &merge.Signer{Format: "openpgp", Key: "any", Program: r.program(
				`test -e '` + works + `' || { echo "no agent has the key" >&2; exit 2; }; ` + anySignature,
			)}
			r.work(func(files) bool {
				if begin == "true" {
					_ = os.Remove(works)
				}
				return true
			})
			a := r.submit(Submission{ID: "a", Head: r.commit(r.begin, files{"a": "1\n"})})
			b := r.submit(Submission{ID: "b", Head: r.commit(r.begin, files{"b": "1\n"})})
			c := r.config("merger")
			r.start(c)
			h := r.waitHealth(func(h *Health) bool { return h.Failure != nil && h.Failure.Times > 2 })
			if !strings.Contains(h.Failure.Message, "no agent has the key") {
				t.Errorf("%+v", h.Failure)
			}
			if r.head() != r.begin {
				t.Error("the branch has moved")
			}
			begin = "false"
			if err := os.WriteFile(works, nil, 0o666); err != nil {
				t.Fatal(err)
			}
			for _, o := range []Outcome{r.result(a), r.result(b)} {
				if o.Code != Landed {
					t.Errorf("%+v", o)
				}
			}
			r.waitHealth(func(h *Health) bool { return h.Failure == nil })
			list, err := c.Boundary.(*merge.Boundary).History(t.Context(), r.head(), 0)
			if err != nil || len(list) != 2 || list[0].Signature == "" || list[1].Signature == "" {
				t.Errorf("landed %+v, %v", list, err)
			}
		})
	}
}

// A forge that demands signatures of all commits takes a squash, and refuses the merge of a commit without one. That
// is the submission's failure, since what the merger signs is taken.
func TestForgeDemandsSignatures(t *testing.T) {
	r := newRig(t)
	r.work(anything)
	r.signer = &merge.Signer{Format: "ssh", Key: "any", Program: r.program(anySignature)}
	forge, _ := r.forge(`while read old new ref; do
case $ref in refs/heads/*) for c in $(git rev-list $new --not --all); do
git cat-file commit $c | grep -q ^gpgsig || { echo "GH006: commits must have signatures"; exit 1; }
done;; esac
done; exit 0
`)
	squashed := r.submit(Submission{ID: "a", Head: r.commit(r.begin, files{"a": "1\n"}), Style: merge.StyleSquash})
	merged := r.submit(Submission{ID: "b", Head: r.commit(r.begin, files{"b": "1\n"})})
	r.start(r.pushing(forge))
	for ended := false; !ended; {
		h, err := HealthOf(t.Context(), r.author, web)
		if err != nil || h.Failure != nil && strings.Contains(h.Failure.Message, "no landing at all") {
			t.Fatalf("the merger takes the refusal for its own failure: %+v, %v", h.Failure, err)
		}
		task, err := r.author.Task(t.Context(), merged)
		if err != nil {
			t.Fatal(err)
		}
		ended = task.State.IsSettled()
	}
	if o := r.result(merged); o.Code != Returned || o.Cause != CausePush || !strings.Contains(o.Words, "GH006") {
		t.Errorf("%+v", o)
	}
	if o := r.result(squashed); o.Code != Landed {
		t.Errorf("%+v", o)
	}
	if got := r.at(forge); len(got) != 1 || got[0] != "a" {
		t.Errorf("the forge has %v", got)
	}
}
