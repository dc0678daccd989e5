package hook

import (
	"net/http"
	"strings"
)

// sees returns the name of this machine if its disk may be looked at for a caller, else "".
func (h *Handler) sees(r *http.Request) string {
	if !h.disk || proxied(r.Header) {
		return ""
	}
	return h.host
}

// proxied reports whether a proxy has passed a request on. Then the address that it comes from is the proxy's, and the
// caller may be anywhere. No client of ours sets one of these headers.
func proxied(header http.Header) bool {
	for name := range header {
		if strings.HasPrefix(name, "X-Forwarded-") || strings.HasPrefix(name, "X-Envoy-") || proxyHeaders[name] {
			return true
		}
	}
	return false
}

// proxyHeaders are those with which proxies tell of the caller, in their canonical form.
var proxyHeaders = func() map[string]bool {
	set := map[string]bool{}
	for _, name := range []string{
		"Forwarded", "Via", "X-Real-IP", "X-Client-IP", "X-Cluster-Client-IP", "X-Original-Forwarded-For",
		"X-Original-URL", "X-Original-Host", "X-Proxyuser-IP", "X-Amzn-Trace-Id", "X-Cloud-Trace-Context", "True-Client-IP",
		"CF-Connecting-IP", "CF-Ray", "CDN-Loop", "Fastly-Client-IP", "Fly-Client-IP", "Interlock-Hops",
	} {
		set[http.CanonicalHeaderKey(name)] = true
	}
	return set
}()
