package merge

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const migrations = "migrations/{n:4}_{name}.sql"

// renumbering opens a boundary with one rule.
func (r *rig) renumbering(rule string) *Boundary {
	r.t.Helper()
	profile, err := NewProfile(r.t.Context(), "")
	if err != nil {
		r.t.Fatal(err)
	}
	n, err := ReadRenumber(rule)
	if err != nil {
		r.t.Fatal(err)
	}
	profile.Renumbers = []Renumber{n}
	b, err := Open(r.t.Context(), Config{Repository: r.git.Dir, Profile: profile})
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { _ = b.Close() })
	return b
}

// script writes a program of the shell.
func script(t *testing.T, text string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "renumber")
	if err := os.WriteFile(name, []byte("#!/bin/sh\nset -e\n"+text), 0o755); err != nil {
		t.Fatal(err)
	}
	return name
}

// two commits take the number 0002 on one base. The tree has files that a checkout would change.
func twoMigrations(r *rig) (base, a, b string) {
	base = r.commit(files{
		"migrations/0001_begin.sql": text("begin\n"), "crlf": text("1\r\n2\r\n"), "id.x": text("$Id$\n"),
		".gitattributes": text("* text=auto\n*.x ident\n"), ".gitignore": text("ignored\n"),
		"link": {"120000", "crlf"}, "run": {"100755", "x\n"},
		"ignored": text("kept\n"),
	})
	a = r.commit(files{"migrations/0002_a.sql": text("a\n")}, base)
	b = r.commit(files{
		"migrations/0002_b.sql": text("b\n"), "migrations/0002_b.down.sql": text("down\n"), "other": text("o\n"),
	}, base)
	return base, a, b
}

// The file comes out under the next number, whether Interlock renames it or a command does; nothing else changes, and
// Verify recomputes it.
func TestRenumber(t *testing.T) {
	move := script(t, `test -z "$SECRET"; test "$(ls -A "$HOME" | wc -l)" = 0; test ! -e .git
echo "-- was $1, number $3" >> "$1"; mv "$1" "$2"
`)
	for name, c := range map[string]struct{ rule, content string }{
		"renamed":      {migrations + "=", "b"},
		"by a command": {migrations + "=" + move + " {from} {to} {n}", "b\n-- was migrations/0002_b.sql, number 0003"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("SECRET", "1")
			r := newRig(t)
			base, first, second := twoMigrations(r)
			b := r.renumbering(c.rule)
			one := r.land(b, turn(1, base, first))
			two := r.land(b, turn(2, one.Commit, second))
			if again := r.land(r.renumbering(c.rule), turn(2, one.Commit, second)); again.Commit != two.Commit {
				t.Errorf("another boundary makes %s, want %s", again.Commit, two.Commit)
			}
			if len(one.Renamed) != 0 || len(two.Renamed) != 2 || two.Renamed[1].To != "migrations/0003_b.sql" {
				t.Errorf("renamed %v, then %v", one.Renamed, two.Renamed)
			}
			want, got := r.list(one.Commit), r.list(two.Commit)
			want["other"], want["migrations/0003_b.sql"] = "100644 o", "100644 "+c.content
			want["migrations/0003_b.down.sql"] = got["migrations/0003_b.down.sql"]
			for path, content := range want {
				if got[path] != content {
					t.Errorf("%s is %q, want %q", path, got[path], content)
				}
			}
			if len(got) != len(want) || got["migrations/0003_b.down.sql"] == "" {
				t.Errorf("the tree has %v", got)
			}
			if report := r.verify(b, two.Commit, 0); report.Same != 2 || len(report.Findings) != 0 {
				t.Errorf("%+v", report)
			}
			// Without the rule, or with another command, Verify names the rule and finds no damage.
			for _, other := range []*Boundary{r.boundary(), r.renumbering(migrations + "=true")} {
				report := r.verify(other, two.Commit, 0)
				if report.Damaged() || len(report.Findings) != 1 || report.Findings[0].Kind != FoundProfile ||
					!strings.Contains(report.Findings[0].Detail, migrations) {
					t.Errorf("under another profile: %+v", report)
				}
			}
		})
	}
}

// The command is part of the profile: with another file, the digest differs, and Open refuses a profile that is old.
func TestRenumberProfile(t *testing.T) {
	program := script(t, "true\n")
	rule, err := ReadRenumber(migrations + "=" + program + " {from}")
	if err != nil {
		t.Fatal(err)
	}
	plain, err := NewProfile(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	with := plain
	with.Renumbers = []Renumber{rule}
	if plain.Digest() == with.Digest() {
		t.Error("a rule does not change the digest of the profile")
	}
	r := newRig(t)
	if err := os.WriteFile(program, []byte("#!/bin/sh\nfalse\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	if b, err := Open(t.Context(), Config{Repository: r.git.Dir, Profile: with}); err == nil {
		_ = b.Close()
		t.Error("a program that has changed is used under the old digest")
	}
	for _, bad := range []string{"migrations", "../x/{n}_{name}=", "/x/{n}_{name}=", "x/{name}=", "x/{n}_{name}=/none"} {
		if _, err := ReadRenumber(bad); err == nil {
			t.Errorf("%q is read", bad)
		}
	}
}

// A command that fails refuses the submission. One that touches what the submission does not touch lands nothing.
func TestRenumberRefused(t *testing.T) {
	r := newRig(t)
	base, first, second := twoMigrations(r)
	one := r.land(r.boundary(), turn(1, base, first))
	next := turn(2, one.Commit, second)
	refusal := r.refused(r.renumbering(migrations+"="+script(t, "echo no dependency; exit 3\n")), next)
	if refusal.Reason != ReasonRenumber || !strings.Contains(refusal.Detail, "3: no dependency") {
		t.Errorf("%+v", refusal)
	}
	if refusal := r.refused(r.renumbering(migrations+"=true"), next); refusal.Reason != ReasonRenumber ||
		!strings.Contains(refusal.Detail, "0002 is taken") {
		t.Errorf("a command that does nothing: %+v", refusal)
	}
	for _, stray := range []string{"echo x >> run", "echo x > migrations/0001_begin.sql", "echo x > new", "chmod -x run"} {
		b := r.renumbering(migrations + "=" + script(t, `mv "$1" "$2"; `+stray+"\n") + " {from} {to}")
		_, err := b.Land(t.Context(), next)
		if _, ok := errors.AsType[*Damage](err); !ok {
			t.Errorf("%s: %v, want damage", stray, err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	started := filepath.Join(t.TempDir(), "started")
	b := r.renumbering(migrations + "=" + script(t, "mkfifo "+started+"; : > "+started+"; exec sleep 60\n"))
	done := make(chan error, 1)
	go func() {
		_, err := b.Land(ctx, next)
		done <- err
	}()
	for {
		if f, err := os.Open(started); err == nil { // waits for the writer
			_ = f.Close()
			break
		}
	}
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}
