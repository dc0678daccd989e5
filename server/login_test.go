package server

import (
	"crypto/sha256"
	"encoding/base64"
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
)

// loginRig is logins in front of an API that tells which credential came.
type loginRig struct {
	*testing.T
	logins      *Logins
	credentials *Credentials
	file        string
	secret      string
	key         string // of the last login, which ask sends
	handler     http.Handler
	now         time.Time
}

func newLoginRig(t *testing.T, tls bool) *loginRig {
	t.Helper()
	secret, line, err := NewCredential(interlock.Principal{Name: "eye", Roles: interlock.RoleViewer}, "acme")
	if err != nil {
		t.Fatal(err)
	}
	rig := &loginRig{
		T: t, file: filepath.Join(t.TempDir(), "credentials"), secret: secret, key: "1", now: time.Unix(1e9, 0),
	}
	rig.write(line)
	rig.begin(tls)
	return rig
}

// begin starts a server over the file of credentials.
func (rig *loginRig) begin(tls bool) {
	rig.Helper()
	var err error
	if rig.credentials, err = LoadCredentials(rig.file); err != nil {
		rig.Fatal(err)
	}
	if rig.logins, err = NewLogins(rig.credentials, nil, "", tls); err != nil {
		rig.Fatal(err)
	}
	rig.logins.now = func() time.Time { return rig.now }
	rig.handler = rig.logins.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		id, ok := rig.credentials.lookup(bearerOf(r.Header.Get("Authorization")))
		if !ok {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		if r.Header.Get("Cookie")+r.Header.Get(dashboardHeader) != "" {
			w.WriteHeader(http.StatusTeapot)
		}
		fmt.Fprint(w, id.Principal.Name)
	}))
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
	r.Header.Set(dashboardHeader, rig.key)
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
	var body struct{ Key string }
	if err := json.NewDecoder(r.Body).Decode(&body); err != nil || len(body.Key) < 26 {
		rig.Fatalf("the login has the key %q: %v", body.Key, err)
	}
	rig.key = body.Key
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

// Other servers of the machine have the cookie, and programs say of themselves what they like: without the page's
// key it opens nothing, and the key of another login opens another one.
func TestLoginOfOtherPorts(t *testing.T) {
	rig := newLoginRig(t, false)
	c := rig.logIn()
	mine := rig.key
	other := rig.logIn()
	for _, key := range []string{"", "1", rig.key, mine + "x", strings.ToLower(mine), c.Value} {
		for _, method := range []string{"GET", "HEAD", "POST"} {
			rig.want(method+" with the key "+key, rig.ask(method, "/v1/waits", "{}", c, func(r *http.Request) {
				r.Header.Set(dashboardHeader, key)
			}), 401)
		}
		rig.ask("DELETE", SessionPath, "", c, func(r *http.Request) { r.Header.Set(dashboardHeader, key) })
	}
	rig.key = mine
	rig.want("the key alone", rig.ask("GET", "/v1/waits", "", nil), 401)
	planted := func(r *http.Request) {
		r.Header.Set("Cookie", c.Name+"=planted; "+c.Name+"="+other.Value+"; "+c.Name+"="+c.Value)
	}
	rig.want("planted cookies before its own", rig.ask("GET", "/v1/waits", "", nil, planted), 200)
	rig.want("a planted logout", rig.ask("DELETE", SessionPath, "", other), 200)
	rig.want("after that", rig.ask("GET", "/v1/waits", "", c), 200)
}

// A login is whole in the browser: another server with the same file opens it, and none without.
func TestLoginOutlivesServer(t *testing.T) {
	rig := newLoginRig(t, false)
	c := rig.logIn()
	rig.begin(false)
	rig.want("after a restart", rig.ask("GET", "/v1/waits", "", c), 200)
	line, err := os.ReadFile(rig.file)
	if err != nil {
		t.Fatal(err)
	}
	changed := strings.Replace(string(line), "eye", "ear", 1)
	rig.write(changed)
	rig.begin(false)
	rig.want("under another name", rig.ask("GET", "/v1/waits", "", c), 200)
	_, other, err := NewCredential(interlock.Principal{Name: "other"}, "acme")
	if err != nil {
		t.Fatal(err)
	}
	rig.write(other)
	rig.begin(false)
	rig.want("without its credential", rig.ask("GET", "/v1/waits", "", c), 401)
}

// A reader of the cookie and the key uses the login, and no more: it does not extend it, change it, or read the secret.
func TestLoginIsSealed(t *testing.T) {
	rig := newLoginRig(t, false)
	c := rig.logIn()
	raw, err := base64.RawURLEncoding.DecodeString(c.Value)
	if err != nil || strings.Contains(string(raw), rig.secret) {
		t.Fatalf("the cookie is %q: %v", raw, err)
	}
	for i := range raw {
		bad := slices.Clone(raw)
		bad[i] ^= 1
		value := base64.RawURLEncoding.EncodeToString(bad)
		rig.want(fmt.Sprint("byte ", i), rig.ask("GET", "/v1/waits", "", &http.Cookie{Name: c.Name, Value: value}), 401)
		short := base64.RawURLEncoding.EncodeToString(raw[:i])
		rig.want(fmt.Sprint(i, " bytes"), rig.ask("GET", "/v1/waits", "", &http.Cookie{Name: c.Name, Value: short}), 401)
	}
}

// Log-outs that are remembered have a bound.
func TestManyLogOuts(t *testing.T) {
	rig := newLoginRig(t, false)
	for i := range maxEnded + 10 {
		rig.logins.end(login{hash: sha256.Sum256([]byte{byte(i), byte(i >> 8)}), ends: rig.now.Add(time.Minute)})
	}
	if n := len(rig.logins.ended); n != maxEnded {
		t.Errorf("%d are remembered", n)
	}
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

// Wrong secrets are slowed, and never refuse a good one: behind a proxy all browsers have one address.
func TestLoginFailures(t *testing.T) {
	rig := newLoginRig(t, false)
	elsewhere := func(r *http.Request) { r.RemoteAddr = "198.51.100.7:1234" }
	wrong := func() *http.Response { return rig.ask("POST", SessionPath, `{"secret":"ilk_wrong"}`, nil) }
	for range failuresAllowed {
		rig.want("a wrong secret", wrong(), 401)
	}
	r := wrong()
	rig.want("too many failures", r, 429)
	if r.Header.Get("Retry-After") == "" {
		t.Error("no Retry-After")
	}
	right := `{"secret":"` + rig.secret + `"}`
	rig.want("a good secret from that address", rig.ask("POST", SessionPath, right, nil), 200)
	rig.want("another address", rig.ask("POST", SessionPath, `{"secret":"ilk_wrong"}`, nil, elsewhere), 401)
	rig.now = rig.now.Add(failureWindow)
	rig.want("a minute later", wrong(), 401)
}

// A body is read strictly, and a refusal does not quote it.
func TestLoginBody(t *testing.T) {
	rig := newLoginRig(t, false)
	for _, body := range []string{
		"", "{}", "[]", `{"secret":1}`, `{"secret":"SECRET","secret":"ilk_other"}`, `{"Secret":"SECRET"}`,
		`{"secret":"SECRET","more":1}`, `{"secret":"SECRET"}{}`, `{"secret":"SECRET`, `{"SECRET":"x"}`,
	} {
		r := rig.ask("POST", SessionPath, strings.ReplaceAll(body, "SECRET", rig.secret), nil)
		rig.want(body, r, 400)
		if text, err := io.ReadAll(r.Body); err != nil || strings.Contains(string(text), rig.secret) {
			t.Errorf("%s: %v, the answer is %s", body, err, text)
		}
	}
}

// One credential takes no login of another one, however often it logs in.
func TestLoginsOfOneCredential(t *testing.T) {
	rig := newLoginRig(t, false)
	first, key := rig.logIn(), rig.key
	secret, line, err := NewCredential(interlock.Principal{Name: "other", Roles: interlock.RoleViewer}, "globex")
	if err != nil {
		t.Fatal(err)
	}
	kept, err := os.ReadFile(rig.file)
	if err != nil {
		t.Fatal(err)
	}
	rig.write(string(kept) + line)
	if err := rig.credentials.Reload(); err != nil {
		t.Fatal(err)
	}
	rig.secret = secret
	for range 100 {
		rig.ask("DELETE", SessionPath, "", rig.logIn())
	}
	rig.key = key
	rig.want("the login of another credential", rig.ask("GET", "/v1/waits", "", first), 200)
}
