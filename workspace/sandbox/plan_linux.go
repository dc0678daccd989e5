package sandbox

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
)

// Kinds of entries of a plan.
const (
	kindDir   = "dir"   // a directory, not writable
	kindLink  = "link"  // a symbolic link To
	kindTmp   = "tmp"   // an empty writable directory of Size bytes
	kindRead  = "read"  // From, read-only, with all that is mounted below it
	kindWrite = "write" // From, writable
	kindNull  = "null"  // a file that cannot be read
	kindEmpty = "empty" // an empty directory, not writable
	kindProc  = "proc"
	kindDev   = "dev"
)

// entry is one step of the plan: what appears at the path At inside.
type entry struct {
	Kind string `json:"kind"`
	At   string `json:"at"`
	From string `json:"from,omitempty"`
	To   string `json:"to,omitempty"`
	Size int64  `json:"size,omitempty"`
}

// selfDir is where this program is inside, as interlock.
const selfDir = "/run/interlock/bin"

const selfPath = selfDir + "/interlock"

// systemDirs are visible and read-only. /etc loses what only some may read.
var systemDirs = []string{
	"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/etc", "/opt", "/nix", "/gnu",
	"/sys/devices/system/cpu",
}

// sharedDirs may hold the own tree and cannot be it.
var sharedDirs = []string{"/home", "/media", "/mnt", "/root", "/run", "/srv", "/tmp", "/var/lib", "/var/tmp"}

// newPlan lists the entries in the order in which they are made; hidden is secrets, or one that
// remembers. It resolves the paths of cfg and refuses dangerous
// ones.
func newPlan(cfg *Config, self string, hidden func() ([]entry, error)) ([]entry, error) {
	var plan []entry
	for _, dir := range systemDirs {
		switch info, err := os.Lstat(dir); {
		case errors.Is(err, fs.ErrNotExist):
		case err != nil:
			return nil, err
		case info.Mode()&fs.ModeSymlink != 0:
			to, err := os.Readlink(dir)
			if err != nil {
				return nil, err
			}
			plan = append(plan, entry{Kind: kindLink, At: dir, To: to})
		default:
			plan = append(plan, entry{Kind: kindRead, At: dir, From: dir})
		}
	}
	secret, err := hidden()
	if err != nil {
		return nil, err
	}
	plan = append(plan, secret...)
	plan = append(
		plan,
		entry{Kind: kindProc, At: "/proc"},
		entry{Kind: kindDev, At: "/dev"},
		entry{Kind: kindTmp, At: "/tmp", Size: scratch},
		entry{Kind: kindTmp, At: "/run", Size: scratch / 16},
		entry{Kind: kindDir, At: "/var"},
		entry{Kind: kindTmp, At: "/var/tmp", Size: scratch},
		entry{Kind: kindLink, At: "/var/run", To: "/run"},
		entry{Kind: kindDir, At: selfDir},
		entry{Kind: kindRead, At: selfPath, From: self},
	)
	if cfg.Net == NetHost {
		plan = append(plan, resolver()...)
	}
	paths, err := callerPaths(cfg)
	if err != nil {
		return nil, err
	}
	return append(plan, paths...), nil
}

// callerPaths are the entries of the caller's own paths, those above before those below.
func callerPaths(cfg *Config) ([]entry, error) {
	var list []entry
	if cfg.Home != "" && cfg.Home != "/" {
		home, err := clean("home directory", cfg.Home)
		if err != nil {
			return nil, err
		}
		list = append(list, entry{Kind: kindTmp, At: home, Size: scratch})
	}
	var writable []string
	for _, path := range cfg.Write {
		real, err := resolve(path)
		if err != nil {
			return nil, err
		}
		if err := mayWrite(real, cfg); err != nil {
			return nil, err
		}
		writable = append(writable, real)
		list = append(list, entry{Kind: kindWrite, At: real, From: real})
	}
	for _, path := range cfg.Read {
		real, err := resolve(path)
		if err != nil {
			return nil, err
		}
		if real == "/" {
			return nil, refuse(CodePath, "list what the command needs", "the whole disk cannot be made readable")
		}
		list = append(list, entry{Kind: kindRead, At: real, From: real})
	}
	for _, path := range cfg.Protect {
		real, err := clean("protected path", path)
		if err != nil {
			return nil, err
		}
		if !slices.ContainsFunc(writable, func(w string) bool { return below(real, w) }) {
			return nil, refuse(CodePath, "", "%s is protected but not below a writable path", path)
		}
		if resolved, err := filepath.EvalSymlinks(real); errors.Is(err, fs.ErrNotExist) {
			continue
		} else if err != nil || resolved != real {
			return nil, refuse(CodePath, "remove the link", "%s is to be protected and is reached by a symbolic link", path)
		}
		list = append(list, entry{Kind: kindRead, At: real, From: real})
	}
	for _, path := range cfg.Hide {
		real, err := resolve(path)
		if err != nil {
			var e *Error
			if errors.As(err, &e) && !exists(path) {
				continue // nothing is there to be hidden
			}
			return nil, err
		}
		info, err := os.Stat(real)
		if err != nil {
			return nil, err
		}
		kind := kindNull
		if info.IsDir() {
			kind = kindEmpty
		}
		list = append(list, entry{Kind: kind, At: real})
	}
	slices.SortStableFunc(list, func(a, b entry) int { return depth(a.At) - depth(b.At) })
	return list, nil
}

// mayWrite refuses a writable tree that would undo the sandbox.
func mayWrite(real string, cfg *Config) error {
	home, err := filepath.EvalSymlinks(cfg.Home)
	if err != nil {
		home = cfg.Home
	}
	guarded := append([]string{home, "/proc", "/dev", "/sys", "/boot", "/run/interlock"}, systemDirs...)
	for _, dir := range guarded {
		if dir != "" && (below(dir, real) || dir != home && below(real, dir)) {
			return refuse(CodePath, "use a tree of its own", "%s cannot be made writable, because of %s", real, dir)
		}
	}
	for _, dir := range sharedDirs {
		if below(dir, real) {
			return refuse(CodePath, "use a tree of its own", "%s cannot be made writable: others use it, too", real)
		}
	}
	return nil
}

// secrets are what is hidden in /etc.
func secrets() ([]entry, error) { return unreadable("/etc") }

// knownSecrets are those that the first call found.
var knownSecrets = sync.OnceValues(secrets)

// unreadable finds what below a directory only some users may read. Links are left: their targets count.
func unreadable(top string) (list []entry, err error) {
	err = filepath.WalkDir(top, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			if path != top && errors.Is(err, fs.ErrPermission) || errors.Is(err, fs.ErrNotExist) {
				return nil // an ordinary user cannot read it inside either
			}
			return err
		}
		info, err := d.Info()
		if err != nil {
			return nil // it has just been removed
		}
		switch mode := info.Mode(); {
		case d.IsDir() && mode.Perm()&0o005 != 0o005:
			list = append(list, entry{Kind: kindEmpty, At: path})
			return fs.SkipDir
		case mode.IsRegular() && mode.Perm()&0o004 == 0:
			list = append(list, entry{Kind: kindNull, At: path})
		}
		return nil
	})
	return list, err
}

// resolver makes the file visible that /etc/resolv.conf links to. It is in /run on many systems.
func resolver() []entry {
	real, err := filepath.EvalSymlinks("/etc/resolv.conf")
	if err != nil || !below(real, "/run") {
		return nil
	}
	return []entry{{Kind: kindRead, At: real, From: real}}
}

func clean(what, path string) (string, error) {
	if !filepath.IsAbs(path) || strings.ContainsRune(path, 0) {
		return "", refuse(CodePath, "use an absolute path", "the %s %q cannot be used", what, path)
	}
	return filepath.Clean(path), nil
}

func resolve(path string) (string, error) {
	if _, err := clean("path", path); err != nil {
		return "", err
	}
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return "", refuse(CodePath, "", "%s cannot be made visible: %v", path, err)
	}
	return real, nil
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return !errors.Is(err, fs.ErrNotExist)
}

// below reports whether path is top or in it.
func below(path, top string) bool {
	return path == top || top == "/" || strings.HasPrefix(path, top+"/")
}

func depth(path string) int {
	if path == "/" {
		return 0
	}
	return strings.Count(path, "/")
}
