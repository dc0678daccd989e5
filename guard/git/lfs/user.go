package lfs

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"fmt"
	"net/http"
	"os"
	"strings"
	"unicode"

	"github.com/interlockdev/interlock"
)

// Users are the users that may come in, by name and password. The password is a secret that
// "interlock credential create" made, and the file has the lines that it printed:
//
//	alice  default  sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08
//
// A name may stand in several lines, so that a secret can be replaced without an
// interruption. The hash is one round of SHA-256, which is safe for 256 random bits
// and for nothing that a person made up.
type Users struct {
	digests map[string][][sha256.Size]byte
}

// LoadUsers reads the file at path. The error names the line.
func LoadUsers(path string) (*Users, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	u := &Users{digests: map[string][][sha256.Size]byte{}}
	n := 0
	for line := range strings.Lines(string(content)) {
		n++
		fields := strings.Fields(line)
		if len(fields) == 0 || strings.HasPrefix(fields[0], "#") {
			continue
		}
		if len(fields) < 3 || !isUser(fields[0]) {
			return nil, fmt.Errorf(
				"%s: line %d: want a name, a namespace and sha256:hash, as `interlock credential create` prints them", path, n,
			)
		}
		digits, ok := strings.CutPrefix(fields[2], "sha256:")
		digest, err := hex.DecodeString(digits)
		if !ok || err != nil || len(digest) != sha256.Size {
			return nil, fmt.Errorf("%s: line %d: want sha256: and 64 hexadecimal digits", path, n)
		}
		u.digests[fields[0]] = append(u.digests[fields[0]], [sha256.Size]byte(digest))
	}
	if len(u.digests) == 0 {
		return nil, fmt.Errorf("%s: it names nobody", path)
	}
	return u, nil
}

// knows reports whether the password is the user's.
func (u *Users) knows(name, password string) bool {
	digest := sha256.Sum256([]byte(password))
	known := 0
	for _, d := range u.digests[name] {
		known |= subtle.ConstantTimeCompare(d[:], digest[:])
	}
	return known == 1
}

// isUser reports whether a name can be an agent's, and reads the same wherever it is
// shown.
func isUser(name string) bool {
	return name != "" && len(name) <= interlock.MaxNameBytes && strings.TrimSpace(name) == name &&
		!strings.ContainsFunc(name, func(r rune) bool { return !unicode.IsPrint(r) || r == unicode.ReplacementChar })
}

// identify finds out the caller.
func (c *call) identify() bool {
	name, password, given := c.r.BasicAuth()
	if given && isUser(name) && (c.cfg.Users == nil || c.cfg.Users.knows(name, password)) {
		c.user = name
		return true
	}
	c.w.Header().Set("LFS-Authenticate", `Basic realm="interlock"`)
	c.w.Header().Set("WWW-Authenticate", `Basic realm="interlock"`)
	message := "say who you are: a user name and a password"
	if given {
		message = "nobody is known by this user name and password"
	}
	c.refuse(http.StatusUnauthorized, message)
	return false
}
