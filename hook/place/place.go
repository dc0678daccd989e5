package place

import (
	"cmp"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/interlockdev/interlock/hook/region"
)

// Checkout is a work tree of a repository.
type Checkout struct {
	// Root is the top folder, absolute and without links.
	Root string
	// Repo is the name of the copy: NAME@ID. NAME is the last part of the address of the remote origin without .git, else
	// the name of the top folder.
	Repo string
}

// Find returns the checkout that a folder lies in, the innermost one; ok is false if it lies in none. The folder need
// not exist.
func Find(dir string) (c Checkout, ok bool) {
	for dir = Resolve(dir); dir != ""; dir = above(dir) {
		if name, label, found := repoAt(dir); found {
			if id := identity(dir); id != "" {
				return Checkout{Root: dir, Repo: name + "@" + strings.ReplaceAll(label, "@", "-") + id}, true
			}
		}
	}
	return Checkout{}, false
}

// above returns the folder above a path, "" for a root.
func above(path string) string {
	if up := filepath.Dir(path); up != path {
		return up
	}
	return ""
}

// Location is where a file is.
type Location struct {
	// Repo is the name of its copy, as Checkout has it, and Root the top folder; "" outside of all repositories.
	Repo string `json:"repo,omitempty"`
	Root string `json:"root,omitempty"`
	// Path leads there from Root, "" for Root itself; outside of repositories it is absolute. Its parts are joined by '/',
	// and spelled as the disk compares them, so that a file has one.
	Path string `json:"path"`
	// Name is Path as the disk has it, or as it was asked for, where that differs.
	Name string `json:"name,omitempty"`
	// Folder means that it is a folder, with other files in it.
	Folder bool `json:"folder,omitempty"`
	// Region is the part of the file that an edit changes, "" for all of it: see Edited.
	Region string `json:"region,omitempty"`
}

// Locate returns where a path leads that is absolute. It need not exist. ".." is the folder above, which behind a link
// is another one than the path without its last part.
func Locate(path string) (l Location, ok bool) {
	path = Resolve(path)
	if path == "" {
		return l, false
	}
	info, err := os.Stat(path)
	l.Folder = err == nil && info.IsDir()
	top := filepath.VolumeName(path) + string(filepath.Separator)
	if c, ok := Find(path); ok {
		l.Repo, l.Root = c.Repo, c.Root
		top = c.Root
	}
	rest, err := filepath.Rel(top, path)
	if err != nil {
		return l, false
	}
	if rest != "." {
		l.Name = filepath.ToSlash(rest)
		l.Path = realDisk.spell(top, rest)
	}
	if l.Repo == "" {
		volume := filepath.ToSlash(top)
		l.Name, l.Path = volume+l.Name, volume+l.Path
	}
	if l.Name == l.Path {
		l.Name = ""
	}
	return l, true
}

// Edited fills in the region that an edit of the file changes, as the file is now.
func (l *Location) Edited(e *region.Edit) {
	if e == nil || l.Folder || l.Repo == "" {
		return
	}
	name := filepath.FromSlash(cmp.Or(l.Name, l.Path))
	f, err := openFile(filepath.Join(l.Root, name))
	if err != nil {
		return
	}
	defer f.Close()
	if text, err := io.ReadAll(io.LimitReader(f, region.MaxFile+1)); err == nil {
		l.Region, _ = e.Of(name, text)
	}
}

// maxLinks bounds how many links are followed for one path.
const maxLinks = 40

// Resolve returns where a path leads: absolute, without "." and "..", and with all links followed as far as the path
// exists. It returns "" for a path that is not absolute.
func Resolve(path string) string {
	if !filepath.IsAbs(path) {
		return ""
	}
	volume := filepath.VolumeName(path)
	root := volume + string(filepath.Separator)
	at, left := root, parts(path[len(volume):])
	for links := 0; len(left) > 0; {
		part := left[0]
		left = left[1:]
		if part == ".." {
			at = filepath.Dir(at)
			continue
		}
		next := filepath.Join(at, part)
		target, err := os.Readlink(next)
		if err != nil || links == maxLinks {
			at = next
			continue
		}
		links++
		if filepath.IsAbs(target) {
			at, target = root, target[len(filepath.VolumeName(target)):]
		}
		left = slices.Concat(parts(target), left)
	}
	return at
}

// parts returns the names of a path, without empty ones and ".".
func parts(path string) []string {
	return slices.DeleteFunc(strings.Split(filepath.ToSlash(path), "/"), func(part string) bool {
		return part == "" || part == "."
	})
}

// repoAt returns the name of the repository with its top at dir. label is the name that its git directory has among
// those of a repository or of workspaces, with a '-' behind it; "" if it has none.
func repoAt(dir string) (name, label string, ok bool) {
	dotGit := filepath.Join(dir, ".git")
	info, err := os.Stat(dotGit)
	if err != nil {
		return "", "", false
	}
	folder := filepath.Base(dir)
	if info.IsDir() {
		if _, err := os.Stat(filepath.Join(dotGit, "HEAD")); err != nil {
			return "", "", false
		}
		return cmp.Or(originName(dotGit), folder), "", true
	}
	own, ok := strings.CutPrefix(readLine(dotGit), "gitdir:")
	if !ok {
		return "", "", false
	}
	own = below(dir, strings.TrimSpace(own))
	common := readLine(filepath.Join(own, "commondir"))
	switch {
	case common != "": // a linked worktree
		common = below(own, common)
		name = cmp.Or(originName(common), strings.TrimSuffix(filepath.Base(mainFolder(common)), ".git"))
		return name, filepath.Base(own) + "-", true
	case filepath.Base(own) == "git": // a workspace
		label = filepath.Base(filepath.Dir(own)) + "-"
	}
	return cmp.Or(originName(own), folder), label, true
}

// mainFolder returns the folder that a repository is named after.
func mainFolder(gitDir string) string {
	if filepath.Base(gitDir) == ".git" {
		return filepath.Dir(gitDir)
	}
	return gitDir
}

func below(dir, path string) string {
	if filepath.IsAbs(path) {
		return filepath.Clean(path)
	}
	return filepath.Join(dir, path)
}
