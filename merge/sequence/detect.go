package sequence

import (
	"maps"
	"path"
	"slices"
	"strings"
)

// directories are the names of directories that usually hold numbered files. The directory itself or its parent has
// such a name.
var directories = map[string]bool{
	"migrations": true, "migration": true, "migrate": true, "changelog": true, "schema": true,
	"adr": true, "adrs": true, "decisions": true, "rfc": true, "rfcs": true,
}

// separators stand between the number and the name, the longest first.
var separators = []string{"__", "_", "-", "."}

// Detect finds the sequences of a tree: in a directory with a usual name, at least two steps, numbers of one form, no
// number twice, and no gaps so wide that the numbers must mean something else. The result is ordered
// by directory.
func Detect(paths []string) []Rule {
	byDirectory := map[string][]string{}
	for _, p := range paths {
		if d := path.Dir(p); Usual(d) {
			byDirectory[d] = append(byDirectory[d], p)
		}
	}
	var rules []Rule
	for _, d := range slices.Sorted(maps.Keys(byDirectory)) {
		var best *Rule
		most := 0
		for _, p := range byDirectory[d] {
			pattern, ok := guess(path.Base(p))
			if !ok || best != nil && best.Pattern == pattern {
				continue
			}
			r := Rule{Directory: d, Pattern: pattern}
			n := len(r.steps(byDirectory[d]))
			if n > most || n == most && best != nil && pattern.String() < best.Pattern.String() {
				best, most = &r, n
			}
		}
		if best != nil && best.plausible(byDirectory[d]) {
			rules = append(rules, *best)
		}
	}
	return rules
}

// Usual reports whether a directory has a name, or a parent with a name, that usually holds numbered files. Only such
// directories can have a sequence that Detect finds.
func Usual(directory string) bool {
	return directories[strings.ToLower(path.Base(directory))] ||
		directories[strings.ToLower(path.Base(path.Dir(directory)))]
}

// guess finds the pattern that one name could have: the end is what follows the last dot.
func guess(file string) (Pattern, bool) {
	start := strings.IndexFunc(file, func(r rune) bool { return r >= '0' && r <= '9' })
	if start < 0 || start > 1 {
		return Pattern{}, false // V12__name.sql has one letter in front
	}
	end := start
	for end < len(file) && isDigit(file[end]) {
		end++
	}
	for _, s := range separators {
		if !strings.HasPrefix(file[end:], s) {
			continue
		}
		p := Pattern{before: file[:start], between: s, width: end - start, after: path.Ext(file)}
		if p.width > maxWidth {
			return Pattern{}, false
		}
		if file[start] != '0' {
			p.width = 1 // 12_name: not padded, or no longer
		}
		_, _, ok := p.Match(file)
		return p, ok
	}
	return Pattern{}, false
}

func (r Rule) plausible(paths []string) bool {
	steps := r.steps(paths)
	if len(steps) < 2 {
		return false
	}
	for i := range steps[1:] {
		if steps[i].number == steps[i+1].number {
			return false
		}
	}
	return steps[len(steps)-1].number <= uint64(20*len(steps)+100)
}
