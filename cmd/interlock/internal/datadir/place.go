package datadir

import (
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/interlockdev/interlock/journal/etcdjournal"
	"github.com/interlockdev/interlock/journal/oncejournal"
	"github.com/interlockdev/interlock/journal/pgjournal"
	"github.com/interlockdev/interlock/journal/remote"
)

// Place is where a journal is: in a directory, or in an engine that several machines can reach.
type Place struct {
	Kind string // file, etcd, postgres, firestore or s3
	Text string // as it was written; it contains no password
	Dir  string // of the kind file

	// Connect makes a store of another kind. It sends nothing yet.
	Connect func() (*remote.Store, error)
}

var names = map[string]string{
	"postgres": "PostgreSQL", "firestore": "Firestore", "s3": "a service with the interface of S3",
}

// Engine is what people call the engine.
func (p *Place) Engine() string {
	if name, ok := names[p.Kind]; ok {
		return name
	}
	return p.Kind
}

// Remote reports whether the journal is in an engine.
func (p *Place) Remote() bool { return p.Connect != nil }

// Engines are the forms of URLs of journals in engines.
const Engines = "etcd://HOST:PORT/NAME, postgres://USER@HOST/DATABASE, firestore://PROJECT/DATABASE/NAME or " +
	"s3://BUCKET/PREFIX"

// ParsePlace reads the URL of a journal. allowLoss accepts an engine with settings under which it may
// lose what was acknowledged.
func ParsePlace(text string, allowLoss bool) (p Place, err error) {
	p.Text = text
	switch scheme, _, _ := strings.Cut(text, ":"); scheme {
	case "etcd":
		at, err := etcdjournal.ParsePlace(text)
		p.Kind, p.Connect = scheme, func() (*remote.Store, error) { return etcdjournal.Connect(at) }
		return p, err
	case "postgres", "postgresql":
		at, err := pgjournal.ParsePlace(text)
		at.AllowLoss = allowLoss
		p.Kind, p.Connect = "postgres", func() (*remote.Store, error) { return pgjournal.Connect(at) }
		return p, err
	case "firestore":
		at, err := oncejournal.ParseFirestore(text)
		p.Kind, p.Connect = scheme, func() (*remote.Store, error) { return oncejournal.ConnectFirestore(at) }
		return p, err
	case "s3":
		at, err := oncejournal.ParseS3(text)
		p.Kind, p.Connect = scheme, func() (*remote.Store, error) { return oncejournal.ConnectS3(at) }
		return p, err
	}
	p.Kind = "file"
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Scheme == "":
		return p, errors.New("want a URL such as file:/var/lib/interlock, or use --data-dir DIR")
	case u.Scheme != "file":
		return p, fmt.Errorf(
			"this version keeps journals in directories, etcd, PostgreSQL, Firestore and S3: use file:DIR, --data-dir DIR, %s",
			Engines,
		)
	case u.Host != "":
		return p, errors.New("a file URL has no host: write file:DIR or file:///DIR")
	case u.Opaque != "":
		p.Dir = u.Opaque
	case u.Path != "":
		p.Dir = u.Path
	default:
		return p, errors.New("it names no directory")
	}
	return p, nil
}

// URL is what the flag --journal takes for it.
func (p *Place) URL() string {
	if p.Remote() {
		return p.Text
	}
	return "file:" + p.Dir
}
