package main

import (
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strconv"
	"strings"
)

// mostCommits is how many commits old a record may be.
const mostCommits = 300

// age checks that the records of reliability and of the deliberate mistakes are of commits in the history of this
// checkout, and not old. A copy without a history has nothing to compare with.
func age(out io.Writer, reliability, mistakes string) error {
	if err := exec.Command("git", "rev-parse", "--git-dir").Run(); err != nil {
		fmt.Fprintln(out, "reliability: no git history here: the age of the records is not checked")
		return nil
	}
	r, err := read(reliability)
	if err != nil {
		return err
	}
	s, err := readSeeded(mistakes)
	if err != nil {
		return err
	}
	return errors.Join(
		young(reliability, r.Commit, "make reliability"), young(mistakes, s.Commit, "make seeded"),
	)
}

// young returns an error if a record of the commit is old, with the command that makes it anew.
func young(path, commit, command string) error {
	if exec.Command("git", "merge-base", "--is-ancestor", commit, "HEAD").Run() != nil {
		return fmt.Errorf("%s is of commit %.12s, which is not in the history: run %s", path, commit, command)
	}
	count, err := exec.Command("git", "rev-list", "--count", commit+"..HEAD").Output()
	if err != nil {
		return fmt.Errorf("git rev-list: %w", err)
	}
	n, err := strconv.Atoi(strings.TrimSpace(string(count)))
	if err != nil {
		return err
	}
	if n > mostCommits {
		return fmt.Errorf(
			"%s is of commit %.12s, %d commits ago, more than %d: run %s", path, commit, n, mostCommits, command,
		)
	}
	return nil
}
