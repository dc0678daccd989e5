package datadir

import (
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/interlockdev/interlock/journal/remote"
)

// Place is where a journal is: in a directory, or in an engine that several machines can reach.
type Place struct {
	Kind string // file, or that of an engine
	Text string // as it was written; it contains no password
	Dir  string // of the kind file

	// Connect makes a store of another kind. It sends nothing yet.
	Connect func() (*remote.Store, error)

	engine *engine // of another kind
}

// Engine is what people call the engine.
func (p *Place) Engine() string {
	if p.engine == nil {
		return p.Kind
	}
	return p.engine.name
}

// Remote reports whether the journal is in an engine.
func (p *Place) Remote() bool { return p.Connect != nil }

// MayLose reports whether --allow-loss means something to the engine.
func (p *Place) MayLose() bool { return p.engine != nil && p.engine.mayLose }

// ParsePlace reads the URL of a journal. allowLoss accepts an engine with settings under which it may
// lose what was acknowledged.
func ParsePlace(text string, allowLoss bool) (p Place, err error) {
	p.Text = text
	scheme, _, _ := strings.Cut(text, ":")
	if p.engine = find(scheme); p.engine != nil {
		p.Kind = p.engine.kind
		p.Connect, err = p.engine.parse(text, allowLoss)
		return p, err
	}
	p.Kind = "file"
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Scheme == "":
		return p, errors.New("want a URL such as file:/var/lib/interlock, or use --data-dir DIR")
	case u.Scheme != "file":
		return p, fmt.Errorf(
			"this version keeps journals in directories, %s: use file:DIR, --data-dir DIR, %s",
			join(engines, " and ", nameOf), Engines(),
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
