package place

import (
	"bufio"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// Checkout is a working tree of a repository.
type Checkout struct {
	// Root is the top folder, absolute and without links.
	Root string
	// Repo is the name of the repository: the last part of the address of its remote origin without
	// .git, else the name of the top folder. Another copy of its files has a name after an '@': a linked
	// worktree that of the worktree, and a clone in a folder with another name than the repository that of
	// the folder.
	Repo string
}

// Find returns the checkout that a directory lies in; ok is false if it lies in none. The directory need
// not exist.
func Find(dir string) (c Checkout, ok bool) {
	dir = Resolve(dir)
	if dir == "" {
		return Checkout{}, false
	}
	for {
		if repo, found := repoAt(dir); found {
			return Checkout{Root: dir, Repo: repo}, true
		}
		above := filepath.Dir(dir)
		if above == dir {
			return Checkout{}, false
		}
		dir = above
	}
}

// Within returns the path below a folder, with '/' between its parts; ok is false for a path that does not
// lie below it. Both are absolute and without links.
func Within(folder, path string) (rest string, ok bool) {
	rest, err := filepath.Rel(folder, path)
	if err != nil || rest == "." || rest == ".." || strings.HasPrefix(rest, ".."+string(filepath.Separator)) {
		return "", false
	}
	return filepath.ToSlash(rest), true
}

// maxLinks bounds how many links are followed for one path.
const maxLinks = 40

// Resolve returns where a path leads: absolute, without "." and "..", and with all links followed as far as the path
// exists. It returns "" for a path that is not absolute.
func Resolve(path string) string {
	if !filepath.IsAbs(path) {
		return ""
	}
	path = filepath.Clean(path)
	for range maxLinks {
		if real, err := filepath.EvalSymlinks(path); err == nil {
			return real
		}
		target, err := os.Readlink(path)
		if err != nil {
			break
		}
		if !filepath.IsAbs(target) { // of a link to a file that does not exist yet
			target = filepath.Join(filepath.Dir(path), target)
		}
		path = filepath.Clean(target)
	}
	above := filepath.Dir(path)
	if above == path {
		return path
	}
	return filepath.Join(Resolve(above), filepath.Base(path))
}

// repoAt returns the name of the repository with its top at dir.
func repoAt(dir string) (repo string, ok bool) {
	dotGit := filepath.Join(dir, ".git")
	info, err := os.Stat(dotGit)
	if err != nil {
		return "", false
	}
	folder := filepath.Base(dir)
	if info.IsDir() {
		if _, err := os.Stat(filepath.Join(dotGit, "HEAD")); err != nil {
			return "", false
		}
		return copyName(originName(dotGit), folder), true
	}
	own, ok := strings.CutPrefix(readLine(dotGit), "gitdir:")
	if !ok {
		return "", false
	}
	own = below(dir, strings.TrimSpace(own))
	common := readLine(filepath.Join(own, "commondir"))
	if common == "" { // a submodule, or a repository that is kept elsewhere
		return copyName(originName(own), folder), true
	}
	common = below(own, common)
	name := originName(common)
	if name == "" {
		name = strings.TrimSuffix(filepath.Base(mainFolder(common)), ".git")
	}
	return name + "@" + filepath.Base(own), true
}

// copyName returns the name of a repository in a folder.
func copyName(origin, folder string) string {
	if origin == "" {
		return folder
	}
	if origin == folder {
		return origin
	}
	return origin + "@" + folder
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

// maxRead bounds what is read of one file.
const maxRead = 1 << 20

func readLine(file string) string {
	f, err := os.Open(file)
	if err != nil {
		return ""
	}
	defer f.Close()
	line, _ := bufio.NewReader(io.LimitReader(f, maxRead)).ReadString('\n') // the last one may have no end
	return strings.TrimSpace(line)
}

// originName returns the name of a repository by the address of its remote origin, "" without one.
func originName(gitDir string) string {
	f, err := os.Open(filepath.Join(gitDir, "config"))
	if err != nil {
		return ""
	}
	defer f.Close()
	inOrigin := false
	lines := bufio.NewScanner(io.LimitReader(f, maxRead))
	for lines.Scan() {
		line := strings.TrimSpace(lines.Text())
		if strings.HasPrefix(line, "[") {
			section, _, _ := strings.Cut(line, "]")
			words := strings.Fields(section[1:])
			inOrigin = len(words) == 2 && strings.EqualFold(words[0], "remote") && words[1] == `"origin"`
			continue
		}
		name, value, ok := strings.Cut(line, "=")
		if ok && inOrigin && strings.EqualFold(strings.TrimSpace(name), "url") {
			return nameOf(strings.Trim(strings.TrimSpace(value), `"`))
		}
	}
	return ""
}

// nameOf returns the name of a repository by its address.
func nameOf(url string) string {
	url, _, _ = strings.Cut(url, "?")
	parts := strings.FieldsFunc(url, func(r rune) bool { return r == '/' || r == '\\' || r == ':' })
	for i := len(parts) - 1; i >= 0; i-- {
		if name := strings.TrimSuffix(parts[i], ".git"); name != "" && name != "." && name != ".." {
			return name
		}
	}
	return ""
}
