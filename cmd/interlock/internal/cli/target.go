package cli

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/client"
	"github.com/interlockdev/interlock/internal/api"
)

// Target is the server that a command talks to.
type Target struct {
	URL            string
	GRPC           string
	Namespace      string
	Credential     string
	CredentialFile string
	CAFile         string

	Base *url.URL
	TLS  *tls.Config // nil without TLS
}

// The addresses of a server on this machine that was started without any.
const (
	DefaultHTTP = "127.0.0.1:7420"
	DefaultGRPC = "127.0.0.1:7421"
)

// Define adds the flags that select the server.
func (t *Target) Define(flags *pflag.FlagSet) {
	flags.StringVar(&t.URL, "url", "http://"+DefaultHTTP, "the server's HTTP `address`; https turns on TLS")
	flags.StringVar(
		&t.GRPC, "grpc-addr", "",
		"the server's session `address`; grpc:// before it speaks gRPC, for proxies (default: the host of --url and the port after its own)",
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
	text := strings.TrimRight(t.URL, "/")
	if !strings.Contains(text, "://") {
		text = "http://" + text
	}
	base, err := api.ParseBase(text)
	if err != nil {
		return Usagef("--url %s: want an address such as http://%s", Clean(t.URL), DefaultHTTP)
	}
	t.Base = base
	if t.GRPC == "" {
		if t.GRPC, err = grpcBeside(base); err != nil {
			return err
		}
	}
	if client.CheckAddr(t.GRPC) != nil {
		return Usagef("--grpc-addr %s: want host:port, such as %s", Clean(t.GRPC), DefaultGRPC)
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
	if strings.ContainsFunc(t.Credential, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return Usagef(
			"the credential has characters that no credential has: use it exactly as `interlock credential create` printed it",
		)
	}
	if base.Scheme == "https" {
		t.TLS = &tls.Config{MinVersion: tls.VersionTLS12}
		if t.CAFile != "" {
			if t.TLS.RootCAs, err = trusted(t.CAFile); err != nil {
				return Usagef("--tls-ca: %w", err)
			}
		}
	}
	return nil
}

// grpcBeside is the default address of the gRPC door: on the next port.
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

// unreachable returns the message for an addr that does not answer.
func (t *Target) unreachable(addr string, err error) error {
	hint := "start one with `interlock serve --data-dir DIR`, or set INTERLOCK_URL"
	switch text := err.Error(); {
	case t.Base == nil:
	case strings.HasSuffix(text, "no application protocol"), strings.Contains(text, "serve --grpc"): // a server answered
		hint = "INTERLOCK_GRPC has to be the address of serve --grpc, and INTERLOCK_URL that of serve --http"
	case text == "EOF" && t.Base.Scheme == "http":
		hint = "the server there closes the connection: if it speaks TLS, use https://" + t.Base.Host
	case addr != t.Base.Host:
		hint += " (and INTERLOCK_GRPC where it is not on the next port)"
	}
	return ExitWith(ExitUnreachable, fmt.Errorf("cannot reach a server at %s (%w): %s", addr, err, hint))
}
