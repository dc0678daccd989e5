package merge

import (
	"fmt"
	"strings"

	"github.com/interlockdev/interlock/internal/git"
)

// Fence is what the fence ref of a target points to: a blob of four lines. It changes at each landing, since a push
// compares no ref that stays as it is.
//
//	interlock fence 1
//	token 17
//	sequence 41
//	commit 8c1f…
type Fence struct {
	// Token is the fencing token of the merger's lease.
	Token uint64
	// Sequence is the number of the last landing. 0 before the first.
	Sequence uint64
	// Commit is where the target's ref is after that landing.
	Commit string
}

const fenceHeader = "interlock fence 1"

func (f *Fence) encode() []byte {
	return fmt.Appendf(nil, "%s\ntoken %d\nsequence %d\ncommit %s\n", fenceHeader, f.Token, f.Sequence, f.Commit)
}

func parseFence(text string) (f Fence, err error) {
	_, err = fmt.Sscanf(text, fenceHeader+"\ntoken %d\nsequence %d\ncommit %s\n", &f.Token, &f.Sequence, &f.Commit)
	if err == nil {
		err = git.CheckObject(f.Commit)
	}
	if err == nil && string(f.encode()) != text {
		err = fmt.Errorf("its lines are not those of a fence")
	}
	if err != nil {
		return Fence{}, fmt.Errorf("the fence ref points to %.100q, which is no fence: %w", text, err)
	}
	return f, nil
}

// FenceRef returns the name of a target's fence ref: refs/interlock/fence/main for refs/heads/main.
func FenceRef(ref string) string {
	return "refs/interlock/fence/" + strings.TrimPrefix(strings.TrimPrefix(ref, "refs/"), "heads/")
}
