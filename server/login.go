package server

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/netip"
	"slices"
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
	maxEnded        = 10_000 // logins that ended by a log-out and are remembered
	failuresAllowed = 10     // in failureWindow, from one address
	failureWindow   = time.Minute
	maxFailing      = 10_000 // addresses with failures that are remembered
	maxLoginBody    = 4 << 10
	dashboardHeader = "Interlock-Dashboard"
)

// Logins lets browsers use the API with a cookie and a key, for the dashboard. Neither is worth anything alone.
//
//	browser ── POST /ui/session {"secret"} ──► the cookie, and {"key"} for the page
//	        ── GET /v1/waits, cookie, key ──► Logins ── Authorization: Bearer secret ──► API
//
//	cookie   which credential (8) │ end (8) │ nonce (12) │ the secret, sealed
//	sealed   with AES-GCM under HMAC(hash of the credential, key); which and end are authenticated
//
// Cookies have no ports: a browser sends those of this server to every other server of the machine, and any program
// can repeat what the browser tells about a page. The key is in the storage of the page's origin, which has a port. So
// another port has the cookie alone; and a reader of both learns no secret, since the hash of the credential is only
// in the file of credentials.
//
// The server keeps no login: each server with the same file opens it, before and after a restart. The API
// checks the credential itself at each call, at this server or the owner of the shard, and without its line in the file
// a login does not open. Logins end after 12 hours, or by a log-out, which this server remembers while the process
// lives.
//
// So nothing here is shared by tenants, and there are no places for logins that one could take up. A good secret is
// never refused, however many wrong ones come from its address, which may be that of a proxy. Secrets are 256 random
// bits, so failures are slowed for the sake of the log alone.
//
// Besides, the browser must vouch that a page of this server sent the request (Sec-Fetch-Site or Origin).
type Logins struct {
	credentials *Credentials // nil: every caller may do everything without a login
	hosts       hostRule
	secure      bool
	now         func() time.Time

	mu       sync.Mutex
	ended    map[[sha256.Size]byte]time.Time // by the hash of the cookie: when it would have ended
	failures map[netip.Addr]failureCount
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
		ended: map[[sha256.Size]byte]time.Time{}, failures: map[netip.Addr]failureCount{},
	}
	var err error
	if l.hosts, err = newHostRule(hosts, credentials != nil); err != nil {
		return nil, err
	}
	return l, l.hosts.addURL(publicURL)
}

// Handler answers at SessionPath, and passes all other requests on to the API, those with a good login with the
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
				r.Header.Del("Cookie") // it ends here, as the key does
				r.Header.Del(dashboardHeader)
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
	secret, no := loginSecret(w, r)
	if no != nil {
		refuseLogin(w, no)
		return
	}
	id, ok := l.credentials.lookup(secret)
	if !ok {
		l.refuseSecret(w, addressOf(r))
		return
	}
	admitRequest(r, &id)
	key := rand.Text()
	http.SetCookie(w, l.cookie(sealLogin(&id, secret, key, l.now().Add(loginLength)), int(loginLength/time.Second)))
	answer := about(&id)
	answer["key"] = key
	answerLogin(w, answer)
}

// loginSecret reads the body, as strictly as any of the API.
func loginSecret(w http.ResponseWriter, r *http.Request) (secret string, no *interlock.Error) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxLoginBody))
	d := jsonIn{b: body}
	if d.object([]string{"secret"}, func(int) { secret = strings.TrimSpace(d.str()) }) == 0 || err != nil {
		d.fail("no secret")
	}
	if d.end(); d.err != nil {
		// What is wrong is not quoted: the body has a secret.
		return "", &interlock.Error{
			Code: interlock.CodeInvalidRequest, Message: `want a body {"secret": "ilk_..."} with one field, which occurs once`,
		}
	}
	return secret, nil
}

// refuseSecret answers a wrong secret.
func (l *Logins) refuseSecret(w http.ResponseWriter, from netip.Addr) {
	if wait := l.overdone(from); wait > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(int(wait/time.Second)+1))
		refuseLogin(w, &interlock.Error{
			Code: interlock.CodeQuota,
			Message: fmt.Sprintf(
				"unknown credential, and %d logins failed within a minute from this address: check the secret, or ask the "+
					"operator for a credential with the role viewer", failuresAllowed,
			),
		})
		return
	}
	l.failed(from)
	refuseLogin(w, &interlock.Error{
		Code: interlock.CodeUnauthenticated, Message: "unknown credential: ask the operator for one with the role viewer",
	})
}

// logOut ends the login, and takes the cookie away.
func (l *Logins) logOut(w http.ResponseWriter, r *http.Request) {
	if l.fromPage(r) && r.Header.Get(dashboardHeader) != "" {
		for _, one := range l.loginsOf(r) {
			l.end(one)
		}
		http.SetCookie(w, l.cookie("", -1))
	}
	answerLogin(w, map[string]any{})
}

// login is one that a request has proved.
type login struct {
	secret string
	hash   [sha256.Size]byte // of its cookie
	ends   time.Time
}

// secretOf returns the secret behind the login of a request, if it counts for that.
func (l *Logins) secretOf(r *http.Request) (secret string, ok bool) {
	if list := l.loginsOf(r); len(list) > 0 {
		return list[0].secret, true
	}
	return "", false
}

// loginsOf returns the logins that the key of a request opens: of several cookies with the name, another server of
// the machine may have set some.
func (l *Logins) loginsOf(r *http.Request) (list []login) {
	key := r.Header.Get(dashboardHeader)
	if l.credentials == nil || key == "" || !l.fromPage(r) {
		return nil
	}
	for _, c := range r.CookiesNamed(l.cookieName()) {
		one, ok := l.credentials.openLogin(c.Value, key)
		if ok && l.now().Before(one.ends) && !l.hasEnded(one.hash) {
			list = append(list, one)
		}
	}
	return list
}

// end notes that a login has ended before its time.
func (l *Logins) end(one login) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.ended) >= maxEnded {
		maps.DeleteFunc(l.ended, func(_ [sha256.Size]byte, ends time.Time) bool { return !l.now().Before(ends) })
	}
	for hash := range l.ended {
		if len(l.ended) < maxEnded {
			break
		}
		delete(l.ended, hash)
	}
	l.ended[one.hash] = one.ends
}

func (l *Logins) hasEnded(hash [sha256.Size]byte) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	_, ended := l.ended[hash]
	return ended
}

// The cookie of a login: see Logins.
const (
	loginWhich  = 8
	loginHead   = loginWhich + 8 // and its end
	maxLoginLen = 1 << 10
)

// sealLogin returns the cookie of a login, which the key opens.
func sealLogin(id *Identity, secret, key string, ends time.Time) (cookie string) {
	gcm := loginSealer(id, key)
	b := binary.BigEndian.AppendUint64(slices.Clone(id.digest[:loginWhich]), uint64(ends.Unix()))
	nonce := make([]byte, gcm.NonceSize())
	_, _ = rand.Read(nonce) // never fails
	b = append(b, nonce...)
	return base64.RawURLEncoding.EncodeToString(gcm.Seal(b, nonce, []byte(secret), b[:loginHead:loginHead]))
}

// openLogin opens the cookie of a login with its key, as long as its credential is in the file.
func (c *Credentials) openLogin(cookie, key string) (one login, ok bool) {
	b, err := base64.RawURLEncoding.Strict().DecodeString(cookie)
	if err != nil || len(cookie) > maxLoginLen || len(b) < loginHead {
		return one, false
	}
	for _, id := range (*c.table.Load())[[loginWhich]byte(b)] {
		gcm := loginSealer(&id, key)
		rest := b[loginHead:]
		if len(rest) < gcm.NonceSize() {
			return one, false
		}
		secret, err := gcm.Open(nil, rest[:gcm.NonceSize()], rest[gcm.NonceSize():], b[:loginHead])
		if err == nil {
			return login{
				secret: string(secret), hash: sha256.Sum256([]byte(cookie)),
				ends: time.Unix(int64(binary.BigEndian.Uint64(b[loginWhich:])), 0),
			}, true
		}
	}
	return one, false
}

// loginSealer seals logins with a credential, under the key of one page.
func loginSealer(id *Identity, key string) cipher.AEAD {
	mac := hmac.New(sha256.New, id.digest[:])
	mac.Write([]byte("interlock login v2\x00" + key))
	block, err := aes.NewCipher(mac.Sum(nil))
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
