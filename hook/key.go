package hook

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/hook/place"
	"github.com/interlockdev/interlock/hook/region"
	"github.com/interlockdev/interlock/hook/shell"
	"github.com/interlockdev/interlock/internal/invisible"
)

// File is a file that an event is about.
type File struct {
	// Key is that of this copy of the file.
	Key interlock.Key
	// Shared is the key of the file in its repository, without the copy: an intent on it lets others lease the file in
	// all copies, by name. It is "" outside of repositories.
	Shared interlock.Key
	// In is the key of the whole file if Key is that of a region of it, else "".
	In interlock.Key
	// InName is the name of that file.
	InName string
	// Name is how the model knows it: the path in its repository, or the whole path; and "#REGION".
	Name string
}

// locator finds the keys of an event's paths.
type locator struct {
	roots []string // of the checkout, as the headers have it
	repo  string
	host  string // of the agent
	here  bool   // the agent's files are on this machine
	dir   string // the agent's folder
	// asks means that the sender can be asked where paths lead, and told is what it has answered.
	asks bool
	told map[string]place.Location
	// named returns the name that a copy was first known by.
	named func(repo string) string
	// edit is what the event does to each of its files, nil if it may do more.
	edit *region.Edit
	// seen are the copies that were found, by their top folders.
	seen map[string]string
}

// newLocator returns the locator for a request. own is the name of this machine, "" if its disk is not looked at.
func newLocator(r *http.Request, own, dir string) *locator {
	l := &locator{
		roots: r.Header.Values(place.HeaderRoot), repo: r.Header.Get(place.HeaderRepo), host: r.Header.Get(place.HeaderHost), dir: dir,
		named: func(repo string) string { return repo }, seen: map[string]string{},
	}
	if told := r.Header.Values(place.HeaderPlaces); len(told) > 0 {
		l.asks = json.Unmarshal([]byte(told[len(told)-1]), &l.told) == nil
	}
	remote, _, _ := net.SplitHostPort(r.RemoteAddr)
	ip := net.ParseIP(remote)
	switch {
	case l.host != "":
		l.here = l.host == own && (ip == nil || ip.IsLoopback())
	case own != "" && (ip == nil || ip.IsLoopback()):
		l.host, l.here = own, isFolder(dir)
	default:
		l.host = remote
	}
	return l
}

func isFolder(dir string) bool {
	info, err := os.Stat(dir)
	return err == nil && info.IsDir()
}

// resolve puts the top folders of checkouts into the paths of a command that has computed them.
func (l *locator) resolve(r shell.Reading) shell.Reading {
	known := func(file string) bool {
		if file == "" {
			r.Unknown = cmp.Or(r.Unknown, "the top folder of a checkout that is not known")
		}
		return file != ""
	}
	writes, trees := r.Writes, r.Trees
	r.Writes, r.Trees = nil, nil
	for _, t := range writes {
		if t.Path = shell.Top(t.Path, l.top); known(t.Path) {
			r.Writes = append(r.Writes, t)
		}
	}
	for _, t := range trees {
		if t.Path = shell.Top(t.Path, l.top); known(t.Path) {
			r.Trees = append(r.Trees, t)
		}
	}
	return r
}

// top returns the top folder of the checkout around a folder, "" if it is not known.
func (l *locator) top(folder string) (root string) {
	if at := l.locate(folder); at.Repo != "" {
		return at.Root
	}
	for _, one := range l.roots {
		if _, ok := below(one, shell.Clean(folder)); ok && len(one) > len(root) {
			root = one
		}
	}
	return root
}

// missing returns the paths of an event that lead to places which are not known here. A sender is asked once: what it
// has not told then is taken as it is spelled.
func (l *locator) missing(ev *Event) (paths []string) {
	if l.here || !l.asks || len(l.told) > 0 {
		return nil
	}
	var all []string
	for _, t := range ev.Writes {
		all = append(all, spellings(l.dir, t.Path)...)
		if t.Into != "" {
			all = append(all, path.Join(shell.Join(l.dir, t.Path), t.Into))
		}
	}
	for _, one := range ev.Reads {
		all = append(all, spellings(l.dir, one)...)
	}
	for _, tree := range ev.Trees {
		all = append(all, tree.Path)
	}
	if ev.Unknown != "" {
		all = append(all, l.dir)
	}
	for _, one := range all {
		if shell.IsAbs(one) && !slices.Contains(paths, one) {
			paths = append(paths, one)
		}
	}
	return paths
}

// spellings returns a path that begins at a folder as programs read it: most shorten "a/.." first, and some, such as a
// shell, go through a.
func spellings(dir, file string) (all []string) {
	full := shell.Join(dir, file)
	if full == "" {
		return nil
	}
	all = []string{full}
	if !shell.IsAbs(file) {
		file = dir + "/" + file
	}
	if strings.Contains(file+"/", "/../") {
		all = append(all, strings.ReplaceAll(file, `\`, "/"))
	}
	return all
}

// files returns the files of targets, each once, in the order of their keys. Paths that cannot be known are left out,
// and so are the agent's own folder and those above it: a lease on one of them would stop all agents, and no tool
// writes it as a file.
func (l *locator) files(targets []shell.Target) (files []File) {
	for _, t := range targets {
		for _, full := range spellings(l.dir, t.Path) {
			switch around := l.around(full); {
			case around && t.Into == "":
				continue
			case t.Into != "" && (around || l.locate(full).Folder):
				full = path.Join(full, t.Into)
			}
			files = append(files, l.edited(full))
		}
	}
	slices.SortFunc(files, func(a, b File) int { return strings.Compare(string(a.Key), string(b.Key)) })
	return slices.CompactFunc(files, func(a, b File) bool { return a.Key == b.Key })
}

// around reports whether a path is the agent's folder or the checkout, or a folder above it.
func (l *locator) around(full string) bool {
	full = shell.Clean(full)
	return slices.ContainsFunc(append([]string{l.dir}, l.roots...), func(folder string) bool {
		_, ok := below(full, shell.Clean(folder))
		return ok && folder != ""
	})
}

// locate returns where a path leads, which is absolute.
func (l *locator) locate(full string) place.Location {
	found, known := l.told[full]
	if !known && l.here {
		found, known = place.Locate(filepath.FromSlash(full))
	}
	if !known {
		found = place.Location{Path: shell.Clean(full)}
	}
	found.Root = filepath.ToSlash(found.Root)
	real := path.Join(found.Root, cmp.Or(found.Name, found.Path))
	for _, root := range l.roots {
		if l.repo == "" {
			break
		}
		if found.Root == root {
			found.Repo = l.repo
			break
		}
		// The agent may see a checkout that is none here, as in a file system of its own.
		_, inner := below(found.Root, root)
		if rest, ok := below(root, real); ok && (found.Root == "" || inner) {
			found.Repo, found.Root, found.Path, found.Name = l.repo, root, rest, ""
			break
		}
	}
	if found.Repo != "" {
		found.Repo = l.named(found.Repo)
		l.seen[found.Root] = found.Repo
	}
	return found
}

// file returns the file at an absolute path, or the folder.
func (l *locator) file(full string) File { return l.fileAt(l.locate(full)) }

func (l *locator) fileAt(at place.Location) File {
	file := File{Name: shown(cmp.Or(at.Name, at.Path))}
	if at.Repo == "" {
		file.Key = keyOf("file:"+segment(l.host), at.Path)
		return file
	}
	if at.Path == "" {
		file.Name = shown("the checkout of " + at.Repo)
	}
	file.Key = keyOf("repo:"+segment(at.Repo), at.Path)
	if i := strings.LastIndexByte(at.Repo, '@'); i > 0 {
		file.Shared = RepoKey(at.Repo[:i], at.Path)
	}
	return file
}

// maxRegion is the length of a region's name in a key, in bytes. Of a longer one a digest stands there.
const maxRegion = 100

// edited returns the region of the file at an absolute path that the event changes, or the file.
func (l *locator) edited(full string) File {
	at := l.locate(full)
	file := l.fileAt(at)
	if l.edit == nil || file.Shared == "" {
		return file
	}
	if l.here {
		at.Edited(l.edit)
	}
	if at.Region == "" {
		return file
	}
	name := segment("#" + at.Region)
	if len(name) > maxRegion {
		sum := sha256.Sum256([]byte(at.Region))
		name = "#~" + hex.EncodeToString(sum[:12])
	}
	key := keyOf(string(file.Key), name)
	// Inside of a lease the key has another first part, and a key with a digest in place of its end would not be below
	// the file's.
	longest := string(keyOf(withinMark+"18446744073709551615", string(key)))
	if !strings.HasSuffix(longest, string(key)) {
		return file
	}
	return File{
		Key: key, In: file.Key, InName: file.Name, Shared: file.Shared, Name: shown(file.Name + "#" + at.Region),
	}
}

// fileAround returns the key of the file that a key is a region of, by its form: a file with a name that begins with '#'
// has that form, too.
func fileAround(key string) (file string, inside bool) {
	i := strings.LastIndexByte(key, '/')
	return key[:max(i, 0)], i > 0 && strings.HasPrefix(key[i+1:], "#")
}

// whole is the key of the whole file, outside of all leases.
func (f File) whole() interlock.Key { return cmp.Or(f.In, f.self()) }

// checkout returns the top folder of the checkout around a folder, or the folder itself where none is known.
func (l *locator) checkout(folder string) string {
	if at := l.locate(folder); at.Repo != "" {
		return at.Root
	}
	return folder
}

// RepoKey returns the key of a file in a repository, in all of its copies: an edit of it has an intent on it.
func RepoKey(repo, file string) interlock.Key { return keyOf("repo:"+segment(repo), file) }

// below returns the path of a file below a folder, "" for the folder itself.
func below(folder, file string) (rest string, ok bool) {
	folder = strings.TrimRight(shell.Clean(folder), "/")
	if file == folder || file == "/" && folder == "" {
		return "", true
	}
	rest, ok = strings.CutPrefix(file, folder+"/")
	return rest, ok && shell.IsAbs(folder+"/")
}

// shown returns a path as a text for the model: what it knows, on one line.
func shown(name string) string { return invisible.Clip(invisible.Line(name), maxLine) }

// keyOf returns the key of a path below a first segment. A path that can be a key is itself, as in the keys of the git
// guard. What keys cannot have is escaped, and a path too long or too deep ends with a digest.
func keyOf(first, rest string) interlock.Key {
	segments := []string{first}
	for part := range strings.SplitSeq(rest, "/") {
		if part != "" {
			segments = append(segments, segment(part))
		}
	}
	key := strings.Join(segments, "/")
	if len(segments) <= interlock.MaxKeySegments && len(key) <= interlock.MaxKeyBytes {
		return interlock.Key(key)
	}
	sum := sha256.Sum256([]byte(key))
	digest := "~" + hex.EncodeToString(sum[:12])
	kept := segments[:min(len(segments), interlock.MaxKeySegments-1)]
	for len(kept) > 1 && len(strings.Join(kept, "/"))+1+len(digest) > interlock.MaxKeyBytes {
		kept = kept[:len(kept)-1]
	}
	return interlock.Key(invisible.Clip(strings.Join(kept, "/"), interlock.MaxKeyBytes-1-len(digest)) + "/" + digest)
}

// segment returns a name as a segment of a key. An accent behind an escape is escaped, too: it would change the last
// digit of the escape.
func segment(name string) string {
	name = norm.NFC.String(strings.ToValidUTF8(name, "\uFFFD"))
	var b strings.Builder
	escaped := false
	for i, r := range name {
		text := string(r)
		atEnd := i == 0 || i+len(text) == len(name)
		switch {
		case r == '/', r == 0x7f, r == ' ' && atEnd, invisible.Is(r), r == invisible.EmojiStyle,
			r != ' ' && unicode.Is(unicode.Zs, r), escaped && !norm.NFC.PropertiesString(text).BoundaryBefore():
			escaped = true
			for _, c := range []byte(text) {
				b.WriteString("%" + strings.ToUpper(hex.EncodeToString([]byte{c})))
			}
		default:
			escaped = false
			b.WriteString(text)
		}
	}
	switch s := b.String(); s {
	case "", ".", "..":
		return "%" + s
	default:
		return s
	}
}
