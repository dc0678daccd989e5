package merge

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"

	"github.com/interlockdev/interlock/internal/git"
)

// probeBytes is the size of the file that Probe lands.
const probeBytes = 256 << 10

// Probe does for the target alone what each landing needs: it makes a child of a commit with one more file, admits it
// and lands it, by the same commands. No ref moves. If that works, a failure of Admit or Land has its cause in the
// submission.
func (b *Boundary) Probe(ctx context.Context, commit string) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	t := Turn{Submission: Submission{ID: "probe"}, Sequence: 1, Parent: commit}
	var err error
	if t.Head, err = b.sample(ctx, commit); err != nil {
		return err
	}
	if _, err := b.admit(ctx, t); err != nil {
		return err
	}
	_, err = b.land(ctx, t, b.digest)
	return err
}

// sample writes a child of a commit, with a new file in its first folder.
func (b *Boundary) sample(ctx context.Context, id string) (string, error) {
	parent, err := b.readCommit(ctx, id)
	if err != nil {
		return "", err
	}
	text := make([]byte, probeBytes)
	if _, err := rand.Read(text); err != nil {
		return "", err
	}
	file, err := b.git.Feed(ctx, text, "hash-object", "-w", "--no-filters", "--stdin")
	raw, bad := hex.DecodeString(file)
	if err := errors.Join(err, bad); err != nil {
		return "", err
	}
	old, err := b.object(ctx, "tree", parent.tree)
	if err != nil {
		return "", err
	}
	name := "interlock-probe-" + file
	entry := append([]byte("100644 "+name+"\x00"), raw...)
	// A tree is a list of "MODE NAME\0ID" in the order of names.
	at := 0
	for at < len(old) {
		head, _, ok := bytes.Cut(old[at:], []byte{0})
		_, other, named := bytes.Cut(head, []byte(" "))
		if !ok || !named {
			return "", fmt.Errorf("the tree %s cannot be read", parent.tree)
		}
		if string(other) > name {
			break
		}
		at = min(at+len(head)+1+len(raw), len(old))
	}
	content := bytes.Join([][]byte{old[:at], entry, old[at:]}, nil)
	tree, err := b.git.Feed(ctx, content, "hash-object", "-w", "-t", "tree", "--stdin")
	if err := errors.Join(err, git.CheckObject(tree)); err != nil {
		return "", err
	}
	return b.writeCommit(ctx, &commit{
		tree: tree, parents: []string{id}, author: committer, committer: committer, message: "probe\n",
	})
}
