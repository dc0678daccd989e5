package webhook

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"syscall"
	"time"
)

// Targets decides which addresses may be called. An operator of a namespace chooses URLs, and the
// server can reach hosts that the operator cannot: so only public addresses are called, unless
// the operator of the server allows others. The address is checked when it is dialled, after the
// name was resolved: a name may resolve to another address at each call.
type Targets struct {
	nets  []netip.Prefix
	hosts []string
}

// ParseTargets parses the targets that the operator allows besides public addresses: networks
// (10.1.0.0/16), addresses and the names of hosts.
func ParseTargets(allow []string) (*Targets, error) {
	t := &Targets{}
	for _, entry := range allow {
		if prefix, err := netip.ParsePrefix(entry); err == nil {
			t.nets = append(t.nets, prefix.Masked())
			continue
		}
		if addr, err := netip.ParseAddr(entry); err == nil {
			addr = addr.Unmap()
			t.nets = append(t.nets, netip.PrefixFrom(addr, addr.BitLen()))
			continue
		}
		if entry == "" || strings.ContainsAny(entry, "/:@* ") {
			return nil, fmt.Errorf("%q is no network such as 10.1.0.0/16, no address and no name of a host", entry)
		}
		t.hosts = append(t.hosts, strings.ToLower(entry))
	}
	return t, nil
}

// reserved are the networks that are not public, besides those that netip knows.
var reserved = func() (list []netip.Prefix) {
	for _, text := range []string{
		"0.0.0.0/8", "100.64.0.0/10", "192.0.0.0/24", "192.0.2.0/24", "192.88.99.0/24", "198.18.0.0/15",
		"198.51.100.0/24", "203.0.113.0/24", "240.0.0.0/4",
		// IPv6: with an IPv4 address in it (compatible, translated, Teredo, 6to4), and what is no one's.
		"::/96", "64:ff9b::/96", "64:ff9b:1::/48", "100::/64", "2001::/23", "2001:db8::/32", "2002::/16", "3fff::/20",
		"5f00::/16", "fec0::/10",
	} {
		list = append(list, netip.MustParsePrefix(text))
	}
	return list
}()

// errTarget is the error of an address that may not be called.
var errTarget = errors.New("the address is not public: the server's operator can allow it with --webhook-allow")

// check returns why an address may not be called, nil if it may.
func (t *Targets) check(addr netip.Addr) error {
	addr = addr.Unmap().WithZone("")
	for _, n := range t.nets {
		if n.Contains(addr) {
			return nil
		}
	}
	if !addr.IsValid() || !addr.IsGlobalUnicast() || addr.IsPrivate() ||
		slices.ContainsFunc(reserved, func(n netip.Prefix) bool { return n.Contains(addr) }) {
		return errTarget
	}
	return nil
}

// CheckURL returns why a URL cannot be that of a webhook, nil if it can. A name is resolved only
// when it is called.
func (t *Targets) CheckURL(text string) error {
	u, err := url.Parse(text)
	switch {
	case err != nil:
		return errors.New("the URL cannot be read") // the error would repeat it
	case u.Scheme != "https" && u.Scheme != "http" || u.Opaque != "":
		return errors.New("want a URL that begins with https:// or http://")
	case u.Hostname() == "":
		return errors.New("the URL names no host")
	case u.User != nil:
		return errors.New("the URL has a user or a password in it: use a secret path, or verify the signature instead")
	case u.Fragment != "":
		return errors.New("the URL has a fragment, which is never sent")
	}
	host := strings.ToLower(strings.TrimSuffix(u.Hostname(), "."))
	if slices.Contains(t.hosts, host) {
		return nil
	}
	if addr, err := netip.ParseAddr(u.Hostname()); err == nil {
		return t.check(addr)
	}
	if host == "localhost" || strings.HasSuffix(host, ".localhost") {
		return errTarget
	}
	return nil
}

const dialTimeout = 5 * time.Second

// dial connects to a host and port, if the address that the name resolves to may be called.
func (t *Targets) dial(ctx context.Context, network, address string) (net.Conn, error) {
	d := net.Dialer{Timeout: dialTimeout}
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	if !slices.Contains(t.hosts, strings.ToLower(strings.TrimSuffix(host, "."))) {
		d.Control = func(_, resolved string, _ syscall.RawConn) error {
			at, err := netip.ParseAddrPort(resolved)
			if err != nil {
				return errTarget
			}
			return t.check(at.Addr())
		}
	}
	return d.DialContext(ctx, network, address)
}
