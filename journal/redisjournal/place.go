package redisjournal

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/interlockdev/interlock/journal/remote"
)

// Place is where a journal is.
type Place struct {
	// Hosts are the addresses of servers, as host:port: a primary and those that may become one, or some nodes of
	// a cluster.
	Hosts []string

	// User is the name to log in with; "" is the default user. Its password comes from PasswordVariable.
	User string

	// Database is the number of the database.
	Database int

	// Name distinguishes journals in one database: 1 to 64 letters, digits, '.', '_' and '-'.
	Name string

	// Shard is the number of the shard that the journal belongs to.
	Shard int

	// TLS asks for an encrypted connection. CA, Cert and Key are files: the authority that signed the
	// servers' certificates, without which it is one that the system knows; and what this process shows of itself.
	TLS           bool
	CA, Cert, Key string

	// Replicas is how many replicas must have each write. Below zero it is so many that most servers have
	// it, of those that were seen.
	Replicas int

	// AllowLoss accepts a server with settings under which it may lose what was acknowledged.
	AllowLoss bool

	// Patience is how long a request may go unanswered before the journal fails, or a waiting
	// server tries again. 0 means remote.DefaultPatience.
	Patience time.Duration
}

// DefaultName is the name of a journal when its URL contains none.
const DefaultName = "main"

// PasswordVariable is the environment variable with the password, as redis-cli and valkey-cli have it.
const PasswordVariable = "REDISCLI_AUTH"

// mostReplicas bounds the parameter replicas.
const mostReplicas = 16

var (
	nameForm = regexp.MustCompile(`^[A-Za-z0-9._-]{1,64}$`)
	errForm  = errors.New("want redis://HOST:PORT,HOST:PORT/DATABASE?journal=NAME, or rediss:// with TLS")
)

// ParsePlace reads a URL:
//
//	redis://USER@HOST:PORT,HOST:PORT/DATABASE?journal=NAME&replicas=N
//	rediss://USER@HOST:PORT/DATABASE?journal=NAME&ca=FILE&cert=FILE&key=FILE
//
// A host without a port means 6379. All but the hosts may be left out.
func ParsePlace(text string) (p Place, err error) {
	scheme, rest, _ := strings.Cut(text, "://")
	if scheme != "redis" && scheme != "rediss" {
		return p, errForm
	}
	p.TLS, p.Name, p.Replicas = scheme == "rediss", DefaultName, -1
	rest, query, _ := strings.Cut(rest, "?")
	hosts, database, _ := strings.Cut(rest, "/")
	if at := strings.LastIndexByte(hosts, '@'); at >= 0 {
		if p.User, hosts = hosts[:at], hosts[at+1:]; strings.Contains(p.User, ":") {
			return p, errors.New("it contains a password, which other processes would see: use " + PasswordVariable)
		}
	}
	for host := range strings.SplitSeq(hosts, ",") {
		if _, _, err := net.SplitHostPort(host); err != nil {
			host = net.JoinHostPort(strings.Trim(host, "[]"), "6379")
		}
		if strings.HasPrefix(host, ":") {
			return p, errForm
		}
		p.Hosts = append(p.Hosts, host)
	}
	if database != "" {
		n, err := strconv.ParseUint(database, 10, 16)
		if err != nil {
			return p, errors.New("the database is a number: " + errForm.Error())
		}
		p.Database = int(n)
	}
	values, err := url.ParseQuery(query)
	if err != nil {
		return p, fmt.Errorf("its parameters: %w", err)
	}
	for key := range values {
		if err := p.set(key, values.Get(key)); err != nil {
			return p, err
		}
	}
	if (p.Cert == "") != (p.Key == "") {
		return p, errors.New("the parameters cert and key belong together")
	}
	if !p.TLS && p.CA+p.Cert != "" {
		return p, errors.New("the parameters ca, cert and key are for TLS: want rediss://")
	}
	return p, nil
}

// set reads one parameter.
func (p *Place) set(key, value string) error {
	switch key {
	case "journal":
		if p.Name = value; !nameForm.MatchString(value) {
			return errors.New("the parameter journal: want letters, digits, '.', '_' and '-', at most 64")
		}
	case "replicas":
		n, err := strconv.ParseUint(value, 10, 16)
		if err != nil || n > mostReplicas {
			return fmt.Errorf("the parameter replicas: want 0 to %d", mostReplicas)
		}
		p.Replicas = int(n)
	case "ca":
		p.CA = value
	case "cert":
		p.Cert = value
	case "key":
		p.Key = value
	case "password":
		return errors.New("it contains a password, which other processes would see: use " + PasswordVariable)
	default:
		return fmt.Errorf("the parameter %q: want journal, replicas, ca, cert or key", key)
	}
	return nil
}

// key is the full name of one of the journal's keys.
func (p *Place) key(name string) string {
	return fmt.Sprintf("{interlock/%s/%d}:%s", p.Name, p.Shard, name)
}

// security is nil without encryption.
func (p *Place) security() (*tls.Config, error) {
	if !p.TLS {
		return nil, nil
	}
	return remote.Security(p.CA, p.Cert, p.Key)
}
