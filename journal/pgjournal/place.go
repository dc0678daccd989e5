package pgjournal

import (
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

// Place is where a journal is.
type Place struct {
	// DSN is how to connect, as libpq understands it: a URL or keywords. Passwords come from PGPASSWORD
	// or a passfile.
	DSN string

	// Name distinguishes journals in one database: 1 to 64 letters, digits, '.', '_' and '-'.
	Name string

	// Shard is the number of the shard that the journal belongs to.
	Shard int

	// AllowLoss accepts a server with settings under which it may lose what was acknowledged.
	AllowLoss bool

	// Patience is how long a request may go unanswered before the journal fails, or a waiting
	// server tries again. 0 means remote.DefaultPatience.
	Patience time.Duration
}

// DefaultName is the name of a journal when its URL contains none.
const DefaultName = "main"

var nameForm = regexp.MustCompile(`^[A-Za-z0-9._-]{1,64}$`)

// ParsePlace reads a URL:
//
//	postgres://USER@HOST:PORT,HOST:PORT/DATABASE?journal=NAME&sslmode=verify-full&sslrootcert=FILE
//
// The parameters, except journal, are those of libpq.
func ParsePlace(text string) (p Place, err error) {
	scheme, _, _ := strings.Cut(text, "://")
	if scheme != "postgres" && scheme != "postgresql" {
		return p, errors.New("want postgres://USER@HOST:PORT/DATABASE")
	}
	base, query, _ := strings.Cut(text, "?")
	values, err := url.ParseQuery(query)
	if err != nil {
		return p, fmt.Errorf("its parameters: %w", err)
	}
	user, _, _ := strings.Cut(strings.TrimPrefix(base, scheme+"://"), "/")
	at := strings.LastIndexByte(user, '@')
	if at >= 0 && strings.Contains(user[:at], ":") || values.Has("password") || values.Has("sslpassword") {
		return p, errors.New(
			"it contains a password, which other processes would see: use PGPASSWORD, PGPASSFILE or ~/.pgpass",
		)
	}
	p.Name = DefaultName
	if values.Has("journal") {
		p.Name = values.Get("journal")
		values.Del("journal")
	}
	if !nameForm.MatchString(p.Name) {
		return p, errors.New("the parameter journal: want letters, digits, '.', '_' and '-', at most 64")
	}
	if p.DSN = base; len(values) > 0 {
		p.DSN += "?" + values.Encode()
	}
	if _, err := pgconn.ParseConfig(p.DSN); err != nil {
		if inner := errors.Unwrap(err); inner != nil {
			err = inner // without the URL
		}
		return p, errors.New("want postgres://USER@HOST:PORT/DATABASE with parameters of libpq: " + err.Error())
	}
	return p, nil
}
