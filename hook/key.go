package hook

import (
	"crypto/sha256"
	"encoding/hex"
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
	"github.com/interlockdev/interlock/internal/invisible"
)

// File is a file that an event is about.
type File struct {
	Key interlock.Key
	// Name is how the model knows it: the path in its repository, or the whole path.
	Name string
}

// locator finds the keys of an event's paths.
type locator struct {
	roots []string // of the checkout, as the headers have it
	repo  string
	host  string // of the agent
	here  bool   // the agent's files are on this machine
	dir   string // the agent's folder
}

// newLocator returns the locator for a request. own is the name of this machine.
func newLocator(r *http.Request, own, dir string) *locator {
	l := &locator{
		roots: r.Header.Values(place.HeaderRoot), repo: r.Header.Get(place.HeaderRepo), host: r.Header.Get(place.HeaderHost), dir: dir,
	}
	remote, _, _ := net.SplitHostPort(r.RemoteAddr)
	ip := net.ParseIP(remote)
	switch {
	case l.host != "":
		l.here = l.host == own && (ip == nil || ip.IsLoopback())
	case ip == nil || ip.IsLoopback():
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

// files returns the files of targets, each once, in the order of their keys. Paths that cannot be known are left out,
// and so are the agent's own folder and those above it: a lease on one of them would stop all agents, and no tool
// writes it as a file.
func (l *locator) files(targets []Target) (files []File) {
	for _, t := range targets {
		full := join(l.dir, t.Path)
		if full == "" {
			continue
		}
		switch around := l.around(full); {
		case around && t.Into == "":
			continue
		case t.Into != "" && (around || l.here && isFolder(full)):
			full = path.Join(full, t.Into)
		}
		files = append(files, l.file(full))
	}
	slices.SortFunc(files, func(a, b File) int { return strings.Compare(string(a.Key), string(b.Key)) })
	return slices.CompactFunc(files, func(a, b File) bool { return a.Key == b.Key })
}

// around reports whether a path is the agent's folder or the checkout, or a folder above it.
func (l *locator) around(full string) bool {
	return slices.ContainsFunc(append([]string{l.dir}, l.roots...), func(folder string) bool {
		_, ok := below(full, cleanPath(folder))
		return ok && folder != ""
	})
}

// file returns the file at an absolute path, or the folder.
func (l *locator) file(full string) File {
	full = cleanPath(full)
	if l.here {
		if real := place.Resolve(filepath.FromSlash(full)); real != "" {
			full = filepath.ToSlash(real)
		}
		if slices.Contains(l.roots, full) {
			return l.inRepo(l.repo, "")
		}
	}
	if l.repo != "" {
		for _, root := range l.roots {
			if rest, ok := below(root, full); ok {
				return l.inRepo(l.repo, rest)
			}
		}
	}
	if l.here {
		if c, ok := place.Find(filepath.FromSlash(full)); ok {
			rest, _ := below(filepath.ToSlash(c.Root), full)
			return l.inRepo(c.Repo, rest)
		}
	} else if l.repo == "" {
		if rest, ok := below(l.dir, full); ok {
			return l.inRepo(path.Base(cleanPath(l.dir)), rest)
		}
	}
	return File{Key: keyOf("file:"+segment(l.host), full), Name: shown(full)}
}

func (l *locator) inRepo(repo, rest string) File {
	name := rest
	if rest == "" {
		name = "the checkout of " + repo
	}
	return File{Key: keyOf("repo:"+segment(repo), rest), Name: shown(name)}
}

// below returns the path of a file below a folder, "" for the folder itself.
func below(folder, file string) (rest string, ok bool) {
	folder = strings.TrimRight(cleanPath(folder), "/")
	if file == folder || file == "/" && folder == "" {
		return "", true
	}
	rest, ok = strings.CutPrefix(file, folder+"/")
	return rest, ok && isAbs(folder+"/")
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
