package demo

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

// The third part of the isolate scene, where PostgreSQL is installed: two agents write migration 0042 at the same time,
// for a database that has rows. git merges both files, because the names differ, and a migration tool that counts by
// numbers skips the second one without a word.

// migrationResult is the result of the part, as JSON.
type migrationResult struct {
	// Skipped is why the part was not played.
	Skipped    string `json:"skipped,omitempty"`
	Migrations int    `json:"migrations"`
	PushLost   int    `json:"lost_with_direct_pushes"`
	QueueLost  int    `json:"lost_with_the_merge_queue"`
	// Returned is what the second agent read.
	Returned string `json:"returned,omitempty"`
	// Untouched is set if the database itself is as it was: migrations ran on copies.
	Untouched bool  `json:"database_untouched"`
	TookMS    int64 `json:"took_ms"`
}

// newColumn is a migration of one agent.
type newColumn struct{ agent, file, column string }

var newColumns = []newColumn{
	{"profile-1", "0042_email.sql", "email"},
	{"billing-1", "0042_credit_limit.sql", "credit_limit"},
}

func (c newColumn) sql() string { return "ALTER TABLE account ADD COLUMN " + c.column + " text;\n" }

// firstMigrations is the first tree: two migrations, and what runs those of numbers that the database does not have.
var firstMigrations = map[string]string{
	"migrations/0040_account.sql": "CREATE TABLE account (id int PRIMARY KEY, owner text);\n",
	"migrations/0041_owner.sql":   "CREATE INDEX account_owner ON account (owner);\n",
	"migrate.sh": `set -eu
run() { "$PSQL" -X -q -A -t -v ON_ERROR_STOP=1 "$@"; }
run -c "SET client_min_messages = warning" -c "CREATE TABLE IF NOT EXISTS migration (number text PRIMARY KEY)"
for file in migrations/*.sql; do
	number=${file#migrations/} number=${number%%_*}
	test -n "$(run -c "SELECT 1 FROM migration WHERE number = '$number'")" ||
		run -1 -f "$file" -c "INSERT INTO migration VALUES ('$number')"
done
`,
}

// migrationParty is both ways of the part: a repository for each, and databases ledger and pushed.
type migrationParty struct {
	*queue
	pg     *postgres
	pushed string // the repository of direct pushes
}

// migrate plays the part in a folder of its own, on the server of the scene.
func (q *queue) migrate(dir string) (result migrationResult, err error) {
	began := time.Now()
	result.Migrations = len(newColumns)
	pg, err := startPostgres(q.ctx)
	if err != nil {
		return result, err
	}
	if pg == nil {
		result.Skipped = "PostgreSQL is not installed"
		return result, nil
	}
	defer func() { err = errors.Join(err, pg.stop()) }()
	m := &migrationParty{
		queue: &queue{
			isolateRun: &isolateRun{
				ctx: q.ctx, dir: dir, origin: filepath.Join(dir, "origin.git"), began: began, more: pg.environ(),
			},
			binary: q.binary, server: q.server, streams: q.streams,
		},
		pg: pg, pushed: filepath.Join(dir, "pushed.git"),
	}
	if err := m.found(); err != nil {
		return result, err
	}
	if result.PushLost, err = m.pushBoth(); err != nil {
		return result, fmt.Errorf("direct pushes: %w", err)
	}
	if result.QueueLost, result.Returned, err = m.submitBoth(); err != nil {
		return result, fmt.Errorf("merge queue: %w", err)
	}
	left, err := m.sql("ledger", columnsOfAccount)
	result.Untouched = missingIn(left) == len(newColumns)
	result.TookMS = time.Since(began).Milliseconds()
	return result, err
}

// found makes the repositories, the database with its rows, and another one for direct pushes.
func (m *migrationParty) found() error {
	seed := filepath.Join(m.dir, "first")
	for name, text := range firstMigrations {
		if err := writeFile(filepath.Join(seed, name), text); err != nil {
			return err
		}
	}
	for _, args := range [][]string{
		{"init", "--quiet", "--initial-branch=main"},
		{"add", "--all"},
		{"commit", "--quiet", "--message=The first migrations"},
		{"clone", "--quiet", "--bare", ".", m.origin},
		{"clone", "--quiet", "--bare", ".", m.pushed},
	} {
		if _, err := m.git("founder", seed, args...); err != nil {
			return err
		}
	}
	if _, err := m.sql("postgres", "CREATE DATABASE ledger"); err != nil {
		return err
	}
	if err := m.deploy(seed, "ledger"); err != nil {
		return err
	}
	const rows = "INSERT INTO account SELECT n, 'owner ' || n FROM generate_series(1, 1000) n"
	if _, err := m.sql("ledger", rows); err != nil {
		return err
	}
	_, err := m.sql("postgres", "CREATE DATABASE pushed TEMPLATE ledger")
	return err
}

func writeFile(path, text string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, []byte(text), 0o644)
}

// sql runs a statement, and returns its answer.
func (m *migrationParty) sql(database, statement string) (string, error) {
	out, err := m.output("founder", m.dir, m.pg.psql(), "-X", "-A", "-t", "-q", "-d", database, "-c", statement)
	return strings.TrimSpace(out), err
}

// deploy migrates a database with the files of a folder.
func (m *migrationParty) deploy(dir, database string) error {
	_, err := m.output("founder", dir, "sh", "-c", `PGDATABASE="$1" exec sh migrate.sh`, "sh", database)
	return err
}

const columnsOfAccount = "SELECT column_name FROM information_schema.columns WHERE table_name = 'account'"

// missingIn counts the columns of agents that a database does not have.
func missingIn(columns string) (n int) {
	for _, c := range newColumns {
		if !slices.Contains(strings.Fields(columns), c.column) {
			n++
		}
	}
	return n
}

// pushBoth has both agents begin at the same commit, and push one after the other. Each push is deployed.
func (m *migrationParty) pushBoth() (lost int, err error) {
	for _, c := range newColumns {
		if _, err := m.git(c.agent, m.dir, "clone", "--quiet", m.pushed, c.agent); err != nil {
			return 0, err
		}
	}
	for _, c := range newColumns {
		dir := filepath.Join(m.dir, c.agent)
		if err := writeFile(filepath.Join(dir, "migrations", c.file), c.sql()); err != nil {
			return 0, err
		}
		for _, args := range [][]string{
			{"add", "--all"},
			{"commit", "--quiet", "--message=" + c.column},
			{"pull", "--quiet", "--rebase", "origin", "main"},
			{"push", "--quiet", "origin", "main"},
		} {
			if _, err := m.git(c.agent, dir, args...); err != nil {
				return 0, err
			}
		}
		if err := m.deploy(dir, "pushed"); err != nil {
			return 0, err
		}
	}
	columns, err := m.sql("pushed", columnsOfAccount)
	return missingIn(columns), err
}

// submitBoth has both agents begin at the same commit, each in a workspace with a copy of the database. The check of
// the queue migrates an empty database and a copy with the merged tree. The second agent's submission comes back, and
// it takes the number that it reads.
func (m *migrationParty) submitBoth() (lost int, returned string, err error) {
	check := "migrate=" + shellQuote(m.binary) + " workspace migrate --db " + shellQuote(m.pg.url("ledger")) +
		" -- sh migrate.sh"
	stop, err := m.startMerger(m.ctx, "ledger/main", check, 1)
	if err != nil {
		return 0, "", err
	}
	defer func() { err = errors.Join(err, stop()) }()
	defer func() {
		for _, name := range []string{newColumns[0].agent, newColumns[1].agent, "reader"} {
			if _, statErr := os.Stat(filepath.Join(m.dir, "workspaces", "ledger", name)); statErr == nil {
				_, deleteErr := m.must(name, m.dir, "workspace", "delete", name, "--repo-name", "ledger", "--force")
				err = errors.Join(err, deleteErr)
			}
		}
	}()
	dirs := make([]string, len(newColumns))
	for i, c := range newColumns {
		if dirs[i], err = m.workspace(c.agent); err != nil {
			return 0, "", err
		}
	}
	for i, c := range newColumns {
		if err := writeFile(filepath.Join(dirs[i], "migrations", c.file), c.sql()); err != nil {
			return 0, "", err
		}
		// It works on the agent's own copy.
		run := []string{"workspace", "run", c.agent, "--repo-name", "ledger", "--", "sh", "migrate.sh"}
		if _, err := m.must(c.agent, dirs[i], run...); err != nil {
			return 0, "", err
		}
		complaint, landed, err := m.submit(c, dirs[i])
		if err != nil {
			return 0, "", err
		}
		if landed {
			continue
		}
		returned = reasonOf(complaint)
		if err := m.takeFree(c, dirs[i], complaint); err != nil {
			return 0, returned, err
		}
		if complaint, landed, err = m.submit(c, dirs[i]); err == nil && !landed {
			err = errors.New(complaint)
		}
		if err != nil {
			return 0, returned, err
		}
	}
	// A new workspace has the merged tree and a fresh copy of the database.
	dir, err := m.workspace("reader")
	if err != nil {
		return 0, returned, err
	}
	columns, err := m.must(
		"reader", dir, "workspace", "run", "reader", "--repo-name", "ledger", "--", "sh", "-c",
		`sh migrate.sh && "$PSQL" -X -A -t -q -c "$1"`, "sh", columnsOfAccount,
	)
	return missingIn(columns), returned, err
}

// workspace makes a workspace with a copy of the database.
func (m *migrationParty) workspace(agent string) (dir string, err error) {
	return m.must(
		agent, m.dir, "workspace", "new", agent, "--repo", m.origin, "--repo-name", "ledger", "--target", "main", "--db",
		m.pg.url("ledger"),
	)
}

// submit submits the files of a workspace, and reports whether they landed, or why they came back.
func (m *migrationParty) submit(c newColumn, dir string) (complaint string, landed bool, err error) {
	_, complaint, code, err := m.interlock(
		c.agent, dir, "workspace", "submit", "--all", "--message", "Add "+c.column, "--wait", "90s",
	)
	if err == nil && code != 0 && code != exitReturned {
		err = fmt.Errorf("interlock workspace submit ended with %d: %s", code, complaint)
	}
	return complaint, code == 0, err
}

// freeNumber is in the reason why a number that is taken comes back.
var freeNumber = regexp.MustCompile(`(\d{4}) is free`)

// takeFree takes the target into the workspace, and renames the migration to the number that is free.
func (m *migrationParty) takeFree(c newColumn, dir, complaint string) error {
	free := freeNumber.FindStringSubmatch(complaint)
	if free == nil {
		return fmt.Errorf("it came back for another reason: %s", complaint)
	}
	if _, err := m.must(c.agent, dir, "workspace", "sync"); err != nil {
		return err
	}
	_, name, _ := strings.Cut(c.file, "_")
	_, err := m.git(c.agent, dir, "mv", "migrations/"+c.file, "migrations/"+free[1]+"_"+name)
	return err
}

// tell prints the part.
func (r *migrationResult) tell(w io.Writer) {
	if r.Skipped != "" {
		fmt.Fprintf(w, "\n3. Migrations of a database: left out, %s\n", r.Skipped)
		return
	}
	untouched := "The database itself is as it was: checks and workspaces have copies."
	if !r.Untouched {
		untouched = "The database itself was changed."
	}
	fmt.Fprintf(w, `
3. Migrations of a PostgreSQL database: two agents take number 0042 at the same time (%s)
  direct pushes    %d of %d migrations lost: git merges both files, and the tool skips a number that it has
  merge queue      %d of %d migrations lost: the second one is returned:
                   %s
                   %s
`, seconds(r.TookMS), r.PushLost, r.Migrations, r.QueueLost, r.Migrations, r.Returned, untouched)
}

// problems lists what the part claims and did not show.
func (r *migrationResult) problems() (list []string) {
	if r.Skipped != "" {
		return nil
	}
	if r.PushLost == 0 {
		list = append(list, "with direct pushes, no migration was lost")
	}
	if r.QueueLost > 0 || r.Returned == "" {
		list = append(list, fmt.Sprintf("with the merge queue, %d migrations were lost, or none was returned", r.QueueLost))
	}
	if !r.Untouched {
		list = append(list, "the database was changed, and not its copies")
	}
	return list
}
