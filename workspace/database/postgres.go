package database

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
)

// The states of PostgreSQL's errors that mean something here.
const (
	stateInUse     = "55006" // object_in_use
	stateDuplicate = "42P04"
	stateUnknown   = "3D000" // invalid_catalog_name
)

// createPostgres makes a database on the source's server.
func createPostgres(ctx context.Context, o Options) (*Clone, error) {
	a, err := parseAddress(o.Source)
	if err != nil {
		return nil, err
	}
	c := &Clone{
		Engine: PostgreSQL, Owner: o.Owner, Source: a.config.Database, Name: derive(a.config.Database, o.Owner),
		Method: o.Method,
	}
	if strings.HasPrefix(c.Source, prefix) {
		return nil, refuse(CodeSource, "clone the original", "%s is a clone itself", c.Source)
	}
	conn, err := a.maintain(ctx)
	if err != nil {
		return nil, err
	}
	defer conn.close()
	statement := "CREATE DATABASE " + identifier(c.Name) + " TEMPLATE "
	switch o.Method {
	case Template:
		statement += identifier(c.Source)
	case Dump, Schema, Empty:
		settings, err := conn.settings(ctx, c.Source)
		if err != nil {
			return nil, err
		}
		statement += "template0" + settings
	default:
		return nil, refuse(CodeSource, "use template, dump, schema or empty", "there is no method %q", o.Method)
	}
	if err := conn.exec(ctx, statement); err != nil {
		return nil, conn.explain(ctx, err, c)
	}
	err = conn.exec(ctx, "COMMENT ON DATABASE "+identifier(c.Name)+" IS "+literal(c.comment()))
	if err == nil && (o.Method == Dump || o.Method == Schema) {
		err = a.copyInto(ctx, c)
	}
	if err != nil {
		drop := conn.exec(context.WithoutCancel(ctx), "DROP DATABASE IF EXISTS "+identifier(c.Name)+" WITH (FORCE)")
		return nil, errors.Join(err, drop)
	}
	return c, nil
}

// comment marks a clone on the server.
func (c *Clone) comment() string {
	text, _ := json.Marshal(c) // strings alone
	return commentPrefix + string(text)
}

const commentPrefix = "interlock workspace "

func readComment(comment string) (c Clone, ok bool) {
	text, ok := strings.CutPrefix(comment, commentPrefix)
	return c, ok && json.Unmarshal([]byte(text), &c) == nil
}

// dropPostgres drops a clone after it has compared its mark.
func dropPostgres(ctx context.Context, source string, c *Clone, end bool) error {
	a, err := parseAddress(source)
	if err != nil {
		return err
	}
	conn, err := a.maintain(ctx)
	if err != nil {
		return err
	}
	defer conn.close()
	rows, err := conn.query(
		ctx, "SELECT coalesce(shobj_description(oid, 'pg_database'), '') FROM pg_database WHERE datname = $1", c.Name,
	)
	if err != nil {
		return refused(err)
	}
	if len(rows) == 0 {
		return nil
	}
	if marked, ok := readComment(rows[0][0]); !ok || marked.Owner != c.Owner || marked.Name != c.Name {
		return refuse(
			CodeForeign, "drop it by hand if it is not needed", "the database %s is not marked as the clone of workspace %s/%s",
			c.Name, c.Owner.Repo, c.Owner.Name,
		)
	}
	statement := "DROP DATABASE " + identifier(c.Name)
	if end {
		statement += " WITH (FORCE)"
	}
	if err := conn.exec(ctx, statement); err != nil {
		return conn.explain(ctx, err, &Clone{Source: c.Name, Name: c.Name})
	}
	return nil
}

// Leftover is a clone that a server has.
type Leftover struct {
	Clone
	// Bytes is its size on disk.
	Bytes int64 `json:"bytes"`
	// Sessions is the number of connections to it.
	Sessions int `json:"sessions"`
	// Marked is false for a database that has the name of a clone and no mark: its making was interrupted, or it is
	// not ours. Drop refuses it.
	Marked bool `json:"marked"`
}

// List returns the clones on the server of a source, by name. Which of them have a workspace, the caller knows. A clone
// of SQLite is a file in its workspace, so there is no list of them.
func List(ctx context.Context, source string) (list []Leftover, err error) {
	if _, ok := sqlitePath(source); ok {
		return nil, errors.New("a clone of SQLite is a file in its workspace, and goes with it: there is no list of them")
	}
	a, err := parseAddress(source)
	if err != nil {
		return nil, err
	}
	conn, err := a.maintain(ctx)
	if err != nil {
		return nil, err
	}
	defer conn.close()
	rows, err := conn.query(ctx, `
		SELECT datname, coalesce(shobj_description(d.oid, 'pg_database'), ''),
			CASE WHEN has_database_privilege(d.oid, 'CONNECT') THEN pg_database_size(d.oid) ELSE 0 END,
			(SELECT count(*) FROM pg_stat_activity WHERE datid = d.oid)
		FROM pg_database d WHERE starts_with(datname, $1) ORDER BY datname`, prefix)
	if err != nil {
		return nil, refused(err)
	}
	for _, row := range rows {
		l := Leftover{Clone: Clone{Engine: PostgreSQL, Name: row[0]}}
		if c, ok := readComment(row[1]); ok && c.Name == row[0] {
			l.Clone, l.Marked = c, true
		}
		l.Bytes, _ = strconv.ParseInt(row[2], 10, 64)
		l.Sessions, _ = strconv.Atoi(row[3])
		list = append(list, l)
	}
	return list, nil
}

// connection is one to a database beside the source, which must have no connection of ours while it is a template.
type connection struct{ *pgconn.PgConn }

func (a *address) maintain(ctx context.Context) (*connection, error) {
	var last error
	for _, database := range []string{"postgres", "template1"} {
		if database == a.config.Database {
			continue
		}
		config := a.config.Copy()
		config.Database = database
		conn, err := pgconn.ConnectConfig(ctx, config)
		if err == nil {
			return &connection{conn}, nil
		}
		if last = err; state(err) != stateUnknown {
			break
		}
	}
	// The error of pgconn names host, user and database, and no password.
	return nil, refuse(CodeSource, "", "the server does not accept a connection: %v", last)
}

func (c *connection) close() { _ = c.Close(context.Background()) }

func (c *connection) exec(ctx context.Context, sql string) error {
	_, err := c.Exec(ctx, sql).ReadAll()
	return err
}

func (c *connection) query(ctx context.Context, sql string, args ...string) (rows [][]string, err error) {
	values := make([][]byte, len(args))
	for i, arg := range args {
		values[i] = []byte(arg)
	}
	r := c.ExecParams(ctx, sql, values, nil, nil, nil).Read()
	for _, row := range r.Rows {
		text := make([]string, len(row))
		for i, value := range row {
			text[i] = string(value)
		}
		rows = append(rows, text)
	}
	return rows, r.Err
}

// settings are the encoding and locale of a database, for a new one. The columns for ICU differ between versions.
func (c *connection) settings(ctx context.Context, database string) (string, error) {
	rows, err := c.query(ctx, `
		SELECT pg_encoding_to_char(encoding), datcollate, datctype, coalesce(to_jsonb(d)->>'datlocprovider', 'c'),
			coalesce(to_jsonb(d)->>'daticulocale', to_jsonb(d)->>'datlocale', '')
		FROM pg_database d WHERE datname = $1`, database)
	if err != nil {
		return "", refused(err)
	}
	if len(rows) == 0 {
		return "", refuse(CodeSource, "", "there is no database %s on the server", database)
	}
	r := rows[0]
	settings := fmt.Sprintf(" ENCODING %s LC_COLLATE %s LC_CTYPE %s", literal(r[0]), literal(r[1]), literal(r[2]))
	if r[3] == "i" {
		settings += " LOCALE_PROVIDER icu ICU_LOCALE " + literal(r[4])
	}
	return settings, nil
}

// explain turns the server's error about a clone into one that names what is in the way.
func (c *connection) explain(ctx context.Context, err error, clone *Clone) error {
	switch state(err) {
	case stateDuplicate:
		return refuse(
			CodeExists, "delete the workspace that it belongs to, or list the leftovers", "the database %s exists", clone.Name,
		)
	case stateUnknown:
		return refuse(CodeSource, "", "there is no database %s on the server", clone.Source)
	case stateInUse:
	default:
		return refused(err)
	}
	rows, failed := c.query(ctx, `
		SELECT pid, coalesce(usename, ''), coalesce(application_name, ''), coalesce(host(client_addr), '')
		FROM pg_stat_activity WHERE datname = $1 AND pid <> pg_backend_pid() ORDER BY pid`, clone.Source)
	if failed != nil {
		return refused(err)
	}
	e := &Error{Code: CodeInUse}
	var names []string
	for _, row := range rows {
		pid, _ := strconv.Atoi(row[0])
		s := Session{PID: pid, User: row[1], Application: row[2], Client: row[3]}
		e.Sessions = append(e.Sessions, s)
		if len(names) < 5 {
			names = append(names, s.String())
		}
	}
	if more := len(rows) - len(names); more > 0 {
		names = append(names, fmt.Sprintf("%d more", more))
	}
	count := "1 session is"
	if len(rows) != 1 {
		count = fmt.Sprintf("%d sessions are", len(rows))
	}
	e.Text = fmt.Sprintf("%s connected to %s: %s", count, clone.Source, strings.Join(names, ", "))
	e.Next = "end them, or clone by dump, which leaves the source in use"
	if clone.Source == clone.Name {
		e.Next = "end them, or drop it together with its connections"
	}
	return e
}

func state(err error) string {
	var e *pgconn.PgError
	if errors.As(err, &e) {
		return e.Code
	}
	return ""
}

func refused(err error) error {
	var e *pgconn.PgError
	if errors.As(err, &e) {
		return refuse(CodeRefused, "", "the server refused: %s (%s)", e.Message, e.Code)
	}
	return err
}

// copyInto copies schema, and data unless the method is Schema, by pg_dump and psql. Both get the password in their
// environment, which only the same user can read.
func (a *address) copyInto(ctx context.Context, c *Clone) error {
	args := []string{"--no-password", "--no-subscriptions", "--dbname=" + a.url(c.Source, "", false)}
	if c.Method == Schema {
		args = append(args, "--schema-only")
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var said [2]bytes.Buffer
	dump := exec.CommandContext(ctx, "pg_dump", args...)
	load := exec.CommandContext(
		ctx, "psql", "--no-psqlrc", "--no-password", "--quiet", "--set=ON_ERROR_STOP=1", "--single-transaction",
		"--output="+os.DevNull, "--dbname="+a.url(c.Name, "", false),
	)
	for i, cmd := range []*exec.Cmd{dump, load} {
		cmd.Env = os.Environ()
		if a.config.Password != "" {
			cmd.Env = append(cmd.Env, "PGPASSWORD="+a.config.Password)
		}
		cmd.Stderr = &said[i]
	}
	pipe, err := dump.StdoutPipe()
	if err != nil {
		return err
	}
	load.Stdin = pipe
	if err := load.Start(); err != nil {
		return refuse(CodeTool, "install the client of PostgreSQL", "psql cannot be run: %v", err)
	}
	if err := dump.Start(); err != nil {
		cancel()
		_ = load.Wait()
		return refuse(CodeTool, "install the client of PostgreSQL", "pg_dump cannot be run: %v", err)
	}
	loaded := load.Wait()
	if loaded != nil {
		cancel() // nothing reads what it writes
	}
	// psql commits what it has got, so a dump that failed is a failure, whatever psql made of it.
	dumped := dump.Wait()
	if loaded != nil {
		return refuse(CodeTool, "", "psql failed: %s", lastLine(said[1].String(), loaded))
	}
	if dumped != nil {
		return refuse(CodeTool, "", "pg_dump failed: %s", lastLine(said[0].String(), dumped))
	}
	return nil
}

func lastLine(said string, err error) string {
	said = strings.TrimSpace(said)
	if line := said[strings.LastIndexByte(said, '\n')+1:]; line != "" {
		return line
	}
	return err.Error()
}

// identifier quotes a name for SQL.
func identifier(name string) string { return `"` + strings.ReplaceAll(name, `"`, `""`) + `"` }

// literal quotes a text for SQL, with any setting of standard_conforming_strings.
func literal(text string) string {
	return ` E'` + strings.NewReplacer(`\`, `\\`, `'`, `''`).Replace(text) + `'`
}
