package sequence

import (
	"fmt"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
)

// Alembic and Django keep the order of migrations in the files: each names the one before. Two submissions that name
// the same one make two heads, and the tool refuses to go on, whatever the names of the files are.

// graph is the migrations of a folder. Each has an id and names those before it.
type graph struct {
	files   map[string]string   // the file of an id
	before  map[string][]string // the ids in front of an id
	instead map[string][]string // the ids that a squashed migration of Django stands for
	twice   map[string]string   // an id that two files have, and the second file
	word    string              // the setting that names those before, for people
}

var (
	alembicID     = regexp.MustCompile(`(?m)^revision\s*(?::[^=\n]*)?=\s*["']([^"'\n]+)["']`)
	alembicBefore = regexp.MustCompile(`(?m)^down_revision\s*(?::[^=\n]*)?=\s*(None\b|["'][^"'\n]+["']|[(\[][^)\]]*[)\]])`)
	quoted        = regexp.MustCompile(`["']([^"'\n]+)["']`)
	djangoClass   = regexp.MustCompile(`(?m)^class\s+Migration\b`)
	djangoBefore  = regexp.MustCompile(`(?ms)^\s+(dependencies|replaces)\s*(?::[^=\n]*)?=\s*\[(.*?)\n?\s*\]`)
	djangoPair    = regexp.MustCompile(`\(\s*["']([^"'\n]+)["']\s*,\s*["']([^"'\n]+)["']\s*,?\s*\)`)
)

// Linked reports whether a file is a migration that names the one before.
func Linked(file, text string) bool {
	return path.Ext(file) == ".py" && (alembicBefore.MatchString(text) || djangoClass.MatchString(text))
}

// read makes the graph of the files right in a folder.
func read(files map[string]string) graph {
	g := graph{
		files: map[string]string{}, before: map[string][]string{}, instead: map[string][]string{}, twice: map[string]string{},
	}
	labels := map[string]int{}
	type pair struct {
		label, name string
		replaced    bool
	}
	pairs := map[string][]pair{}
	for _, file := range slices.Sorted(maps.Keys(files)) {
		text := files[file]
		if m := alembicBefore.FindStringSubmatch(text); m != nil {
			g.word = "down_revision"
			id := alembicID.FindStringSubmatch(text)
			if id == nil {
				continue
			}
			if _, there := g.files[id[1]]; there {
				g.twice[id[1]] = file
				continue
			}
			g.files[id[1]] = file
			for _, q := range quoted.FindAllStringSubmatch(m[1], -1) {
				g.before[id[1]] = append(g.before[id[1]], q[1])
			}
		} else if djangoClass.MatchString(text) {
			g.word = "dependencies"
			id := strings.TrimSuffix(path.Base(file), ".py")
			g.files[id] = file
			for _, list := range djangoBefore.FindAllStringSubmatch(text, -1) {
				for _, p := range djangoPair.FindAllStringSubmatch(list[2], -1) {
					pairs[id] = append(pairs[id], pair{p[1], p[2], list[1] == "replaces"})
				}
			}
		}
	}
	// The label of the app is usually the name of its folder, else the one under which its own files are named most.
	best, folder := "", ""
	for file := range files {
		folder = path.Base(path.Dir(path.Dir(file)))
	}
	for _, list := range pairs {
		for _, p := range list {
			if _, own := g.files[p.name]; own {
				labels[p.label]++
			}
		}
	}
	for _, label := range slices.Sorted(maps.Keys(labels)) {
		if label == folder {
			best = label
			break
		}
		if labels[label] > labels[best] {
			best = label
		}
	}
	for id, list := range pairs {
		for _, p := range list {
			if p.label == best {
				g.before[id] = append(g.before[id], p.name)
			}
			if p.label == best && p.replaced {
				g.instead[id] = append(g.instead[id], p.name)
			}
		}
	}
	return g
}

// heads are the ids that no other names, in order.
func (g graph) heads() (list []string) {
	named := map[string]bool{}
	for _, before := range g.before {
		for _, id := range before {
			named[id] = true
		}
	}
	for squashed, instead := range g.instead {
		for id, before := range g.before {
			outside := id != squashed && !slices.Contains(instead, id)
			if outside && slices.ContainsFunc(before, func(b string) bool { return slices.Contains(instead, b) }) {
				named[squashed] = true
			}
		}
	}
	for _, id := range slices.Sorted(maps.Keys(g.files)) {
		if !named[id] {
			list = append(list, id)
		}
	}
	return list
}

// Heads compares the migrations right in a folder of the target with those of the tree that a submission makes: paths
// with their contents. A new file with an id that is taken is a problem, and so is one that makes another head. Several
// heads that the target has already are none.
func Heads(target, now map[string]string) (problems []Problem) {
	was, is := read(target), read(now)
	for id, file := range is.twice {
		if _, old := was.twice[id]; old {
			continue
		}
		first := is.files[id]
		if _, old := target[file]; old {
			first, file = file, first
		}
		text := fmt.Sprintf("revision %s is taken by %s; take another id", id, path.Base(first))
		problems = append(problems, Problem{Path: file, Text: text})
	}
	old, heads := was.heads(), is.heads()
	if len(old) == 0 || len(heads) <= len(old) {
		return problems
	}
	other := ""
	for _, id := range heads {
		if _, there := target[is.files[id]]; there {
			other = id
		}
	}
	for _, id := range heads {
		file := is.files[id]
		if _, there := target[file]; there {
			continue
		}
		if other == "" {
			other = id // two in one submission
			continue
		}
		problems = append(problems, Problem{Path: file, Text: fmt.Sprintf(
			"%s is a second head beside %s; name that one in its %s", id, path.Base(is.files[other]), is.word,
		)})
	}
	slices.SortFunc(problems, func(a, b Problem) int { return strings.Compare(a.Path, b.Path) })
	return problems
}
