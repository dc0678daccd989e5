package seeded

import (
	"cmp"
	"embed"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// Bug is a mistake that an author could make.
type Bug struct {
	Name    string // of its file
	Title   string // what is wrong, in a sentence
	File    string // which file of the product it changes
	Breaks  string // the invariants, such as I1 I4; or a word of promises
	Finders []string
	Was, Is string // whole lines
}

// A file of a mistake:
//
//	title:   shared does not exclude intent-exclusive
//	file:    engine/mode.go
//	breaks:  I1
//	finders: worlds
//	--- was
//		sh:  setOf(ix, six, ex),
//	--- is
//		sh:  setOf(six, ex),
const (
	suffix  = ".bug"
	wasLine = "--- was\n"
	isLine  = "--- is\n"
)

//go:embed bugs/*.bug
var files embed.FS

// Bugs returns all mistakes, by the folders that they are in and then by name.
func Bugs() ([]Bug, error) {
	names, err := fs.Glob(files, "bugs/*"+suffix)
	if err != nil {
		return nil, err
	}
	var list []Bug
	for _, name := range names {
		text, err := files.ReadFile(name)
		if err != nil {
			return nil, err
		}
		b, err := parse(strings.TrimSuffix(path.Base(name), suffix), string(text))
		if err != nil {
			return nil, err
		}
		list = append(list, b)
	}
	slices.SortFunc(list, func(a, b Bug) int {
		return cmp.Or(cmp.Compare(a.Room(), b.Room()), cmp.Compare(a.Name, b.Name))
	})
	return list, nil
}

// Room is the folder of the file that the mistake changes.
func (b *Bug) Room() string { return path.Dir(b.File) }

// promises are the guarantees besides the numbered invariants: that every request makes
// progress, the law of a journal, the rights of callers, the contract of the APIs and the wire,
// and that no work in a workspace is lost.
const promises = "liveness|journal|rights|interface|workspaces"

var invariants = regexp.MustCompile(`^(I([1-9]|1[0-9]|20)|` + promises + `)( (I([1-9]|1[0-9]|20)|` + promises + `))*$`)

func parse(name, text string) (Bug, error) {
	b := Bug{Name: name}
	wrong := func(what string) (Bug, error) { return b, fmt.Errorf("seeded: mistake %s %s", name, what) }
	head, rest, ok := strings.Cut(text, wasLine)
	if !ok {
		return wrong("does not say what was")
	}
	if b.Was, b.Is, ok = strings.Cut(rest, isLine); !ok {
		return wrong("does not say what is instead")
	}
	for line := range strings.Lines(head) {
		field, value, _ := strings.Cut(line, ":")
		value = strings.TrimSpace(value)
		switch field {
		case "title":
			b.Title = value
		case "file":
			b.File = value
		case "breaks":
			b.Breaks = value
		case "finders":
			b.Finders = strings.Fields(value)
		default:
			return wrong(fmt.Sprintf("has a line that is not known: %q", line))
		}
	}
	switch {
	case b.Title == "" || b.File == "":
		return wrong("has no title, or no file")
	case !invariants.MatchString(b.Breaks):
		return wrong(fmt.Sprintf("breaks %q, which is no invariant", b.Breaks))
	case b.Was == "" || b.Was == b.Is:
		return wrong("changes nothing")
	case len(b.Finders) == 0:
		return wrong("names no finder")
	}
	for _, f := range b.Finders {
		if finderNamed(f) == nil {
			return wrong(fmt.Sprintf("names a finder %q, and there is none", f))
		}
	}
	return b, nil
}

// Apply returns the mistake's file as it is with the mistake. root is the folder of the module.
// It is an error if what the mistake replaces is not there exactly once.
func (b *Bug) Apply(root string) ([]byte, error) {
	text, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(b.File)))
	if err != nil {
		return nil, err
	}
	lines, was := "\n"+string(text), "\n"+b.Was
	if n := strings.Count(lines, was); n != 1 {
		return nil, fmt.Errorf("seeded: mistake %s does not apply: %s has its text %d times", b.Name, b.File, n)
	}
	return []byte(strings.Replace(lines, was, "\n"+b.Is, 1)[1:]), nil
}
