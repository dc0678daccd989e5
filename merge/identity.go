package merge

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"strings"
)

// IdentityRef is the ref of a repository's id: a blob with a random text, which the first merger writes. A clone has
// none; a mirror has that of its origin.
const IdentityRef = "refs/interlock/repository"

// Identity is what a repository is known by.
type Identity struct {
	// ID is the id of the blob at IdentityRef.
	ID string
	// Root is the first commit of the target, along first parents.
	Root string
}

// Identity returns the identity of the repository with the ref. A repository without an id gets one.
func (t *Target) Identity(ctx context.Context) (Identity, error) {
	at, err := t.Read(ctx)
	if err != nil {
		return Identity{}, err
	}
	var known Identity
	if known.Root, err = t.Repository.Output(
		ctx, "rev-list", "--first-parent", "--max-parents=0", "--end-of-options", at.Head,
	); err != nil {
		return known, err
	}
	if known.ID, err = t.readIdentity(ctx); err != nil || known.ID != "" {
		return known, err
	}
	var random [16]byte
	if _, err := rand.Read(random[:]); err != nil {
		return known, err
	}
	text := []byte("interlock repository 1\n" + hex.EncodeToString(random[:]) + "\n")
	synced := t.synced()
	id, err := synced.Feed(ctx, text, "hash-object", "-w", "-t", "blob", "--stdin")
	if err != nil {
		return known, err
	}
	first := []step{{IdentityRef, strings.Repeat("0", len(at.Head)), id}}
	if t.Remote == "" {
		err = t.updateRefs(ctx, first)
	} else {
		err = t.push(ctx, first)
	}
	// Another merger may have been first.
	var readErr error
	if known.ID, readErr = t.readIdentity(ctx); readErr == nil && known.ID == "" {
		err = fmt.Errorf("the repository got no id at %s: %w", IdentityRef, err)
	} else {
		err = readErr
	}
	return known, err
}

// readIdentity returns the id of the repository, and "" if it has none.
func (t *Target) readIdentity(ctx context.Context) (string, error) {
	if t.Remote == "" {
		return t.Repository.Output(ctx, "for-each-ref", "--format=%(objectname)", IdentityRef)
	}
	out, err := t.Repository.Output(ctx, "ls-remote", "--end-of-options", t.Remote, IdentityRef)
	id, _, _ := strings.Cut(out, "\t")
	return id, err
}
