package merger

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/interlockdev/interlock"
)

const (
	// maxForecast is how many submissions in line a new one is merged with. Only those that touch a common path count.
	maxForecast = 20
	// maxClashPaths is how many paths a Clash names.
	maxClashPaths = 20
)

// clashes forecasts which submissions in line conflict with a new one. It changes none of their records, and wakes
// none of their authors. A forecast that fails is none: the line goes on.
func (l *line) clashes(ctx context.Context, r *Record, paths []string) []Clash {
	var others []*entry
	touch := newPathSet(paths)
	for _, e := range l.records {
		if e.record.ID != r.ID && touch.meets(e.paths) {
			others = append(others, e)
		}
	}
	if len(others) == 0 {
		return nil
	}
	slices.SortFunc(others, func(a, b *entry) int {
		x, y := a.record.Place, b.record.Place
		if ahead := x < r.Place; ahead != (y < r.Place) {
			if ahead {
				return -1
			}
			return 1
		} else if ahead {
			return cmp.Compare(y, x)
		}
		return cmp.Compare(x, y)
	})
	others = others[:min(len(others), maxForecast)]
	heads := make([]string, len(others))
	for i, e := range others {
		heads[i] = e.record.Head
	}
	ctx, cancel := l.limited(ctx)
	defer cancel()
	found, err := l.Boundary.Clashes(ctx, l.target.Head, r.Head, heads)
	if err != nil {
		l.Log.Warn("clashes in line are not known", "submission", r.ID, "error", err)
		return nil
	}
	byHead := map[string][]string{}
	for _, c := range found {
		byHead[c.Head] = c.Paths
	}
	var list []Clash
	for _, e := range others {
		paths := byHead[e.record.Head]
		if len(paths) == 0 {
			continue
		}
		list = append(list, Clash{
			Submission: e.record.ID, Agent: e.record.Agent, Purpose: e.record.Purpose, Ahead: e.record.Place < r.Place,
			Paths: paths[:min(len(paths), maxClashPaths)], More: max(0, len(paths)-maxClashPaths),
		})
	}
	return list
}

// pathSet is a set of paths, with the folders above them. Two submissions can only conflict where they touch the same
// path, or where one has a file in the place of the other's folder.
type pathSet struct{ paths, folders map[string]bool }

func newPathSet(paths []string) pathSet {
	t := pathSet{map[string]bool{}, map[string]bool{}}
	for _, p := range paths {
		t.paths[p] = true
		for folder := range above(p) {
			t.folders[folder] = true
		}
	}
	return t
}

func (t pathSet) meets(paths []string) bool {
	for _, p := range paths {
		if t.paths[p] || t.folders[p] {
			return true
		}
		for folder := range above(p) {
			if t.paths[folder] {
				return true
			}
		}
	}
	return false
}

// above lists the folders above a path, from the nearest on.
func above(path string) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		for {
			i := strings.LastIndexByte(path, '/')
			if i < 0 {
				return
			}
			if path = path[:i]; !yield(path) {
				return
			}
		}
	}
}

// Standing returns the record of a submission by its task and the task's payload. It reports false while no merger has
// taken it.
func Standing(
	ctx context.Context, c Reader, name Name, task interlock.TaskID, s Submission,
) (r Record, found bool, err error) {
	keys := []interlock.Key{name.RecordKey(cmp.Or(s.Resubmits, s.ID, task.String()))}
	if s.Workspace != "" && s.Resubmits == "" {
		var last newest
		if found, err := read(ctx, c, name.homeKey(s.home()), &last); err != nil {
			return Record{}, false, err
		} else if found {
			keys = append(keys, name.RecordKey(last.Submission))
		}
	}
	for _, key := range keys {
		r = Record{}
		if found, err = read(ctx, c, key, &r); err != nil || found && r.Task == task.String() {
			return r, found && err == nil, err
		}
	}
	return Record{}, false, nil
}

// Side is where the other submission stands: "ahead of" or "behind".
func (c *Clash) Side() string {
	if c.Ahead {
		return "ahead of"
	}
	return "behind"
}

// String names the other submission and the paths. Texts of others are quoted.
func (c *Clash) String() string {
	text := fmt.Sprintf("%s of %q", c.Submission, c.Agent)
	if c.Purpose != "" {
		text += fmt.Sprintf(" (%q)", c.Purpose)
	}
	const shown = 3
	paths := make([]string, 0, shown)
	for _, p := range c.Paths[:min(len(c.Paths), shown)] {
		paths = append(paths, fmt.Sprintf("%q", p))
	}
	text += ", which changes the same lines of " + strings.Join(paths, ", ")
	if more := len(c.Paths) + c.More - len(paths); more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}
