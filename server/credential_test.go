package server

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine"
)

// credentialsFile writes lines into a file and loads it.
func credentialsFile(t testing.TB, lines ...string) *Credentials {
	t.Helper()
	path := filepath.Join(t.TempDir(), "credentials")
	if err := os.WriteFile(path, []byte(strings.Join(lines, "\n")), 0o600); err != nil {
		t.Fatal(err)
	}
	c, err := LoadCredentials(path)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func newSecret(t testing.TB, name string, ns interlock.Namespace) (secret, line string) {
	t.Helper()
	secret, line, err := NewCredential(interlock.Principal{Name: name}, ns)
	if err != nil {
		t.Fatal(err)
	}
	return secret, line
}

// reopenWithCredentials makes a door that asks for a credential, and returns one for the namespace
// acme.
func (d *door) reopenWithCredentials() (secret string) {
	d.Helper()
	secret, line := newSecret(d, "billing-swarm", "acme")
	c := credentialsFile(d, line+" approver")
	d.reopen(func(cfg *Config) { cfg.Credentials = c })
	return secret
}

func TestCredentialDecidesNamespace(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		d := newDoor(t)
		secret := d.reopenWithCredentials()
		bearer := "Bearer " + secret
		d.get("/v1/keys").want(401, "unauthenticated").
			says("detail", "requires a credential").says("advice.message", "send a credential")
		d.get("/v1/keys", "Authorization", bearer+"0").want(401).says("detail", "unknown credential")
		d.get("/v1/keys", "Authorization", "Basic "+secret).want(401)
		d.get("/v1/keys", "Authorization", bearer, "Interlock-Namespace", "other").want(403, "forbidden")
		d.get("/v1/keys", "Authorization", "bearer "+secret, "Interlock-Namespace", "acme").want(200)
		d.get("/metrics").want(401)
		d.get("/metrics", "Authorization", bearer).want(200)
		d.get("/healthz").want(200)
		d.post("/v1/leases", `{"claims":[{"key":"a"}]}`, "Authorization", bearer).want(200)
		if events := d.get("/v1/events", "Authorization", bearer).raw; !strings.Contains(events, `"granted"`) {
			t.Errorf("the lease is not in the credential's namespace: %s", events)
		}
		if got := d.get("/v1/keys").header.Get("WWW-Authenticate"); !strings.HasPrefix(got, "Bearer") {
			t.Errorf("WWW-Authenticate is %q", got)
		}
	})
}

func TestCredentialReload(t *testing.T) {
	old, oldLine := newSecret(t, "ops", "acme")
	fresh, freshLine := newSecret(t, "ops", "acme")
	c := credentialsFile(t, "# two may share a name", "", oldLine)
	path := c.path
	first, ok := c.lookup(old)
	if want := (Identity{
		Principal: &interlock.Principal{Name: "ops", Roles: interlock.RoleAgent}, Namespace: "acme",
	}); !ok ||
		first.digest != sha256.Sum256([]byte(old)) || !first.equal(&want) {
		t.Fatalf("%v %v", first, ok)
	}
	if _, ok := c.lookup(fresh); ok {
		t.Fatal("known before it was added")
	}
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(oldLine + "\n" + freshLine + "\n")
	if err := c.Reload(); err != nil {
		t.Fatal(err)
	}
	if _, ok := c.lookup(fresh); !ok {
		t.Error("unknown after the reload")
	}
	write("nonsense\n")
	if err := c.Reload(); err == nil || !strings.Contains(err.Error(), "line 1") {
		t.Errorf("a broken file: %v", err)
	}
	if _, ok := c.lookup(old); !ok {
		t.Error("a broken file took the credentials away")
	}
	if !c.holds(first) {
		t.Error("who came in is not known any more")
	}
	for _, text := range []string{
		freshLine, oldLine + " operator", oldLine + " worker=bank", oldLine + " group=closing",
		strings.Replace(oldLine, "acme", "globex", 1),
	} {
		changed := c.changed.next()
		write(text + "\n")
		if err := c.Reload(); err != nil {
			t.Fatal(err)
		}
		<-changed
		if c.holds(first) {
			t.Errorf("with the line %q who came in by another one is as before", text)
		}
	}
}

func TestCredentialFileMistakes(t *testing.T) {
	_, line := newSecret(t, "a", "b")
	for text, want := range map[string]string{
		"":                                    "it is empty",
		"# only this":                         "it is empty",
		"a b":                                 "line 1: want a name, a namespace",
		"a b c d":                             "sha256:",
		line + " boss":                        `line 1: unknown role "boss"`,
		line + " worker":                      "line 1: the queue of the worker is missing",
		line + " worker=a,,b":                 "line 1: the name of a queue",
		line + " agent group=":                "line 1: the name of a group",
		"a b sha256:1234":                     "64 hexadecimal digits",
		"a b md5:" + line[len(line)-64:]:      "sha256:",
		"a b/c sha256:" + line[len(line)-64:]: "is not a valid namespace",
		strings.Repeat("x", 200) + " b sha256:" + line[len(line)-64:]: "more than 128 bytes",
		line + "\n" + line: "line 2: another line has the same hash",
	} {
		if _, err := parseCredentials([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
	if _, err := LoadCredentials(filepath.Join(t.TempDir(), "absent")); err == nil {
		t.Error("an absent file was loaded")
	}
	for _, bad := range []struct {
		name string
		ns   interlock.Namespace
	}{{"", "a"}, {"a b", "a"}, {"a", ""}, {"a", "b c"}, {"#a", "b"}} {
		if _, _, err := NewCredential(interlock.Principal{Name: bad.name}, bad.ns); err == nil {
			t.Errorf("%v was accepted", bad)
		}
	}
}

// The file must be of no use to a reader.
func TestCredentialIsHashedAtRest(t *testing.T) {
	secret, line := newSecret(t, "a", "b")
	if strings.Contains(line, secret) || strings.Contains(line, strings.TrimPrefix(secret, credentialPrefix)) {
		t.Fatalf("the line %q holds the secret", line)
	}
	c := credentialsFile(t, line)
	if _, ok := c.lookup(line[strings.Index(line, credentialHash):]); ok {
		t.Error("the hash opens the door")
	}
	if _, ok := c.lookup(strings.Repeat("x", 1<<20)); ok {
		t.Error("a very long secret opens the door")
	}
}

// Reads must refuse the same namespaces as acquires.
func TestNamespaceRuleIsTheEngines(t *testing.T) {
	d := newDoor(t)
	names := []string{
		"", strings.Repeat("x", interlock.MaxNamespaceBytes), strings.Repeat("x", interlock.MaxNamespaceBytes+1),
	}
	for b := range 256 {
		names = append(names, "a"+string([]byte{byte(b)})+"b")
	}
	for _, name := range names {
		eff, _, err := d.shard.Do(
			t.Context(), &engine.OpenSession{Head: engine.Head{Namespace: interlock.Namespace(name)}, ID: freshID()},
		)
		if err != nil {
			t.Fatal(err)
		}
		if valid := eff.Code != interlock.CodeInvalidNamespace; valid != validNamespace(name) {
			t.Errorf("%q: the engine says %v, the door %v", name, valid, !valid)
		}
	}
}

// The rights of a credential are those that its line names; what NewCredential writes is
// what the server reads.
func TestRightsOfCredentials(t *testing.T) {
	for _, p := range []interlock.Principal{
		{Name: "a", Roles: interlock.RoleAgent},
		{Name: "b", Roles: interlock.RoleViewer | interlock.RoleApprover | interlock.RoleOperator},
		{Name: "b", Roles: interlock.RoleServer},
		{Name: "c", Roles: interlock.RoleWorker, Queues: []string{"bank", "mail"}},
		{
			Name: "d", Roles: interlock.RoleAgent | interlock.RoleWorker, Queues: []string{"*"},
			Groups: []string{"closing", "ledger"},
		},
	} {
		secret, line, err := NewCredential(p, "acme")
		if err != nil {
			t.Fatal(err)
		}
		if id, ok := credentialsFile(t, line).lookup(secret); !ok || !sameRights(id.Principal, &p) {
			t.Errorf("line %q is read as %+v", line, id.Principal)
		}
	}
	for _, p := range []interlock.Principal{
		{Name: "a", Roles: interlock.RoleWorker},
		{Name: "a", Roles: interlock.RoleWorker, Queues: []string{"x,y"}},
		{Name: "a", Groups: []string{"x operator"}},
	} {
		if _, line, err := NewCredential(p, "acme"); err == nil {
			t.Errorf("%+v became %q", p, line)
		}
	}
}

// A file that changes is read without a signal: also one behind a link that is exchanged, as the kubelet does. What
// stood there for less than the time between two looks, as half a file, is never used, and neither is a broken or
// missing one.
func TestCredentialsAreWatched(t *testing.T) {
	var lines [4]string
	var secrets [len(lines)]string
	for i := range lines {
		secrets[i], lines[i] = newSecret(t, fmt.Sprintf("c%d", i), "acme")
	}
	for seed := range uint64(20) {
		inBubble(t, func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 0))
			c := credentialsFile(t, lines[0])
			dir, logged := filepath.Dir(c.path), &countingHandler{}
			ctx, stop := context.WithCancel(t.Context())
			ended := make(chan struct{})
			go func() { defer close(ended); c.Watch(ctx, slog.New(logged)) }()
			// What is in the file: a line, none of them (-1), or no file (-2). Each write has a number.
			type content struct{ line, write int }
			now, before, read, used, errs, infos := content{}, content{-3, 0}, content{}, 0, int32(0), int32(0)
			write := 0
			put := func(line int) {
				write++
				now = content{line, write}
				text := "nonsense"
				if line >= 0 {
					text = lines[line]
				}
				name := filepath.Join(dir, fmt.Sprintf("v%d", write))
				changed := time.Unix(int64(write), 0) // the clock of a file system may be slower than these writes
				if err := errors.Join(
					os.WriteFile(name, []byte(text), 0o600), os.Chtimes(name, changed, changed), os.Remove(c.path),
					os.Symlink(name, c.path),
				); err != nil && !errors.Is(err, os.ErrNotExist) {
					t.Fatal(err)
				}
			}
			pass(credentialLooks / 2)
			for step := range 100 {
				for range random.IntN(3) { // the last of several writes between two looks counts
					switch line := random.IntN(8); {
					case line < len(lines):
						put(line)
					case line == len(lines):
						put(-1)
					case line == len(lines)+1:
						now = content{-2, 0}
						_ = os.Remove(c.path)
					}
				}
				pass(credentialLooks)
				switch {
				case now.line == -2 && before.line != -2:
					errs++
				case now.line == -2 || now != before || now == read:
				case now.line == -1:
					read, errs = now, errs+1
				default:
					read, used, infos = now, now.line, infos+1
				}
				before = now
				for i, secret := range secrets {
					if _, ok := c.lookup(secret); ok != (i == used) {
						t.Fatalf("seed %d, step %d: secret %d is known: %v; want that of line %d", seed, step, i, ok, used)
					}
				}
				if e, i := logged.errors.Load(), logged.infos.Load(); e != errs || i != infos {
					t.Fatalf("seed %d, step %d: %d errors and %d readings logged, want %d and %d", seed, step, e, i, errs, infos)
				}
			}
			stop()
			<-ended
		})
	}
}

// countingHandler counts lines of a log.
type countingHandler struct {
	slog.Handler
	errors, infos atomic.Int32
}

func (h *countingHandler) Enabled(context.Context, slog.Level) bool { return true }

func (h *countingHandler) Handle(_ context.Context, r slog.Record) error {
	if r.Level == slog.LevelError {
		h.errors.Add(1)
	} else {
		h.infos.Add(1)
	}
	return nil
}
