package lfs

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/guard/apiclient/apitest"
	"github.com/interlockdev/interlock/server"
)

// desk is a handler and its Interlock server.
type desk struct {
	t         *testing.T
	interlock *httptest.Server
	handler   *Handler
}

func newDesk(t *testing.T, cfg Config) *desk {
	d := &desk{t: t, interlock: apitest.Serve(t)}
	d.handler = newHandler(t, d.interlock.URL, cfg)
	return d
}

// answer has the fields of all answers.
type answer struct {
	status  int
	Lock    *lock  `json:"lock"`
	Locks   []lock `json:"locks"`
	Ours    []lock `json:"ours"`
	Theirs  []lock `json:"theirs"`
	Next    string `json:"next_cursor"`
	Message string `json:"message"`
	header  http.Header
	text    string
}

func (d *desk) call(user, method, target, body string) answer {
	d.t.Helper()
	r := httptest.NewRequest(method, "http://127.0.0.1"+target, strings.NewReader(body))
	r.Header.Set("Content-Type", mediaType)
	if user != "" {
		name, password, _ := strings.Cut(user, ":")
		r.SetBasicAuth(name, password)
	}
	w := httptest.NewRecorder()
	d.handler.ServeHTTP(w, r)
	res := w.Result()
	text, _ := io.ReadAll(res.Body)
	a := answer{status: res.StatusCode, header: res.Header, text: string(text)}
	if err := json.Unmarshal(text, &a); err != nil || res.Header.Get("Content-Type") != mediaType {
		d.t.Fatalf("%s %s: %v in %s", method, target, err, text)
	}
	if res.StatusCode >= 400 && a.Message == "" {
		d.t.Errorf("%s %s: no message in %s", method, target, text)
	}
	return a
}

func paths(locks []lock) string {
	list := []string{}
	for _, l := range locks {
		list = append(list, l.Path+" "+l.Owner.Name)
	}
	slices.Sort(list)
	return strings.Join(list, ", ")
}

func TestLockAndUnlock(t *testing.T) {
	d := newDesk(t, Config{})
	before := time.Now().Add(-2 * time.Second)
	made := d.call("alice", "POST", "/locks", `{"path": "art/logo.bin", "ref": {"name": "refs/heads/main"}}`)
	if made.status != 201 || made.Lock == nil || made.Lock.Path != "art/logo.bin" || made.Lock.Owner.Name != "alice" ||
		made.Lock.ID == "" {
		t.Fatalf("%+v", made)
	}
	at, err := time.Parse(time.RFC3339, made.Lock.LockedAt)
	if err != nil || at.Before(before) || at.After(time.Now()) {
		t.Errorf("locked at %s (%v)", made.Lock.LockedAt, err)
	}
	// Again, by whomever: the lock that there is.
	for _, user := range []string{"alice", "bob"} {
		if a := d.call(user, "POST", "/locks", `{"path": "art/logo.bin"}`); a.status != 409 || a.Lock == nil ||
			a.Lock.ID != made.Lock.ID || a.Lock.Owner.Name != "alice" {
			t.Errorf("%s: %d %s", user, a.status, a.text)
		}
	}
	// Above and below it, too.
	if a := d.call("bob", "POST", "/locks", `{"path": "art"}`); a.status != 409 || a.Lock == nil ||
		a.Lock.Path != "art/logo.bin" {
		t.Errorf("%d %s", a.status, a.text)
	}
	acquire(t, d.interlock.URL, "agent", "exclusive", "repo:web/doc")
	if a := d.call("bob", "POST", "/locks", `{"path": "doc/a.bin"}`); a.status != 409 || a.Lock == nil ||
		a.Lock.Path != "doc" || a.Lock.Owner.Name != "agent" {
		t.Errorf("%d %s", a.status, a.text)
	}

	unlock := "/locks/" + made.Lock.ID + "/unlock"
	if a := d.call("bob", "POST", unlock, `{}`); a.status != 403 || !strings.Contains(a.Message, "locked by alice") {
		t.Errorf("%d %s", a.status, a.text)
	}
	if a := d.call("alice", "POST", unlock, `{}`); a.status != 200 || a.Lock == nil || a.Lock.Path != "art/logo.bin" {
		t.Errorf("%d %s", a.status, a.text)
	}
	if a := d.call("alice", "POST", unlock, `{}`); a.status != 404 {
		t.Errorf("%d %s", a.status, a.text)
	}
	// At once, without a grace.
	second := d.call("bob", "POST", "/locks", `{"path": "art/logo.bin"}`)
	if second.status != 201 || second.Lock.ID == made.Lock.ID {
		t.Errorf("%d %s", second.status, second.text)
	}
	if a := d.call("alice", "POST", "/locks/"+second.Lock.ID+"/unlock", `{"force": true}`); a.status != 200 {
		t.Errorf("%d %s", a.status, a.text)
	}
}

func TestLists(t *testing.T) {
	d := newDesk(t, Config{})
	for i := range 5 {
		d.call("alice", "POST", "/locks", fmt.Sprintf(`{"path": "a%d"}`, i))
	}
	bobs := d.call("bob", "POST", "/locks", `{"path": "b/1"}`)
	acquire(t, d.interlock.URL, "reader", "shared", "repo:web/r")
	acquire(t, d.interlock.URL, "planner", "intent-exclusive", "repo:web/b")
	acquire(t, d.interlock.URL, "elsewhere", "exclusive", "repo:web2/x")
	const everything = "a0 alice, a1 alice, a2 alice, a3 alice, a4 alice, b/1 bob, r reader"

	if got := paths(d.call("bob", "GET", "/locks", "").Locks); got != everything {
		t.Errorf("the list is %s", got)
	}
	if got := paths(d.call("bob", "GET", "/locks?path=b%2F1", "").Locks); got != "b/1 bob" {
		t.Errorf("the list is %s", got)
	}
	if a := d.call("bob", "GET", "/locks?path=b", ""); paths(a.Locks) != "" || !strings.Contains(a.text, `"locks":[]`) {
		t.Errorf("the list is %s", a.text)
	}
	if got := paths(d.call("bob", "GET", "/locks?id="+bobs.Lock.ID, "").Locks); got != "b/1 bob" {
		t.Errorf("the list is %s", got)
	}
	a := d.call("bob", "POST", "/locks/verify", `{"ref": {"name": "refs/heads/main"}}`)
	if paths(a.Ours) != "b/1 bob" || paths(a.Theirs) != strings.Replace(everything, "b/1 bob, ", "", 1) {
		t.Errorf("verified %s", a.text)
	}

	// Page by page, the same.
	for _, verify := range []bool{false, true} {
		var all []lock
		cursor, pages := "", 0
		for {
			var a answer
			if verify {
				a = d.call("bob", "POST", "/locks/verify", fmt.Sprintf(`{"limit": 2, "cursor": %q}`, cursor))
			} else {
				a = d.call("bob", "GET", "/locks?limit=2&cursor="+cursor, "")
			}
			all = append(append(append(all, a.Locks...), a.Ours...), a.Theirs...)
			if pages++; a.Next == "" || pages > 10 {
				break
			}
			cursor = a.Next
		}
		if paths(all) != everything || pages < 4 {
			t.Errorf("%d pages give %s", pages, paths(all))
		}
	}
	if a := d.call("bob", "GET", "/locks?cursor=x", ""); a.status != 404 {
		t.Errorf("%d %s", a.status, a.text)
	}
	if a := newDesk(t, Config{}).call(
		"bob", "POST", "/locks/verify", `{}`,
	); !strings.Contains(a.text, `"ours":[],"theirs":[]`) {
		t.Errorf("answered %s", a.text)
	}
}

func TestRefused(t *testing.T) {
	d := newDesk(t, Config{Path: "/web.git/info/lfs/"})
	for _, tt := range []struct {
		user, method, target, body string
		status                     int
	}{
		{"bob", "GET", "/web.git/info/lfs/locks", "", 200},
		{"", "GET", "/web.git/info/lfs/locks", "", 401},
		{" bob", "GET", "/web.git/info/lfs/locks", "", 401},
		{"b\u200bob", "GET", "/web.git/info/lfs/locks", "", 401},
		{strings.Repeat("b", 200), "GET", "/web.git/info/lfs/locks", "", 401},
		{"bob", "GET", "/locks", "", 404},
		{"bob", "GET", "/web.git/info/lfs/locksmith", "", 404},
		{"bob", "GET", "/web.git/info/lfs/objects/batch", "", 404},
		{"bob", "DELETE", "/web.git/info/lfs/locks", "", 404},
		{"bob", "GET", "/web.git/info/lfs/locks/verify", "", 404},
		{"bob", "POST", "/web.git/info/lfs/locks/1", "{}", 404},
		{"bob", "POST", "/web.git/info/lfs/locks//unlock", "{}", 404},
		{"bob", "POST", "/web.git/info/lfs/locks/99/unlock", "{}", 404},
		{"bob", "POST", "/web.git/info/lfs/locks/1/unlock", "", 400},
		{"bob", "POST", "/web.git/info/lfs/locks", "", 400},
		{"bob", "POST", "/web.git/info/lfs/locks", "[]", 400},
		{"bob", "POST", "/web.git/info/lfs/locks", "{}", 400},
		{"bob", "POST", "/web.git/info/lfs/locks", `{"path": "a", "path": "b"}`, 400},
		{"bob", "POST", "/web.git/info/lfs/locks", `{"path": "a", "Path": "b"}`, 400},
		{"bob", "POST", "/web.git/info/lfs/locks", `{"path": "caf` + "\xe9" + `"}`, 400},
		{"bob", "POST", "/web.git/info/lfs/locks", `{"path": "../etc/passwd"}`, 400},
		{"bob", "POST", "/web.git/info/lfs/locks", `{"path": "/etc/passwd"}`, 400},
		{"bob", "POST", "/web.git/info/lfs/locks", `{"path": "a\nb"}`, 400},
		{"bob", "POST", "/web.git/info/lfs/locks", `{"path": "` + strings.Repeat("x", 1<<20) + `"}`, 400},
	} {
		a := d.call(tt.user, tt.method, tt.target, tt.body)
		if a.status != tt.status {
			t.Errorf("%s %s %.50q by %q: %d %s, want %d", tt.method, tt.target, tt.body, tt.user, a.status, a.text, tt.status)
		}
		if a.status == 401 && a.header.Get("LFS-Authenticate") == "" {
			t.Errorf("%q is not asked who it is", tt.user)
		}
	}
	r := httptest.NewRequest("GET", "http://evil.example/web.git/info/lfs/locks", nil)
	r.SetBasicAuth("bob", "")
	w := httptest.NewRecorder()
	if d.handler.ServeHTTP(w, r); w.Code != 403 {
		t.Errorf("another name: %d", w.Code)
	}
	d.interlock.Close()
	for _, tt := range [][3]string{
		{"GET", "/locks", ""},
		{"GET", "/locks?path=a", ""},
		{"POST", "/locks", `{"path": "a"}`},
		{"POST", "/locks/verify", "{}"},
		{"POST", "/locks/1/unlock", "{}"},
	} {
		if a := d.call("bob", tt[0], "/web.git/info/lfs"+tt[1], tt[2]); a.status != 503 {
			t.Errorf("%v: %d %s", tt, a.status, a.text)
		}
	}
	for _, cfg := range []Config{{TTL: time.Millisecond}, {TTL: interlock.MaxTTL + 1}, {Path: "locks"}} {
		if _, err := New(cfg); err == nil {
			t.Errorf("%+v is taken", cfg)
		}
	}
}

func TestUsers(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "users")
	load := func(text string) (*Users, error) {
		t.Helper()
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return LoadUsers(file)
	}
	old, oldLine, err := server.NewCredential(interlock.Principal{Name: "alice"}, "default")
	if err != nil {
		t.Fatal(err)
	}
	fresh, freshLine, err := server.NewCredential(interlock.Principal{Name: "alice"}, "default")
	if err != nil {
		t.Fatal(err)
	}
	users, err := load("# who\n\n" + oldLine + "\n" + freshLine + " operator\n")
	if err != nil {
		t.Fatal(err)
	}
	d := newDesk(t, Config{Users: users})
	for user, status := range map[string]int{
		"alice:" + old: 200, "alice:" + fresh: 200, "alice:": 401, "alice:" + old[1:]: 401, "bob:" + old: 401, "": 401,
		":" + old: 401,
	} {
		if a := d.call(user, "GET", "/locks", ""); a.status != status {
			t.Errorf("%s: %d", user, a.status)
		}
	}
	for text, words := range map[string]string{
		"":                                 "names nobody",
		"# alice":                          "names nobody",
		"alice secret":                     "line 1",
		oldLine + "\nbob default sha256:x": "line 2",
		"bob default md5:" + oldLine[len(oldLine)-64:]: "line 1",
	} {
		if _, err := load(text); err == nil || !strings.Contains(err.Error(), words) {
			t.Errorf("%q gives %v", text, err)
		}
	}
	if _, err := LoadUsers(filepath.Join(dir, "missing")); err == nil {
		t.Error("a file that is not there is taken")
	}
}
