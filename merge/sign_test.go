package merge

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/interlockdev/interlock/internal/git"
	"github.com/interlockdev/interlock/internal/test/tools"
)

// key is a key of a format, and its fingerprint. passphrase protects it.
func key(t *testing.T, format, passphrase string) (s *Signer, fingerprint string) {
	t.Helper()
	run := func(name string, args ...string) string {
		t.Helper()
		cmd := exec.Command(name, args...)
		cmd.Stderr = t.Output()
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("%s %q: %v", name, args, err)
		}
		return string(out)
	}
	if format == "ssh" {
		tools.Need(t, "ssh-keygen")
		file := filepath.Join(t.TempDir(), "key")
		run("ssh-keygen", "-q", "-t", "ed25519", "-N", passphrase, "-f", file)
		return &Signer{Format: format, Key: file}, strings.Fields(run("ssh-keygen", "-l", "-f", file))[1]
	}
	tools.Need(t, "gpg", "gpg-agent")
	// The path of the agent's socket is bounded.
	home, err := os.MkdirTemp("", "gpg")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = exec.Command("gpgconf", "--homedir", home, "--kill", "all").Run()
		_ = os.RemoveAll(home)
	})
	t.Setenv("GNUPGHOME", home)
	run("gpg", "--batch", "--quiet", "--pinentry-mode", "loopback", "--passphrase", passphrase,
		"--quick-generate-key", "Merger <merger@example.org>", "ed25519", "sign", "never")
	if passphrase != "" {
		run("gpgconf", "--kill", "gpg-agent") // it has the passphrase
	}
	for line := range strings.Lines(run("gpg", "--batch", "--with-colons", "--list-keys")) {
		if f := strings.Split(line, ":"); f[0] == "fpr" {
			fingerprint = f[9]
		}
	}
	return &Signer{Format: format, Key: fingerprint}, fingerprint
}

// signed is a boundary with a signer.
func (r *rig) signed(s *Signer) *Boundary {
	r.t.Helper()
	profile, err := NewProfile(r.t.Context(), "")
	if err != nil {
		r.t.Fatal(err)
	}
	b, err := Open(r.t.Context(), Config{Repository: r.git.Dir, Profile: profile, Signer: s})
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { _ = b.Close() })
	return b
}

// found is what Verify finds with keys, as "KIND SEQUENCE", and the states of the signatures.
func (r *rig) found(b *Boundary, head string, keys ...string) (findings, states string) {
	r.t.Helper()
	report, err := b.Verify(r.t.Context(), head, 0, nil)
	if err == nil {
		err = b.VerifySignatures(r.t.Context(), &report, head, 0, keys)
	}
	if err != nil {
		r.t.Fatal(err)
	}
	var f, s []string
	for _, x := range report.Findings {
		f = append(f, fmt.Sprint(x.Kind, " ", x.Sequence))
	}
	for _, x := range report.Signatures {
		s = append(s, string(x.State))
	}
	return strings.Join(f, ", "), strings.Join(s, " ")
}

// A signed landing is a signed commit for git, and the same one when it is computed again with its signature. What was
// altered, signed by another key or not signed at all is found.
func TestSignedLandings(t *testing.T) {
	for _, format := range []string{"ssh", "openpgp"} {
		for _, objects := range []string{"sha1", "sha256"} {
			t.Run(format+" "+objects, func(t *testing.T) {
				r := newRig(t, "--object-format="+objects)
				signer, fingerprint := key(t, format, "")
				b := r.signed(signer)
				if err := b.CanSign(t.Context()); err != nil {
					t.Fatal(err)
				}
				base := r.commit(files{"a": text("1\n")})
				var turns []Turn
				parent := base
				for n := 1; n <= 3; n++ {
					turn := turn(n, parent, r.commit(files{fmt.Sprint(n): text("1\n")}, base))
					turn.Agent, turn.Principal, turn.Checks = "coder\n7", "cred", "unit, lint"
					turn.Committer = "Merger <merger@example.org>"
					if n == 2 {
						turn.Style = StyleSquash
					}
					plain := r.land(b, turn)
					l, err := b.Sign(t.Context(), plain)
					if err != nil || l.Commit == plain.Commit || l.Tree != plain.Tree {
						t.Fatalf("signed as %+v, %v", l, err)
					}
					turn.Signature = l.Signature
					if again := r.land(r.boundary(), turn); again.Commit != l.Commit {
						t.Errorf("computed again: %s, want %s", again.Commit, l.Commit)
					}
					turns, parent = append(turns, turn), l.Commit
				}
				want := "coder7\ncred\nunit, lint"
				got := r.run("log", "-1", "--format=%(trailers:key=Interlock-Agent,valueonly)"+
					"%(trailers:key=Interlock-Credential,valueonly)%(trailers:key=Interlock-Checks,valueonly)", parent)
				if strings.TrimSpace(got) != want {
					t.Errorf("the trailers are %q, want %q", got, want)
				}
				if got := r.run("log", "-1", "--format=%cn <%ce>", parent); got != "Merger <merger@example.org>" {
					t.Errorf("the committer is %s", got)
				}
				other := strings.ToLower(fingerprint[:len(fingerprint)-1]) + "?"
				for keys, want := range map[string]string{
					"": "", fingerprint: "", other + "," + fingerprint: "", other: "signature 1, signature 2, signature 3",
				} {
					list := strings.FieldsFunc(keys, func(c rune) bool { return c == ',' })
					if f, s := r.found(b, parent, list...); f != want || s != "good good good" {
						t.Errorf("keys %q: %q, %q, want %q", keys, f, s, want)
					}
				}
				if read, err := b.Turns(t.Context(), parent, 0); err != nil || read[2].Signature != turns[2].Signature {
					t.Errorf("the branch has the turns %+v, %v", read, err)
				}
				// The last landing without its signature, with that of another one, and altered under its own.
				stripped, borrowed := turns[2], turns[2]
				stripped.Signature, borrowed.Signature = "", turns[1].Signature
				unsigned := r.land(b, stripped).Commit
				for name, c := range map[string]struct{ head, plain, named, states string }{
					"stripped": {unsigned, "", "signature 3", "good good none"},
					"borrowed": {r.land(b, borrowed).Commit, "signature 3", "signature 3", "good good bad"},
					"altered": {
						r.altered(parent, "\n\ncommit ", "\n\nCommit "), "signature 3", "signature 3", "good good bad",
					},
				} {
					plain, states := r.found(b, c.head)
					named, _ := r.found(b, c.head, fingerprint)
					if plain != c.plain || named != c.named || states != c.states {
						t.Errorf("%s: %q, named %q, %q, want %+v", name, plain, named, states, c)
					}
				}
			})
		}
	}
}

// altered writes a commit with another text.
func (r *rig) altered(id, from, to string) string {
	r.t.Helper()
	content := r.run("cat-file", "commit", id)
	if !strings.Contains(content, from) {
		r.t.Fatalf("%q has no %q", content, from)
	}
	changed, err := r.git.Feed(r.t.Context(), []byte(strings.Replace(content, from, to, 1)+"\n"),
		"hash-object", "-w", "-t", "commit", "--stdin")
	if err != nil {
		r.t.Fatal(err)
	}
	return changed
}

// A key with a passphrase that no agent has does not sign, and does not ask.
func TestSignerAsksNobody(t *testing.T) {
	for _, format := range []string{"ssh", "openpgp"} {
		t.Run(format, func(t *testing.T) {
			s, _ := key(t, format, "secret")
			if text, err := s.sign(t.Context(), []byte("text\n")); err == nil || strings.Contains(err.Error(), "within") {
				t.Errorf("signed %q, %v", text, err)
			}
		})
	}
}

// What a program prints that fails, waits or signs nothing is no signature.
func TestSignerFails(t *testing.T) {
	for name, c := range map[string]struct{ program, want string }{
		"exits":    {"echo -----BEGIN A; echo no key >&2; exit 1", "no key"},
		"prints":   {"echo hello", "no signature"},
		"empty":    {"true", "no signature"},
		"too long": {"echo -----BEGIN A; head -c 9000 /dev/zero | tr '\\0' a", "no signature"},
		"zero":     {"printf -- '-----BEGIN A\\0'", "no signature"},
		"waits":    {"sleep 1000", "within"},
		"leaves":   {"sleep 1000 & echo -----BEGIN A", "within"},
		"gone":     {"", "does not sign"},
	} {
		t.Run(name, func(t *testing.T) {
			program := filepath.Join(t.TempDir(), "program")
			if c.program != "" {
				if err := os.WriteFile(program, []byte("#!/bin/sh\n"+c.program+"\n"), 0o755); err != nil {
					t.Fatal(err)
				}
			}
			s := Signer{Format: "openpgp", Key: "k", Program: program, Within: 2 * time.Second}
			if text, err := s.sign(t.Context(), []byte("text\n")); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("signed %.100q, %v, want %q", text, err, c.want)
			}
		})
	}
}

// Whatever lines a signature has, git reads the commit, and the same signature comes back from it.
func TestSignatureInCommit(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	parts := []string{"a", "", " ", "gpgsig x", "tree y", "=", "\t", "author Z", " gpgsig"}
	for range 1000 {
		lines := []string{"-----BEGIN A"}
		for range rng.IntN(6) {
			lines = append(lines, parts[rng.IntN(len(parts))])
		}
		c := commit{
			tree: strings.Repeat("a", 40+24*rng.IntN(2)), author: "A <a>", committer: "B <b>", message: "text\n\ngpgsig no\n",
			signature: strings.Join(append(lines, "-----END A"), "\n"),
		}
		got, err := parseCommit(c.encode())
		same := string(got.encode()) == string(c.encode())
		if err != nil || got.signature != c.signature || got.message != c.message || !same {
			t.Fatalf("%q comes back as %q, %v", c.encode(), got.encode(), err)
		}
	}
	r := newRig(t)
	c := commit{
		tree: r.run("hash-object", "-w", "-t", "tree", os.DevNull), author: "A <a>", committer: "B <b>", message: "m\n",
		signature: "-----BEGIN A\n\n b\n-----END A",
	}
	id, err := r.git.Feed(t.Context(), c.encode(), "hash-object", "-w", "-t", "commit", "--stdin")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := r.git.Run(t.Context(), git.Call{Args: []string{"fsck", "--strict"}}); err != nil {
		t.Errorf("commit %s: %v", id, err)
	}
}
