package workspace

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"unicode"

	"github.com/interlockdev/interlock/internal/git"
)

// CheckName reports what is wrong with the name of a workspace or a repository, which is a part of
// paths, refs and keys: see git.CheckName.
func CheckName(what, name string) error {
	if err := git.CheckName(name); err != nil {
		return problem(CodeName, "the %s cannot be named so: %v", what, err)
	}
	return nil
}

// NameFrom makes a name of a text such as the path of a repository, or "" if nothing of it can be used. A text with
// letters that no name may have, or with more of them than a name has, ends in a hash: two such texts have two names.
func NameFrom(text string) string {
	name, lost := spell(text)
	if lost {
		return withHash(name, text)
	}
	return name
}

// UniqueName makes a name of a text, another one for each text that no name can spell. Letters of both cases count as
// one.
func UniqueName(text string) string {
	if name := strings.ToLower(text); git.CheckName(name) == nil || text == "" {
		return name
	}
	name, _ := spell(text)
	return withHash(name, text)
}

// spell replaces what no name may have. lost reports that letters beyond ASCII, or at the end, are missing.
func spell(text string) (name string, lost bool) {
	var b strings.Builder
	for _, r := range strings.ToLower(text) {
		switch {
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9', r == '.', r == '_', r == '-':
			b.WriteRune(r)
		default:
			lost = lost || r > unicode.MaxASCII
			b.WriteByte('-')
		}
	}
	name = strings.ReplaceAll(b.String(), "..", "-")
	name = strings.Trim(strings.TrimSuffix(name, ".lock"), ".-")
	lost = lost || len(name) > git.MaxName
	return strings.TrimRight(name[:min(len(name), git.MaxName)], ".-"), lost
}

// withHash is a name that ends with a hash of the text that it is made of.
func withHash(name, text string) string {
	const digits = 8
	sum := sha256.Sum256([]byte(text))
	name = strings.TrimRight(name[:min(len(name), git.MaxName-1-digits)], ".-")
	return strings.TrimPrefix(name+"-", "-") + hex.EncodeToString(sum[:digits/2])
}

// Code is what kind of problem an Error is. The list is closed, and a code keeps its meaning.
type Code string

// The codes of errors.
const (
	CodeName        Code = "bad_name"         // a name or a path that cannot be used
	CodeExists      Code = "workspace_exists" // the name is in use
	CodeUnknown     Code = "no_workspace"     // there is no such workspace
	CodeSource      Code = "bad_source"       // the repository cannot be used
	CodeKind        Code = "kind_unsupported" // the kind does not work here
	CodeBase        Code = "base_changed"     // a base checkout is not what it was
	CodeLimit       Code = "host_full"        // too many workspaces, or too little free disk
	CodeUnsubmitted Code = "unsubmitted_work" // Delete would lose work
	CodeUncommitted Code = "uncommitted_work" // changed files must be committed first
	CodeNothing     Code = "nothing_to_submit"
	CodeObjects     Code = "bad_objects"      // git refuses what would be submitted
	CodeConflict    Code = "conflict"         // unresolved conflicts in the tree
	CodeBroken      Code = "workspace_broken" // git cannot be run on what the agent left
	CodeFilter      Code = "filter_missing"   // a filter of git cannot run
	CodeInclude     Code = "bad_include"      // a file or folder that cannot be included or shared
)

// Error is a refusal: the state of things is as it was before. The text is one sentence, and the next
// step behind a colon.
type Error struct {
	Code    Code
	Message string
}

func (e *Error) Error() string { return e.Message }

// Is compares codes, for errors.Is with the Err variables.
func (e *Error) Is(target error) bool {
	t, ok := target.(*Error)
	return ok && t.Message == "" && t.Code == e.Code
}

// Errors to compare with, by errors.Is.
var (
	ErrExists      = &Error{Code: CodeExists}
	ErrUnknown     = &Error{Code: CodeUnknown}
	ErrKind        = &Error{Code: CodeKind}
	ErrBaseChanged = &Error{Code: CodeBase}
	ErrLimit       = &Error{Code: CodeLimit}
	ErrUnsubmitted = &Error{Code: CodeUnsubmitted}
	ErrUncommitted = &Error{Code: CodeUncommitted}
	ErrNothing     = &Error{Code: CodeNothing}
	ErrObjects     = &Error{Code: CodeObjects}
	ErrConflict    = &Error{Code: CodeConflict}
	ErrBroken      = &Error{Code: CodeBroken}
	ErrName        = &Error{Code: CodeName}
	ErrSource      = &Error{Code: CodeSource}
	ErrFilter      = &Error{Code: CodeFilter}
	ErrInclude     = &Error{Code: CodeInclude}
)

func problem(code Code, format string, args ...any) error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...)}
}
