package git

import (
	"fmt"
	"strings"

	"github.com/interlockdev/interlock"
)

// DefaultTemplate is how a path becomes a key by default.
const DefaultTemplate = "repo:{name}/{path}"

// Keys maps the paths of a repository to keys.
type Keys struct{ before, after string }

// NewKeys reads a template, in which {name} stands for the repository and {path} for
// a path in it.
func NewKeys(template, repository string) (Keys, error) {
	if repository == "" || strings.ContainsAny(repository, "{}") {
		return Keys{}, fmt.Errorf("%q is not valid as the name of a repository in a key", repository)
	}
	before, after, found := strings.Cut(strings.ReplaceAll(template, "{name}", repository), "{path}")
	if !found || strings.ContainsAny(before+after, "{}") {
		return Keys{}, fmt.Errorf(
			"template %q: want {path} once, {name} where the repository's name stands, and no other braces, such as %s",
			template, DefaultTemplate,
		)
	}
	return Keys{before, after}, nil
}

// Key returns the key of a path. Interlock decides whether it can be one.
func (k Keys) Key(path string) interlock.Key { return interlock.Key(k.before + path + k.after) }

// Path is that of a key; ok is false for keys of other things.
func (k Keys) Path(key interlock.Key) (path string, ok bool) {
	path, begins := strings.CutPrefix(string(key), k.before)
	path, ends := strings.CutSuffix(path, k.after)
	return path, begins && ends && path != ""
}

// Prefix returns the common prefix of the keys of all paths.
func (k Keys) Prefix() string { return k.before }
