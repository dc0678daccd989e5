package merger

import (
	"context"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/client"
	"github.com/interlockdev/interlock/merge/train"
)

// LeaseRule demands that a submission which touches certain paths holds a key exclusively until it has landed or gone
// back. The submission's task claims the key: so the queue hands the task out when the key is free, the key is the
// submission's while it is in line, and no process has to stay connected for it.
type LeaseRule struct {
	// Paths is a pattern: * stands for a part of a name, and ** for any number of folders.
	Paths string        `json:"paths"`
	Key   interlock.Key `json:"key"`
}

// ParseLeaseRule reads "PATHS=KEY", such as "migrations/**=migrations:web".
func ParseLeaseRule(text string) (LeaseRule, error) {
	paths, key, ok := strings.Cut(text, "=")
	if !ok || paths == "" || key == "" {
		return LeaseRule{}, fmt.Errorf("%q: want PATHS=KEY, such as migrations/**=migrations:web", text)
	}
	for part := range strings.SplitSeq(paths, "/") {
		if _, err := path.Match(part, ""); err != nil || part == "" {
			return LeaseRule{}, fmt.Errorf("%q is no pattern of paths: want names, *, ** and ? between slashes", paths)
		}
	}
	return LeaseRule{Paths: paths, Key: interlock.Key(key)}, nil
}

// Matches reports whether the rule covers a path.
func (r *LeaseRule) Matches(name string) bool {
	return matches(strings.Split(r.Paths, "/"), strings.Split(name, "/"))
}

func matches(pattern, parts []string) bool {
	for i, p := range pattern {
		if p == "**" {
			for j := i; j <= len(parts); j++ {
				if matches(pattern[i+1:], parts[j:]) {
					return true
				}
			}
			return false
		}
		if i >= len(parts) {
			return false
		}
		if ok, err := path.Match(p, parts[i]); !ok || err != nil {
			return false
		}
	}
	return len(pattern) == len(parts)
}

// demand is a key that a submission has to hold, and the first path that demands it.
type demand struct {
	key  interlock.Key
	path string
}

// needs lists the keys that paths demand, in the order of the rules.
func needs(rules []LeaseRule, paths []string) (list []demand) {
	for i := range rules {
		at := slices.IndexFunc(paths, rules[i].Matches)
		if at < 0 || slices.ContainsFunc(list, func(n demand) bool { return n.key == rules[i].Key }) {
			continue
		}
		list = append(list, demand{rules[i].Key, paths[at]})
	}
	return list
}

// Claims returns the claims that the task of a submission needs, by the rules in the target's document. A target
// without a document has none yet.
func Claims(ctx context.Context, c *client.Client, name Name, paths []string) ([]interlock.Claim, error) {
	var t Target
	if _, err := read(ctx, c, name.Key(), &t); err != nil {
		return nil, err
	}
	var claims []interlock.Claim
	for _, n := range needs(t.Leases, paths) {
		claims = append(claims, interlock.Claim{Key: n.key, Mode: interlock.Exclusive})
	}
	return claims, nil
}

// unclaimed returns what a submission has to do to hold the keys that it needs, or "" if its task claims them.
func (l *line) unclaimed(e *entry, claims []interlock.Claim) string {
	for _, n := range needs(l.Leases, e.paths) {
		if slices.Contains(claims, interlock.Claim{Key: n.key, Mode: interlock.Exclusive}) {
			continue
		}
		return fmt.Sprintf(
			"Your change is kept. It touches %q, and only a submission that holds %s may land that. Its task must claim the "+
				"key: `interlock workspace submit` does so, and so does `interlock task create --key %s`.",
			n.path, n.key, n.key,
		)
	}
	return ""
}

// holds returns the leases that submissions need to land, to be named in the write that stages them. It reports false
// if one was lost: its task will be handed out again, and the submission leaves the line until then.
func (l *line) holds(outcomes []train.Outcome) (leases []interlock.LeaseID, ok bool) {
	for _, o := range outcomes {
		e := l.records[o.ID]
		if o.Reason != train.Landed || len(needs(l.Leases, e.paths)) == 0 {
			continue
		}
		if err := e.lease.Err(); err != nil {
			l.Log.Warn("the lease of a submission is lost", "submission", e.record.ID, "error", err)
			delete(l.records, o.ID)
			l.train.Withdraw(o.ID)
			return nil, false
		}
		leases = append(leases, e.lease.ID())
	}
	return leases, true
}
