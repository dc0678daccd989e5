package database

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"path/filepath"
	"strings"
)

// Engine is a kind of database.
type Engine string

// The engines.
const (
	PostgreSQL Engine = "postgres"
	SQLite     Engine = "sqlite"
)

// Method is how a clone of PostgreSQL is made. SQLite has one way, and takes Template and Empty alone.
type Method string

// The methods.
const (
	// Template copies the files of the database, with all data. It refuses while anything is connected to the source
	// (CodeInUse). It is the default.
	Template Method = "template"
	// Dump copies schema and data with pg_dump and psql while the source stays in use. It is slower.
	Dump Method = "dump"
	// Schema copies the schema without data, as Dump does.
	Schema Method = "schema"
	// Empty makes an empty database with the encoding of the source.
	Empty Method = "empty"
)

// The codes of errors.
const (
	CodeSource   = "database_source"   // it cannot be read as an address, or is not there
	CodeInUse    = "database_in_use"   // sessions are connected; Sessions has them
	CodeExists   = "database_exists"   // the clone's name is taken
	CodeForeign  = "database_foreign"  // a database that this package did not make
	CodeTool     = "database_tool"     // pg_dump, psql or sqlite3 is missing or has failed
	CodeRefused  = "database_refused"  // the server refused
	CodeMigrated = "migrations_failed" // the command of Migrate has failed
)

// Error is a refusal.
type Error struct {
	// Code is one of the constants above.
	Code string
	// Text is one sentence without a final stop. It has no password.
	Text string
	// Next is the step that helps; it may be empty.
	Next string
	// Sessions are those in the way, with CodeInUse.
	Sessions []Session
}

func (e *Error) Error() string {
	if e.Next == "" {
		return e.Text
	}
	return e.Text + ": " + e.Next
}

func refuse(code, next, format string, args ...any) *Error {
	return &Error{Code: code, Text: fmt.Sprintf(format, args...), Next: next}
}

// Session is a connection to a database.
type Session struct {
	PID         int    `json:"pid"`
	User        string `json:"user"`
	Application string `json:"application,omitempty"`
	Client      string `json:"client,omitempty"` // an address; empty for a local socket
}

func (s Session) String() string {
	text := fmt.Sprintf("process %d of %s", s.PID, s.User)
	if s.Application != "" {
		text += fmt.Sprintf(" (%q)", s.Application)
	}
	if s.Client != "" {
		text += " from " + s.Client
	}
	return text
}

// Owner is the workspace that a clone belongs to.
type Owner struct {
	Repo string `json:"repo"`
	Name string `json:"name"`
	// Place tells apart workspaces of the same name on several hosts. It may be empty.
	Place string `json:"place,omitempty"`
}

// Options describe a clone.
type Options struct {
	// Source is postgres://…, key=value words as psql takes them, or sqlite:PATH. Required.
	Source string
	// Owner names the workspace. Required.
	Owner Owner
	// Method is Template by default.
	Method Method
	// Folder is where a clone of SQLite is made. It exists.
	Folder string
}

// Clone is a clone, as it is recorded. It has no password.
type Clone struct {
	Engine Engine `json:"engine"`
	Owner  Owner  `json:"owner"`
	// Source is the name of the database that was cloned, or the path of the file.
	Source string `json:"source"`
	// Name is the name of the clone on the server, or its path.
	Name   string `json:"name"`
	Method Method `json:"method"`
}

// Create makes a clone. If it fails, nothing is left of it. Errors are an *Error, or those of ctx.
func Create(ctx context.Context, o Options) (*Clone, error) {
	if o.Owner.Repo == "" || o.Owner.Name == "" {
		return nil, refuse(CodeSource, "", "a clone needs a repository and a workspace")
	}
	if o.Method == "" {
		o.Method = Template
	}
	if path, ok := sqlitePath(o.Source); ok {
		return createSQLite(ctx, path, o)
	}
	return createPostgres(ctx, o)
}

// Drop removes a clone; one that is gone already is not an error. With end, it ends the connections to it; without,
// it refuses while there are any (CodeInUse). The source is that of Create.
func (c *Clone) Drop(ctx context.Context, source string, end bool) error {
	if c.Engine == SQLite {
		return removeSQLite(c.Name)
	}
	return dropPostgres(ctx, source, c, end)
}

// Environ returns variables that lead to the clone: DATABASE_URL, and those of libpq. They have the source's password.
// A host replaces that of the source, where it is reached by another address; empty means the source's.
func (c *Clone) Environ(source, host string) ([]string, error) {
	if c.Engine == SQLite {
		return []string{"DATABASE_URL=sqlite://" + c.Name}, nil
	}
	a, err := parseAddress(source)
	if err != nil {
		return nil, err
	}
	return a.environ(c.Name, host)
}

// Redacted returns the address of the clone without a password.
func (c *Clone) Redacted(source string) string {
	if c.Engine == SQLite {
		return "sqlite://" + c.Name
	}
	a, err := parseAddress(source)
	if err != nil {
		return c.Name
	}
	return a.url(c.Name, "", false)
}

// derive makes the name of a clone: the words for people, and a digest that tells apart what they do not.
// It has lower-case letters, digits and underscores, and at most 63 bytes.
func derive(source string, o Owner) string {
	digest := sha256.Sum256([]byte(source + "\x00" + o.Place + "\x00" + o.Repo + "\x00" + o.Name))
	words := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			return r
		}
		return '_'
	}, strings.ToLower(o.Repo+"_"+o.Name))
	return prefix + words[:min(len(words), 36)] + "_" + hex.EncodeToString(digest[:6])
}

// prefix begins the names of all clones.
const prefix = "interlock_"

// sqlitePath returns the path of a source of SQLite.
func sqlitePath(source string) (string, bool) {
	rest, ok := strings.CutPrefix(source, "sqlite:")
	if !ok {
		return "", false
	}
	if path, slashes := strings.CutPrefix(rest, "//"); slashes {
		rest = path
	}
	return filepath.Clean(rest), true
}
