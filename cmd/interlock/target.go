package main

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

// target is the server that a command talks to.
type target struct {
	URL            string
	GRPC           string
	Namespace      string
	Credential     string
	CredentialFile string
	CAFile         string

	base *url.URL
	tls  *tls.Config // nil without TLS
}

const (
	defaultHTTP = "127.0.0.1:7420"
	defaultGRPC = "127.0.0.1:7421"
)

func (t *target) flags(flags *pflag.FlagSet) {
	flags.StringVar(&t.URL, "url", "http://"+defaultHTTP, "the server's HTTP `address`; https turns on TLS")
	flags.StringVar(
		&t.GRPC, "grpc-addr", "",
		"the server's session `address`; grpc:// before it speaks gRPC, for proxies (default: the host of --url and the port after its own)",
	)
	flags.StringVar(
		&t.Namespace, "namespace", "", "the `namespace` to work in (default: the credential's, else \"default\")",
	)
	flags.StringVar(
		&t.Credential, "credential", "",
		"the `credential`; other users can see a command line, so better use the variable or a file",
	)
	flags.StringVar(&t.CredentialFile, "credential-file", "", "a `file` with the credential")
	flags.StringVar(&t.CAFile, "tls-ca", "", "a `file` of certificates (PEM) to trust besides the system's")
	bind(flags, "url", "")
	bind(flags, "grpc-addr", "INTERLOCK_GRPC")
	bind(flags, "namespace", "")
	bind(flags, "credential", "")
	bind(flags, "credential-file", "")
	bind(flags, "tls-ca", "")
}

// complete checks what was given and works out the rest.
func (t *target) complete() error {
	text := strings.TrimRight(t.URL, "/")
	if !strings.Contains(text, "://") {
		text = "http://" + text
	}
	base, err := api.ParseBase(text)
	if err != nil {
		return usage("--url %s: want an address such as http://%s", clean(t.URL), defaultHTTP)
	}
	t.base = base
	if t.GRPC == "" {
		if t.GRPC, err = grpcBeside(base); err != nil {
			return err
		}
	}
	if client.CheckAddr(t.GRPC) != nil {
		return usage("--grpc-addr %s: want host:port, such as %s", clean(t.GRPC), defaultGRPC)
	}
	if t.Credential == "" && t.CredentialFile != "" {
		content, err := os.ReadFile(t.CredentialFile)
		if err != nil {
			return usage("--credential-file: %w", err)
		}
		t.Credential = strings.TrimSpace(string(content))
		if t.Credential == "" {
			return usage("--credential-file: %s is empty", t.CredentialFile)
		}
	}
	if strings.ContainsFunc(t.Credential, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return usage(
			"the credential has characters that no credential has: use it exactly as `interlock credential new` printed it",
		)
	}
	if base.Scheme == "https" {
		t.tls = &tls.Config{MinVersion: tls.VersionTLS12}
		if t.CAFile != "" {
			if t.tls.RootCAs, err = trusted(t.CAFile); err != nil {
				return usage("--tls-ca: %w", err)
			}
		}
	}
	return nil
}

// grpcBeside is the default address of the gRPC door: on the next port.
func grpcBeside(base *url.URL) (string, error) {
	_, normal, _ := net.SplitHostPort(defaultGRPC)
	if base.Port() == "" {
		return net.JoinHostPort(base.Hostname(), normal), nil
	}
	port, err := strconv.ParseUint(base.Port(), 10, 16)
	if err != nil || port == 65535 {
		return "", usage("--url %s: there is no port after that one, so set --grpc-addr too", base)
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

func (t *target) namespace() interlock.Namespace { return interlock.Namespace(t.Namespace) }

// handshake returns the message for a TLS handshake with the server at addr that failed, so that
// nothing was sent; nil if err is something else.
func (t *target) handshake(addr string, err error) error {
	if bad, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		err = fmt.Errorf(
			"the certificate of the server at %s is not trusted (%w): name a file that vouches for it with --tls-ca, or address the server by a name that stands in it",
			addr, bad.Err,
		)
		return exitWith(exitUnreachable, err)
	}
	if _, ok := errors.AsType[tls.RecordHeaderError](err); ok || errors.Is(err, http.ErrSchemeMismatch) {
		return exitWith(
			exitUnreachable,
			fmt.Errorf("what answers at %s does not speak TLS: use an address with http, or check --url or INTERLOCK_URL", addr),
		)
	}
	return nil
}

// unreachable returns the message for an addr that does not answer.
func (t *target) unreachable(addr string, err error) error {
	hint := "start one with `interlock serve --data-dir DIR`, or set INTERLOCK_URL"
	switch text := err.Error(); {
	case t.base == nil:
	case strings.HasSuffix(text, "no application protocol"), strings.Contains(text, "serve --grpc"): // a server answered
		hint = "INTERLOCK_GRPC has to be the address of serve --grpc, and INTERLOCK_URL that of serve --http"
	case text == "EOF" && t.base.Scheme == "http":
		hint = "the server there closes the connection: if it speaks TLS, use https://" + t.base.Host
	case addr != t.base.Host:
		hint += " (and INTERLOCK_GRPC where it is not on the next port)"
	}
	return exitWith(exitUnreachable, fmt.Errorf("cannot reach a server at %s (%w): %s", addr, err, hint))
}
