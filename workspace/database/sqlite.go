package database

import (
	"context"
	"errors"
	"io/fs"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"unicode"
)

// createSQLite copies a file by the backup of SQLite, page by page, also while others write to the source.
func createSQLite(ctx context.Context, source string, o Options) (*Clone, error) {
	source, err := filepath.Abs(source)
	if err != nil {
		return nil, err
	}
	if info, err := os.Stat(source); err != nil || !info.Mode().IsRegular() {
		return nil, refuse(CodeSource, "", "there is no database at %s", source)
	}
	if o.Method != Template && o.Method != Empty {
		return nil, refuse(CodeSource, "leave the method out", "SQLite cannot be cloned by %s", o.Method)
	}
	folder, err := filepath.Abs(o.Folder)
	if err != nil {
		return nil, err
	}
	c := &Clone{
		Engine: SQLite, Owner: o.Owner, Source: source, Method: o.Method,
		Name: filepath.Join(folder, derive(source, o.Owner)+".sqlite"),
	}
	if strings.ContainsFunc(c.Name, unicode.IsControl) {
		return nil, refuse(CodeSource, "", "the path %q has control characters", c.Name)
	}
	if _, err := os.Lstat(c.Name); !errors.Is(err, fs.ErrNotExist) {
		return nil, refuse(CodeExists, "delete the workspace that it belongs to", "%s exists", c.Name)
	}
	if o.Method == Empty {
		f, err := os.OpenFile(c.Name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
		if err != nil {
			return nil, err
		}
		return c, f.Close()
	}
	// The final name appears with its whole content.
	made := c.Name + ".new"
	if err := removeSQLite(made); err != nil {
		return nil, err
	}
	if err := backup(ctx, source, made); err != nil {
		return nil, errors.Join(err, removeSQLite(made))
	}
	return c, os.Rename(made, c.Name)
}

// backup runs sqlite3. mode=rw never makes a source that is not there, and reads one that cannot be written.
func backup(ctx context.Context, from, to string) error {
	uri := url.URL{Scheme: "file", Path: from, RawQuery: "mode=rw"}
	quoted := `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(to) + `"`
	// It waits for a writer that has the source locked.
	cmd := exec.CommandContext(
		ctx, "sqlite3", "-batch", "-init", os.DevNull, uri.String(), ".timeout 10000", ".backup main "+quoted,
	)
	out, err := cmd.CombinedOutput()
	if errors.Is(err, exec.ErrNotFound) {
		return refuse(CodeTool, "install the package sqlite3", "the program sqlite3 is not installed")
	}
	if err != nil {
		return refuse(CodeTool, "", "sqlite3 failed: %s", lastLine(string(out), err))
	}
	return nil
}

// removeSQLite removes a file with what SQLite keeps beside it.
func removeSQLite(path string) error {
	var all error
	for _, suffix := range []string{"", "-wal", "-shm", "-journal"} {
		if err := os.Remove(path + suffix); !errors.Is(err, fs.ErrNotExist) {
			all = errors.Join(all, err)
		}
	}
	return all
}
