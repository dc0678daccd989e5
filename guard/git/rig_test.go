package git

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/interlockdev/interlock/guard/apiclient"
	"github.com/interlockdev/interlock/guard/apiclient/apitest"
	"github.com/interlockdev/interlock/internal/test/memory"
	"github.com/interlockdev/interlock/internal/test/tools"
)

// hookVariable makes the test's own binary the hook of a repository.
const hookVariable = "GUARD_GIT_TEST_HOOK"

// settings are those of a hook in a test.
type settings struct {
	URL      string
	Require  Require
	Refs     []string
	MaxPaths int
	User     string
}

func TestMain(m *testing.M) {
	if text := os.Getenv(hookVariable); text != "" {
		os.Exit(beHook(text))
	}
	memory.Main(m)
}

func beHook(text string) int {
	var s settings
	err := json.Unmarshal([]byte(text), &s)
	if err != nil {
		panic(err)
	}
	d, err := apiclient.New(apiclient.Config{URLs: []string{s.URL}})
	if err != nil {
		panic(err)
	}
	keys, err := NewKeys(DefaultTemplate, "web")
	if err != nil {
		panic(err)
	}
	hook := Hook{
		API: d, Keys: keys, Require: s.Require, Refs: s.Refs, MaxPaths: s.MaxPaths, Leases: Shown(os.Getenv), User: s.User,
	}
	if err := hook.Check(context.Background(), os.Stdin); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// rig is an Interlock server, a bare repository with the hook, and a clone of it.
type rig struct {
	t         *testing.T
	interlock *httptest.Server
	bare      string
	work      string
	settings  settings
	env       []string
}

func newRig(t *testing.T) *rig {
	t.Helper()
	tools.Need(t, "git")
	dir := t.TempDir()
	r := &rig{t: t, interlock: apitest.Serve(t), bare: filepath.Join(dir, "web.git"), work: filepath.Join(dir, "work")}
	r.settings = settings{URL: r.interlock.URL, Require: RequireNone, Refs: []string{"refs/heads/"}, MaxPaths: 100}
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "GIT_") && !strings.HasPrefix(v, "INTERLOCK_") {
			r.env = append(r.env, v)
		}
	}
	r.env = append(r.env, "HOME="+dir, "GIT_CONFIG_NOSYSTEM=1", "GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@example.com",
		"GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@example.com", "LC_ALL=C.UTF-8")
	r.git(dir, "init", "-q", "--bare", "-b", "main", r.bare)
	r.git(r.bare, "config", "receive.advertisePushOptions", "true")
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(
		filepath.Join(r.bare, "hooks", "pre-receive"), []byte("#!/bin/sh\nexec '"+self+"'\n"), 0o755,
	); err != nil {
		t.Fatal(err)
	}
	r.git(dir, "init", "-q", "-b", "main", r.work)
	r.git(r.work, "remote", "add", "origin", r.bare)
	return r
}

// try runs git.
func (r *rig) try(dir string, args ...string) (string, error) {
	r.t.Helper()
	hook, err := json.Marshal(r.settings)
	if err != nil {
		r.t.Fatal(err)
	}
	cmd := exec.CommandContext(r.t.Context(), "git", args...)
	cmd.Dir, cmd.Env = dir, append(r.env, hookVariable+"="+string(hook))
	out, err := cmd.CombinedOutput()
	return strings.TrimSpace(string(out)), err
}

func (r *rig) git(dir string, args ...string) string {
	r.t.Helper()
	out, err := r.try(dir, args...)
	if err != nil {
		r.t.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return out
}

// commit writes files, names and contents in turns, and commits them; an empty
// content removes the file.
func (r *rig) commit(files ...string) string {
	r.t.Helper()
	for i := 0; i < len(files); i += 2 {
		path := filepath.Join(r.work, files[i])
		if files[i+1] == "" {
			r.git(r.work, "rm", "-q", files[i])
			continue
		}
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			r.t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(files[i+1]), 0o644); err != nil {
			r.t.Fatal(err)
		}
	}
	r.git(r.work, "add", "-A")
	r.git(r.work, "commit", "-q", "--allow-empty", "-m", "change")
	return r.git(r.work, "rev-parse", "HEAD")
}

// pushes pushes, which must work.
func (r *rig) pushes(args ...string) {
	r.t.Helper()
	r.git(r.work, append([]string{"push", "-q", "origin"}, args...)...)
}

var duration = regexp.MustCompile(`for [0-9m]+s`)

// refused pushes, which must not work, and checks that the pusher reads words.
func (r *rig) refused(words string, args ...string) {
	r.t.Helper()
	out, err := r.try(r.work, append([]string{"push", "-q", "origin"}, args...)...)
	if err == nil {
		r.t.Errorf("git push %s went through", strings.Join(args, " "))
	}
	if said := duration.ReplaceAllString(
		strings.ReplaceAll(out, "remote: ", ""), "for TIME",
	); !strings.Contains(said, words) {
		r.t.Errorf("git push %s said\n%s\nwant %q", strings.Join(args, " "), out, words)
	}
}

// hold takes keys for an agent and returns the lease's id.
func (r *rig) hold(agent, mode string, keys ...string) string {
	r.t.Helper()
	claims := []map[string]string{}
	for _, key := range keys {
		claims = append(claims, map[string]string{"key": key, "mode": mode})
	}
	return r.ask("/v1/leases", map[string]any{"agent": agent, "purpose": "refactor \x1b[31mlogin", "claims": claims})
}

func (r *rig) release(id string) { r.t.Helper(); r.ask("/v1/leases/"+id+"/release", map[string]any{}) }

func (r *rig) ask(path string, body any) string {
	r.t.Helper()
	var answer struct{ Lease struct{ ID string } }
	r.post(path, body, &answer)
	return answer.Lease.ID
}

func (r *rig) post(path string, body, answer any) {
	r.t.Helper()
	b, err := json.Marshal(body)
	if err != nil {
		r.t.Fatal(err)
	}
	res, err := http.Post(r.interlock.URL+path, "application/json", bytes.NewReader(b))
	if err != nil {
		r.t.Fatal(err)
	}
	defer res.Body.Close()
	text, _ := io.ReadAll(res.Body)
	if err := json.Unmarshal(text, answer); err != nil || res.StatusCode != http.StatusOK {
		r.t.Fatalf("%s: %d %s", path, res.StatusCode, text)
	}
}
