package hook

import (
	"fmt"
	"testing"
	"time"
)

// skip allows one edit of a file.
func (r *rig) skip(file string) {
	r.Helper()
	status, answer := r.post("skip", fmt.Sprintf(`{"cwd":"/w/web","path":%q,"reason":"the\nfix"}`, file))
	if want := `{"key":"repo:web/` + file + `","file":"` + file + `","expires_in_ms":600000}`; status != 200 || answer != want {
		r.Errorf("the skip is answered with %d %s, want %s", status, answer, want)
	}
}

// A skip lets one edit pass, and the holder hears of that.
func TestSkip(t *testing.T) {
	inBubble(t, func(r *rig) {
		r.query = "?wait_s=0"
		ann, ben := r.coder(annID), r.coder(benID)
		ann.edit("a")
		ann.edit("b")
		ben.denied("a")
		r.skip("a")
		want(r.T, ben.bash("echo >a >b"), "b is held by") // and a skip is not used up by a refusal
		pass(time.Second)
		want(r.T, ben.edit("a"), `A person lets this one edit of a pass`, `"the fix"`)
		ben.denied("a")
		want(r.T, ann.edit("a"), "a changed since you read it (claude-code/bbbbbbbb", "Read it again")
	})
}

func TestSkipOfAFreeFileStays(t *testing.T) {
	inBubble(t, func(r *rig) {
		r.query = "?wait_s=0"
		ann, ben := r.coder(annID), r.coder(benID)
		r.skip("a")
		ann.edit("a")
		want(r.T, ben.edit("a"), "A person lets")
	})
}

func TestSkipExpires(t *testing.T) {
	inBubble(t, func(r *rig) {
		r.query = "?wait_s=0"
		ann, ben := r.coder(annID), r.coder(benID)
		r.skip("a")
		pass(skipLife)
		ann.edit("a")
		ben.denied("a")
	})
}

// A skip that comes while an edit waits is for that edit, at the end of its wait.
func TestSkipDuringAWait(t *testing.T) {
	inBubble(t, func(r *rig) {
		r.query = "?wait_s=10"
		ann, ben := r.coder(annID), r.coder(benID)
		ann.edit("a")
		time.AfterFunc(time.Second, func() { r.skip("a") })
		want(r.T, ben.edit("a"), "A person lets")
	})
}
