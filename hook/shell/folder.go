package shell

import (
	"slices"
	"strings"
)

// folder is a folder that commands run in: path, or some folder below it. Without a path it is not known.
type folder struct {
	path  string
	below bool
}

// place is where commands run.
type place struct {
	dir, old folder // the present folder and the one before
	// also are other folders that the present one may be.
	also []folder
}

// maybeIn notes that the present folder may be one of others. Of very many it is taken to be below all of them.
func (p *place) maybeIn(others ...folder) {
	also := slices.Clip(p.also)
	for _, other := range others {
		if other != p.dir && !slices.Contains(also, other) {
			also = append(also, other)
		}
	}
	if p.also = also; len(also) <= maxAlso {
		return
	}
	p.dir, p.also = p.common(), nil
}

const maxAlso = 4

// common is a folder above all that the present one may be.
func (p *place) common() folder {
	if len(p.also) == 0 {
		return p.dir
	}
	var paths []string
	for _, one := range append([]folder{p.dir}, p.also...) {
		if one.path == "" || strings.Contains(one.path, top) {
			return folder{}
		}
		paths = append(paths, one.path)
	}
	return folder{path: Above(paths), below: true}
}

// meet goes on at the ends of several ways: at the first one's, and maybe at those of the others.
func (r *reader) meet(ways []place) {
	r.place = ways[0]
	for _, way := range ways[1:] {
		r.maybeIn(append(way.also, way.dir)...)
	}
}

// everywhere does something in the present folder, and in those that it may be.
func (r *reader) everywhere(do func()) {
	before := r.place
	defer func() { r.place = before }()
	r.also = nil
	for _, r.dir = range append([]folder{before.dir}, before.also...) {
		do()
	}
}

// folderWord returns the present folder as $PWD has it.
func (r *reader) folderWord() word {
	return r.common().word()
}

// word returns the folder as $PWD has it.
func (f folder) word() word {
	switch {
	case f.path == "":
		return word{loose: true, glob: -1}
	case f.below:
		return some(f.path)
	}
	return literal(f.path)
}

// enter changes the folder.
func (r *reader) enter(w word) {
	before := append([]folder{r.dir}, r.also...)
	r.old, r.also = r.dir, nil
	for i, dir := range before {
		switch {
		case w.loose:
			dir = folder{}
		case w.isPattern():
			dir = dir.enter(w.folder().text)
			dir.below = true
		default:
			dir = dir.enter(w.text)
		}
		if i == 0 {
			r.dir = dir
		}
		r.maybeIn(dir)
	}
}

// enter returns the folder at a path that begins at this one.
func (f folder) enter(path string) folder {
	absolute := IsAbs(path)
	path = Join(f.path, path)
	if !f.below || absolute {
		return folder{path: path}
	}
	return folder{path: Above([]string{f.path, path}), below: true}
}

// workTree enters the top folder of a work tree, unless the present folder is in it: paths begin there then.
func (r *reader) workTree(w word) {
	before := r.place
	r.enter(w)
	if !before.dir.below && !r.dir.below && r.dir.path != "" &&
		Above([]string{before.dir.path, r.dir.path}) == r.dir.path {
		r.place = before
	}
}
