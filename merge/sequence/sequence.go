package sequence

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"
)

// Rule demands a sequence of the files in a directory, not of those below it. "." is the root of the repository.
type Rule struct {
	Directory string
	Pattern   Pattern
}

// ParseRule reads a directory and a pattern as one path, such as "migrations/{n:4}_{name}.sql".
func ParseRule(text string) (Rule, error) {
	directory, name := path.Split(text)
	pattern, err := Parse(name)
	if err != nil {
		return Rule{}, err
	}
	r := Rule{Directory: path.Clean(directory), Pattern: pattern}
	if path.IsAbs(directory) || r.Directory == ".." || strings.HasPrefix(r.Directory, "../") ||
		strings.ContainsFunc(directory, func(c rune) bool { return c < ' ' }) {
		return Rule{}, fmt.Errorf("sequence %q: its directory lies outside of the repository, or is no line of text", text)
	}
	return r, nil
}

// String is the text that ParseRule reads.
func (r Rule) String() string { return path.Join(r.Directory, r.Pattern.String()) }

// Problem is a file of a submission with a version that it may not have.
type Problem struct {
	Path string
	// Number is its version, as the name has it.
	Number string
	// TakenBy is the file that has the version already. If it is empty, the version is free, and below Highest.
	TakenBy, Highest string
	// Free is the next version.
	Free string
	// Text is the sentence behind the path, for a problem of another kind.
	Text string
	// stamp is set for a version that a tool makes from the time.
	stamp bool
}

// String is one sentence for the author.
func (p Problem) String() string {
	next := p.Free + " is free"
	if p.stamp {
		next = "make it anew with a later one, such as " + p.Free
	}
	switch {
	case p.Text != "":
		return p.Path + ": " + p.Text
	case p.TakenBy != "":
		return fmt.Sprintf("%s: number %s is taken by %s; %s", p.Path, p.Number, path.Base(p.TakenBy), next)
	}
	return fmt.Sprintf("%s: number %s is below %s, the highest on the target; %s", p.Path, p.Number, p.Highest, next)
}

// Rename is one file with its old and its new path.
type Rename struct {
	From string `json:"from"`
	To   string `json:"to"`
}

// step is one position of a sequence: the files that share a number and the name up to its first dot.
type step struct {
	number uint64
	stem   string
	files  []string
}

// steps finds the steps of a rule among paths, ordered by number and stem.
func (r Rule) steps(paths []string) []step {
	var list []step
	for _, p := range paths {
		if path.Dir(p) != path.Clean(r.Directory) {
			continue
		}
		number, name, ok := r.Pattern.Match(path.Base(p))
		if !ok {
			continue
		}
		stem, _, _ := strings.Cut(name, ".")
		i := slices.IndexFunc(list, func(s step) bool { return s.number == number && s.stem == stem })
		if i < 0 {
			i = len(list)
			list = append(list, step{number: number, stem: stem})
		}
		list[i].files = append(list[i].files, p)
	}
	for _, s := range list {
		slices.Sort(s.files)
	}
	slices.SortFunc(list, func(a, b step) int {
		return cmp.Or(cmp.Compare(a.number, b.number), strings.Compare(a.stem, b.stem))
	})
	return list
}

// Check compares the files of rules that a submission adds with those of the tree that it is merged onto. A new file of
// a step that the target has is no problem.
func Check(rules []Rule, target, added []string) []Problem {
	var problems []Problem
	for _, r := range rules {
		own := r.steps(added)
		if len(own) == 0 {
			continue
		}
		old := r.steps(target)
		var highest uint64
		if len(old) > 0 {
			highest = old[len(old)-1].number
		}
		for i, s := range own {
			if slices.ContainsFunc(old, s.same) {
				continue
			}
			text, free := r.Pattern.Number, highest+1
			p := Problem{Path: s.files[0], Number: text(s.number)}
			taken := func(o step) bool { return o.number == s.number }
			if j := slices.IndexFunc(old, taken); j >= 0 {
				p.TakenBy = old[j].files[0]
			} else if j := slices.IndexFunc(own[:i], taken); j >= 0 {
				p.TakenBy = own[j].files[0]
				free = max(highest, own[len(own)-1].number) + 1
			} else if len(old) > 0 && s.number <= highest {
				p.Highest = text(highest)
			}
			if p.Free = text(free); p.TakenBy != "" || p.Highest != "" {
				problems = append(problems, p)
			}
		}
	}
	return problems
}

func (s step) same(o step) bool { return s.number == o.number && s.stem == o.stem }

// Renumber lists renames that leave no problem: the new steps of a sequence that has one get the numbers above the
// target's highest, in their order. Files of one step stay together. Carry out the renames in the order of the list.
func Renumber(rules []Rule, target, added []string) []Rename {
	var renames []Rename
	for _, r := range rules {
		if len(Check([]Rule{r}, target, added)) == 0 {
			continue
		}
		old := r.steps(target)
		var next uint64 = 1
		if len(old) > 0 {
			next = old[len(old)-1].number + 1
		}
		own := slices.DeleteFunc(r.steps(added), func(s step) bool { return slices.ContainsFunc(old, s.same) })
		var list []Rename
		for _, s := range own {
			for _, f := range s.files {
				_, name, _ := r.Pattern.Match(path.Base(f))
				to := path.Join(path.Dir(f), r.Pattern.Format(next, name))
				if to != f {
					list = append(list, Rename{From: f, To: to})
				}
			}
			next++
		}
		renames = append(renames, ordered(list)...)
	}
	return renames
}

// ordered sorts renames so that none overwrites a file that is still to be renamed. The numbers of steps keep their
// order, so there is no cycle.
func ordered(list []Rename) []Rename {
	var done []Rename
	for len(list) > 0 {
		i := slices.IndexFunc(list, func(r Rename) bool {
			return !slices.ContainsFunc(list, func(o Rename) bool { return o.From == r.To })
		})
		done = append(done, list[i])
		list = slices.Delete(list, i, i+1)
	}
	return done
}

// Command fills in the words of a user's command that carries out one rename, for tools that must also change the
// contents: {from} and {to} are paths, {directory} is their directory, and {n} is the new number as the file has it.
func (r Rule) Command(words []string, rename Rename) []string {
	number, _, _ := r.Pattern.Match(path.Base(rename.To))
	replace := strings.NewReplacer(
		"{from}", rename.From, "{to}", rename.To, "{directory}", path.Dir(rename.To), "{n}", r.Pattern.Number(number),
	)
	filled := make([]string, len(words))
	for i, w := range words {
		filled[i] = replace.Replace(w)
	}
	return filled
}
