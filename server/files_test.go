package server

import (
	"context"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/guard/file"
)

// withFiles adds a shared directory to a namespace.
func withFiles(t testing.TB, namespaces ...interlock.Namespace) (root string, change func(*Config)) {
	t.Helper()
	root = t.TempDir()
	dirs := map[interlock.Namespace]*file.Dir{}
	for _, ns := range namespaces {
		d, err := file.Open(root)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = d.Close() }) // a test may have closed it
		dirs[ns] = d
	}
	return root, func(cfg *Config) { cfg.Files = dirs }
}

const nineLines = "1\n2\n3\n4\n5\n6\n7\n8\n9\n"

func TestFiles(t *testing.T) { tourFiles(t, nil) }

// tourFiles reads and changes shared files in all ways.
func tourFiles(t *testing.T, seen *sightings) {
	root, files := withFiles(t, interlock.DefaultNamespace)
	d := newDoor(t, files)
	d.seen = seen
	path := "/v1/files/src/a%20b.txt"

	created := d.put(
		path, nineLines, "If-None-Match", "*", "Interlock-Agent", "ann", "Interlock-Note", "begin",
	).want(200).is("outcome", "written").is("path", "src/a b.txt")
	if b, err := os.ReadFile(filepath.Join(root, "src/a b.txt")); err != nil || string(b) != nineLines {
		t.Fatalf("the file is %q, %v", b, err)
	}
	got := d.get(path).want(200)
	tag := got.header.Get("ETag")
	if got.raw != nineLines || tag != `"`+created.str("version")+`"` || created.header.Get("ETag") != tag ||
		got.header.Get("Content-Type") != plainText {
		t.Errorf("got %q, %v", got.raw, got.header)
	}
	d.get(path, "If-None-Match", tag).want(304)

	// Another agent, and then one that still has the first version.
	d.put(
		path, strings.Replace(nineLines, "2\n", "two\n", 1), "If-Match", tag, "Interlock-Agent", "bob", "Interlock-Note",
		"words\x1b[2J",
	).want(200)
	merged := d.put(
		path, strings.Replace(nineLines, "8\n", "eight\n", 1), "If-Match", tag[:13]+`"`, "Interlock-Agent", "eve",
	).want(200).is("outcome", "merged")
	want := strings.Replace(strings.Replace(nineLines, "8\n", "eight\n", 1), "2\n", "two\n", 1)
	if body := d.get(path).want(200); body.raw != want || merged.at("merged") != true ||
		body.header.Get("ETag") != `"`+merged.str("version")+`"` {
		t.Errorf("merged: %s, and the file is %q", merged.raw, body.raw)
	}
	stale := d.put(path, "something else\n", "If-Match", tag).want(412, "stale").is("conflict_kind", "version").is(
		"packet.stale.0.key", "src/a b.txt",
	)
	stale.is("packet.stale.0.then.version", strings.Trim(tag, `"`)).is(
		"packet.stale.0.now.version", merged.str("version"),
	).is("packet.stale.0.now.agent", "eve")
	stale.is("packet.stale.0.diff.kind", "unified").says("packet.message", "Your environment changed").says(
		"packet.message", "written 2 times since",
	)
	d.delete(path, "If-Match", tag).want(412, "stale")
	d.put(path, "x", "If-None-Match", "*").want(412).says("packet.message", "you read nothing")

	// Deletion, and bytes.
	d.delete(path, "If-Match", `"`+merged.str("version")+`"`).want(200).is("outcome", "deleted").is("version", "none")
	d.get(path).want(404, "unknown_file")
	d.put(path, "x", "If-Match", tag).want(412).is("packet.stale.0.now.version", "none")
	d.delete(path, "If-None-Match", "*").want(404, "unknown_file")
	d.put("/v1/files/bytes", "\xff\x00", "If-None-Match", "*").want(200)
	if got := d.get("/v1/files/bytes").want(200); got.raw != "\xff\x00" || got.header.Get("Content-Type") != anyBytes {
		t.Errorf("got %q, %v", got.raw, got.header)
	}

	// Errors of a request.
	for _, bad := range []string{
		"..%2Fsecret", "../secret", "a//b", "%2Fetc/passwd", ".git/config", "a%00b", ".interlock/lock", "",
	} {
		d.get("/v1/files/"+bad).want(400, "invalid_path")
		d.put("/v1/files/"+bad, "x", "If-None-Match", "*").want(400, "invalid_path")
		d.delete("/v1/files/"+bad, "If-None-Match", "*").want(400, "invalid_path")
	}
	d.put(path, "x").want(428, "version_required")
	d.delete(path).want(428, "version_required")
	for _, headers := range [][]string{
		{"If-Match", "*"},
		{"If-Match", "abc"},
		{"If-Match", `"abc"`},
		{"If-Match", `W/` + tag},
		{"If-Match", tag + ", " + tag},
		{"If-None-Match", tag},
		{"If-Match", tag, "If-None-Match", "*"},
		{"If-Match", tag, "If-Match", tag},
		{"If-Match", `""`},
	} {
		d.put(path, "x", headers...).want(400, "invalid_request")
	}
	d.put(path, strings.Repeat("x", file.MaxBytes+1), "If-None-Match", "*").want(413, "body_too_large")
	if err := os.WriteFile(filepath.Join(root, "large"), make([]byte, file.MaxBytes+1), 0o666); err != nil {
		t.Fatal(err)
	}
	d.get("/v1/files/large").want(413, "body_too_large")
	d.get("/v1/files/a?version=1").want(400, "invalid_request")
	d.send(d.request("POST", path, "x")).want(405, "method_not_allowed")

	// No other namespace has these files, and no form of another site writes them.
	for _, ns := range []string{"other", "acme"} {
		d.get("/v1/files/bytes", "Interlock-Namespace", ns).want(404, "not_found")
		d.put("/v1/files/bytes", "x", "If-None-Match", "*", "Interlock-Namespace", ns).want(404, "not_found")
		d.delete("/v1/files/bytes", "If-None-Match", "*", "Interlock-Namespace", ns).want(404, "not_found")
	}
	for _, method := range []string{"GET", "PUT", "DELETE"} {
		d.send(d.request(method, path, "", "Host", "evil.example")).want(403, "foreign_host")
	}
	d.put("/v1/namespace", `{"quota":{"requests_per_s":1}}`, "Interlock-Namespace", "limited").want(200)
	for _, method := range []string{"GET", "PUT", "DELETE"} {
		for i := 0; d.send(d.request(
			method, path, "", "Interlock-Namespace", "limited",
		)).status != http.StatusTooManyRequests; i++ {
			if i > 1000 {
				t.Fatal("a quota of requests never ends")
			}
		}
	}
	// As many calls as may be carried out at a time, which do not end.
	for range maxFileCalls {
		d.server.files[interlock.DefaultNamespace].free <- struct{}{}
	}
	impatient, cancel := context.WithTimeoutCause(
		t.Context(), 0, &interlock.Error{Code: interlock.CodeOverloaded, Message: "busy"},
	)
	defer cancel()
	for _, method := range []string{"GET", "PUT", "DELETE"} {
		d.send(d.request(method, path, "", "If-None-Match", "*").WithContext(impatient)).want(503, "overloaded")
	}
	for range maxFileCalls {
		<-d.server.files[interlock.DefaultNamespace].free
	}
	// A directory that cannot be read.
	if err := d.server.files[interlock.DefaultNamespace].dir.Close(); err != nil {
		t.Fatal(err)
	}
	d.get("/v1/files/bytes").want(500, "internal")
	d.put("/v1/files/bytes", "x", "If-None-Match", "*").want(500, "internal")
	d.delete("/v1/files/bytes", "If-None-Match", "*").want(500, "internal")
	d.reopenWithCredentials()
	for _, method := range []string{"GET", "PUT", "DELETE"} {
		d.send(d.request(method, path, "")).want(401, "unauthenticated")
	}
}

// More calls about files than may be carried out at a time wait, and not for ever.
func TestFilesAreBusy(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		_, files := withFiles(t, interlock.DefaultNamespace)
		d := newDoor(t, files)
		for range maxFileCalls {
			d.server.files[interlock.DefaultNamespace].free <- struct{}{}
		}
		d.get("/v1/files/f").want(503, "overloaded")
		<-d.server.files[interlock.DefaultNamespace].free
		d.get("/v1/files/f").want(404, "unknown_file")
	})
}

// One namespace's calls about files keep no other's waiting.
func TestFilesOfAnotherAreBusy(t *testing.T) {
	_, files := withFiles(t, interlock.DefaultNamespace, "acme")
	d := newDoor(t, files)
	for range maxFileCalls {
		d.server.files[interlock.DefaultNamespace].free <- struct{}{}
	}
	d.put("/v1/files/f", "x", "If-None-Match", "*", "Interlock-Namespace", "acme").want(200)
}

// The principal of a change is shown, and text of agents comes out clean.
func TestFilesOfAPrincipal(t *testing.T) {
	_, files := withFiles(t, "acme")
	d := newDoor(t)
	secret, line := newSecret(d, "billing-swarm", "acme")
	c := credentialsFile(d, line)
	d.reopen(func(cfg *Config) { cfg.Credentials = c }, files)
	bearer := "Bearer " + secret
	d.put(
		"/v1/files/f", "one\n", "If-None-Match", "*", "Authorization", bearer, "Interlock-Note", "a\u202eb\u200bc",
	).want(200)
	stale := d.put("/v1/files/f", "two\n", "If-None-Match", "*", "Authorization", bearer).want(412)
	stale.is("packet.stale.0.now.principal", "billing-swarm").is("packet.stale.0.now.note", "abc").says(
		"packet.message", `by "billing-swarm"`,
	)
	for _, r := range stale.raw {
		if r == '\u202e' || r == '\u200b' {
			t.Errorf("%U in %s", r, stale.raw)
		}
	}
}
