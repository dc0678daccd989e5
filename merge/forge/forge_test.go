package forge_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/interlockdev/interlock/internal/test/forgetest"
	"github.com/interlockdev/interlock/merge/forge"
)

const branch = "interlock/land/main/x"

// newForge is a forge with a branch to merge, at a commit.
func newForge(t *testing.T) (f *forgetest.Forge, commit string) {
	dir := t.TempDir()
	forgetest.Repository(t, dir)
	f = forgetest.New(t, dir)
	commit = f.Git("commit-tree", "main^{tree}", "-p", "main", "-m", "landing")
	f.Git("update-ref", "refs/heads/"+branch, commit)
	return f, commit
}

func dial(t *testing.T, f *forgetest.Forge, kind string) *forge.Forge {
	t.Helper()
	c, err := forge.New(forge.Config{
		Kind: kind, URL: f.URLOf(kind), Credential: func() (string, error) { return forgetest.Token, nil },
		Within: time.Second,
	})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// A request is opened once, found, merged at its commit alone, and closed, at each kind of forge.
func TestKinds(t *testing.T) {
	for _, kind := range forge.Kinds() {
		t.Run(kind, func(t *testing.T) {
			f, commit := newForge(t)
			c, ctx := dial(t, f, kind), t.Context()
			if _, found, err := c.Find(ctx, branch, "main"); found || err != nil {
				t.Fatalf("found %v, %v", found, err)
			}
			if err := c.Open(ctx, branch, "main", "title", "text"); err != nil {
				t.Fatal(err)
			}
			if err := c.Open(ctx, branch, "main", "title", "text"); !refused(err, "already exists") {
				t.Errorf("a second request: %v", err)
			}
			r, found, err := c.Find(ctx, branch, "main")
			if err != nil || !found || r.Number != 1 || r.State != forge.Open || r.Base != "main" || r.Commit != commit {
				t.Errorf("%+v, %v, %v", r, found, err)
			}
			if r.BaseCommit != "" && r.BaseCommit != f.Git("rev-parse", "main") {
				t.Errorf("the base is at %s", r.BaseCommit)
			}
			if err := c.Merge(ctx, 1, f.Git("rev-parse", "main"), "title", "text"); !refused(err, "modified") {
				t.Errorf("a merge of another commit: %v", err)
			}
			f.Failing = func(string) string { return "tests fail" }
			if text, err := c.Failing(ctx, r); err != nil || text == "" {
				t.Errorf("failing %q, %v", text, err)
			}
			f.Failing = nil
			if text, err := c.Failing(ctx, r); err != nil || text != "" {
				t.Errorf("failing %q, %v", text, err)
			}
			if err := c.Merge(ctx, 1, commit, "the title", "the text"); err != nil {
				t.Fatal(err)
			}
			if got := f.Git("log", "-1", "--format=%B%P", "main"); !strings.HasPrefix(got, "the title\n\nthe text") ||
				!strings.HasSuffix(got, commit) {
				t.Errorf("the merge commit is %q", got)
			}
			f.Git("update-ref", "-d", "refs/heads/"+branch)
			if r, found, err := c.Find(ctx, branch, "main"); err != nil || !found || r.State != forge.Merged {
				t.Errorf("%+v, %v, %v", r, found, err)
			}
			if err := c.Close(ctx, 1); !refused(err, "merged") {
				t.Errorf("a merged request is closed: %v", err)
			}
			f.Git("update-ref", "refs/heads/"+branch, commit)
			if err := errors.Join(c.Open(ctx, branch, "other", "", "")); !refused(err, "invalid") {
				t.Errorf("a base that is not there: %v", err)
			}
			if err := errors.Join(c.Open(ctx, branch, "main", "", ""), c.Close(ctx, 2)); err != nil {
				t.Error(err)
			}
		})
	}
}

func refused(err error, words string) bool {
	no, ok := errors.AsType[*forge.Refused](err)
	return ok && strings.Contains(no.Words, words)
}

// Whatever a forge answers, a call ends, and its error has no token. Only a refusal is one.
func TestFaults(t *testing.T) {
	for _, kind := range forge.Kinds() {
		for _, fault := range forgetest.Faults() {
			t.Run(kind+"/"+string(fault), func(t *testing.T) {
				t.Parallel()
				f, commit := newForge(t)
				c, ctx := dial(t, f, kind), t.Context()
				f.Fault = func(string, int) forgetest.Fault { return fault }
				_, _, find := c.Find(ctx, branch, "main")
				for call, err := range map[string]error{
					"find": find, "open": c.Open(ctx, branch, "main", "", ""), "merge": c.Merge(ctx, 1, commit, "", ""),
				} {
					if err != nil && strings.Contains(err.Error(), forgetest.Token) {
						t.Errorf("%s: the error has the token: %v", call, err)
					}
					switch fault {
					case forgetest.Lies, forgetest.Late, forgetest.Twice, forgetest.Garbage: // nothing of it is read
					default:
						if _, no := errors.AsType[*forge.Refused](err); err == nil || no {
							t.Errorf("%s: %v, want an error", call, err)
						}
					}
				}
			})
		}
	}
}

// A redirection is an error that names the host, and the token stays where it is, also on the same host.
func TestRedirect(t *testing.T) {
	elsewhere := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, q *http.Request) {
		t.Errorf("%s got a call with %q", q.URL, q.Header.Get("Authorization"))
	}))
	defer elsewhere.Close()
	for _, to := range []string{elsewhere.URL + "/repos/acme/web/pulls", "/other", "//127.0.0.2:9/", "mailto:x"} {
		for _, code := range []int{301, 302, 303, 307, 308} {
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Location", to)
				w.WriteHeader(code)
			}))
			c, err := forge.New(forge.Config{
				Kind: "github", URL: s.URL + "/repos/acme/web", Credential: func() (string, error) { return "t0ken", nil },
				Within: time.Second,
			})
			if err != nil {
				t.Fatal(err)
			}
			err = c.Open(t.Context(), branch, "main", "", "")
			if err == nil || !strings.Contains(err.Error(), "redirects to") || strings.Contains(err.Error(), "t0ken") {
				t.Errorf("%d to %s: %v", code, to, err)
			}
			s.Close()
		}
	}
}

// Requests of the same branch name, of another repository or into another base, are not taken for ours.
func TestFindIsOurs(t *testing.T) {
	side := func(label, ref, repo string) string {
		return `{"label":"` + label + `","ref":"` + ref + `","sha":"c1","repo":` + repo + `}`
	}
	base, own := side("", "main", `{"id":1}`), `{"id":1}`
	pull := func(number, head, base string) string {
		return `{"number":` + number + `,"state":"open","merged_at":null,"head":` + head + `,"base":` + base + `}`
	}
	for name, c := range map[string]struct {
		answer string
		want   int64
	}{
		"none":           {`[]`, 0},
		"null":           {`null`, 0},
		"ours":           {`[` + pull("7", side("", branch, own), base) + `]`, 7},
		"of a fork":      {`[` + pull("7", side("", branch, `{"id":2}`), base) + `]`, 0},
		"of a lost fork": {`[` + pull("7", side("", branch, `null`), base) + `]`, 0},
		"another branch": {`[` + pull("7", side("", branch+"y", own), base) + `]`, 0},
		"another base":   {`[` + pull("7", side("", branch, own), side("", "dev", own)) + `]`, 7},
		"two": {
			`[` + pull("7", side("", branch, own), side("", "dev", own)) + `,` + pull("9", side("", branch, own), base) + `]`,
			9,
		},
		"two of the base": {
			`[` + pull("9", side("", branch, own), base) + `,` + pull("8", side("", branch, own), base) + `]`, 8,
		},
	} {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			_, _ = w.Write([]byte(c.answer))
		}))
		f, err := forge.New(forge.Config{
			Kind: "github", URL: s.URL + "/repos/acme/web", Credential: func() (string, error) { return "t0ken", nil },
		})
		if err != nil {
			t.Fatal(err)
		}
		r, found, err := f.Find(t.Context(), branch, "main")
		if err != nil || r.Number != c.want || found != (c.want != 0) {
			t.Errorf("%s: %+v, %v, %v", name, r, found, err)
		}
		s.Close()
	}
}

func TestConfig(t *testing.T) {
	token := func() (string, error) { return "t", nil }
	for url, good := range map[string]bool{
		"https://api.github.com/repos/acme/web": true, "http://127.0.0.1:3000/api/v1/repos/a/b": true,
		"http://[::1]/repos/a/b": true, "http://localhost/repos/a/b/": true,
		"http://api.github.com/repos/acme/web": false, "https://u:p@api.github.com/repos/acme/web": false,
		"https://api.github.com": false, "https://api.github.com/": false, "https://h/r?x=1": false, "https://h/r#x": false,
		"ftp://127.0.0.1/x": false, "/repos/a/b": false, "https:///x": false, "%": false, "": false,
	} {
		if _, err := forge.New(forge.Config{Kind: "github", URL: url, Credential: token}); (err == nil) != good {
			t.Errorf("%s: %v", url, err)
		} else if err != nil && strings.Contains(err.Error(), "u:p") {
			t.Errorf("the error has the credential: %v", err)
		}
	}
	if _, err := forge.New(forge.Config{Kind: "svn", URL: "https://h/r", Credential: token}); err == nil {
		t.Error("an unknown kind is taken")
	}
	for name, credential := range map[string]func() (string, error){
		"none":  func() (string, error) { return "", nil },
		"fails": func() (string, error) { return "", errors.New("no file") },
	} {
		c, err := forge.New(forge.Config{Kind: "gitlab", URL: "http://127.0.0.1:9/x", Credential: credential})
		if err == nil {
			err = c.Close(context.Background(), 1)
		}
		if err == nil || strings.Contains(err.Error(), "reached") {
			t.Errorf("%s: %v, want no call", name, err)
		}
	}
}
