package sequence

import (
	"cmp"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// version is the version in the name of a file or folder, as tools of migrations read it.
type version struct {
	kind kind
	// prefix is a letter in front of the number, such as the V of Flyway. Each prefix has versions of its own.
	prefix string
	// text is the version as the name has it, and parts its numbers, without zeros at the end. Two texts can be one
	// version: 1.2 and 1_2_0, 7 and 0007.
	text  string
	parts []uint64
	// stem is the name without version, ending and words for a direction. Entries with one version and one stem are one
	// step: 0042_users.up.sql and 0042_users.down.sql.
	stem string
	// fragment is set for the form NUMBER.KIND.ENDING, in which notes of a release have the number of an issue.
	fragment bool
}

// kind is how versions of a folder follow each other.
type kind int

const (
	number kind = iota // counted: 0042, and 1.2.3 of Flyway
	dotted             // of a release: 1.2.0.sql
	day                // a date without a time: 2026-01-01
	stamp              // a time: 20260101120000, 1767268800
)

var (
	// A Flyway version ends with two underscores: V1_252__name.sql, U1.2.3__name.sql.
	flyway = regexp.MustCompile(`^([A-Za-z])(\d+(?:[._]\d+)*)(__)(.+)$`)
	// A time in groups: 2026_01_01_120000, 2026-01-01-120000, 20260101_120000, 20260101T1200, m260101_120000.
	times = regexp.MustCompile(
		`^([A-Za-z]?)(\d{4}[-_.]?\d{2}[-_.]?\d{2}[-_.T]?\d{4}(?:\d{2}(?:\d{3})?)?|` +
			`\d{4}[-_]\d{2}[-_]\d{2}[-_]\d{2}[-_]\d{2}(?:[-_]\d{2})?|\d{6}[-_]\d{6})(__|[-_.])(.+)$`,
	)
	days     = regexp.MustCompile(`^([A-Za-z]?)(\d{4}[-_.]?\d{2}[-_.]?\d{2})(__|[-_.])(.+)$`)
	releases = regexp.MustCompile(`^([A-Za-z]?)(\d+(?:\.\d+)+)(__|[-_.])(.+)$`)
	plain    = regexp.MustCompile(`^([A-Za-z]?)(\d+)(__|[-_.])(.+)$`)
	digits   = regexp.MustCompile(`\d+`)
)

// stampDigits is the length from which a plain number is a time: seconds since 1970 have ten digits.
const stampDigits = 8

// parseVersion reads the name of a file, or of a folder that is one migration.
func parseVersion(name string) (v version, ok bool) {
	if m := flyway.FindStringSubmatch(name); m != nil {
		v = version{kind: number, prefix: m[1], text: m[2], stem: stem(m[3], m[4])}
		if first := digits.FindString(m[2]); len(first) >= stampDigits || isDate(m[2]) {
			v.kind = stamp
		}
		return v, v.number()
	}
	if m := times.FindStringSubmatch(name); m != nil && (isDate(m[2]) || grouped(m[2])) {
		v = version{kind: stamp, prefix: m[1], text: m[2], stem: stem(m[3], m[4])}
		return v, v.number()
	}
	if m := days.FindStringSubmatch(name); m != nil && isDate(m[2]) {
		v = version{kind: day, prefix: m[1], text: m[2], stem: stem(m[3], m[4])}
		return v, v.number()
	}
	if m := releases.FindStringSubmatch(name); m != nil {
		v = version{kind: dotted, prefix: m[1], text: m[2], stem: stem(m[3], m[4])}
		return v, v.number()
	}
	if m := plain.FindStringSubmatch(name); m != nil {
		v = version{kind: number, prefix: m[1], text: m[2], stem: stem(m[3], m[4])}
		v.fragment = m[3] == "." && strings.Contains(m[4], ".")
		if len(m[2]) >= stampDigits {
			v.kind = stamp
		}
		return v, v.number()
	}
	return version{}, false
}

// number fills in the parts. It reports false for numbers that no tool can hold.
func (v *version) number() bool {
	list := digits.FindAllString(v.text, -1)
	if v.kind == stamp || v.kind == day {
		list = []string{strings.Join(list, "")} // 2026-01-01-120000 is 20260101120000
	}
	for _, d := range list {
		n, err := strconv.ParseUint(d, 10, 63)
		if err != nil {
			return false
		}
		v.parts = append(v.parts, n)
	}
	for len(v.parts) > 1 && v.parts[len(v.parts)-1] == 0 {
		v.parts = v.parts[:len(v.parts)-1]
	}
	return true
}

// isDate reports whether a text of digits begins with a day of this century or the last.
func isDate(text string) bool {
	all := strings.Join(digits.FindAllString(text, -1), "")
	if len(all) < 8 || all[:2] != "19" && all[:2] != "20" {
		return false
	}
	_, err := time.Parse("20060102", all[:8])
	return err == nil
}

// grouped reports whether a text has the form of a time in groups, whatever its year: Laravel begins with 0001_01_01,
// and Yii has two digits for it.
func grouped(text string) bool {
	list := digits.FindAllString(text, -1)
	all := strings.Join(list, "")
	if len(list) > 1 && len(list[0]) == 6 && len(all) == 12 {
		all = "20" + all
	}
	if len(list) < 2 || len(all) < 8 {
		return false
	}
	_, err := time.Parse("20060102", "2000"+all[4:8])
	return err == nil
}

// compare orders versions of one prefix.
func (v version) compare(o version) int { return slices.Compare(v.parts, o.parts) }

// same reports whether two entries are one step.
func (v version) same(o version) bool { return v.compare(o) == 0 && v.stem == o.stem }

// directions are the words that tell the files of one migration apart.
var directions = map[string]bool{
	"up": true, "down": true, "do": true, "undo": true, "deploy": true, "revert": true, "verify": true,
	"rollback": true, "forward": true, "backward": true,
}

// stem is a name without its ending and its direction: "users" of users.up.sql, do.users.sql and users_down.sql.
// Behind a dot the last word is the ending, so that 0042.sql has no stem.
func stem(separator, name string) string {
	words := strings.Split(name, ".")
	if separator == "." {
		words = words[:len(words)-1]
	}
	if len(words) > 0 && directions[strings.ToLower(words[0])] {
		if words = words[1:]; separator != "." && len(words) < 2 {
			return "" // up.sql
		}
	}
	if len(words) == 0 {
		return ""
	}
	first := words[0]
	if i := strings.LastIndexAny(first, "_-"); i >= 0 && directions[strings.ToLower(first[i+1:])] {
		first = first[:i]
	}
	return first
}

// next is a text of a free version behind v, in the form of v.
func (v version) next() string {
	list := digits.FindAllStringIndex(v.text, -1)
	if v.kind == stamp || v.kind == day {
		all := strings.Join(digits.FindAllString(v.text, -1), "")
		for _, layout := range []string{"20060102150405", "200601021504", "20060102"} {
			if t, err := time.Parse(layout, all); err == nil {
				step := map[int]time.Duration{14: time.Second, 12: time.Minute, 8: 24 * time.Hour}[len(layout)]
				return regroup(v.text, t.Add(step).Format(layout))
			}
		}
		n, _ := strconv.ParseUint(all, 10, 63)
		return regroup(v.text, padded(n+1, len(all)))
	}
	last := list[len(list)-1]
	n, _ := strconv.ParseUint(v.text[last[0]:last[1]], 10, 63)
	return v.text[:last[0]] + padded(n+1, last[1]-last[0])
}

func padded(n uint64, width int) string {
	text := strconv.FormatUint(n, 10)
	return strings.Repeat("0", max(0, width-len(text))) + text
}

// regroup puts digits into the groups of another text.
func regroup(text, all string) string {
	var b strings.Builder
	for _, c := range text {
		if c >= '0' && c <= '9' && all != "" {
			b.WriteByte(all[0])
			all = all[1:]
		} else {
			b.WriteRune(c)
		}
	}
	return b.String() + all
}

// byVersion orders versions of one prefix, and those of one step by nothing else.
func byVersion(a, b entry) int {
	return cmp.Or(a.compare(b.version), strings.Compare(a.stem, b.stem), strings.Compare(a.name, b.name))
}
