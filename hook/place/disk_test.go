package place

import (
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/text/unicode/norm"
)

// memDisk is a disk in memory that compares names as fold makes them.
type memDisk struct {
	fold  func(dir string) func(string) string
	paths []string
}

type entry struct{ id int }

func (entry) Name() string       { return "" }
func (entry) Size() int64        { return 0 }
func (entry) Mode() fs.FileMode  { return 0 }
func (entry) ModTime() time.Time { return time.Time{} }
func (entry) IsDir() bool        { return false }
func (entry) Sys() any           { return nil }

func (m *memDisk) same(a, b string) bool {
	x, y := strings.Split(a, "/"), strings.Split(b, "/")
	if len(x) != len(y) {
		return false
	}
	for i := range x {
		fold := m.fold(strings.Join(x[:i], "/"))
		if fold(x[i]) != fold(y[i]) {
			return false
		}
	}
	return true
}

func (m *memDisk) disk() disk {
	return disk{
		lstat: func(p string) (os.FileInfo, error) {
			if i := slices.IndexFunc(m.paths, func(one string) bool { return m.same(one, p) }); i >= 0 {
				return entry{i}, nil
			}
			return nil, fs.ErrNotExist
		},
		names: func(dir string) (names []string) {
			for _, one := range m.paths {
				if m.same(path.Dir(one), dir) {
					names = append(names, path.Base(one))
				}
			}
			return names
		},
		same: func(a, b os.FileInfo) bool { return a == b },
	}
}

func exact(name string) string { return name }

// A file has one spelling on a disk that ignores case or normal forms, before and after it is made, and two files have
// two on one that does not. What counts is the folder.
func TestSpell(t *testing.T) {
	const composed, parted = "r\u00e9sum\u00e9", "re\u0301sume\u0301"
	folding := func(name string) string { return strings.ToLower(norm.NFC.String(name)) }
	allFold := func(string) func(string) string { return folding }
	allExact := func(string) func(string) string { return exact }
	for _, tt := range []struct {
		name  string
		fold  func(dir string) func(string) string
		paths []string
		a, b  string
		alike bool
	}{
		{"a folding disk", allFold, []string{"/W", "/W/Src", "/W/Src/A.ts"}, "Src/A.ts", "src/a.TS", true},
		{"a new file", allFold, []string{"/W", "/W/Src"}, "Src/New.ts", "SRC/new.ts", true},
		{"new folders", allFold, []string{"/W", "/W/1"}, "1/Sub/New.ts", "1/sub/new.ts", true},
		{"a form", allFold, []string{"/W", "/W/" + composed}, composed, parted, true},
		{"a new form", allFold, []string{"/W", "/W/\u00e4"}, composed, parted, true},
		{"an exact disk", allExact, []string{"/W", "/W/a", "/W/A"}, "a", "A", false},
		{"new files there", allExact, []string{"/W", "/W/readme"}, "New", "new", false},
		{"forms there", allExact, []string{"/W", "/W/" + composed, "/W/" + parted}, composed, parted, false},
		{"new forms there", allExact, []string{"/W", "/W/\u00e4"}, composed, parted, false},
		{
			"one folding folder",
			func(dir string) func(string) string {
				if dir == "/W/Win" {
					return folding
				}
				return exact
			},
			[]string{"/W", "/W/Win", "/W/Win/Old"},
			"Win/New", "Win/new", true,
		},
	} {
		m := &memDisk{fold: tt.fold, paths: tt.paths}
		a, b := m.disk().spell("/W", tt.a), m.disk().spell("/W", tt.b)
		if (norm.NFC.String(a) == norm.NFC.String(b)) != tt.alike {
			t.Errorf("%s: %s and %s are %q and %q", tt.name, tt.a, tt.b, a, b)
		}
		m.paths = append(m.paths, "/W/"+tt.a)
		if made := m.disk().spell("/W", tt.a); made != a {
			t.Errorf("%s: %s is %q, and once it is there %q", tt.name, tt.a, a, made)
		}
	}
}
