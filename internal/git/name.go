package git

import (
	"errors"
	"fmt"
	"strings"
)

// MaxName is how many bytes a name has at most.
const MaxName = 64

// CheckName returns an error unless name can be a workspace, a target or a submission in the names of refs and
// folders: lower-case letters, digits, '.', '_' and '-', at most [MaxName] bytes, no '-' or '.' at its beginning, no
// "..", and none of the endings that git keeps for itself.
func CheckName(name string) error {
	switch {
	case name == "":
		return errors.New("the name is empty: want letters, digits, '.', '_' or '-'")
	case len(name) > MaxName:
		return fmt.Errorf("the name has %d bytes: want at most %d", len(name), MaxName)
	case strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789._-") != "" || strings.ContainsFunc(name, notInName):
		return fmt.Errorf("the name %q has other characters than a to z, 0 to 9, '.', '_' and '-'", name)
	case name[0] == '-' || name[0] == '.':
		return fmt.Errorf("the name %q begins with '-' or '.'", name)
	case strings.Contains(name, "..") || strings.HasSuffix(name, ".lock") || strings.HasSuffix(name, "."):
		return fmt.Errorf("the name %q contains \"..\", or ends with \".lock\" or '.', which git keeps for itself", name)
	}
	return nil
}

func notInName(c rune) bool {
	return (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '.' && c != '_' && c != '-'
}

// CheckRef returns an error unless ref is the full name of a ref, such as refs/heads/main, by the rules of
// git check-ref-format.
func CheckRef(ref string) error {
	rest, ok := strings.CutPrefix(ref, "refs/")
	if !ok {
		return fmt.Errorf("%q is no full name of a ref: it begins with refs/", ref)
	}
	if len(ref) > 1024 {
		return fmt.Errorf("the name of the ref has %d bytes: want at most 1024", len(ref))
	}
	for part := range strings.SplitSeq(rest, "/") {
		if part == "" || part[0] == '.' || part[0] == '-' || strings.HasSuffix(part, ".lock") {
			return fmt.Errorf("%q is no name of a ref: a part is empty, begins with '.' or '-', or ends with .lock", ref)
		}
	}
	bad := func(c rune) bool { return c <= ' ' || c == 0x7f || strings.ContainsRune("~^:?*[\\", c) }
	if strings.ContainsFunc(ref, bad) || strings.Contains(ref, "..") || strings.Contains(ref, "@{") ||
		strings.HasSuffix(ref, ".") {
		return fmt.Errorf("%q is no name of a ref: it has a space, a control character, or one that git gives a meaning", ref)
	}
	return nil
}

// CheckObject returns an error unless id is the full id of an object, in SHA-1 or SHA-256, in lower case. Any other
// text could be an option or a revision to git.
func CheckObject(id string) error {
	if (len(id) != 40 && len(id) != 64) || strings.Trim(id, "0123456789abcdef") != "" {
		return fmt.Errorf("%q is no object id: want 40 or 64 digits of hexadecimal in lower case", id)
	}
	return nil
}

// IsZero reports whether an object id is the one that stands for none: in a transaction of refs, for a ref that does
// not exist.
func IsZero(id string) bool { return id != "" && strings.Trim(id, "0") == "" }
