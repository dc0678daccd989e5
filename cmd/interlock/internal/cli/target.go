package cli

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/client"
	"github.com/interlockdev/interlock/internal/api"
	"github.com/interlockdev/interlock/internal/endpoint"
)

// Target is the server that a command talks to, or the servers of a cluster, the first to be tried
// first.
type Target struct {
	URL            string // one or several, with commas
	GRPC           string // likewise
	Namespace      string
	Credential     string
	CredentialFile string
	CAFile         string

	Bases    []*url.URL
	Sessions []string    // their session addresses
	TLS      *tls.Config // nil without TLS
}

// The addresses of a server on this machine that was started without any.
const (
	DefaultHTTP = "127.0.0.1:7420"
	DefaultGRPC = "127.0.0.1:7421"
)

// Define adds the flags that select the server.
func (t *Target) Define(flags *pflag.FlagSet) {
	flags.StringVar(
		&t.URL, "url", "http://"+DefaultHTTP,
		"the server's HTTP `address`; https turns on TLS; with several servers all of theirs, with commas",
	)
	flags.StringVar(
		&t.GRPC, "grpc-addr", "",
		"the server's session `address`, or several with commas; grpc:// before one speaks gRPC, for proxies "+
			"(default: for each --url its host and the port after its own)",
	)
	flags.StringVarP(
		&t.Namespace, "namespace", "n", "", "the `namespace` to work in (default: the credential's, else \"default\")",
	)
	flags.StringVar(
		&t.Credential, "credential", "",
		"the `credential`; other users can see a command line, so better use the variable or a file",
	)
	flags.StringVar(&t.CredentialFile, "credential-file", "", "a `file` with the credential")
	flags.StringVar(&t.CAFile, "tls-ca", "", "a `file` of certificates (PEM) to trust besides the system's")
	Bind(flags, "url", "")
	Bind(flags, "grpc-addr", "INTERLOCK_GRPC")
	Bind(flags, "namespace", "")
	Bind(flags, "credential", "")
	Bind(flags, "credential-file", "")
	Bind(flags, "tls-ca", "")
}

// Complete checks what was given and works out the rest.
func (t *Target) Complete() error {
	if err := t.addresses(); err != nil {
		return err
	}
	if t.Credential == "" && t.CredentialFile != "" {
		content, err := os.ReadFile(t.CredentialFile)
		if err != nil {
			return Usagef("--credential-file: %w", err)
		}
		t.Credential = strings.TrimSpace(string(content))
		if t.Credential == "" {
			return Usagef("--credential-file: %s is empty", t.CredentialFile)
		}
	}
	// A variable that is set from a file may have the line break at its end.
	if line, found := strings.CutSuffix(t.Credential, "\n"); found {
		t.Credential = strings.TrimSuffix(line, "\r")
	}
	if strings.ContainsFunc(t.Credential, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return Usagef(
			"the credential has characters that no credential has: use it exactly as `interlock credential create` printed it",
		)
	}
	if t.Bases[0].Scheme == "https" {
		t.TLS = &tls.Config{MinVersion: tls.VersionTLS12}
		if t.CAFile != "" {
			var err error
			if t.TLS.RootCAs, err = trusted(t.CAFile); err != nil {
				return Usagef("--tls-ca: %w", err)
			}
		}
	}
	return nil
}

// addresses reads the lists of addresses.
func (t *Target) addresses() (err error) {
	var texts []string
	for given := range strings.SplitSeq(t.URL, ",") {
		text := strings.TrimRight(strings.TrimSpace(given), "/")
		if text == "" {
			continue // a comma at the end, or two
		}
		text = strings.TrimRight(strings.TrimSuffix(text, "/v1"), "/") // the path of the API
		if !strings.Contains(text, "://") {
			text = "http://" + text
		}
		if _, err := api.ParseBase(text); err != nil {
			if strings.Contains(given, "@") {
				given = "..." // a password may stand before it
			}
			return Usagef("--url %s: want an address such as http://%s, without a path", Clean(given), DefaultHTTP)
		}
		texts = append(texts, text)
	}
	if t.Bases, err = api.ParseBases(texts); err != nil {
		return Usagef("--url: %w", err)
	}
	t.Sessions = nil
	if t.GRPC == "" {
		for _, base := range t.Bases {
			session, err := grpcBeside(base)
			if err != nil {
				return err
			}
			t.Sessions = append(t.Sessions, session)
		}
		return nil
	}
	for text := range strings.SplitSeq(t.GRPC, ",") {
		session := strings.TrimSpace(text)
		if client.CheckAddr(session) != nil {
			return Usagef("--grpc-addr %s: want host:port, such as %s", Clean(text), DefaultGRPC)
		}
		t.Sessions = append(t.Sessions, session)
	}
	return nil
}

// URLs returns the HTTP addresses.
func (t *Target) URLs() (list []string) {
	for _, base := range t.Bases {
		list = append(list, base.String())
	}
	return list
}

// hosts returns where the servers are, for messages.
func (t *Target) hosts() string {
	hosts := make([]string, len(t.Bases))
	for i, base := range t.Bases {
		hosts[i] = base.Host
	}
	return strings.Join(hosts, ", ")
}

// BeatAfter returns how often to show a sign of life for a ttl: three times in it, and more often
// where another server can take over, so that a server that stands still is noticed in time.
func (t *Target) BeatAfter(ttl time.Duration) time.Duration {
	if len(t.Bases) > 1 {
		ttl = min(ttl, endpoint.Attentive)
	}
	return ttl / 3
}

// grpcBeside is the default address of the session streams: on the next port.
func grpcBeside(base *url.URL) (string, error) {
	_, normal, _ := net.SplitHostPort(DefaultGRPC)
	if base.Port() == "" {
		return net.JoinHostPort(base.Hostname(), normal), nil
	}
	port, err := strconv.ParseUint(base.Port(), 10, 16)
	if err != nil || port == 65535 {
		return "", Usagef("--url %s: there is no port after that one, so set --grpc-addr too", base)
	}
	return net.JoinHostPort(base.Hostname(), strconv.FormatUint(port+1, 10)), nil
}

func trusted(file string) (*x509.CertPool, error) {
	content, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	pool, err := x509.SystemCertPool()
	if err != nil {
		pool = x509.NewCertPool()
	}
	if !pool.AppendCertsFromPEM(content) {
		return nil, fmt.Errorf("%s holds no certificate in PEM form", file)
	}
	return pool, nil
}

// Tenant returns the namespace that the flags name, "" for the credential's.
func (t *Target) Tenant() interlock.Namespace { return interlock.Namespace(t.Namespace) }

// handshake returns the message for a TLS handshake with the server at addr that failed, so that
// nothing was sent; nil if err is something else.
func (t *Target) handshake(addr string, err error) error {
	if bad, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		err = fmt.Errorf(
			"the certificate of the server at %s is not trusted (%w): name a file that vouches for it with --tls-ca, or address the server by a name that stands in it",
			addr, bad.Err,
		)
		return ExitWith(ExitUnreachable, err)
	}
	if _, ok := errors.AsType[tls.RecordHeaderError](err); ok || errors.Is(err, http.ErrSchemeMismatch) {
		return ExitWith(
			ExitUnreachable,
			fmt.Errorf("what answers at %s does not speak TLS: use an address with http, or check --url or INTERLOCK_URL", addr),
		)
	}
	return nil
}

// unreachable returns the message for servers that do not answer at their HTTP addresses, or at
// their session addresses.
func (t *Target) unreachable(sessions bool, err error) error {
	addr := t.hosts()
	if sessions {
		addr = strings.Join(t.Sessions, ", ")
	}
	hint := "start one with `interlock serve --data-dir DIR`, or set INTERLOCK_URL"
	switch text := err.Error(); {
	case strings.HasSuffix(text, "no application protocol"), strings.Contains(text, "serve --grpc"): // a server answered
		hint = "INTERLOCK_GRPC has to be the address of serve --grpc, and INTERLOCK_URL that of serve --http"
	case (errors.Is(err, io.EOF) || errors.Is(err, endpoint.ErrClosed)) && t.Bases[0].Scheme == "http":
		hint = "the server there closes the connection: if it speaks TLS, use https://" + t.Bases[0].Host +
			"; a load balancer may have no server behind it"
	case sessions:
		hint += " (and INTERLOCK_GRPC where it is not on the next port)"
	}
	return ExitWith(ExitUnreachable, fmt.Errorf("cannot reach a server at %s (%w): %s", addr, err, hint))
}
