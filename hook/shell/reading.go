package shell

import (
	"path"
	"slices"
	"strings"
)

// Reading is what a command changes.
type Reading struct {
	// Writes are the files that it names. A path with ".." is as the command has it, behind the folder that it runs in.
	Writes []Target
	// Trees are files and folders that it changes at large, or brings into a commit.
	Trees []Tree
	// Unknown is the first part that is not understood, such as the name of a program, and could write anything; ""
	// if there is none.
	Unknown string
}

// Target is a path that a tool writes.
type Target struct {
	Path string
	// Into is the name of the file if Path is a folder, as in "mv a.go src".
	Into string
}

// Tree is a folder with all below it, or a file.
type Tree struct {
	Path   string
	Effect Effect
	// Whole means the checkout around Path.
	Whole bool
}

// Effect is what a command does to the files of a tree.
type Effect int

const (
	// Changes: it writes, replaces or removes some of them.
	Changes Effect = iota
	// Stages: it brings their present contents into the index, from where any commit takes them.
	Stages
	// Commits: it brings their present contents into a commit.
	Commits
	// Records: it commits all that is in the index, which agents may have staged.
	Records
	// Amends: it replaces the last commit, which may be another agent's.
	Amends
	// Moves: it moves HEAD. The files stay, but the next commit of any agent goes elsewhere.
	Moves
	// Switches: it moves HEAD, and changes files with it.
	Switches
	// Stashes: it puts all changes away.
	Stashes
	// Resets: it throws all changes away.
	Resets
)

const (
	maxTargets = 1000   // files that are named one by one
	maxTrees   = 512    // folders, and paths that are taken into a commit
	maxSteps   = 20_000 // commands of one text that are looked at, with repetitions
	maxNested  = 12     // texts and functions in each other
	maxFields  = 20_000 // words of one command
)

// Read returns what a command of a shell changes. dir is the folder that it runs in, "" if it is not known.
func Read(command, dir string) Reading {
	r := newReader(dir)
	r.text(command)
	return r.reading()
}

func newReader(dir string) *reader {
	return &reader{
		writes: map[Target]bool{}, trees: map[Tree]bool{}, loops: 1,
		state: state{
			place: place{dir: folder{path: dir}},
			vars:  map[string]word{}, arrays: map[string][]word{}, funcs: map[string]*function{},
		},
	}
}

// reading returns what has been gathered. Too many files become the folder above all of them, and so do too many
// folders.
func (r *reader) reading() Reading {
	out := r.out
	if r.crowded {
		paths := make([]string, 0, len(out.Writes))
		for _, target := range out.Writes {
			paths = append(paths, target.Path)
		}
		out.Writes = nil
		out.Trees = append(out.Trees, Tree{Path: Above(append(paths, r.above))})
	}
	if len(out.Trees) <= maxTrees {
		return out
	}
	var few []Tree
	for effect := Changes; effect <= Resets; effect++ {
		for _, whole := range []bool{false, true} {
			var paths []string
			for _, tree := range out.Trees {
				if tree.Effect == effect && tree.Whole == whole {
					paths = append(paths, tree.Path)
				}
			}
			if len(paths) > 0 {
				few = append(few, Tree{Path: Above(paths), Effect: effect, Whole: whole})
			}
		}
	}
	out.Trees = few
	return out
}

// Above returns the longest path that is each of the paths, or a folder above it.
func Above(paths []string) string {
	if len(paths) == 0 {
		return ""
	}
	least, most := slices.Min(paths), slices.Max(paths)
	if least == most {
		return least
	}
	n := 0
	for n < len(least) && n < len(most) && least[n] == most[n] {
		n++
	}
	if n == len(least) && most[n] == '/' {
		return least
	}
	return path.Dir(least[:n] + "x")
}

// write notes that a file is written.
func (r *reader) write(w word) { r.writeInto(w, "") }

func (r *reader) writeAll(files []word) {
	for _, file := range files {
		r.write(file)
	}
}

func (r *reader) writeInto(w word, into string) {
	r.everywhere(func() { r.writeHere(w, into) })
}

func (r *reader) writeHere(w word, into string) {
	if (w.glob >= 0 || r.dir.below && !IsAbs(w.text)) && !w.loose {
		r.affectHere(w, Changes, false)
		return
	}
	file := r.locate(w)
	if file == "" {
		return
	}
	target := Target{Path: file, Into: into}
	if !IsAbs(w.text) && strings.Contains("/"+w.text+"/", "/../") {
		target.Path = r.dir.path + "/" + w.text // behind a link, ".." is another folder than the path without its last part
	}
	switch {
	case r.writes[target]:
	case len(r.writes) >= maxTargets:
		if !r.crowded {
			r.crowded, r.above = true, file
		}
		r.above = Above([]string{r.above, file})
	default:
		r.writes[target] = true
		r.out.Writes = append(r.out.Writes, target)
	}
}

// tree notes that files of a folder are changed.
func (r *reader) tree(w word) { r.affect(w, Changes, false) }

// checkout notes something about the whole checkout around the present folder.
func (r *reader) checkout(effect Effect) { r.affect(here, effect, true) }

func (r *reader) affect(w word, effect Effect, whole bool) {
	r.everywhere(func() { r.affectHere(w, effect, whole) })
}

func (r *reader) affectHere(w word, effect Effect, whole bool) {
	if w = pattern(w); w.glob >= 0 && !w.loose {
		w = w.folder()
	}
	folder := r.locate(w)
	tree := Tree{Path: folder, Effect: effect, Whole: whole}
	if folder == "" || r.trees[tree] {
		return
	}
	r.trees[tree] = true
	r.out.Trees = append(r.out.Trees, tree)
}

// path notes a change of a file, or of a folder with all below it.
func (r *reader) path(w word, effect Effect) {
	w = pattern(w)
	last := path.Base(w.text)
	switch ext := path.Ext(last); {
	case effect == Stages, effect == Commits, strings.HasSuffix(w.text, "/"), last == "...",
		strings.Trim(w.text, "./:") == "", ext == "",
		ext == last, w.glob >= 0:
		w.text = strings.TrimSuffix(w.text, "...")
		r.affect(w, effect, false)
	default:
		r.write(w)
	}
}

// pattern returns a word that the program may take for a pattern although the shell did not. A class in brackets is
// left a name: app/[id]/page.tsx is a file of many projects.
func pattern(w word) word {
	if w.glob < 0 && !w.loose && !w.exact {
		w.glob = strings.IndexAny(w.text, "*?")
		if open := strings.IndexByte(w.text, '{'); open >= 0 && (w.glob < 0 || open < w.glob) &&
			strings.ContainsRune(w.text[open:], ',') && strings.ContainsRune(w.text[open:], '}') {
			w.glob = open
		}
	}
	return w
}

func (r *reader) paths(list []word, effect Effect) {
	for _, w := range list {
		r.path(w, effect)
	}
}

// unknown notes a part that is not understood.
func (r *reader) unknown(part string) {
	if r.out.Unknown == "" {
		r.out.Unknown = part
	}
}

// apart are folders in which no two agents have a file in common.
var apart = []string{"/dev/", "/proc/", "/sys/"}

// locate returns the path of a word, "" if it cannot be known, or is no file that an agent has in common with another.
func (r *reader) locate(w word) string {
	if w.loose {
		known := w.text[:w.fixed]
		if !slices.ContainsFunc([]string{"/dev/", "/proc/", "/sys/", "/tmp/", "/var/tmp/"}, func(folder string) bool {
			return strings.HasPrefix(known, folder) && !strings.Contains(w.text, "..")
		}) {
			r.unknown("a path that the shell makes up")
		}
		return ""
	}
	if w.text == "" || w.text == "-" {
		return ""
	}
	file := r.dir.enter(w.text).path
	if file == "" {
		r.unknown("a path in a folder that is not known")
	}
	if slices.ContainsFunc(apart, func(folder string) bool { return strings.HasPrefix(file, folder) }) {
		return ""
	}
	return file
}
