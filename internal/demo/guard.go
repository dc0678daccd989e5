package demo

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/internal/filelock"
)

// account is the content of an account's file.
type account struct {
	Account string          `json:"account"`
	Balance cents           `json:"balance"`
	Fence   interlock.Fence `json:"highest_fence,string"`
	Updates []update        `json:"updates"`
}

// update is one fee or credit. An agent makes one, so its name tells updates
// apart.
type update struct {
	Agent   string `json:"agent"`
	Account string `json:"account"`
	What    string `json:"what"`
	Amount  cents  `json:"amount"`
}

func (u update) String() string {
	return fmt.Sprintf("%s's %s of $%s", u.Agent, u.What, u.Amount.abs())
}

// with is the account after one more update.
func (a account) with(u update) account {
	a.Balance += u.Amount
	a.Updates = append(slices.Clone(a.Updates), u)
	return a
}

// ledger is a directory with a file per account.
type ledger struct{ dir string }

func (l ledger) path(name string) string { return filepath.Join(l.dir, "account-"+name+".json") }

// read returns the account as it is, without any check.
func (l ledger) read(name string) (a account, err error) {
	text, err := os.ReadFile(l.path(name))
	if err != nil {
		return a, err
	}
	if err := json.Unmarshal(text, &a); err != nil {
		return a, fmt.Errorf("read %s: %w", l.path(name), err)
	}
	return a, nil
}

// write replaces the account's file in one go, so that no agent ever reads half of it. It
// checks nothing: the last writer wins.
func (l ledger) write(a account) error {
	text, err := json.MarshalIndent(a, "", "  ")
	if err != nil {
		return err
	}
	next, err := os.CreateTemp(l.dir, "."+a.Account+"-*")
	if err != nil {
		return err
	}
	_, err = next.Write(append(text, '\n'))
	err = errors.Join(err, next.Chmod(0o644), next.Close())
	if err == nil {
		err = os.Rename(next.Name(), l.path(a.Account))
	}
	if err != nil {
		return errors.Join(err, os.Remove(next.Name()))
	}
	return nil
}

// staleError reports that the guard refused a fence.
type staleError struct {
	Account       string
	Fence, Higher interlock.Fence
}

func (e *staleError) Error() string {
	return fmt.Sprintf("account %s: fence %s is stale, the file has seen %s", e.Account, e.Fence, e.Higher)
}

// The two functions below are the guard: the check at the place where agents
// write. The file remembers the highest fence that it was shown and takes nothing
// below it, whatever the writer believes about its lease.
//
// A fence is shown at the read already. Otherwise a late writer could slip in
// between the next holder's read and its write, with the highest fence that the
// file has seen so far, and its update would be lost.

// readFenced shows the fence and returns the account.
func (l ledger) readFenced(name string, fence interlock.Fence) (account, error) {
	return l.guarded(name, fence, func(a account) account { return a })
}

// writeFenced replaces the account by next, or refuses with a *staleError.
func (l ledger) writeFenced(next account, fence interlock.Fence) error {
	_, err := l.guarded(next.Account, fence, func(account) account { return next })
	return err
}

// guarded runs one step under the account's file lock. Without the lock two
// writers could both pass the check before either has written.
func (l ledger) guarded(name string, fence interlock.Fence, step func(account) account) (account, error) {
	unlock, err := l.lock(name)
	if err != nil {
		return account{}, err
	}
	defer unlock()
	a, err := l.read(name)
	if err != nil {
		return account{}, err
	}
	if fence < a.Fence {
		return account{}, &staleError{Account: name, Fence: fence, Higher: a.Fence}
	}
	a = step(a)
	a.Fence = fence
	return a, l.write(a)
}

// lock takes the file lock of an account. It is a file beside the account's,
// because that one is replaced at each write.
func (l ledger) lock(name string) (unlock func(), err error) {
	file, err := os.OpenFile(filepath.Join(l.dir, ".account-"+name+".lock"), os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, err
	}
	if err := filelock.Wait(file); err != nil {
		return nil, errors.Join(fmt.Errorf("lock account %s: %w", name, err), file.Close())
	}
	// Closing the file releases the lock; nothing was written to it.
	return func() { file.Close() }, nil
}
