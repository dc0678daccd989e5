package git

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/guard/apiclient"
)

// Verify finds changes in the commits of a range that were made without a lease. It is a check for
// continuous integration, where no hook can refuse a push.
//
// A changed path is covered if an exclusive lease on it, or on a directory above it, was in force at
// some moment between Within before the commit's author date and Slack after it. A lease in a copy of
// the repository counts too: repo:web@hotfix/src covers src of repo:web. A merge changes only the paths
// in which it differs from all of its parents.
//
// It shows that some agent held the path, and not that the author did: names of commits and of agents
// are free text.
type Verify struct {
	API  *apiclient.Client
	Keys Keys
	// Dir is the repository; "" means the working directory.
	Dir string
	// Range is what git rev-list takes, such as origin/main..HEAD.
	Range string
	// Within is the longest time from the end of a lease to the commit.
	Within time.Duration
	// Slack allows for clocks that differ.
	Slack time.Duration
	// MaxPaths bounds how many changes are checked.
	MaxPaths int
}

// Report is what Verify found.
type Report struct {
	Commits   int
	Changes   int // paths of commits
	Uncovered []Change
}

// Change is a path that a commit changes.
type Change struct {
	Commit  string // its name
	Subject string
	Author  string
	Time    time.Time // the author date
	Path    string
}

// Check compares the range with the leases of the journal.
func (v *Verify) Check(ctx context.Context) (*Report, error) {
	if strings.HasPrefix(v.Range, "-") || !strings.Contains(v.Range, "..") {
		return nil, fmt.Errorf("range %q: want two commits, such as origin/main..HEAD", v.Range)
	}
	changes, commits, err := v.changes(ctx)
	if err != nil || len(changes) == 0 {
		return &Report{Commits: commits}, err
	}
	first := slices.MinFunc(changes, func(a, b Change) int { return a.Time.Compare(b.Time) }).Time
	grants, err := v.API.Grants(ctx, v.root(), first.Add(-v.Within))
	if err != nil {
		return nil, err
	}
	report := &Report{Commits: commits, Changes: len(changes)}
	for _, c := range changes {
		if !v.covered(grants, &c) {
			report.Uncovered = append(report.Uncovered, c)
		}
	}
	return report, nil
}

// root is the common prefix of the keys of the repository and of its copies.
func (v *Verify) root() string { return strings.TrimSuffix(v.Keys.Prefix(), "/") }

// covered reports whether a grant covers a change.
func (v *Verify) covered(grants []apiclient.Grant, c *Change) bool {
	key := v.Keys.Key(c.Path)
	from, to := c.Time.Add(-v.Within), c.Time.Add(v.Slack)
	return slices.ContainsFunc(grants, func(g apiclient.Grant) bool {
		if g.Began.After(to) || !g.Ended.IsZero() && g.Ended.Before(from) {
			return false
		}
		return slices.ContainsFunc(g.Claims, func(claim interlock.Claim) bool {
			held := v.original(claim.Key)
			return claim.Mode == interlock.Exclusive && (held == key || strings.HasPrefix(string(key), string(held)+"/"))
		})
	})
}

// original returns the key that a key of a copy stands for; other keys stand for themselves.
func (v *Verify) original(key interlock.Key) interlock.Key {
	copied, ok := strings.CutPrefix(string(key), v.root()+"@")
	if !ok {
		return key
	}
	_, path, below := strings.Cut(copied, "/")
	if !below {
		return interlock.Key(v.root())
	}
	return interlock.Key(v.root() + "/" + path)
}

// changes lists the paths of the range's commits, oldest commit first.
func (v *Verify) changes(ctx context.Context) (changes []Change, commits int, err error) {
	repo := repository{dir: v.Dir}
	lines, ok, err := repo.lines(
		ctx, "log", "--reverse", "--no-show-signature", "--format=%H %at %an%x00%s", "--end-of-options", v.Range, "--",
	)
	if err != nil {
		return nil, 0, err
	}
	if !ok {
		return nil, 0, fmt.Errorf("git log refused the range %q", v.Range)
	}
	for _, line := range lines {
		head, subject, _ := strings.Cut(line, "\x00")
		fields := strings.SplitN(head, " ", 3)
		if len(fields) != 3 {
			return nil, 0, fmt.Errorf("git log printed %q", line)
		}
		seconds, err := strconv.ParseInt(fields[1], 10, 64)
		if err != nil {
			return nil, 0, fmt.Errorf("git log printed the date %q: %w", fields[1], err)
		}
		paths, err := repo.committed(ctx, fields[0], v.MaxPaths-len(changes))
		if err != nil {
			return nil, 0, err
		}
		for _, path := range paths {
			changes = append(
				changes, Change{Commit: fields[0], Subject: subject, Author: fields[2], Time: time.Unix(seconds, 0), Path: path},
			)
		}
	}
	return changes, len(lines), nil
}

// Text describes a change on one line. Subjects and names are other agents' text.
func (c *Change) Text() string {
	return fmt.Sprintf("%.10s %s: %s, %s", c.Commit, plain(c.Path), plain(c.Author), strconv.Quote(c.Subject))
}
