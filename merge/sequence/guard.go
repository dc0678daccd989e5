package sequence

import (
	"fmt"
	"path"
	"slices"
	"strings"
)

// Guard selects the folders where versions must be unique. The zero value guards those with a usual name.
type Guard struct {
	// Folders are guarded besides, whatever their names and their files. Except are not guarded.
	Folders, Except []string
}

// usual are the names of folders that usually hold numbered files: the folder itself or its parent has such a name.
// Those with true hold migrations, whose dates are versions; a decision record may share its day with others.
var usual = map[string]bool{
	"migrations": true, "migration": true, "migrate": true, "versions": true, "evolutions": true,
	"changelog": false, "schema": false, "adr": false, "adrs": false, "decisions": false, "rfc": false, "rfcs": false,
}

// Covers reports whether versions may be guarded in a folder: it depends on the files there, too.
func (g Guard) Covers(folder string) bool {
	if slices.Contains(g.Except, folder) {
		return false
	}
	_, known := usualName(folder)
	return known || slices.Contains(g.Folders, folder)
}

func usualName(folder string) (migrations, known bool) {
	for _, name := range []string{path.Base(folder), path.Base(path.Dir(folder))} {
		name = strings.ToLower(name)
		if migrations, known = usual[name]; known {
			return migrations, true
		}
		// A second database has db/animals_migrate, and a tenant tenant_migrations.
		for _, end := range []string{"migrations", "_migrate", "-migrate"} {
			if strings.HasSuffix(name, end) {
				return true, true
			}
		}
	}
	return false, false
}

// entry is a name right in a folder with a version: a file, or a folder that is one migration.
type entry struct {
	version
	name string
}

// entries are those of a folder with one prefix, ordered by version.
func entries(names []string) map[string][]entry {
	all := map[string][]entry{}
	for _, name := range names {
		if v, ok := parseVersion(path.Base(name)); ok {
			all[v.prefix] = append(all[v.prefix], entry{v, name})
		}
	}
	for _, list := range all {
		slices.SortFunc(list, byVersion)
	}
	return all
}

// shape is what the entries of one prefix tell about their versions.
type shape struct {
	kind kind
	// unique is set if a version may be there once, ordered if new ones must be above the highest. why is the reason
	// where unique is not set.
	unique, ordered bool
	why             string
	steps           int
}

// look finds the shape of entries that are there already. An old duplicate is an accident; where most steps share
// their versions, the numbers mean something else.
func (g Guard) look(folder string, list []entry) (s shape) {
	var steps []entry
	kinds := map[kind]int{}
	shared, fragments := 0, 0
	for _, e := range list {
		if n := len(steps); n > 0 && steps[n-1].same(e.version) {
			continue
		}
		if n := len(steps); n > 0 && steps[n-1].compare(e.version) == 0 {
			shared++
		}
		steps = append(steps, e)
		kinds[e.kind]++
		if e.fragment {
			fragments++
		}
	}
	if s.steps = len(steps); s.steps == 0 {
		return s
	}
	for k := range kinds {
		if kinds[k] > kinds[s.kind] || kinds[k] == kinds[s.kind] && k > s.kind {
			s.kind = k
		}
	}
	forced := slices.Contains(g.Folders, folder)
	migrations, _ := usualName(folder)
	first, last := steps[0], steps[len(steps)-1]
	years := s.kind == number && len(first.parts)+len(last.parts) == 2 && first.parts[0] >= 1900 && last.parts[0] < 2100
	switch {
	case forced:
	case shared*2 > s.steps:
		s.why = "most of its numbers are there more than once"
		return s
	case fragments == s.steps && !migrations:
		s.why = "its numbers are those of issues"
		return s
	case years:
		s.why = "its numbers look like years"
		return s
	case s.kind == day && !migrations:
		s.why = "its numbers are days"
		return s
	}
	s.unique = true
	spread := last.parts[0] - first.parts[0]
	s.ordered = s.kind == number && kinds[number] == s.steps && s.steps > 1 && !years && spread <= uint64(20*s.steps+100)
	return s
}

// Check compares the names right in a folder of the target with those of the tree that a submission makes. A new step
// with a version that is taken is a problem, and so is one below the highest where versions are counted. What is new
// under a step of the target is none.
func (g Guard) Check(folder string, target, now []string) []Problem {
	var problems []Problem
	if !g.Covers(folder) {
		return nil
	}
	before, after := entries(target), entries(now)
	for prefix, list := range after {
		s := g.look(folder, before[prefix])
		if !s.unique {
			continue
		}
		var kept, added []entry
		for _, e := range list {
			switch {
			case slices.Contains(target, e.name):
				kept = append(kept, e)
			case !slices.ContainsFunc(before[prefix], func(o entry) bool { return o.same(e.version) }):
				added = append(added, e)
			}
		}
		for i, e := range added {
			if i > 0 && added[i-1].same(e.version) {
				continue // the same step
			}
			top := list[len(list)-1]
			p := Problem{Path: e.name, Number: e.text, Free: top.next(), stamp: s.kind != number}
			others := slices.Concat(kept, added[:i])
			if j := slices.IndexFunc(others, func(o entry) bool { return o.compare(e.version) == 0 }); j >= 0 {
				p.TakenBy = others[j].name
			} else if highest := len(kept) - 1; s.ordered && highest >= 0 && e.compare(kept[highest].version) < 0 {
				p.Highest = kept[highest].text
			}
			if p.TakenBy != "" || p.Highest != "" {
				problems = append(problems, p)
			}
		}
	}
	slices.SortFunc(problems, func(a, b Problem) int { return strings.Compare(a.Path, b.Path) })
	return problems
}

// Folder is a folder of a tree with numbered files.
type Folder struct {
	Path string
	// Steps is how many versions it has, and Example one of their names.
	Steps   int
	Example string
	// Guarded is set if a version may be there once. Else Why is the reason.
	Guarded bool
	Why     string
}

// String is one line for an operator.
func (f Folder) String() string {
	if f.Guarded {
		return fmt.Sprintf("%q (%d, such as %q)", f.Path, f.Steps, path.Base(f.Example))
	}
	return fmt.Sprintf("%q (%d, such as %q): %s", f.Path, f.Steps, path.Base(f.Example), f.Why)
}

// Survey finds the folders of a tree that are guarded, and those that look numbered and are not, in order. paths are
// all files of the tree.
func (g Guard) Survey(paths []string) (list []Folder) {
	names := map[string]map[string]bool{}
	for _, p := range paths {
		for d := path.Dir(p); ; p, d = d, path.Dir(d) {
			if names[d] == nil {
				names[d] = map[string]bool{}
			}
			names[d][p] = true
			if d == "." {
				break
			}
		}
	}
	for folder, set := range names {
		var all []string
		for name := range set {
			all = append(all, name)
		}
		var found Folder
		for _, entries := range entries(all) {
			s := g.look(folder, entries)
			if s.steps <= found.Steps {
				continue
			}
			found = Folder{Path: folder, Steps: s.steps, Example: entries[len(entries)-1].name}
			switch {
			case slices.Contains(g.Except, folder):
				found.Why = "excepted"
			case !g.Covers(folder):
				found.Why = "its name is not a usual one"
			case s.unique:
				found.Guarded = true
			default:
				found.Why = s.why
			}
		}
		// In a folder with another name, a few files with numbers are no sequence.
		usually := g.Covers(folder)
		if found.Steps > 0 && (usually || found.Steps >= 3 && found.Steps*3 > len(all)*2) {
			list = append(list, found)
		}
	}
	slices.SortFunc(list, func(a, b Folder) int { return strings.Compare(a.Path, b.Path) })
	return list
}
