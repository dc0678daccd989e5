package git

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/interlockdev/interlock/guard/apiclient"
)

// commitAt commits a file with an author date.
func (r *rig) commitAt(at time.Time, name, text, subject string) {
	r.t.Helper()
	path := filepath.Join(r.work, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		r.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		r.t.Fatal(err)
	}
	r.git(r.work, "add", ".")
	r.git(r.work, "commit", "-q", "-m", subject, "--date", at.Format(time.RFC3339))
}

// lease holds keys and releases them.
func (r *rig) lease(keys ...string) {
	r.t.Helper()
	for _, key := range keys {
		post := func(path, body string) string {
			answer, err := http.Post(r.interlock.URL+path, "application/json", strings.NewReader(body))
			if err != nil {
				r.t.Fatal(err)
			}
			defer answer.Body.Close()
			text := make([]byte, 200)
			n, _ := answer.Body.Read(text)
			if answer.StatusCode != http.StatusOK {
				r.t.Fatalf("%s: %s", path, text[:n])
			}
			return string(text[:n])
		}
		granted := post("/v1/leases", fmt.Sprintf(`{"agent":"coder","claims":[{"key":%q}]}`, key))
		_, id, _ := strings.Cut(granted, `"id":"`)
		post("/v1/leases/"+id[:34]+"/release", "{}")
	}
}

func (r *rig) verify(commits string) *Report {
	r.t.Helper()
	client, err := apiclient.New(apiclient.Config{URLs: []string{r.interlock.URL}})
	if err != nil {
		r.t.Fatal(err)
	}
	keys, err := NewKeys(DefaultTemplate, "web")
	if err != nil {
		r.t.Fatal(err)
	}
	v := Verify{
		API: client, Keys: keys, Dir: r.work, Range: commits, Within: time.Hour, Slack: time.Minute, MaxPaths: 100,
	}
	report, err := v.Check(r.t.Context())
	if err != nil {
		r.t.Fatal(err)
	}
	return report
}

func TestVerify(t *testing.T) {
	r := newRig(t)
	now := time.Now()
	r.commitAt(now, "README", "web", "start")
	r.git(r.work, "tag", "base")
	r.lease("repo:web/src", "repo:web@hotfix/docs/a.md")
	r.commitAt(now, "src/auth.ts", "1", "under a lease of the directory")
	r.commitAt(now, "docs/a.md", "1", "under a lease of a copy")
	if got := r.verify("base..HEAD"); got.Commits != 2 || got.Changes != 2 || len(got.Uncovered) != 0 {
		t.Errorf("covered changes: %+v", got)
	}
	r.git(r.work, "tag", "-f", "base")
	r.lease("repo:website/other", "repo:web/sr", "repo:web/sru/auth.ts/below", "repo:web/late")
	r.commitAt(now, "sru/auth.ts", "1", "no lease \x1b[31m")
	r.commitAt(now.Add(2*time.Hour), "late", "1", "long after the lease")
	r.commitAt(now.Add(-2*time.Hour), "late", "2", "long before the lease")
	got := r.verify("base..HEAD")
	var texts []string
	for _, c := range got.Uncovered {
		texts = append(texts, c.Path+" "+c.Author)
		if strings.Contains(c.Text(), "\x1b") {
			t.Errorf("the text has control characters: %q", c.Text())
		}
	}
	if want := []string{"sru/auth.ts a", "late a", "late a"}; !slices.Equal(texts, want) {
		t.Errorf("uncovered %q, want %q", texts, want)
	}
	if got := r.verify("HEAD..HEAD"); got.Commits != 0 || len(got.Uncovered) != 0 {
		t.Errorf("an empty range: %+v", got)
	}
}

// A merge changes only what differs from all of its parents.
func TestVerifyMerge(t *testing.T) {
	r := newRig(t)
	now := time.Now()
	r.commitAt(now, "list", "1\n", "start")
	r.git(r.work, "checkout", "-q", "-b", "side")
	r.commitAt(now, "list", "2\n", "side")
	r.git(r.work, "checkout", "-q", "main")
	r.commitAt(now, "list", "3\n", "main")
	r.commitAt(now, "other", "1\n", "other")
	r.git(r.work, "tag", "before")
	if _, err := r.try(r.work, "merge", "-q", "side"); err == nil {
		t.Fatal("there is no conflict")
	}
	r.commitAt(now, "list", "2 and 3\n", "merge by hand")
	got := r.verify("before..HEAD")
	var texts []string
	for _, c := range got.Uncovered {
		texts = append(texts, c.Subject+": "+c.Path)
	}
	slices.Sort(texts)
	if want := []string{"merge by hand: list", "side: list"}; !slices.Equal(texts, want) {
		t.Errorf("uncovered %q, want %q", texts, want)
	}
}

func TestVerifyRefusesRanges(t *testing.T) {
	r := newRig(t)
	r.commitAt(time.Now(), "README", "web", "start")
	for _, commits := range []string{"HEAD", "--all", "", "none..HEAD"} {
		v := Verify{Dir: r.work, Range: commits, MaxPaths: 1}
		if _, err := v.Check(t.Context()); err == nil {
			t.Errorf("range %q is accepted", commits)
		}
	}
}
