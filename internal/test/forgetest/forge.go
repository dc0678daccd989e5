package forgetest

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// Token is what each call needs.
const Token = "forge-token-7f3a9"

// Forge is a forge with one repository, acme/web.
type Forge struct {
	// Dir is the bare repository.
	Dir string
	// URL is that of the server.
	URL string
	// Fault is asked at each call (list, open, merge, close or failing) how it goes wrong. nil and "" mean that it does
	// not.
	Fault func(call string, number int) Fault
	// Method is how it merges.
	Method Method
	// Refuse returns why a commit is not merged yet, "" for none, and Failing which of its checks have failed.
	Refuse, Failing func(commit string) string
	// Merging is called before a merge, with the request's commit.
	Merging func(commit string)

	t        testing.TB
	mu       sync.Mutex
	requests []*Request
	calls    map[string]int
	strays   []string // calls without the token
	late     []func()
}

// Request is a request as it was made.
type Request struct {
	Number                    int
	Branch, Base, Title, Text string
	Commit                    string // that was merged, else that of the branch
	State                     string // open, merged or closed
	Base0                     string // where the base was when it was opened
}

// Method is how a forge merges.
type Method string

// The methods of forges.
const (
	MergeCommit Method = ""
	FastForward Method = "fast forward"
	Squash      Method = "squash"
	Rebase      Method = "rebase"
)

// Fault is how a call goes wrong.
type Fault string

// The faults of a call.
const (
	Fails     Fault = "fails"     // 500, and nothing is done
	Unknown   Fault = "unknown"   // it is done, and the connection ends without an answer
	Hangs     Fault = "hangs"     // nothing is done, and there is no answer
	Twice     Fault = "twice"     // it is done two times
	Lies      Fault = "lies"      // it answers as if it were done
	Late      Fault = "late"      // it answers as if it were done, and does it at the call after the next
	Garbage   Fault = "garbage"   // it is done, and the answer is no JSON
	Endless   Fault = "endless"   // the answer does not end
	Redirects Fault = "redirects" // to another host
	Throttles Fault = "throttles" // 429
	Denies    Fault = "denies"    // 401, with the token in the answer
)

// Faults are all of them.
func Faults() []Fault {
	return []Fault{Fails, Unknown, Hangs, Twice, Lies, Late, Garbage, Endless, Redirects, Throttles, Denies}
}

// Calls are the calls that a merger makes.
func Calls() []string { return []string{"list", "open", "merge", "close", "failing"} }

const hook = `#!/bin/sh
while read old new ref; do
case $ref in
refs/heads/interlock/land/*|refs/interlock/*) ;;
*) echo "GH006: Protected branch update failed"; exit 1;;
esac
git ls-tree -r --name-only $new 2>/dev/null | grep -q ^secret && { echo "GH013: secret found"; exit 1; }
done; exit 0
`

// New starts a forge with a copy of a repository.
func New(t testing.TB, from string) *Forge {
	t.Helper()
	f := &Forge{t: t, Dir: filepath.Join(t.TempDir(), "forge.git"), calls: map[string]int{}}
	f.Git("clone", "--quiet", "--bare", "--", from, f.Dir)
	if err := os.MkdirAll(filepath.Join(f.Dir, "hooks"), 0o777); err != nil {
		t.Fatal(err)
	}
	f.SetHook(hook)
	s := httptest.NewServer(f)
	f.URL = s.URL
	t.Cleanup(func() {
		s.CloseClientConnections()
		s.Close()
		f.mu.Lock()
		defer f.mu.Unlock()
		if len(f.strays) > 0 {
			t.Errorf("calls without the token: %q", f.strays)
		}
	})
	return f
}

// Repository makes a bare repository with a branch main.
func Repository(t testing.TB, dir string) {
	t.Helper()
	f := &Forge{t: t, Dir: dir}
	f.Git("init", "--quiet", "--bare", "-b", "main")
	tree := f.Git("mktree", "--missing")
	f.Git("update-ref", "refs/heads/main", f.Git("commit-tree", tree, "-m", "first"))
}

// SetHook replaces the hook that forbids pushes.
func (f *Forge) SetHook(text string) {
	f.t.Helper()
	name := filepath.Join(f.Dir, "hooks", "pre-receive")
	if err := errors.Join(os.WriteFile(name+".new", []byte(text), 0o755), os.Rename(name+".new", name)); err != nil {
		f.t.Fatal(err)
	}
}

// Git runs git in the repository.
func (f *Forge) Git(args ...string) string {
	f.t.Helper()
	out, err := f.git(args...)
	if err != nil {
		f.t.Fatal(err)
	}
	return out
}

func (f *Forge) git(args ...string) (string, error) {
	if args[0] != "clone" {
		args = append([]string{"--git-dir", f.Dir}, args...)
	}
	cmd := exec.Command("git", args...)
	cmd.Env = []string{
		"PATH=" + os.Getenv("PATH"), "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=" + os.DevNull,
		"GIT_AUTHOR_NAME=Forge", "GIT_AUTHOR_EMAIL=forge@example.org",
		"GIT_COMMITTER_NAME=Forge", "GIT_COMMITTER_EMAIL=forge@example.org",
	}
	var out, complaint bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &complaint
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("git %v: %w: %s", args, err, complaint.String())
	}
	return strings.TrimSpace(out.String()), nil
}

// Requests are all that were made.
func (f *Forge) Requests() (list []Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, r := range f.requests {
		list = append(list, *r)
	}
	return list
}

// Change changes a request, as a person would.
func (f *Forge) Change(number int, change func(r *Request)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change(f.requests[number-1])
}

// Mend ends all faults and refusals.
func (f *Forge) Mend() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.Fault, f.Refuse = nil, nil
}

// Called is how often a call was made.
func (f *Forge) Called(call string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.calls[call]
}

// at is where a branch is, "" if it is not there.
func (f *Forge) at(branch string) string {
	id, _ := f.git("rev-parse", "--verify", "--quiet", "refs/heads/"+branch)
	return id
}

// look brings a request up to date with its branch.
func (f *Forge) look(r *Request) {
	if r.State != "open" {
		return
	}
	if at := f.at(r.Branch); at != "" {
		r.Commit = at
	} else {
		r.State = "closed"
	}
}

// answer is a status and what is written as JSON.
type answer struct {
	status int
	body   any
}

func refusal(status int, words string) answer {
	return answer{status, map[string]any{"message": words}}
}

func (f *Forge) open(branch, base, title, text string) answer {
	for _, r := range f.requests {
		if f.look(r); r.Branch == branch && r.Base == base && r.State == "open" {
			return refusal(http.StatusUnprocessableEntity, "A pull request already exists for acme:"+branch)
		}
	}
	if f.at(branch) == "" || f.at(base) == "" {
		return refusal(http.StatusUnprocessableEntity, "Validation Failed: head invalid")
	}
	r := &Request{
		Number: len(f.requests) + 1, Branch: branch, Base: base, Title: title, Text: text, State: "open",
		Commit: f.at(branch), Base0: f.at(base),
	}
	f.requests = append(f.requests, r)
	return answer{http.StatusCreated, map[string]any{"number": r.Number, "iid": r.Number}}
}

func (f *Forge) merge(number int, commit, message string) answer {
	if number < 1 || number > len(f.requests) {
		return refusal(http.StatusNotFound, "Not Found")
	}
	r := f.requests[number-1]
	f.look(r)
	if f.Merging != nil {
		f.Merging(r.Commit)
	}
	base := f.at(r.Base)
	switch {
	case r.State != "open":
		return refusal(http.StatusMethodNotAllowed, "Pull Request is not mergeable")
	case commit != r.Commit:
		return refusal(http.StatusConflict, "Head branch was modified. Review and try the merge again.")
	}
	if f.Refuse != nil {
		if words := f.Refuse(commit); words != "" {
			return refusal(http.StatusMethodNotAllowed, words)
		}
	}
	to := commit
	if f.Method != FastForward {
		// It merges with what the base is now, as forges do.
		tree, err := f.git("merge-tree", "--write-tree", base, commit)
		if err != nil {
			return refusal(http.StatusMethodNotAllowed, "Merge conflict")
		}
		args := []string{"commit-tree", tree, "-m", message, "-p", base}
		if f.Method == MergeCommit {
			args = append(args, "-p", commit)
		}
		if to, err = f.git(args...); err != nil {
			return refusal(http.StatusInternalServerError, err.Error())
		}
		if f.Method == Rebase {
			if to, err = f.git("commit-tree", tree, "-m", "rebased", "-p", to); err != nil {
				return refusal(http.StatusInternalServerError, err.Error())
			}
		}
	}
	if _, err := f.git("update-ref", "refs/heads/"+r.Base, to, base); err != nil {
		return refusal(http.StatusConflict, "Base branch was modified. Review and try the merge again.")
	}
	r.State = "merged"
	return answer{http.StatusOK, map[string]any{"merged": true, "sha": to}}
}

func (f *Forge) close(number int) answer {
	if number < 1 || number > len(f.requests) {
		return refusal(http.StatusNotFound, "Not Found")
	}
	r := f.requests[number-1]
	if f.look(r); r.State == "merged" {
		return refusal(http.StatusUnprocessableEntity, "Cannot close a merged request")
	}
	r.State = "closed"
	return answer{http.StatusOK, map[string]any{}}
}
