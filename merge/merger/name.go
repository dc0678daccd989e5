package merger

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/internal/git"
)

// Name is the target of a merger: a repository, by a name in the form of git.CheckName, and a ref in it. Two targets
// share no key, queue or ref: TestNamesAreApart.
type Name struct {
	Repo string
	// Target is the name of a branch, such as release/1.0. Any other ref, and a branch with a
	// name that begins with refs/, has its full name. NameOf makes it.
	Target string
}

const heads = "refs/heads/"

// NameOf is the target of a branch or of a full name of a ref.
func NameOf(repo, ref string) Name {
	if branch, ok := strings.CutPrefix(ref, heads); ok && !strings.HasPrefix(branch, "refs/") {
		return Name{repo, branch}
	}
	return Name{repo, ref}
}

// Ref is the full name of the ref.
func (n Name) Ref() string {
	if strings.HasPrefix(n.Target, "refs/") {
		return n.Target
	}
	return heads + n.Target
}

// String is the name as commands take it.
func (n Name) String() string { return n.Repo + "/" + n.Target }

// Check returns an error unless the repository has a name, and the target is the one spelling of a ref.
func (n Name) Check() error {
	if err := git.CheckName(n.Repo); err != nil {
		return fmt.Errorf("repository: %w", err)
	}
	if err := git.CheckRef(n.Ref()); err != nil {
		return fmt.Errorf("target: %w", err)
	}
	if n != NameOf(n.Repo, n.Ref()) {
		return fmt.Errorf("target: %q has the short name %q", n.Target, NameOf(n.Repo, n.Ref()).Target)
	}
	return nil
}

// segment writes a name in the letters that the name of a queue and one segment of a key may have: letters, digits,
// '.', '_' and '-'. Other bytes, and those of more, become '~' and two digits; a long name becomes "~~" and a digest.
// Two names never have one segment.
func segment(name, more string) string {
	var b strings.Builder
	for _, c := range []byte(name) {
		plain := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '.' || c == '_' || c == '-'
		if plain && strings.IndexByte(more, c) < 0 {
			b.WriteByte(c)
		} else {
			fmt.Fprintf(&b, "~%02X", c)
		}
	}
	if b.Len() <= maxSegment {
		return b.String()
	}
	sum := sha256.Sum256([]byte(name))
	return "~~" + hex.EncodeToString(sum[:16])
}

// unescape is the inverse of segment; ok is false if text is a digest, or no result of segment.
func unescape(text, more string) (name string, ok bool) {
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		c := text[i]
		if c == '~' {
			pair, err := hex.DecodeString(text[i+1 : min(i+3, len(text))])
			if err != nil || len(pair) != 1 {
				return "", false
			}
			c, i = pair[0], i+2
		}
		b.WriteByte(c)
	}
	return b.String(), segment(b.String(), more) == text
}

// NameOfQueue returns the target with a queue, and false for another queue and for a name that stands as a digest.
func NameOfQueue(queue string) (Name, bool) {
	rest, ok := strings.CutPrefix(queue, "merge.")
	repo, target, found := strings.Cut(rest, ".")
	r, good := unescape(repo, ".")
	t, fine := unescape(target, "")
	n := Name{r, t}
	return n, ok && found && good && fine && n.Check() == nil
}

// maxSegment leaves the name of a queue room for two, or for one and the name of a check.
const maxSegment = git.MaxName - 8

// targetSegment and repoSegment are parts of names. A dot ends the second one in the name of a queue.
func (n Name) targetSegment() string { return segment(n.Target, "") }
func (n Name) repoSegment() string   { return segment(n.Repo, ".") }

// Key is the key of the target's document and of the seat.
func (n Name) Key() interlock.Key { return interlock.Key("merge:" + n.Repo + "/" + n.targetSegment()) }

// Queue is the queue of submissions.
func (n Name) Queue() string { return "merge." + n.repoSegment() + "." + n.targetSegment() }

// CheckQueue is the queue of one check of the repository's trees. Each check has its own, so that a worker takes only
// what it can do.
func (n Name) CheckQueue(check string) string { return "check." + n.repoSegment() + "." + check }

// RecordKey is the key of a submission's record.
func (n Name) RecordKey(id string) interlock.Key { return n.Key() + interlock.Key("/submission/"+id) }

// LandingKey is the key of a landing.
func (n Name) LandingKey(sequence uint64) interlock.Key {
	return n.Key() + interlock.Key(fmt.Sprintf("/landing/%08d", sequence))
}

// VerdictKey is the key of the verdict on a tree.
func (n Name) VerdictKey(tree, check string) interlock.Key {
	return n.repositoryKey() + interlock.Key("/"+tree+"/"+check)
}

// repositoryKey is the key of the document that tells which repository has the name.
func (n Name) repositoryKey() interlock.Key { return interlock.Key("verdict:" + n.Repo) }

// homeKey is the key of the newest submission of a workspace: see supersede.go.
func (n Name) homeKey(home string) interlock.Key { return n.Key() + interlock.Key("/workspace/"+home) }

// withdrawKey is the key of a wish to withdraw. It is not reserved for mergers, because authors write it.
func (n Name) withdrawKey(id string) interlock.Key {
	return interlock.Key("withdraw:" + n.Repo + "/" + n.targetSegment() + "/" + id)
}
