package git

import (
	"context"
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// Version is the version of the git that is found in PATH.
type Version struct {
	// Text is the whole version, such as "2.39.5" or "2.39.5 (Apple Git-154)".
	Text string
	// Major and Minor are its first two numbers.
	Major, Minor int
}

// AtLeast reports whether v is major.minor or newer.
func (v Version) AtLeast(major, minor int) bool {
	return v.Major > major || v.Major == major && v.Minor >= minor
}

var versionNumber = regexp.MustCompile(`^(\d+)\.(\d+)`)

// ReadVersion asks git for its version.
func ReadVersion(ctx context.Context) (Version, error) {
	out, err := new(Repository).Output(ctx, "version")
	if err != nil {
		return Version{}, err
	}
	return parseVersion(out)
}

func parseVersion(out string) (Version, error) {
	text, ok := strings.CutPrefix(out, "git version ")
	m := versionNumber.FindStringSubmatch(text)
	if !ok || m == nil {
		return Version{}, fmt.Errorf("git version printed %q: want \"git version 2.39.5\"", out)
	}
	major, errMajor := strconv.Atoi(m[1])
	minor, errMinor := strconv.Atoi(m[2])
	if errMajor != nil || errMinor != nil {
		return Version{}, fmt.Errorf("git version printed %q: its numbers are too long", out)
	}
	return Version{Text: text, Major: major, Minor: minor}, nil
}
