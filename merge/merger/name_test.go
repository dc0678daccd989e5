package merger

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/merge"
)

// TestUsualNames shows that the usual names stand in queues and keys as they are.
func TestUsualNames(t *testing.T) {
	for _, tt := range []struct {
		name       Name
		queue, key string
	}{
		{NameOf("web", "main"), "merge.web.main", "merge:web/main"},
		{NameOf("web", "refs/heads/main"), "merge.web.main", "merge:web/main"},
		{NameOf("web", "release-1.0"), "merge.web.release-1.0", "merge:web/release-1.0"},
		{NameOf("web", "release/1.0"), "merge.web.release~2F1.0", "merge:web/release~2F1.0"},
		{NameOf("web.main", "x"), "merge.web~2Emain.x", "merge:web.main/x"},
		{NameOf("web", "Fix"), "merge.web.Fix", "merge:web/Fix"},
		{NameOf("web", "refs/tags/v1"), "merge.web.refs~2Ftags~2Fv1", "merge:web/refs~2Ftags~2Fv1"},
		{NameOf("web", "refs/heads/refs/x"), "merge.web.refs~2Fheads~2Frefs~2Fx", "merge:web/refs~2Fheads~2Frefs~2Fx"},
	} {
		if err := tt.name.Check(); err != nil {
			t.Errorf("%s: %v", tt.name, err)
		}
		if got := tt.name.Queue(); got != tt.queue {
			t.Errorf("%s has the queue %s, want %s", tt.name, got, tt.queue)
		}
		if got := string(tt.name.Key()); got != tt.key {
			t.Errorf("%s has the key %s, want %s", tt.name, got, tt.key)
		}
	}
	for _, bad := range []Name{
		{"web", ""},
		{"web", "a b"},
		{"web", "a~b"},
		{"web", "a..b"},
		{"web", "refs/heads/main"},
		{"web", "-x"},
		{"a/b", "x"},
	} {
		if bad.Check() == nil {
			t.Errorf("%q is a name", bad)
		}
	}
}

// TestNamesAreApart draws targets from the letters with which names were joined, and compares all that they have: two
// of them share nothing, and neither has a key below another's.
func TestNamesAreApart(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	draw := func(letters string, most int) string {
		var b strings.Builder
		for range 1 + r.IntN(most) {
			b.WriteByte(letters[r.IntN(len(letters))])
		}
		if r.IntN(20) == 0 { // and some that are too long for a queue's name
			b.WriteString(strings.Repeat(b.String(), 60/b.Len()))
		}
		return b.String()
	}
	owners := map[string]Name{}
	own := func(n Name, text string) {
		if o, taken := owners[text]; taken && o != n {
			t.Fatalf("%q and %q share %q", o, n, text)
		}
		owners[text] = n
	}
	tried := 0
	for range 300_000 {
		repo, ref := draw("ab.-_", 5), draw("abA.-_/%", 7)
		if r.IntN(4) == 0 {
			ref = "refs/" + ref
		}
		n := NameOf(repo, ref)
		if n.Check() != nil {
			continue
		}
		tried++
		if got, ok := NameOfQueue(n.Queue()); got != n && ok || !ok && !strings.Contains(n.Queue(), "~~") {
			t.Fatalf("queue %s of %q is that of %q, %v", n.Queue(), n, got, ok)
		}
		if got := NameOf(repo, n.Ref()); got != n {
			t.Fatalf("%q of ref %s is %q", n, n.Ref(), got)
		}
		own(n, "queue "+n.Queue())
		own(n, "key "+string(n.Key()))
		own(n, "fence "+repo+" "+merge.FenceRef(n.Ref()))
		own(n, "withdraw "+string(n.withdrawKey("s")))
		own(Name{Repo: repo}, "check "+n.CheckQueue("unit"))
		own(Name{Repo: repo}, "verdict "+string(n.VerdictKey("0", "unit")))
		if strings.Count(string(n.Key()), "/") != 1 || len(n.Queue()) > interlock.MaxNameBytes ||
			len(n.CheckQueue(strings.Repeat("c", 64))) > interlock.MaxNameBytes {
			t.Fatalf("%q has the key %s and the queue %s", n, n.Key(), n.Queue())
		}
	}
	if tried < 50_000 {
		t.Errorf("only %d targets were tried", tried)
	}
	t.Attr("count.targets", fmt.Sprint(tried))
}
