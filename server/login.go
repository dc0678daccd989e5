package server

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/internal/problem"
)

// SessionPath is where a browser logs in and out. It is no operation of the API: programs send their credential.
const SessionPath = "/ui/session"

const (
	loginLength     = 12 * time.Hour
	maxLogins       = 10_000
	failuresAllowed = 10 // in failureWindow, from one address
	failureWindow   = time.Minute
	maxFailing      = 10_000 // addresses with failures that are remembered
	maxLoginBody    = 4 << 10
	dashboardHeader = "Interlock-Dashboard"
)

// Logins lets browsers use the API with a cookie, for the dashboard: EventSource and links send no Authorization.
//
//	browser ── POST /ui/session {"secret"} ──► cookie of 256 random bits
//	        ── GET /v1/waits, cookie ────────► Logins ── Authorization: Bearer secret ──► API
//
// The server keeps no cookie and no secret: it keeps the hash of the cookie, and the secret encrypted under the cookie.
// So the API checks the credential itself at each call, at this server or the owner of the shard, and a login ends with
// its credential. Logins end after 12 hours, and when the process ends.
//
// A cookie counts only if the browser vouches that a page of this server sent the request (Sec-Fetch-Site or Origin);
// for a call that may change something, the header Interlock-Dashboard is needed, too, which no form can send.
type Logins struct {
	credentials *Credentials // nil: every caller may do everything without a login
	hosts       hostRule
	secure      bool
	now         func() time.Time

	mu       sync.Mutex
	logins   map[[sha256.Size]byte]login // by the hash of the cookie
	failures map[netip.Addr]failureCount
}

// login is a browser that logged in.
type login struct {
	sealed []byte // the secret
	ends   time.Time
}

// failureCount counts failed logins from an address.
type failureCount struct {
	n     int
	since time.Time
}

// NewLogins returns the logins of a process. tls tells that browsers come over TLS. hosts is that of Config.
func NewLogins(credentials *Credentials, hosts []string, publicURL string, tls bool) (*Logins, error) {
	l := &Logins{
		credentials: credentials, secure: tls, now: time.Now,
		logins: map[[sha256.Size]byte]login{}, failures: map[netip.Addr]failureCount{},
	}
	var err error
	if l.hosts, err = newHostRule(hosts, credentials != nil); err != nil {
		return nil, err
	}
	return l, l.hosts.addURL(publicURL)
}

// Handler answers at SessionPath, and passes all other requests on to the API, those with a good cookie with the
// credential that logged in.
func (l *Logins) Handler(api http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == SessionPath {
			l.serve(w, r)
			return
		}
		if r.Header.Get("Authorization") == "" {
			if secret, ok := l.secretOf(r); ok {
				r = r.Clone(r.Context())
				r.Header.Set("Authorization", "Bearer "+secret)
				r.Header.Del("Cookie") // it ends here
			}
		}
		api.ServeHTTP(w, r)
	})
}

func (l *Logins) serve(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h["Cache-Control"], h["X-Content-Type-Options"] = noStore, noSniff
	if no := l.hosts.check(r); no != nil {
		refuseLogin(w, no)
		return
	}
	switch r.Method {
	case http.MethodGet:
		l.showCaller(w, r)
	case http.MethodPost:
		l.logIn(w, r)
	case http.MethodDelete:
		l.logOut(w, r)
	default:
		h.Set("Allow", "DELETE, GET, POST")
		refuseLogin(w, &interlock.Error{
			Code: interlock.CodeMethodNotAllowed, Message: "this path takes DELETE, GET and POST only",
		})
	}
}

// showCaller answers with the caller: its name, namespace and roles; {} without credentials.
func (l *Logins) showCaller(w http.ResponseWriter, r *http.Request) {
	if l.credentials == nil {
		answerLogin(w, map[string]any{})
		return
	}
	secret, _ := l.secretOf(r)
	id, ok := l.credentials.lookup(secret)
	if !ok {
		refuseLogin(w, &interlock.Error{Code: interlock.CodeUnauthenticated, Message: "this server requires a login"})
		return
	}
	answerLogin(w, about(&id))
}

func about(id *Identity) map[string]any {
	return map[string]any{
		"name": cleanText(id.Principal.Name), "namespace": string(id.Namespace),
		"roles": strings.Split(id.Principal.Roles.String(), ","),
	}
}

// logIn takes {"secret"} and sets the cookie.
func (l *Logins) logIn(w http.ResponseWriter, r *http.Request) {
	if l.credentials == nil {
		answerLogin(w, map[string]any{})
		return
	}
	if !l.fromPage(r) || r.Header.Get(dashboardHeader) == "" {
		refuseLogin(w, &interlock.Error{
			Code: interlock.CodeForeignHost, Message: "only the dashboard of this server may log in: open /ui/; programs send " +
				"the header Authorization",
		})
		return
	}
	from := addressOf(r)
	if wait := l.overdone(from); wait > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(int(wait/time.Second)+1))
		refuseLogin(w, &interlock.Error{
			Code:    interlock.CodeQuota,
			Message: fmt.Sprintf("%d logins failed within a minute from this address: try again later", failuresAllowed),
		})
		return
	}
	var body struct {
		Secret string `json:"secret"`
	}
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxLoginBody)).Decode(&body); err != nil {
		refuseLogin(w, &interlock.Error{Code: interlock.CodeInvalidRequest, Message: `want a body {"secret": "ilk_..."}`})
		return
	}
	secret := strings.TrimSpace(body.Secret)
	id, ok := l.credentials.lookup(secret)
	if !ok {
		l.failed(from)
		refuseLogin(w, &interlock.Error{
			Code: interlock.CodeUnauthenticated, Message: "unknown credential: ask the operator for one with the role viewer",
		})
		return
	}
	token, ok := l.begin(secret)
	if !ok {
		refuseLogin(w, &interlock.Error{
			Code: interlock.CodeOverloaded, Message: "too many browsers are logged in: try again later",
		})
		return
	}
	admitRequest(r)
	http.SetCookie(w, l.cookie(token, int(loginLength/time.Second)))
	answerLogin(w, about(&id))
}

// logOut forgets the login, and takes the cookie away.
func (l *Logins) logOut(w http.ResponseWriter, r *http.Request) {
	if l.fromPage(r) && r.Header.Get(dashboardHeader) != "" {
		if c, err := r.Cookie(l.cookieName()); err == nil {
			l.mu.Lock()
			delete(l.logins, sha256.Sum256([]byte(c.Value)))
			l.mu.Unlock()
		}
		http.SetCookie(w, l.cookie("", -1))
	}
	answerLogin(w, map[string]any{})
}

// begin keeps a login, and returns the value of its cookie.
func (l *Logins) begin(secret string) (token string, ok bool) {
	var raw [32]byte
	_, _ = rand.Read(raw[:]) // never fails
	token = base64.RawURLEncoding.EncodeToString(raw[:])
	gcm := sealer(token)
	nonce := make([]byte, gcm.NonceSize())
	_, _ = rand.Read(nonce)
	now := l.now()
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.logins) >= maxLogins {
		for hash, one := range l.logins {
			if !now.Before(one.ends) {
				delete(l.logins, hash)
			}
		}
		if len(l.logins) >= maxLogins {
			return "", false
		}
	}
	l.logins[sha256.Sum256([]byte(token))] = login{gcm.Seal(nonce, nonce, []byte(secret), nil), now.Add(loginLength)}
	return token, true
}

// secretOf returns the secret behind the cookie of a request, if the cookie counts for it.
func (l *Logins) secretOf(r *http.Request) (secret string, ok bool) {
	if l.credentials == nil {
		return "", false
	}
	c, err := r.Cookie(l.cookieName())
	if err != nil || !l.fromPage(r) {
		return "", false
	}
	if r.Method != http.MethodGet && r.Method != http.MethodHead && r.Header.Get(dashboardHeader) == "" {
		return "", false
	}
	hash := sha256.Sum256([]byte(c.Value))
	l.mu.Lock()
	one, ok := l.logins[hash]
	if ok && !l.now().Before(one.ends) {
		delete(l.logins, hash)
		ok = false
	}
	l.mu.Unlock()
	if !ok {
		return "", false
	}
	gcm := sealer(c.Value)
	plain, err := gcm.Open(nil, one.sealed[:gcm.NonceSize()], one.sealed[gcm.NonceSize():], nil)
	return string(plain), err == nil
}

// sealer encrypts under a cookie. Its key is not the hash that the server keeps.
func sealer(token string) cipher.AEAD {
	key := sha256.Sum256([]byte("interlock login key\x00" + token))
	block, err := aes.NewCipher(key[:])
	if err != nil {
		panic(err) // the key has 32 bytes
	}
	gcm, err := cipher.NewGCM(block)
	if err != nil {
		panic(err) // AES has blocks of 16 bytes
	}
	return gcm
}

// fromPage reports whether the browser vouches that a page of this server sent the request.
func (l *Logins) fromPage(r *http.Request) bool {
	if site := r.Header.Get("Sec-Fetch-Site"); site != "" {
		return site == "same-origin"
	}
	origins := r.Header["Origin"]
	return len(origins) > 0 && l.hosts.allowsOrigins(origins, r)
}

func (l *Logins) cookieName() string {
	if l.secure {
		return "__Host-interlock"
	}
	return "interlock"
}

func (l *Logins) cookie(value string, maxAge int) *http.Cookie {
	return &http.Cookie{
		Name: l.cookieName(), Value: value, Path: "/", MaxAge: maxAge, Secure: l.secure, HttpOnly: true,
		SameSite: http.SameSiteStrictMode,
	}
}

// overdone returns how long an address must wait after too many failures.
func (l *Logins) overdone(from netip.Addr) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	f := l.failures[from]
	if left := failureWindow - l.now().Sub(f.since); f.n >= failuresAllowed && left > 0 {
		return left
	}
	return 0
}

func (l *Logins) failed(from netip.Addr) {
	now := l.now()
	l.mu.Lock()
	defer l.mu.Unlock()
	f := l.failures[from]
	if now.Sub(f.since) >= failureWindow {
		f = failureCount{since: now}
	}
	if len(l.failures) >= maxFailing {
		for addr, old := range l.failures {
			if now.Sub(old.since) >= failureWindow {
				delete(l.failures, addr)
			}
		}
	}
	if _, known := l.failures[from]; !known && len(l.failures) >= maxFailing {
		return
	}
	f.n++
	l.failures[from] = f
}

// addressOf returns the address that a request came from; of IPv6 the network, since a host has many.
func addressOf(r *http.Request) netip.Addr {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		return netip.Addr{}
	}
	addr, _ := netip.ParseAddr(host)
	if addr = addr.Unmap(); addr.Is6() {
		if network, err := addr.Prefix(64); err == nil {
			return network.Addr()
		}
	}
	return addr
}

func answerLogin(w http.ResponseWriter, body map[string]any) {
	w.Header()["Content-Type"] = jsonType
	_ = json.NewEncoder(w).Encode(body)
}

func refuseLogin(w http.ResponseWriter, no *interlock.Error) {
	w.Header()["Content-Type"] = problemType
	status := problem.Of(no.Code).Status
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]any{
		"status": status, "code": no.Code, "title": http.StatusText(status), "detail": no.Message,
	})
}
