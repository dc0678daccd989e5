package etcdjournal

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/url"
	"regexp"
	"strings"
	"time"

	"github.com/interlockdev/interlock/journal/remote"
)

// Place is where a journal is.
type Place struct {
	// Endpoints are the client addresses of the cluster's members, as host:port.
	Endpoints []string

	// Name distinguishes journals in one cluster: 1 to 64 letters, digits, '.', '_' and '-'.
	Name string

	// Shard is the number of the shard that the journal belongs to.
	Shard int

	// CA, Cert and Key are files: the authority that signed the members' certificates,
	// and what this process shows of itself. With none of them nothing is encrypted.
	CA, Cert, Key string

	// Patience is how long a request may go unanswered before the journal fails, or a waiting
	// server tries again. 0 means remote.DefaultPatience.
	Patience time.Duration
}

var nameForm = regexp.MustCompile(`^[A-Za-z0-9._-]{1,64}$`)

// ParsePlace reads a URL:
//
//	etcd://HOST:PORT,HOST:PORT,.../NAME?ca=FILE&cert=FILE&key=FILE
//
// A name without a port means 2379. The parameters may be left out.
func ParsePlace(text string) (p Place, err error) {
	rest, ok := strings.CutPrefix(text, "etcd://")
	if !ok {
		return p, errors.New("want etcd://HOST:PORT,HOST:PORT/NAME")
	}
	rest, query, _ := strings.Cut(rest, "?")
	hosts, name, _ := strings.Cut(rest, "/")
	for host := range strings.SplitSeq(hosts, ",") {
		if strings.Contains(host, "@") {
			return p, errors.New("it holds a password: let etcd know the server by a certificate (cert= and key=)")
		}
		if _, _, err := net.SplitHostPort(host); err != nil {
			host = net.JoinHostPort(strings.Trim(host, "[]"), "2379")
		}
		if strings.HasPrefix(host, ":") {
			return p, errors.New("a host is missing: want etcd://HOST:PORT,HOST:PORT/NAME")
		}
		p.Endpoints = append(p.Endpoints, host)
	}
	if p.Name = name; !nameForm.MatchString(name) {
		return p, errors.New(
			"want a name of the journal behind the hosts, of letters, digits, '.', '_' and '-': etcd://HOST:PORT/NAME",
		)
	}
	values, err := url.ParseQuery(query)
	if err != nil {
		return p, fmt.Errorf("its parameters: %w", err)
	}
	for key := range values {
		switch value := values.Get(key); key {
		case "ca":
			p.CA = value
		case "cert":
			p.Cert = value
		case "key":
			p.Key = value
		default:
			return p, fmt.Errorf("the parameter %q: want ca, cert or key", key)
		}
	}
	if (p.Cert == "") != (p.Key == "") {
		return p, errors.New("the parameters cert and key belong together")
	}
	return p, nil
}

func (p *Place) prefix() string { return fmt.Sprintf("interlock/%s/%d/", p.Name, p.Shard) }

// security is nil without encryption.
func (p *Place) security() (*tls.Config, error) {
	if p.CA == "" && p.Cert == "" {
		return nil, nil
	}
	return remote.Security(p.CA, p.Cert, p.Key)
}
