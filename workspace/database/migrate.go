package database

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"io"
	"os"
	"os/exec"
	"time"
)

// Migration is a command that migrates a database, tried on two: an empty one, and a copy of the source.
type Migration struct {
	// Source and Method are as in Options; the method is that of the copy.
	Source string
	Method Method
	// Argv is the command. It finds the database by the variables of Clone.Environ; INTERLOCK_MIGRATION is "empty" or
	// "copy".
	Argv []string
	// Dir is its working directory: a merged tree.
	Dir string
	// Env is its environment, as in os.Environ.
	Env []string
	// Output gets what it writes.
	Output io.Writer
	// Folder is where clones of SQLite are made. It exists.
	Folder string
}

// Migrate runs the command on both databases, the empty one first, and drops them. It returns an *Error with
// CodeMigrated if the command fails on one; that error wraps its *exec.ExitError.
func Migrate(ctx context.Context, m Migration) error {
	if len(m.Argv) == 0 {
		return refuse(CodeSource, "", "there is no command that migrates")
	}
	id := make([]byte, 6)
	if _, err := rand.Read(id); err != nil {
		return err
	}
	for _, kind := range []string{"empty", "copy"} {
		method := m.Method
		if kind == "empty" {
			method = Empty
		}
		clone, err := Create(ctx, Options{
			Source: m.Source, Owner: Owner{Repo: "migration", Name: kind + "-" + hex.EncodeToString(id)}, Method: method,
			Folder: m.Folder,
		})
		if err != nil {
			return err
		}
		failed := m.run(ctx, kind, clone)
		// What the command left connected must not keep the clone.
		if err := errors.Join(failed, clone.Drop(context.WithoutCancel(ctx), m.Source, true)); err != nil {
			return err
		}
	}
	return nil
}

func (m *Migration) run(ctx context.Context, kind string, clone *Clone) error {
	env, err := clone.Environ(m.Source, "")
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, m.Argv[0], m.Argv[1:]...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = m.Dir, m.Output, m.Output
	cmd.Env = append(append(m.Env[:len(m.Env):len(m.Env)], env...), "INTERLOCK_MIGRATION="+kind)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 10 * time.Second
	if err := cmd.Run(); err != nil {
		database := map[string]string{"empty": "an empty database", "copy": "a copy of the database"}[kind]
		return errors.Join(refuse(CodeMigrated, "", "the migrations fail on %s: %v", database, err), err)
	}
	return nil
}
