package datadir

import (
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"strings"

	"github.com/interlockdev/interlock/cmd/interlock/internal/cli"
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
// lose what was acknowledged. Its errors have nothing of a password that may stand in the text.
func ParsePlace(text string, allowLoss bool) (p Place, err error) {
	p.Text = text
	scheme, rest, _ := strings.Cut(text, ":")
	if p.engine = find(scheme); p.engine != nil {
		p.Kind = p.engine.kind
		p.Connect, err = p.engine.parse(text, allowLoss)
		if (err != nil || hasSecretName(rest)) && mayHoldPassword(rest) {
			err = fmt.Errorf(
				"it contains a password, or what looks like one, which other processes would see: %s; write %s",
				p.engine.secret, p.engine.form,
			)
		} else if err != nil && quotes(err.Error(), rest) {
			err = errors.New("want " + p.engine.form)
		}
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

// IsURL reports whether a text is the URL of a journal in an engine, and so no directory.
func IsURL(text string) bool {
	scheme, _, ok := strings.Cut(text, "://")
	return ok && find(scheme) != nil
}

// URL is what the flag --journal takes for it.
func (p *Place) URL() string {
	if p.Remote() {
		return p.Text
	}
	return "file:" + p.Dir
}

// mayHoldPassword reports whether the part of a URL behind its scheme may have a password: a ':' before an '@' that
// is not the one of a port, wherever they stand, since a password may have any character; or the name of one.
func mayHoldPassword(rest string) bool {
	at, colon := strings.IndexByte(rest, '@'), strings.IndexByte(rest, ':')
	last := strings.LastIndexByte(rest, '@')
	return last > at || colon >= 0 && colon < last || hasSecretName(rest)
}

// quotes reports whether an error has a part of a URL that may be a password without its '@'.
func quotes(said, rest string) bool {
	place, query, _ := strings.Cut(rest, "?")
	for part := range strings.SplitSeq(query, "&") {
		_, value, _ := strings.Cut(part, "=")
		place += "/" + value
	}
	for part := range strings.FieldsFuncSeq(place, isDelimiter) {
		if len(part) > 2 && strings.Contains(said, part) {
			return true
		}
	}
	return false
}

func isDelimiter(r rune) bool { return strings.ContainsRune("/?#@:%&=[]; ,", r) }

// hasSecretName reports whether a URL has a parameter with a secret.
func hasSecretName(rest string) bool {
	_, query, _ := strings.Cut(rest, "?")
	for part := range strings.FieldsFuncSeq(query, func(r rune) bool { return r == '&' || r == ';' || r == '?' }) {
		name, _, _ := strings.Cut(part, "=")
		if plain, err := url.QueryUnescape(name); err == nil {
			name = plain
		}
		name = strings.ToLower(name)
		if strings.Contains(name, "password") || strings.Contains(name, "secret") || strings.Contains(name, "token") {
			return true
		}
	}
	return false
}

// PlaceOf reads a directory or the URL of a journal, as a flag has it.
func PlaceOf(flag, text string, allowLoss bool) (Place, error) {
	if scheme, _, ok := strings.Cut(text, ":"); !ok || strings.ContainsAny(scheme, `/\`) {
		return Place{Kind: "file", Text: text, Dir: text}, nil
	}
	p, err := ParsePlace(text, allowLoss)
	if err != nil {
		return p, cli.Usagef("%s %s: %w", flag, Shown(text), err)
	}
	return p, nil
}

// Shown is a place as errors and logs may show it: a path as it is, and of a URL its scheme alone, because what
// follows may be wrong in any way, and hold a password in any place.
func Shown(text string) string {
	scheme, _, ok := strings.Cut(text, ":")
	switch {
	case scheme == "file", !ok && !strings.ContainsAny(text, "=@"):
		return cli.Clean(text)
	case ok && schemeForm.MatchString(scheme):
		return scheme + ":..."
	}
	return "..."
}

var schemeForm = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9+.-]{1,15}$`)
