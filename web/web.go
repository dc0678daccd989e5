package web

import (
	"embed"
	"fmt"
	"io/fs"
	"mime"
	"net/http"
	"path"
	"strings"
)

// Path is where the dashboard is.
const Path = "/ui/"

// policy is the Content-Security-Policy of all answers: nothing from elsewhere, nothing inline, no markup from strings.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; " +
	"base-uri 'none'; form-action 'self'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"

//go:embed dist
var embedded embed.FS

// file is a file of dist.
type file struct {
	content []byte
	kind    string
}

// Handler answers for all paths below Path: the assets by their names, and the page for every other path, since each
// view is a URL of its own. It shows nothing of any tenant and needs no credential.
func Handler() (http.Handler, error) {
	files := map[string]file{}
	entries, err := fs.ReadDir(embedded, "dist")
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		content, err := fs.ReadFile(embedded, "dist/"+e.Name())
		if err != nil {
			return nil, err
		}
		files[e.Name()] = file{content, mime.TypeByExtension(path.Ext(e.Name()))}
	}
	page, ok := files["index.html"]
	if !ok {
		return nil, fmt.Errorf("web: dist has no page; build it by go -C web/build run . (see doc.go)")
	}
	delete(files, "index.html")
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		secure(w.Header())
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			w.Header().Set("Allow", "GET, HEAD")
			http.Error(w, "the dashboard takes GET and HEAD only", http.StatusMethodNotAllowed)
			return
		}
		name := strings.TrimPrefix(r.URL.EscapedPath(), Path)
		if f, ok := files[name]; ok {
			w.Header().Set("Cache-Control", "public, max-age=31536000, immutable")
			send(w, r, f)
			return
		}
		if ext := path.Ext(name); !strings.Contains(name, "/") && (ext == ".js" || ext == ".css") {
			http.Error(w, "no such file: load the page again, it is of another version", http.StatusNotFound)
			return
		}
		w.Header().Set("Cache-Control", "no-store")
		send(w, r, page)
	}), nil
}

func send(w http.ResponseWriter, r *http.Request, f file) {
	w.Header().Set("Content-Type", f.kind)
	w.Header().Set("Content-Length", fmt.Sprint(len(f.content)))
	if r.Method != http.MethodHead {
		_, _ = w.Write(f.content)
	}
}

// secure sets the headers that all answers have.
func secure(h http.Header) {
	h.Set("Content-Security-Policy", policy)
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Permissions-Policy", "camera=(), geolocation=(), microphone=(), payment=(), usb=()")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Frame-Options", "DENY")
}

// WantsPage reports whether a request is that of a browser which opens an address, and wants a page.
func WantsPage(r *http.Request) bool {
	reads := r.Method == http.MethodGet || r.Method == http.MethodHead
	return reads && strings.Contains(r.Header.Get("Accept"), "text/html")
}
