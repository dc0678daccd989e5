package database_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/interlockdev/interlock/internal/test/tools"
	"github.com/interlockdev/interlock/workspace/database"
)

func sqlite(t *testing.T, path, sql string) string {
	t.Helper()
	out, err := exec.Command("sqlite3", "-batch", "-init", os.DevNull, path, sql).CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", sql, err, out)
	}
	return strings.TrimSpace(string(out))
}

// A clone has all committed data, in WAL mode too and while a transaction is open; paths are data.
func TestCloneSQLite(t *testing.T) {
	tools.Need(t, "sqlite3")
	for _, mode := range []string{"delete", "wal"} {
		dir := filepath.Join(t.TempDir(), `it's "a" 100% \dir ?x#`)
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(dir, "bank.db")
		sqlite(t, path, "PRAGMA journal_mode="+mode+"; CREATE TABLE account (balance); INSERT INTO account VALUES (5)")
		writer := exec.Command("sqlite3", "-batch", "-init", os.DevNull, path)
		in, err := writer.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		out, err := writer.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := writer.Start(); err != nil {
			t.Fatal(err)
		}
		if _, err := in.Write([]byte("BEGIN IMMEDIATE; INSERT INTO account VALUES (7); SELECT 'begun';\n")); err != nil {
			t.Fatal(err)
		}
		if _, err := out.Read(make([]byte, 64)); err != nil {
			t.Fatal(err)
		}
		o := database.Options{Source: "sqlite:" + path, Owner: owner, Folder: dir}
		c, err := database.Create(t.Context(), o)
		if err != nil {
			t.Fatal(mode, err)
		}
		if got := sqlite(t, c.Name, "SELECT group_concat(balance) FROM account"); got != "5" {
			t.Errorf("%s: the clone has %s, want 5", mode, got)
		}
		sqlite(t, c.Name, "DELETE FROM account")
		in.Close()
		_ = writer.Wait()
		if got := sqlite(t, path, "SELECT count(*) FROM account"); got != "1" {
			t.Errorf("%s: the source has %s rows, want 1", mode, got)
		}
		_, err = database.Create(t.Context(), o)
		isCode(t, err, database.CodeExists)
		if err := c.Drop(t.Context(), o.Source, false); err != nil {
			t.Error(err)
		}
		left, err := filepath.Glob(filepath.Join(filepath.Dir(dir), "*", "interlock*"))
		if err != nil || len(left) != 0 {
			t.Errorf("%s: left %v, %v", mode, left, err)
		}
	}
	_, err := database.Create(t.Context(), database.Options{Source: "sqlite:/no/such", Owner: owner, Folder: t.TempDir()})
	isCode(t, err, database.CodeSource)
	text := filepath.Join(t.TempDir(), "text")
	if err := os.WriteFile(text, []byte(strings.Repeat("this is no database\n", 200)), 0o644); err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	_, err = database.Create(t.Context(), database.Options{Source: "sqlite:" + text, Owner: owner, Folder: folder})
	isCode(t, err, database.CodeTool)
	if left, err := os.ReadDir(folder); err != nil || len(left) != 0 {
		t.Errorf("left %v, %v", left, err)
	}
}

// Migrations run on an empty file and a copy.
func TestMigrateSQLite(t *testing.T) {
	tools.Need(t, "sqlite3")
	path := filepath.Join(t.TempDir(), "bank.db")
	sqlite(t, path, "CREATE TABLE account (balance)")
	migrate := func(script string) (string, error) {
		var out bytes.Buffer
		err := database.Migrate(t.Context(), database.Migration{
			Source: "sqlite://" + path, Argv: []string{"sh", "-c", script}, Dir: t.TempDir(), Env: os.Environ(), Output: &out,
			Folder: t.TempDir(),
		})
		return out.String(), err
	}
	out, err := migrate(`echo $INTERLOCK_MIGRATION $(sqlite3 "${DATABASE_URL#sqlite://}" .tables)`)
	if err != nil || out != "empty\ncopy account\n" {
		t.Errorf("%q, %v", out, err)
	}
	_, err = migrate(`sqlite3 "${DATABASE_URL#sqlite://}" 'CREATE TABLE account (x)'`)
	if e := isCode(t, err, database.CodeMigrated); !strings.Contains(e.Text, "a copy of the database") {
		t.Error(e)
	}
	_, err = migrate("exit 3")
	isCode(t, err, database.CodeMigrated)
}
