package sequence

import (
	"fmt"
	"strconv"
	"strings"
)

// Pattern is the form of numbered file names, such as {n:4}_{name}.sql. Use Parse.
type Pattern struct {
	before, between, after string // the fixed text around the number and the name
	width                  int
}

// maxWidth bounds the digits of a number. Longer ones are time stamps, which need no sequence.
const maxWidth = 7

// Parse reads a pattern. It has the number once, {n} or {n:WIDTH} with 1 to 7 digits, padded with zeros, and behind
// it {name} once, for any text that is not empty. There must be a separator that is no digit between the two.
func Parse(text string) (Pattern, error) {
	fail := func(why string) (Pattern, error) {
		return Pattern{}, fmt.Errorf("sequence pattern %q: %s; write for example {n:4}_{name}.sql", text, why)
	}
	before, rest, ok := strings.Cut(text, "{n")
	if !ok {
		return fail("{n} is missing")
	}
	width, rest, ok := strings.Cut(rest, "}")
	p := Pattern{before: before, width: 1}
	if width != "" {
		n, err := strconv.Atoi(strings.TrimPrefix(width, ":"))
		if err != nil || width[0] != ':' || n < 1 || n > maxWidth {
			return fail("the width of {n:WIDTH} is 1 to 7")
		}
		p.width = n
	}
	if !ok {
		return fail("a brace is not closed")
	}
	p.between, p.after, ok = strings.Cut(rest, "{name}")
	switch {
	case !ok:
		return fail("{name} is missing behind the number")
	case strings.ContainsAny(p.before+p.between+p.after, "{}/"):
		return fail("it has other braces or a slash")
	case p.between == "" || isDigit(p.between[0]) || p.before != "" && isDigit(p.before[len(p.before)-1]):
		return fail("no separator stands beside the number")
	}
	return p, nil
}

// String is the text that Parse reads.
func (p Pattern) String() string {
	number := "{n}"
	if p.width > 1 {
		number = fmt.Sprintf("{n:%d}", p.width)
	}
	return p.before + number + p.between + "{name}" + p.after
}

// Match splits the name of a file, without its directory, into number and name. A number has at least the width of
// the pattern, and no more zeros in front than that needs.
func (p Pattern) Match(file string) (number uint64, name string, ok bool) {
	rest, ok := strings.CutPrefix(file, p.before)
	if !ok {
		return 0, "", false
	}
	digits := 0
	for digits < len(rest) && isDigit(rest[digits]) {
		digits++
	}
	if digits < p.width || digits > maxWidth || digits > p.width && rest[0] == '0' {
		return 0, "", false
	}
	number, err := strconv.ParseUint(rest[:digits], 10, 64)
	if err != nil {
		return 0, "", false
	}
	name, ok = strings.CutPrefix(rest[digits:], p.between)
	if !ok {
		return 0, "", false
	}
	name, ok = strings.CutSuffix(name, p.after)
	return number, name, ok && name != ""
}

// Format is the name of the file with a number and a name.
func (p Pattern) Format(number uint64, name string) string {
	return p.before + p.Number(number) + p.between + name + p.after
}

// Number writes a number as file names have it.
func (p Pattern) Number(number uint64) string { return fmt.Sprintf("%0*d", p.width, number) }

func isDigit(b byte) bool { return '0' <= b && b <= '9' }
