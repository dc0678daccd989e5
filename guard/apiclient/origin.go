package apiclient

import (
	"net"
	"net/http"
	"net/netip"
	"strings"
)

// Foreign reports whether a request may come from a page that a person opened in a
// browser. Such a page can make the browser call 127.0.0.1, either straight (then
// Origin or Sec-Fetch-Site shows it) or by a name of its own that points there (then
// Host shows it). So a guard may be addressed as localhost, by an address, and by the
// names that it was given, which are in lower case.
func Foreign(r *http.Request, names map[string]bool) bool {
	if site := r.Header.Get("Sec-Fetch-Site"); site != "" && site != "same-origin" && site != "none" {
		return true
	}
	if r.Header.Get("Origin") != "" {
		return true
	}
	whole := strings.ToLower(r.Host)
	name := whole
	if host, _, err := net.SplitHostPort(whole); err == nil {
		name = host
	}
	name = strings.TrimSuffix(strings.TrimPrefix(name, "["), "]")
	if name == "localhost" || names[name] || names[whole] {
		return false
	}
	_, err := netip.ParseAddr(name)
	return err != nil
}
