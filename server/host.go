package server

import (
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/internal/loopback"
)

// CheckListen checks whether addr ("host:port") may be listened on. A server that asks for no
// credentials belongs on loopback, unless the operator insists.
func CheckListen(addr string, hasCredentials, insecure bool) error {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return fmt.Errorf("address %q: want host:port, such as 127.0.0.1:7420: %w", addr, err)
	}
	if hasCredentials || insecure || loopback.Is(host) {
		return nil
	}
	return fmt.Errorf("address %q is reachable from other machines, and no credentials are set: "+
		"listen on 127.0.0.1, or use a credentials file, or --insecure", addr)
}

// hostRule decides which Host and Origin headers are ours. A web page that a
// person opened can make the browser send requests to 127.0.0.1, either straight
// (then Origin or Sec-Fetch-Site shows it) or by pointing its own name at that
// address (then Host shows it).
type hostRule struct {
	names    map[string]bool // lower-case, with or without a port
	anyName  bool            // credentials are asked for, and no hosts are configured
	hasNames bool
}

func newHostRule(hosts []string, hasCredentials bool) (hostRule, error) {
	r := hostRule{names: map[string]bool{}, hasNames: len(hosts) > 0}
	for _, h := range hosts {
		name, port := splitHost(h)
		if name == "" || strings.ContainsAny(name, "/@ ") || strings.Contains(port, "/") {
			return r, fmt.Errorf("host %q: want a name such as interlock.example.com, without a scheme", h)
		}
		r.names[strings.ToLower(h)] = true
	}
	r.anyName = hasCredentials && !r.hasNames
	return r, nil
}

// addURL adds the name in the server's public URL, if it has one.
func (h *hostRule) addURL(public string) error {
	if public == "" {
		return nil
	}
	u, err := url.Parse(public)
	if err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" || u.User != nil || u.RawQuery != "" ||
		u.Fragment != "" {
		if strings.Contains(public, "@") {
			public = "..." // a password may stand before it
		}
		return fmt.Errorf("public URL %q: want an address such as https://interlock.example.com", public)
	}
	h.names[strings.ToLower(u.Host)], h.hasNames = true, true
	return nil
}

// checkHost returns nil, or an error with CodeForeignHost if the request names another host.
func (h *hostRule) checkHost(r *http.Request) *interlock.Error {
	if h.allowsHost(r) {
		return nil
	}
	return foreign("the Host header %q is not a name of this server: use localhost or 127.0.0.1, "+
		"or start the server with --host and that name", r.Host)
}

// check returns nil, or an error with CodeForeignHost also if a page of another site sent the request.
func (h *hostRule) check(r *http.Request) *interlock.Error {
	if err := h.checkHost(r); err != nil {
		return err
	}
	if site := r.Header.Get("Sec-Fetch-Site"); site != "" && site != "same-origin" && site != "none" {
		return foreign("a page of another site (Sec-Fetch-Site: %s) may not call this server: call it from a program, "+
			"or from a page that it served itself", site)
	}
	if origins := r.Header["Origin"]; len(origins) > 0 && !h.allowsOrigins(origins, r) {
		return foreign(
			"the Origin header %q is not this server: call it from a program, or from a page that it served itself", origins[0],
		)
	}
	return nil
}

func foreign(format, value string) *interlock.Error {
	if len(value) > 128 {
		value = value[:128]
	}
	return &interlock.Error{Code: interlock.CodeForeignHost, Message: fmt.Sprintf(format, value)}
}

func (h *hostRule) allowsHost(r *http.Request) bool {
	name, _ := splitHost(r.Host)
	if loopback.Is(name) || h.named(r.Host) {
		return true
	}
	local, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	if !ok {
		return false
	}
	at, err := netip.ParseAddrPort(local.String())
	if err != nil || at.Addr().Unmap().IsLoopback() {
		return false
	}
	// From here on the connection came in on a public address. A name that was
	// pointed at us is a danger only where the browser needs no credential.
	if h.anyName {
		return true
	}
	ip, err := netip.ParseAddr(name)
	return err == nil && ip.Unmap() == at.Addr().Unmap()
}

func (h *hostRule) allowsOrigins(origins []string, r *http.Request) bool {
	if len(origins) != 1 {
		return false
	}
	u, err := url.Parse(origins[0])
	if err != nil || (u.Scheme != "http" && u.Scheme != "https") {
		return false // "null" among them
	}
	return strings.EqualFold(u.Host, r.Host) || h.named(u.Host)
}

func (h *hostRule) named(host string) bool {
	if !h.hasNames {
		return false
	}
	host = strings.ToLower(host)
	name, _ := splitHost(host)
	return h.names[host] || h.names[name]
}

// splitHost takes a Host header apart; the brackets of an IPv6 address go. Anything but a port
// belongs to the name, so that localhost:80.evil.example is none of ours.
func splitHost(hostport string) (name, port string) {
	if name, port, err := net.SplitHostPort(hostport); err == nil &&
		!strings.ContainsFunc(port, func(r rune) bool { return r < '0' || r > '9' }) {
		return name, port
	}
	return strings.TrimSuffix(strings.TrimPrefix(hostport, "["), "]"), ""
}
