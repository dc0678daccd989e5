package lfs

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/cgi"
	"net/http/httptest"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/interlockdev/interlock/guard/apiclient"
	"github.com/interlockdev/interlock/guard/apiclient/apitest"
	"github.com/interlockdev/interlock/guard/git"
	"github.com/interlockdev/interlock/internal/test/tools"
)

// site is a bare repository over HTTP with git's own http-backend, a store for uploads of Git
// LFS, the locks, and the Interlock server behind them.
type site struct {
	t         *testing.T
	interlock *httptest.Server
	web       *httptest.Server
	dir       string
	env       []string
	store     store
}

func newSite(t *testing.T) *site {
	t.Helper()
	tools.Need(t, "git", "git-lfs")
	s := &site{t: t, interlock: apitest.Serve(t), dir: t.TempDir(), store: store{objects: map[string][]byte{}}}
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "GIT_") && !strings.HasPrefix(v, "INTERLOCK_") {
			s.env = append(s.env, v)
		}
	}
	s.env = append(s.env, "HOME="+s.dir, "GIT_CONFIG_NOSYSTEM=1", "GIT_TERMINAL_PROMPT=0", "GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@example.com",
		"GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@example.com", "LC_ALL=C.UTF-8")
	s.git(s.dir, "init", "-q", "--bare", "-b", "main", "web.git")
	s.git(s.dir+"/web.git", "config", "http.receivepack", "true")

	locks := newHandler(t, s.interlock.URL, Config{Path: "/web.git/info/lfs"})
	execPath := s.git(s.dir, "--exec-path")
	backend := &cgi.Handler{
		Path: filepath.Join(execPath, "git-http-backend"), Dir: s.dir,
		Env: []string{"GIT_PROJECT_ROOT=" + s.dir, "GIT_HTTP_EXPORT_ALL=1", "REMOTE_USER=somebody", "HOME=" + s.dir},
	}
	mux := http.NewServeMux()
	mux.Handle("/", backend)
	mux.Handle("/web.git/info/lfs/locks", locks)
	mux.Handle("/web.git/info/lfs/locks/", locks)
	mux.Handle("/web.git/info/lfs/objects/batch", http.HandlerFunc(s.store.batch))
	mux.Handle("/objects/", http.HandlerFunc(s.store.object))
	s.web = httptest.NewServer(mux)
	t.Cleanup(s.web.Close)
	s.store.base = s.web.URL
	return s
}

func newHandler(t *testing.T, url string, cfg Config) *Handler {
	t.Helper()
	var err error
	if cfg.API, err = apiclient.New(apiclient.Config{URLs: []string{url}}); err != nil {
		t.Fatal(err)
	}
	if cfg.Keys, err = git.NewKeys(git.DefaultTemplate, "web"); err != nil {
		t.Fatal(err)
	}
	h, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// store keeps what Git LFS uploads: as much of its batch API as a push needs.
type store struct {
	base    string
	mu      sync.Mutex
	objects map[string][]byte
}

func (s *store) batch(w http.ResponseWriter, r *http.Request) {
	var body struct {
		Operation string
		Objects   []struct {
			OID  string `json:"oid"`
			Size int    `json:"size"`
		}
	}
	if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	type action struct {
		Href string `json:"href"`
	}
	type object struct {
		OID     string            `json:"oid"`
		Size    int               `json:"size"`
		Actions map[string]action `json:"actions"`
	}
	objects := []object{}
	for _, o := range body.Objects {
		objects = append(objects, object{o.OID, o.Size, map[string]action{body.Operation: {s.base + "/objects/" + o.OID}}})
	}
	w.Header().Set("Content-Type", mediaType)
	_ = json.NewEncoder(w).Encode(map[string]any{"transfer": "basic", "objects": objects})
}

func (s *store) object(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	oid := path.Base(r.URL.Path)
	if r.Method == http.MethodGet {
		_, _ = w.Write(s.objects[oid])
		return
	}
	content, _ := io.ReadAll(r.Body)
	if sum := sha256.Sum256(content); hex.EncodeToString(sum[:]) != oid {
		http.Error(w, "another content", http.StatusBadRequest)
		return
	}
	s.objects[oid] = content
}

func (s *store) has(content string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	sum := sha256.Sum256([]byte(content))
	return s.objects[hex.EncodeToString(sum[:])] != nil
}

func (s *site) try(dir string, args ...string) (string, error) {
	s.t.Helper()
	cmd := exec.CommandContext(s.t.Context(), "git", args...)
	cmd.Dir, cmd.Env = dir, s.env
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	return strings.TrimSpace(out.String()), err
}

func (s *site) git(dir string, args ...string) string {
	s.t.Helper()
	out, err := s.try(dir, args...)
	if err != nil {
		s.t.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return out
}

// clone is a user's own copy, with a stock Git LFS client.
func (s *site) clone(user string) string {
	s.t.Helper()
	dir := filepath.Join(s.dir, user)
	url := strings.Replace(s.web.URL, "http://", "http://"+user+":secret@", 1) + "/web.git"
	s.git(s.dir, "init", "-q", "-b", "main", dir)
	s.git(dir, "remote", "add", "origin", url)
	s.git(dir, "config", "branch.main.remote", "origin")
	s.git(dir, "config", "branch.main.merge", "refs/heads/main")
	s.git(dir, "lfs", "install", "--local")
	s.git(dir, "config", "lfs."+strings.TrimSuffix(url, "/web.git")+"/web.git/info/lfs.locksverify", "true")
	return dir
}

func (s *site) write(dir, name, content string) {
	s.t.Helper()
	if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o755); err != nil {
		s.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o644); err != nil {
		s.t.Fatal(err)
	}
	s.git(dir, "add", "-A")
	s.git(dir, "commit", "-q", "-m", "change")
}

// fails runs git, which must fail and say words.
func (s *site) fails(words, dir string, args ...string) {
	s.t.Helper()
	out, err := s.try(dir, args...)
	if err == nil || !strings.Contains(out, words) {
		s.t.Errorf("git %s: %v, it said\n%s\nwant a failure with %q", strings.Join(args, " "), err, out, words)
	}
}

// says runs git, which must succeed and print words.
func (s *site) says(words, dir string, args ...string) {
	s.t.Helper()
	if out := s.git(dir, args...); !strings.Contains(out, words) {
		s.t.Errorf("git %s said\n%s\nwant %q", strings.Join(args, " "), out, words)
	}
}

func TestStockClient(t *testing.T) {
	s := newSite(t)
	alice, bob := s.clone("alice"), s.clone("bob")
	s.git(alice, "lfs", "track", "*.bin", "--lockable")
	s.write(alice, "art/logo.bin", "one")
	s.git(alice, "push", "-q", "origin", "main")
	s.git(bob, "pull", "-q", "origin", "main")
	if !s.store.has("one") {
		t.Fatal("the file did not go through Git LFS")
	}

	s.says("Locked art/logo.bin", alice, "lfs", "lock", "art/logo.bin")
	s.fails("art/logo.bin is held by alice since", bob, "lfs", "lock", "art/logo.bin")
	for _, dir := range []string{alice, bob} {
		s.says("art/logo.bin\talice", dir, "lfs", "locks")
	}
	s.says(`O art/logo.bin`, alice, "lfs", "locks", "--verify")
	if out := s.git(bob, "lfs", "locks", "--verify"); strings.HasPrefix(out, "O") {
		t.Errorf("what alice has is bob's: %s", out)
	}

	// Bob cannot push it, whichever way; Alice can.
	if err := os.Chmod(filepath.Join(bob, "art/logo.bin"), 0o644); err != nil { // git-lfs made it read-only
		t.Fatal(err)
	}
	s.write(bob, "art/logo.bin", "two, by bob")
	s.fails("Unable to push locked files", bob, "push", "-q", "origin", "main")
	s.fails("art/logo.bin - alice", bob, "lfs", "push", "origin", "main")
	if s.store.has("two, by bob") {
		t.Error("the file of bob was uploaded")
	}
	s.write(alice, "art/logo.bin", "two, by alice")
	s.git(alice, "push", "-q", "origin", "main")
	if !s.store.has("two, by alice") {
		t.Error("the file of alice was not uploaded")
	}

	// Giving it back, and taking it away.
	s.fails("is locked by alice: ask for it", bob, "lfs", "unlock", "art/logo.bin")
	s.says("Unlocked art/logo.bin", alice, "lfs", "unlock", "art/logo.bin")
	s.git(bob, "reset", "-q", "--hard", "HEAD~1")
	s.git(bob, "pull", "-q", "origin", "main")
	s.says("Locked art/logo.bin", bob, "lfs", "lock", "art/logo.bin")
	s.says("Unlocked art/logo.bin", alice, "lfs", "unlock", "--force", "art/logo.bin")
	if out := s.git(bob, "lfs", "locks"); out != "" {
		t.Errorf("there are locks left: %s", out)
	}

	// A lease of an agent without Git LFS is a lock too.
	acquire(t, s.interlock.URL, "painter-3", "exclusive", "repo:web/art/logo.bin")
	s.write(bob, "art/logo.bin", "three, by bob")
	s.fails("art/logo.bin - painter-3", bob, "push", "-q", "origin", "main")

	// Nothing is free because the server could not be asked.
	s.interlock.Close()
	s.fails("Interlock does not answer", bob, "push", "-q", "origin", "main")
}

// acquire takes a key.
func acquire(t *testing.T, url, agent, mode, key string) {
	t.Helper()
	res, err := http.Post(url+"/v1/leases", "application/json", strings.NewReader(fmt.Sprintf(
		`{"agent": %q, "claims": [{"key": %q, "mode": %q}]}`, agent, key, mode,
	)))
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		t.Fatal(res.Status)
	}
}
