package merge

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	"github.com/interlockdev/interlock/internal/git"
)

// Fence is what the fence ref of a target points to: a blob of four or five lines. It changes at each landing, since a
// push compares no ref that stays as it is.
//
//	interlock fence 1
//	token 17
//	sequence 41
//	commit 8c1f…
//	offer 02ab…-17  only while a forge has a request: see Target.Offer
type Fence struct {
	// Token is the fencing token of the merger's lease.
	Token uint64
	// Sequence is the number of the last landing. 0 before the first.
	Sequence uint64
	// Commit is where the target's ref is after that landing.
	Commit string
	// Offer names what a forge is to merge, until it is known to have done so: the commit, and the token of the merger
	// that has offered it. Empty means none.
	Offer string
}

const fenceHeader = "interlock fence 1"

func (f *Fence) encode() []byte {
	text := fmt.Appendf(nil, "%s\ntoken %d\nsequence %d\ncommit %s\n", fenceHeader, f.Token, f.Sequence, f.Commit)
	if f.Offer != "" {
		text = fmt.Appendf(text, "offer %s\n", f.Offer)
	}
	return text
}

func parseFence(text string) (f Fence, err error) {
	lines, offer, offered := strings.Cut(text, "\noffer ")
	_, err = fmt.Sscanf(lines, fenceHeader+"\ntoken %d\nsequence %d\ncommit %s", &f.Token, &f.Sequence, &f.Commit)
	if err == nil {
		err = git.CheckObject(f.Commit)
	}
	if f.Offer = strings.TrimSuffix(offer, "\n"); offered && err == nil {
		commit, token, _ := strings.Cut(f.Offer, "-")
		_, wrong := strconv.ParseUint(token, 10, 64)
		err = cmp.Or(git.CheckObject(commit), wrong)
	}
	if err == nil && string(f.encode()) != text {
		err = fmt.Errorf("its lines are not those of a fence")
	}
	if err != nil {
		return Fence{}, fmt.Errorf("the fence ref points to %.100q, which is no fence: %w", text, err)
	}
	return f, nil
}

// FenceRef returns the name of a target's fence ref: refs/interlock/fence/main for refs/heads/main, and
// refs/interlock/fence-of/x for another ref, refs/x.
func FenceRef(ref string) string {
	if branch, ok := strings.CutPrefix(ref, "refs/heads/"); ok {
		return "refs/interlock/fence/" + branch
	}
	return "refs/interlock/fence-of/" + strings.TrimPrefix(ref, "refs/")
}
