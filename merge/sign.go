package merge

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/interlockdev/interlock/internal/git"
)

// Signer signs the commits of landings, as git does: by the program and with the key of a format. It asks no person: a
// key with a passphrase needs an agent that has it.
type Signer struct {
	// Format is "openpgp", "ssh" or "x509", as in git's gpg.format.
	Format string
	// Key is the id of a key, or of ssh the file with it: a private key, or the public key of one that the agent has.
	Key string
	// Program is the program. Empty means gpg, ssh-keygen or gpgsm.
	Program string
	// Within is how long it may take (default 30 s).
	Within time.Duration
}

// maxSignature bounds a signature, since those of a batch are in one document.
const maxSignature = 7 << 10

// Check returns an error for a signer that no machine could use.
func (s *Signer) Check() error {
	switch s.Format {
	case "openpgp", "ssh", "x509":
	default:
		return fmt.Errorf("the format of signatures %q is unknown: want openpgp, ssh or x509", s.Format)
	}
	if s.Key == "" || strings.HasPrefix(s.Key, "-") {
		return fmt.Errorf("%q is no key to sign with", s.Key)
	}
	return nil
}

// sign returns the signature of a text, without its last newline.
func (s *Signer) sign(ctx context.Context, content []byte) (string, error) {
	if err := s.Check(); err != nil {
		return "", err
	}
	// A prompt would wait for a person, so that the agent must have the passphrase, or the program fails.
	program, args := "gpg", []string{"--status-fd=2", "--batch", "--pinentry-mode=error", "-bsau", s.Key}
	switch s.Format {
	case "x509":
		program = "gpgsm"
	case "ssh":
		program, args = "ssh-keygen", []string{"-Y", "sign", "-n", "git", "-f", s.Key}
	}
	program = cmp.Or(s.Program, program)
	within := cmp.Or(s.Within, 30*time.Second)
	limited, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	cmd := exec.CommandContext(limited, program, args...)
	git.Detach(cmd)
	var out, complaint bytes.Buffer
	cmd.Env = append((&git.Repository{}).Environ(git.Signing(os.Environ())...), "SSH_ASKPASS_REQUIRE=never")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(content), &out, &complaint
	err := cmd.Run()
	switch signature := strings.TrimRight(strings.ReplaceAll(out.String(), "\r\n", "\n"), "\n"); {
	case ctx.Err() != nil:
		return "", context.Cause(ctx)
	case limited.Err() != nil:
		return "", fmt.Errorf("%s has not signed within %v: does it wait for a person?", program, within)
	case err != nil:
		words := git.Words(complaint.String())
		return "", fmt.Errorf("%s does not sign with the key %q: %w: %q", program, s.Key, err, words)
	case !strings.HasPrefix(signature, "-----BEGIN "), len(signature) > maxSignature, strings.Contains(signature, "\x00"):
		return "", fmt.Errorf("%s printed no signature of at most %d bytes: %.100q", program, maxSignature, signature)
	default:
		return signature, nil
	}
}

// CanSign returns an error if landings are to be signed and cannot be.
func (b *Boundary) CanSign(ctx context.Context) error {
	if b.signer == nil {
		return nil
	}
	_, err := b.signer.sign(ctx, []byte("interlock tries whether it can sign\n"))
	return err
}

// Sign returns a landing in a commit that is signed. Without a Signer it is the same commit. A repetition may make
// another signature, so the caller keeps that of the landing: with it in the turn, Land makes the same commit. An
// error is never the submission's.
func (b *Boundary) Sign(ctx context.Context, l Landing) (Landing, error) {
	if b.signer == nil {
		return l, nil
	}
	b.mu.Lock()
	c, err := b.readCommit(ctx, l.Commit)
	b.mu.Unlock()
	if err != nil {
		return l, err
	}
	c.signature = ""
	if l.Signature, err = b.signer.sign(ctx, c.encode()); err != nil {
		return l, fmt.Errorf("landing %d is not signed: %w", l.Sequence, err)
	}
	c.signature = l.Signature
	b.mu.Lock()
	defer b.mu.Unlock()
	l.Commit, err = b.writeCommit(ctx, &c)
	return l, err
}

// Signature is what git finds of the signature of a landing.
type Signature struct {
	Sequence uint64         `json:"sequence"`
	Commit   string         `json:"commit"`
	State    SignatureState `json:"state"`
	// Key is the fingerprint of the key that has signed, as "SHA256:…" for ssh. Primary is that of the key which this
	// one is a part of, for openpgp.
	Key     string `json:"key,omitempty"`
	Primary string `json:"primary,omitempty"`
}

// SignatureState is how a signature is. The list is closed.
type SignatureState string

const (
	// SignatureNone is a commit without a signature.
	SignatureNone SignatureState = "none"
	// SignatureGood is one that fits the commit and the key. It does not tell that the key is the merger's.
	SignatureGood SignatureState = "good"
	// SignatureBad is one that does not fit the commit, or is of a key that was revoked.
	SignatureBad SignatureState = "bad"
	// SignatureUnchecked is one that cannot be checked here: the key or the program is missing.
	SignatureUnchecked SignatureState = "unchecked"
)

// Signatures reads the signatures of landings, in their order. Its git and its programs read no configuration; gpg has
// the keys of the user.
func (b *Boundary) Signatures(ctx context.Context, list []HistoryEntry) ([]Signature, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	found := make([]Signature, len(list))
	var ids strings.Builder
	for i := range list {
		found[i] = Signature{Sequence: list[i].Sequence, Commit: list[i].Commit, State: SignatureNone}
		if list[i].Signature != "" {
			found[i].State = SignatureUnchecked
			ids.WriteString(list[i].Commit + "\n")
		}
	}
	if ids.Len() == 0 {
		return found, nil
	}
	// A file without signers: git then names the key, and trusts none.
	signers := b.folder.Path("signers")
	if err := os.WriteFile(signers, nil, 0o600); err != nil {
		return nil, err
	}
	repository := b.git
	repository.Config = append(slices.Clip(repository.Config), "gpg.ssh.allowedSignersFile="+signers)
	out, err := repository.Run(ctx, git.Call{
		Args: []string{"log", "--no-walk=unsorted", "--stdin", "--format=%H %G?%n%GF%n%GP"},
		In:   strings.NewReader(ids.String()), Env: git.Signing(os.Environ()),
	})
	if err != nil {
		return nil, err
	}
	lines := strings.Split(string(out.Out), "\n")
	for i := range found {
		s := &found[i]
		if s.State == SignatureNone {
			continue
		}
		if len(lines) < 3 {
			return nil, errors.New("git log has left out a commit")
		}
		id, state, _ := strings.Cut(lines[0], " ")
		if id != s.Commit {
			return nil, fmt.Errorf("git log printed %q, and commit %s was expected", lines[0], s.Commit)
		}
		switch state {
		case "G", "U", "X", "Y": // X and Y have expired since
			s.State, s.Key, s.Primary = SignatureGood, lines[1], lines[2]
		case "B", "R":
			s.State = SignatureBad
		}
		lines = lines[3:]
	}
	return found, nil
}

// VerifySignatures adds to a report the signatures of its landings, and what is wrong with them. Without keys that is a
// bad signature. With keys, as fingerprints, each landing must have a good signature of one of them.
func (b *Boundary) VerifySignatures(ctx context.Context, r *Report, head string, from uint64, keys []string) error {
	list, err := b.History(ctx, head, from)
	if err != nil {
		return err
	}
	if r.Signatures, err = b.Signatures(ctx, list); err != nil {
		return err
	}
	for _, s := range r.Signatures {
		switch {
		case s.State == SignatureBad:
			r.add(FoundSignature, s.Sequence, s.Commit, "it does not fit the commit, or its key was revoked")
		case len(keys) == 0 || s.State == SignatureGood && (named(keys, s.Key) || named(keys, s.Primary)):
		case s.State == SignatureGood:
			r.add(FoundSignature, s.Sequence, s.Commit, "the signature is of another key, %s", s.Key)
		case s.State == SignatureNone:
			r.add(FoundSignature, s.Sequence, s.Commit, "there is no signature")
		default:
			r.add(FoundSignature, s.Sequence, s.Commit, "it cannot be checked here: its key is missing, or the program")
		}
	}
	return nil
}

// named reports whether a fingerprint is one of some, which may have spaces. Those of ssh have letters of both cases.
func named(keys []string, fingerprint string) bool {
	return fingerprint != "" && slices.ContainsFunc(keys, func(k string) bool {
		k = strings.ReplaceAll(k, " ", "")
		return k == fingerprint || !strings.Contains(fingerprint, ":") && strings.EqualFold(k, fingerprint)
	})
}
