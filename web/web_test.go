package web

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path"
	"regexp"
	"strings"
	"testing"
)

const (
	maxScript  = 200_000
	maxGzipped = 70_000
	maxStyle   = 20_000
)

func handler(t *testing.T) http.Handler {
	t.Helper()
	h, err := Handler()
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func ask(h http.Handler, method, path string) *http.Response {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(method, path, nil))
	return w.Result()
}

func TestSizes(t *testing.T) {
	entries, err := fs.ReadDir(embedded, "dist")
	if err != nil {
		t.Fatal(err)
	}
	kinds := map[string]int{}
	for _, e := range entries {
		content, err := fs.ReadFile(embedded, "dist/"+e.Name())
		if err != nil {
			t.Fatal(err)
		}
		kinds[path.Ext(e.Name())]++
		var packed bytes.Buffer
		z := gzip.NewWriter(&packed)
		_, _ = z.Write(content)
		_ = z.Close()
		t.Logf("%s: %d bytes, %d gzipped", e.Name(), len(content), packed.Len())
		switch path.Ext(e.Name()) {
		case ".js":
			if len(content) > maxScript || packed.Len() > maxGzipped {
				t.Errorf("%s has %d bytes, %d gzipped, which is too much", e.Name(), len(content), packed.Len())
			}
		case ".css":
			if len(content) > maxStyle {
				t.Errorf("%s has %d bytes; at most %d", e.Name(), len(content), maxStyle)
			}
		}
	}
	if kinds[".js"] != 1 || kinds[".css"] != 1 || kinds[".html"] != 1 {
		t.Errorf("dist has %v; want one page, one script, one style", kinds)
	}
}

func TestHeaders(t *testing.T) {
	h := handler(t)
	asset := regexp.MustCompile(`/ui/[a-z]+-[A-Z0-9]{8}\.(?:js|css)`)
	page := ask(h, "GET", "/ui/keys/account%3A1")
	var body bytes.Buffer
	_, _ = body.ReadFrom(page.Body)
	if page.StatusCode != http.StatusOK || page.Header.Get("Cache-Control") != "no-store" ||
		!strings.HasPrefix(page.Header.Get("Content-Type"), "text/html") {
		t.Errorf("the page: %d %v", page.StatusCode, page.Header)
	}
	assets := asset.FindAllString(body.String(), -1)
	if len(assets) != 2 {
		t.Fatalf("the page names %v", assets)
	}
	for _, name := range append(assets, "/ui/") {
		r := ask(h, "GET", name)
		for header, want := range map[string]string{
			"Content-Security-Policy":      policy,
			"Cross-Origin-Opener-Policy":   "same-origin",
			"Cross-Origin-Resource-Policy": "same-origin",
			"Referrer-Policy":              "no-referrer",
			"X-Content-Type-Options":       "nosniff",
			"X-Frame-Options":              "DENY",
		} {
			if got := r.Header.Get(header); got != want {
				t.Errorf("%s: %s: %q, want %q", name, header, got, want)
			}
		}
		if name != "/ui/" && !strings.Contains(r.Header.Get("Cache-Control"), "immutable") {
			t.Errorf("%s: Cache-Control: %q", name, r.Header.Get("Cache-Control"))
		}
	}
	if r := ask(h, "GET", "/ui/main-00000000.js"); r.StatusCode != http.StatusNotFound {
		t.Errorf("an asset of another version: %d", r.StatusCode)
	}
	if r := ask(h, "POST", "/ui/"); r.StatusCode != http.StatusMethodNotAllowed {
		t.Errorf("POST: %d", r.StatusCode)
	}
}

// sources returns the files of app by their names.
func sources(t *testing.T) map[string]string {
	t.Helper()
	entries, err := os.ReadDir("app")
	if err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	for _, e := range entries {
		content, err := os.ReadFile("app/" + e.Name())
		if err != nil {
			t.Fatal(err)
		}
		files[e.Name()] = string(content)
	}
	if len(files) < 5 {
		t.Fatalf("app has %d files", len(files))
	}
	return files
}

func TestForbidden(t *testing.T) {
	forbidden := regexp.MustCompile(
		`(?i)innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function|\bstyle=|javascript:|https?://`,
	)
	for name, text := range sources(t) {
		for n, line := range strings.Split(text, "\n") {
			if found := forbidden.FindString(line); found != "" {
				t.Errorf("app/%s:%d: %q is not allowed in a page that shows texts of agents", name, n+1, found)
			}
		}
	}
}

// Each path that the sources name is one of openapi.json.
func TestPaths(t *testing.T) {
	content, err := os.ReadFile("../server/openapi.json")
	if err != nil {
		t.Fatal(err)
	}
	var doc struct {
		Paths map[string]json.RawMessage `json:"paths"`
	}
	if err := json.Unmarshal(content, &doc); err != nil {
		t.Fatal(err)
	}
	variable := regexp.MustCompile(`\{[^}]*\}`)
	known := map[string]bool{}
	for path := range doc.Paths {
		whole := variable.ReplaceAllString(path, "*")
		for i := range whole { // a source names the part up to a variable
			if i == len(whole)-1 || whole[i+1] == '*' {
				known[whole[:i+1]] = true
			}
		}
	}
	named, n := regexp.MustCompile(`'(/v1/[a-z/-]*)`), 0
	for name, text := range sources(t) {
		for _, found := range named.FindAllStringSubmatch(text, -1) {
			if n++; !known[found[1]] {
				t.Errorf("app/%s: %s is no path of openapi.json", name, found[1])
			}
		}
	}
	if n < 15 {
		t.Errorf("found %d paths in the sources", n)
	}
}

func TestWantsPage(t *testing.T) {
	r := httptest.NewRequest("GET", "/", nil)
	if WantsPage(r) {
		t.Error("a program got a page")
	}
	r.Header.Set("Accept", "text/html,application/xhtml+xml;q=0.9,*/*;q=0.8")
	if !WantsPage(r) {
		t.Error("a browser got no page")
	}
}
