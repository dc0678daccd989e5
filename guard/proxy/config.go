package proxy

import (
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/interlockdev/interlock"
)

// Demand is the demand of a route on its callers.
type Demand string

const (
	// DemandLease wants the id of a live lease that may write the route's key.
	DemandLease Demand = "lease"
	// DemandStatement wants the signed fence of a lease that may write the route's key.
	// It is verified without a question to Interlock.
	DemandStatement Demand = "statement"
	// DemandOpen wants nothing: every client that reaches the proxy may call.
	DemandOpen Demand = "open"
)

// Config is the content of the guard's file. The zero value of each field works, except that
// there must be routes.
type Config struct {
	// Routes are tried in order; the first with a fitting path and method counts. Calls without
	// a route are refused.
	Routes []Route `json:"routes"`

	// Credential is shown to the API; without one the API is shown nothing.
	Credential *Credential `json:"credential"`

	// Statements are the sources of accepted signed fences, for routes that demand them.
	Statements *Statements `json:"statements"`

	// Hosts are further names that the proxy may be addressed by. Loopback names and addresses
	// may always be used; a web page that a person opened must not reach the API by a name of
	// its own.
	Hosts []string `json:"hosts"`

	// MaxBodyBytes bounds the body of a call; 0 means 10 MiB.
	MaxBodyBytes int64 `json:"max_body_bytes"`
	// TimeoutMS bounds a call in all, in milliseconds; 0 means 60 s. A call of the next
	// holder may have to wait for so long.
	TimeoutMS int64 `json:"timeout_ms"`
	// MaxCalls bounds the calls at a time; 0 means 1,024.
	MaxCalls int `json:"max_calls"`
	// MaxWaiting bounds those of them that wait at one key for the calls of an earlier
	// holder to end; 0 means a quarter of MaxCalls.
	MaxWaiting int `json:"max_waiting"`
}

// Route is the subject and the demand of calls of one shape.
type Route struct {
	// Methods are those that the route is for; "*" stands for all.
	Methods []string `json:"methods"`
	// Path is a path with variables: {name} stands for one segment, {name:int} for a
	// decimal number without leading zeros, {name...} at the end for all that follow.
	Path string `json:"path"`
	// Key is the key that a call is about, with the path's variables: account:{id}.
	Key    string `json:"key"`
	Demand Demand `json:"demand"`
	// TimeoutMS is the route's own, such as a longer one for a stream.
	TimeoutMS int64 `json:"timeout_ms"`
}

// Statements are the keys that verify signed fences.
type Statements struct {
	// Namespace is that of the leases; "" means interlock.DefaultNamespace.
	Namespace interlock.Namespace `json:"namespace"`
	// File has the key set as GET /v1/fences/keys returns it, from the directory of the
	// configuration. "" asks Interlock for it, when it starts and when a key is new.
	File string `json:"file"`

	path string
}

// Credential is a secret that the proxy adds, and where it comes from. One of File
// and Env is required.
type Credential struct {
	Header string `json:"header"` // "" means Authorization
	Scheme string `json:"scheme"` // stands before the secret: Bearer
	File   string `json:"file"`   // from the directory of the configuration
	Env    string `json:"env"`    // the name of an environment variable

	secret, value string // value is the content of the header
}

const (
	defaultMaxBody  = 10 << 20
	defaultTimeout  = time.Minute
	defaultMaxCalls = 1024
	maxTimeout      = 24 * time.Hour
	maxConfigBytes  = 1 << 20
)

// Load reads a configuration and the credential that it names. It is strict: what is
// not understood is an error, because a rule with a misspelled field guards nothing.
func Load(path string) (*Config, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	if len(content) > maxConfigBytes {
		return nil, fmt.Errorf("%s has more than %d bytes", path, maxConfigBytes)
	}
	cfg := &Config{}
	if err := decodeStrict(content, cfg); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if cfg.Credential != nil {
		if err := cfg.Credential.read(path); err != nil {
			return nil, fmt.Errorf("%s: credential: %w", path, err)
		}
	}
	if s := cfg.Statements; s != nil {
		if s.Namespace == "" {
			s.Namespace = interlock.DefaultNamespace
		}
		s.path = beside(path, s.File)
	}
	if _, err := cfg.rules(); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return cfg, nil
}

// rules checks the configuration.
func (c *Config) rules() (rules []*rule, err error) {
	if len(c.Routes) == 0 {
		return nil, errors.New("routes: the list is empty, so every call would be refused")
	}
	if c.MaxBodyBytes < 0 || c.MaxCalls < 0 || c.MaxWaiting < 0 {
		return nil, errors.New("max_body_bytes, max_calls and max_waiting cannot be negative")
	}
	if err := checkTimeout(c.TimeoutMS); err != nil {
		return nil, err
	}
	for i := range c.Routes {
		rule, err := c.Routes[i].rule()
		if err != nil {
			return nil, fmt.Errorf("routes[%d]: %w", i, err)
		}
		if rule.Demand == DemandStatement && c.Statements == nil {
			return nil, fmt.Errorf("routes[%d]: demand: statement needs the field statements", i)
		}
		rules = append(rules, rule)
	}
	return rules, nil
}

func (r *Route) rule() (*rule, error) {
	if len(r.Methods) == 0 {
		return nil, errors.New(`methods: name some, such as ["GET"], or ["*"]`)
	}
	for _, m := range r.Methods {
		if m != "*" && (!isToken(m) || m != strings.ToUpper(m)) {
			return nil, fmt.Errorf("methods: %q is not a method: write it in capitals", m)
		}
		if slices.Contains(neverMethods, m) {
			return nil, fmt.Errorf("methods: %s cannot be guarded", m)
		}
	}
	switch r.Demand {
	case DemandLease, DemandStatement:
		if r.Key == "" {
			return nil, errors.New("key is missing: name the key that the lease must cover, such as account:{id}")
		}
	case DemandOpen:
	case "":
		return nil, errors.New("demand is missing: want lease, statement, or open for routes without a check")
	default:
		return nil, fmt.Errorf("demand: %q: want lease, statement or open", r.Demand)
	}
	if err := checkTimeout(r.TimeoutMS); err != nil {
		return nil, err
	}
	return newRule(*r)
}

// neverMethods open a tunnel, or send credentials back.
var neverMethods = []string{http.MethodConnect, http.MethodTrace}

func checkTimeout(ms int64) error {
	if ms < 0 || ms > maxTimeout.Milliseconds() {
		return fmt.Errorf("timeout_ms: want at most %d, and nothing negative", maxTimeout.Milliseconds())
	}
	return nil
}

// timeout is that of a route.
func (c *Config) timeout(r *rule) time.Duration {
	for _, ms := range []int64{r.TimeoutMS, c.TimeoutMS} {
		if ms > 0 {
			return time.Duration(ms) * time.Millisecond
		}
	}
	return defaultTimeout
}

// beside is a file that a configuration names, from its own directory.
func beside(config, file string) string {
	if file == "" || filepath.IsAbs(file) {
		return file
	}
	return filepath.Join(filepath.Dir(config), file)
}

// read gets the secret. No error shows any of it.
func (c *Credential) read(config string) error {
	if c.Header == "" {
		c.Header = "Authorization"
	}
	c.Header = http.CanonicalHeaderKey(c.Header)
	switch {
	case !isToken(c.Header) || strings.HasPrefix(c.Header, headerPrefix) || c.Header == "Host":
		return fmt.Errorf("header %q cannot be used", c.Header)
	case (c.File == "") == (c.Env == ""):
		return errors.New("use exactly one of file and env")
	case c.Scheme != "" && !isToken(c.Scheme):
		return fmt.Errorf("scheme %q is invalid: want one such as Bearer", c.Scheme)
	}
	secret := ""
	if c.Env != "" {
		secret = os.Getenv(c.Env)
	} else {
		content, err := os.ReadFile(beside(config, c.File))
		if err != nil {
			return err
		}
		secret = string(content)
	}
	secret = strings.TrimSpace(secret)
	if secret == "" || strings.ContainsFunc(secret, func(r rune) bool { return r < ' ' || r > '~' }) {
		return errors.New("it is empty, or contains characters that are not allowed in a header")
	}
	c.secret, c.value = secret, secret
	if c.Scheme != "" {
		c.value = c.Scheme + " " + secret
	}
	return nil
}

// String and GoString keep the secret out of whatever prints a configuration.
func (c *Credential) String() string   { return c.Header + " (not shown)" }
func (c *Credential) GoString() string { return c.String() }

// isToken reports whether s can be a header's name or a method (RFC 9110).
func isToken(s string) bool {
	return s != "" && !strings.ContainsFunc(s, func(r rune) bool {
		return !('a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' ||
			strings.ContainsRune("!#$%&'*+-.^_`|~", r))
	})
}

// Headers of the proxy's own. Lease, statement and fence come from callers.
const (
	headerPrefix    = "Interlock-"
	headerLease     = "Interlock-Lease"
	headerStatement = "Interlock-Statement"
	headerFence     = "Interlock-Fence"
	headerKey       = "Interlock-Key"
	headerAgent     = "Interlock-Agent"
	headerRefused   = "Interlock-Refused"
)
