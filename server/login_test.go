package server

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/interlockdev/interlock"
)

// loginRig is logins in front of an API that tells which credential came.
type loginRig struct {
	*testing.T
	logins      *Logins
	credentials *Credentials
	file        string
	secret      string
	handler     http.Handler
	now         time.Time
}

func newLoginRig(t *testing.T, tls bool) *loginRig {
	t.Helper()
	secret, line, err := NewCredential(interlock.Principal{Name: "eye", Roles: interlock.RoleViewer}, "acme")
	if err != nil {
		t.Fatal(err)
	}
	rig := &loginRig{T: t, file: filepath.Join(t.TempDir(), "credentials"), secret: secret, now: time.Unix(1e9, 0)}
	rig.write(line)
	if rig.credentials, err = LoadCredentials(rig.file); err != nil {
		t.Fatal(err)
	}
	if rig.logins, err = NewLogins(rig.credentials, nil, "", tls); err != nil {
		t.Fatal(err)
	}
	rig.logins.now = func() time.Time { return rig.now }
	rig.handler = rig.logins.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		id, ok := rig.credentials.lookup(bearerOf(r.Header.Get("Authorization")))
		if !ok {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		fmt.Fprint(w, id.Principal.Name)
	}))
	return rig
}

func (rig *loginRig) write(line string) {
	rig.Helper()
	if err := os.WriteFile(rig.file, []byte(line+"\n"), 0o600); err != nil {
		rig.Fatal(err)
	}
}

// ask sends a request as a page of the server does, and then changed.
func (rig *loginRig) ask(method, path, body string, cookie *http.Cookie, change ...func(*http.Request)) *http.Response {
	r := httptest.NewRequest(method, "http://127.0.0.1:7420"+path, strings.NewReader(body))
	r.Header.Set("Sec-Fetch-Site", "same-origin")
	r.Header.Set(dashboardHeader, "1")
	if cookie != nil {
		r.AddCookie(cookie)
	}
	for _, f := range change {
		f(r)
	}
	w := httptest.NewRecorder()
	rig.handler.ServeHTTP(w, r)
	return w.Result()
}

func (rig *loginRig) logIn() *http.Cookie {
	rig.Helper()
	r := rig.ask("POST", SessionPath, `{"secret":"`+rig.secret+`"}`, nil)
	if r.StatusCode != http.StatusOK || len(r.Cookies()) != 1 {
		rig.Fatalf("login: %d, %d cookies", r.StatusCode, len(r.Cookies()))
	}
	return r.Cookies()[0]
}

func (rig *loginRig) want(what string, r *http.Response, status int) {
	rig.Helper()
	if r.StatusCode != status {
		rig.Errorf("%s: status %d, want %d", what, r.StatusCode, status)
	}
}

func site(value string) func(*http.Request) {
	return func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", value) }
}

func without(header string) func(*http.Request) {
	return func(r *http.Request) { r.Header.Del(header) }
}

func origin(value string) func(*http.Request) {
	return func(r *http.Request) {
		r.Header.Del("Sec-Fetch-Site")
		r.Header.Set("Origin", value)
	}
}

func TestLogin(t *testing.T) {
	rig := newLoginRig(t, false)
	rig.want("who, before", rig.ask("GET", SessionPath, "", nil), 401)
	c := rig.logIn()
	if !c.HttpOnly || c.SameSite != http.SameSiteStrictMode || c.Path != "/" || c.Secure || c.MaxAge != 12*60*60 ||
		len(c.Value) < 43 {
		t.Errorf("the cookie is %+v", c)
	}
	rig.want("who", rig.ask("GET", SessionPath, "", c), 200)
	rig.want("reading", rig.ask("GET", "/v1/waits", "", c), 200)
	rig.want("changing", rig.ask("POST", "/v1/revocations", "{}", c), 200)
	rig.want("another cookie", rig.ask("GET", "/v1/waits", "", &http.Cookie{Name: c.Name, Value: c.Value + "x"}), 401)

	rig.want("logout", rig.ask("DELETE", SessionPath, "", c), 200)
	rig.want("after the logout", rig.ask("GET", "/v1/waits", "", c), 401)
}

func TestLoginWithTLS(t *testing.T) {
	if c := newLoginRig(t, true).logIn(); c.Name != "__Host-interlock" || !c.Secure || c.Path != "/" || c.Domain != "" {
		t.Errorf("the cookie is %+v", c)
	}
}

// A cookie counts only for pages of this server; changes need the header that forms cannot send.
func TestLoginOfOtherSites(t *testing.T) {
	rig := newLoginRig(t, false)
	c := rig.logIn()
	for name, change := range map[string]func(*http.Request){
		"another site":    site("cross-site"),
		"the same domain": site("same-site"),
		"an address":      site("none"),
		"nothing":         without("Sec-Fetch-Site"),
		"another origin":  origin("https://evil.example"),
		"origin null":     origin("null"),
	} {
		rig.want("reading, "+name, rig.ask("GET", "/v1/waits", "", c, change), 401)
		rig.want("changing, "+name, rig.ask("POST", "/v1/revocations", "{}", c, change), 401)
		r := rig.ask("POST", SessionPath, `{"secret":"`+rig.secret+`"}`, nil, change)
		if r.StatusCode == 200 || len(r.Cookies()) > 0 {
			t.Errorf("login, %s: %d", name, r.StatusCode)
		}
	}
	rig.want("own origin", rig.ask("GET", "/v1/waits", "", c, origin("http://127.0.0.1:7420")), 200)
	rig.want("a form", rig.ask("POST", "/v1/revocations", "{}", c, without(dashboardHeader)), 401)
	rig.ask("DELETE", SessionPath, "", c, without(dashboardHeader))
	rig.want("a forged logout", rig.ask("GET", "/v1/waits", "", c), 200)
}

func TestLoginEnds(t *testing.T) {
	rig := newLoginRig(t, false)
	c := rig.logIn()
	rig.now = rig.now.Add(loginLength - time.Second)
	rig.want("before the end", rig.ask("GET", "/v1/waits", "", c), 200)
	rig.now = rig.now.Add(time.Second)
	rig.want("after 12 hours", rig.ask("GET", "/v1/waits", "", c), 401)

	c = rig.logIn()
	_, line, err := NewCredential(interlock.Principal{Name: "other"}, "acme")
	if err != nil {
		t.Fatal(err)
	}
	rig.write(line)
	if err := rig.credentials.Reload(); err != nil {
		t.Fatal(err)
	}
	rig.want("a withdrawn credential", rig.ask("GET", "/v1/waits", "", c), 401)
	rig.want("who, then", rig.ask("GET", SessionPath, "", c), 401)
}

func TestLoginFailures(t *testing.T) {
	rig := newLoginRig(t, false)
	elsewhere := func(r *http.Request) { r.RemoteAddr = "198.51.100.7:1234" }
	for range failuresAllowed {
		rig.want("a wrong secret", rig.ask("POST", SessionPath, `{"secret":"ilk_wrong"}`, nil), 401)
	}
	right := `{"secret":"` + rig.secret + `"}`
	r := rig.ask("POST", SessionPath, right, nil)
	rig.want("too many failures", r, 429)
	if r.Header.Get("Retry-After") == "" {
		t.Error("no Retry-After")
	}
	rig.want("another address", rig.ask("POST", SessionPath, right, nil, elsewhere), 200)
	rig.now = rig.now.Add(failureWindow)
	rig.want("a minute later", rig.ask("POST", SessionPath, right, nil), 200)
}

// The server keeps neither the cookie nor the secret.
func TestLoginKeepsNoSecret(t *testing.T) {
	rig := newLoginRig(t, false)
	c := rig.logIn()
	for hash, one := range rig.logins.logins {
		text := fmt.Sprintf("%s %s", hash[:], one.sealed)
		if strings.Contains(text, c.Value) || strings.Contains(text, rig.secret) {
			t.Error("the cookie or the secret is kept in clear")
		}
	}
	if len(rig.logins.logins) != 1 {
		t.Errorf("%d logins", len(rig.logins.logins))
	}
}
