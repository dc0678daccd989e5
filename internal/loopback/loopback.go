package loopback

import (
	"net/netip"
	"strings"
)

// Is reports whether a host, without a port, is reached from this machine alone: localhost, or an address of loopback,
// which may be in brackets. Names below localhost do not count, because resolvers exist that ask the network for them;
// nor do addresses of all interfaces, nor IPv4 in other forms than four decimal numbers.
func Is(host string) bool {
	if strings.EqualFold(strings.TrimSuffix(host, "."), "localhost") {
		return true
	}
	if inside, found := strings.CutPrefix(host, "["); found {
		if host, found = strings.CutSuffix(inside, "]"); !found || !strings.Contains(host, ":") {
			return false
		}
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.Unmap().IsLoopback()
}
