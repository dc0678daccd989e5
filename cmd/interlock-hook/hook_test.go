package main

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/interlockdev/interlock/internal/hookclient"
)

// alone lets the process have no variable and no file of a user.
func alone(t *testing.T) (home string) {
	t.Helper()
	home = t.TempDir()
	for _, name := range []string{"URL", "CREDENTIAL", "CREDENTIAL_FILE", "TLS_CA", "NAMESPACE", "LEASE", "OUTER"} {
		t.Setenv("INTERLOCK_"+name, "")
	}
	t.Setenv("INTERLOCK_CONFIG", filepath.Join(home, "config.json"))
	t.Setenv("XDG_CACHE_HOME", filepath.Join(home, "cache"))
	t.Setenv("HOME", home)
	return home
}

// try runs the hook with an event.
func try(event string, args ...string) (out, report string, code int) {
	var o, r strings.Builder
	code = run(args, strings.NewReader(event), &o, &r)
	return o.String(), r.String(), code
}

// server starts a server that answers with a handler.
func server(t *testing.T, handle http.HandlerFunc) (host string) {
	t.Helper()
	s := httptest.NewServer(handle)
	t.Cleanup(s.Close)
	return strings.TrimPrefix(s.URL, "http://")
}

func listen(t testing.TB) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// closed is the address of a server that is away.
func closed(t *testing.T) string {
	t.Helper()
	l := listen(t)
	defer l.Close()
	return l.Addr().String()
}

func TestPass(t *testing.T) {
	home := alone(t)
	var asked string
	host := server(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		asked = fmt.Sprintf(
			"%s %s | %s | %s | %s", r.Method, r.URL, r.Header.Get("Authorization"), r.Header.Get("Interlock-Namespace"), body,
		)
		io.WriteString(w, `{"decision":"deny"}`)
	})
	file := "INTERLOCK_URL=http://" + host + "\nINTERLOCK_CREDENTIAL=s3cret\nINTERLOCK_NAMESPACE=team\n"
	if err := os.WriteFile(filepath.Join(home, "hook.env"), []byte(file), 0o600); err != nil {
		t.Fatal(err)
	}
	out, report, code := try(`{"cwd":"/"}`, "codex", "--mode", "warn", "--hold=edit", "--wait", "5s")
	if out != `{"decision":"deny"}` || report != "" || code != 0 {
		t.Errorf("it wrote %q and %q, and exited with %d", out, report, code)
	}
	want := `POST /v1/hooks/codex?hold=edit&mode=warn&wait_s=5 | Bearer s3cret | team | {"cwd":"/"}`
	if asked != want {
		t.Errorf("it asked\n%s\nwant\n%s", asked, want)
	}
}

func TestAnswers(t *testing.T) {
	alone(t)
	for _, tt := range []struct {
		name   string
		handle http.HandlerFunc
		out    string
		report string
	}{
		{"empty", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(204) }, "", ""},
		{"in chunks", func(w http.ResponseWriter, _ *http.Request) {
			for range 3 {
				io.WriteString(w, strings.Repeat("x", 3000))
				w.(http.Flusher).Flush()
			}
		}, strings.Repeat("x", 9000), ""},
		{
			"a problem", func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(401)
				io.WriteString(w, `{"code":"unauthenticated","detail":"no such\u001b[31m credential"}`)
			}, "", "refused the event (unauthenticated): no such",
		},
		{"a stranger", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(404) }, "", "has no hooks (status 404)"},
		{"too long", func(w http.ResponseWriter, _ *http.Request) {
			io.WriteString(w, strings.Repeat("x", maxAnswer+1))
		}, "", "the answer is too long"},
		{
			"cut", func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Length", "10")
				io.WriteString(w, "x")
			}, "", "gave no whole answer: unexpected EOF",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Setenv("XDG_CACHE_HOME", t.TempDir())
			t.Setenv("INTERLOCK_URL", server(t, tt.handle))
			out, report, code := try("{}", "codex")
			if out != tt.out || !strings.Contains(report, tt.report) || (tt.report == "") != (report == "") || code != 0 {
				t.Errorf("it wrote %.40q and %q, and exited with %d; want %.40q and %q", out, report, code, tt.out, tt.report)
			}
			if strings.ContainsRune(report, '\x1b') {
				t.Errorf("%q steers a terminal", report)
			}
		})
	}
}

// A failure is open, unless the mode is strict.
func TestFailure(t *testing.T) {
	alone(t)
	t.Setenv("INTERLOCK_URL", closed(t))
	want := "files are not reserved: no server answers at 127.0.0.1:"
	if out, report, code := try("{}", "gemini"); out != "" || !strings.Contains(report, want) || code != 0 {
		t.Errorf("it wrote %q and %q, and exited with %d", out, report, code)
	}
	out, report, code := try("{}", "gemini", "--mode", "strict")
	if out != "" || !strings.Contains(report, "hooks are strict here") || code != 2 {
		t.Errorf("strict: it wrote %q and %q, and exited with %d", out, report, code)
	}
}

func TestSilentServer(t *testing.T) {
	held := make(chan struct{})
	host := server(t, func(http.ResponseWriter, *http.Request) { <-held })
	defer close(held)
	r := &request{path: "/v1/hooks/codex", until: time.Now().Add(2 * time.Second)}
	if _, err := r.visit([]string{host}); err == nil || !strings.Contains(err.Error(), "did not answer in time") {
		t.Errorf("a silent server: %v", err)
	}
}

func TestVisit(t *testing.T) {
	alone(t)
	var asked []string
	named := func(name, status, active string) string {
		return server(t, func(w http.ResponseWriter, _ *http.Request) {
			asked = append(asked, name)
			if status == "" {
				io.WriteString(w, name)
				return
			}
			w.WriteHeader(503)
			fmt.Fprintf(w, `{"code":%q,"active":{"http":%q}}`, status, active)
		})
	}
	active := named("active", "", "")
	other := named("other", "not_owner", "")
	for _, tt := range []struct {
		name    string
		servers []string
		asked   string
		out     string
	}{
		{"the next one", []string{other, active}, "other active", "active"},
		{"an absent one", []string{closed(t), active}, "active", "active"},
		{
			"the named one",
			[]string{named("standby", "not_owner", "http://"+active), other, active},
			"standby active",
			"active",
		},
		{
			"a foreign one", []string{named("standby", "not_owner", "http://"+active), other}, "standby other", "",
		},
		{"one that stops", []string{named("stops", "shutting_down", ""), active}, "stops active", "active"},
		{"one that is full", []string{named("full", "overloaded", ""), active}, "full", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			asked = nil
			t.Setenv("INTERLOCK_URL", strings.Join(tt.servers, ","))
			out, _, code := try("{}", "codex")
			if got := strings.Join(asked, " "); got != tt.asked || out != tt.out || code != 0 {
				t.Errorf("it asked %q and wrote %q (exit code %d), want %q and %q", got, out, code, tt.asked, tt.out)
			}
		})
	}
}

// What cannot be passed on reaches no server.
func TestBadInput(t *testing.T) {
	alone(t)
	t.Setenv("INTERLOCK_URL", server(t, func(http.ResponseWriter, *http.Request) { t.Error("the server was asked") }))
	for _, tt := range []struct {
		name, event string
		args        []string
		env         []string
		want        string
	}{
		{"no harness", "{}", nil, nil, "name the harness"},
		{"an unknown flag", "{}", []string{"codex", "--what"}, nil, "flag provided but not defined"},
		{"two harnesses", "{}", []string{"codex", "gemini"}, nil, `"gemini" stands behind it`},
		{"a negative wait", "{}", []string{"codex", "--wait", "-1s"}, nil, "want 0s or more"},
		{"a large event", strings.Repeat("x", hookclient.MaxEvent+1), []string{"codex"}, nil, "more than 1048576 bytes"},
		{"no server", "{}", []string{"codex"}, []string{"INTERLOCK_URL", "ftp://h"}, "not the address of a server"},
		{"a path", "{}", []string{"codex"}, []string{"INTERLOCK_URL", "http://h/x"}, "not the address of a server"},
		{
			"a second header", "{}",
			[]string{"codex"},
			[]string{"INTERLOCK_NAMESPACE", "a\r\nX-Other: b"},
			"Interlock-Namespace has a control character",
		},
		{
			"a missing credential", "{}",
			[]string{"codex"},
			[]string{"INTERLOCK_CREDENTIAL_FILE", "/nowhere/at/all"},
			"read the credential",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Setenv("XDG_CACHE_HOME", t.TempDir())
			if tt.env != nil {
				t.Setenv(tt.env[0], tt.env[1])
			}
			out, report, code := try(tt.event, tt.args...)
			if out != "" || !strings.Contains(report, tt.want) || code != 0 {
				t.Errorf("it wrote %q and %q, and exited with %d; want %q", out, report, code, tt.want)
			}
		})
	}
}

func TestHelp(t *testing.T) {
	if out, report, code := try(
		"",
		"--help",
	); !strings.Contains(out, "interlock-hook HARNESS") || report != "" ||
		code != 0 {
		t.Errorf("--help: %q, %q, exit code %d", out, report, code)
	}
	if out, report, code := try("", "--version"); out != "interlock-hook devel\n" || report != "" || code != 0 {
		t.Errorf("--version: %q, %q, exit code %d", out, report, code)
	}
}
