package layout

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// ProseCounts holds how often each pattern of proseRules occurs, by area and pattern. Areas
// are the comments of Go files, the pages (Markdown), the texts of the CLI (string literals of
// cmd/interlock) and the names of types. Long lines are counted in code and pages.
type ProseCounts map[ProseKey]int

// ProseKey names one count: an area, and a pattern or "words".
type ProseKey struct{ Area, Pattern string }

// proseRule is a pattern that plain technical English does without.
type proseRule struct {
	pattern string
	regexp  *regexp.Regexp
}

// proseRules are counted in comments, pages and CLI texts. A few uses are good English, so the
// goal of each is below 0.5 per 1,000 words and not 0.
var proseRules = []proseRule{
	{"who", regexp.MustCompile(`(?i)\b(?:who|whoever|whom|whose)\b`)},
	{"nobody", regexp.MustCompile(`(?i)\b(?:nobody|somebody|everybody)\b`)},
	{"of-which", regexp.MustCompile(`(?i)\b(?:of|by|at|for)\s+(?:which|whom|what)\b`)},
	{"says", regexp.MustCompile(`(?i)\bsays\b`)},
	{"gives", regexp.MustCompile(`(?i)\bgives\b`)},
	{"is-told", regexp.MustCompile(`(?i)\b(?:is|are|was|were|be) told\b`)},
}

var (
	// docGives finds a doc comment that begins "X gives" where Go has "X returns".
	docGives = regexp.MustCompile(`^\w+ gives\b`)
	// participle finds the name of a type that is a verb's form.
	participle = regexp.MustCompile(`^[a-z]+(?:ing|ed)$|[a-z](?:[A-Z][a-z]*)(?:ing|ed)$`)
	// nouns end like participles, and are none.
	nouns = map[string]bool{
		"string": true, "ring": true, "thing": true, "setting": true, "feed": true, "seed": true, "encoding": true,
		"embed": true, "eventFeed": true,
	}

	word = regexp.MustCompile(`[A-Za-z][A-Za-z'-]*`)
)

// Prose counts the patterns in the hand-written files below root.
func Prose(root string) (ProseCounts, error) {
	c := ProseCounts{}
	err := walk(root, func(name string) error {
		switch path.Ext(name) {
		case ".go", ".md":
		default:
			return nil
		}
		text, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			return err
		}
		if path.Ext(name) == ".md" {
			c.long("pages", fence.ReplaceAllString(string(text), ""))
			c.count("pages", inline.ReplaceAllString(fence.ReplaceAllString(string(text), ""), "x"))
			return nil
		}
		if generated.Match(text) {
			return nil
		}
		c.long("code", string(text))
		return c.goFile(name, text)
	})
	return c, err
}

// count adds the patterns of a text to an area's counts.
func (c ProseCounts) count(area, text string) {
	c[ProseKey{area, "words"}] += len(word.FindAllString(text, -1))
	for _, r := range proseRules {
		c[ProseKey{area, r.pattern}] += len(r.regexp.FindAllString(text, -1))
	}
}

// maxLine is how many characters a line may have, a tab counted as one.
const maxLine = 120

// long counts the lines that are too long: of code, and of the text of pages. Tables, headings
// and links cannot be broken, so the count of pages leaves out lines of tables.
func (c ProseCounts) long(area, text string) {
	for line := range strings.Lines(text) {
		if area == "code" {
			c[ProseKey{area, "words"}]++ // the rate is of lines
		}
		table := area == "pages" && strings.HasPrefix(strings.TrimSpace(line), "|")
		if !table && utf8.RuneCountInString(strings.TrimRight(line, "\n")) > maxLine {
			c[ProseKey{area, "long-lines"}]++
		}
	}
}

func (c ProseCounts) goFile(name string, text []byte) error {
	file, err := parser.ParseFile(token.NewFileSet(), name, text, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	for _, group := range file.Comments {
		comment := group.Text()
		c.count("comments", comment)
		if docGives.MatchString(comment) {
			c[ProseKey{"comments", "X-gives"}]++
		}
	}
	if strings.HasSuffix(name, "_test.go") {
		return nil
	}
	cli := strings.HasPrefix(name, "cmd/interlock/")
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.TypeSpec:
			c[ProseKey{"types", "words"}]++
			if participle.MatchString(n.Name.Name) && !nouns[n.Name.Name] {
				c[ProseKey{"types", "participle"}]++
			}
		case *ast.BasicLit:
			if s, err := strconv.Unquote(n.Value); cli && n.Kind == token.STRING && err == nil && strings.Contains(s, " ") {
				c.count("cli", s)
			}
		}
		return true
	})
	return nil
}

// sortedKeys orders counts by area and pattern.
func (c ProseCounts) sortedKeys() []ProseKey {
	keys := make([]ProseKey, 0, len(c))
	for k := range c {
		keys = append(keys, k)
	}
	slices.SortFunc(keys, func(a, b ProseKey) int {
		return cmp.Or(strings.Compare(a.Area, b.Area), strings.Compare(a.Pattern, b.Pattern))
	})
	return keys
}

// rate is how often a pattern occurs per 1,000 words of its area.
func (c ProseCounts) rate(k ProseKey) float64 {
	return 1000 * float64(c[k]) / float64(max(1, c[ProseKey{k.Area, "words"}]))
}

// Text writes the counts in the form that ReadProse reads, with the rates per 1,000 words.
func (c ProseCounts) Text() string {
	var b strings.Builder
	b.WriteString("# How often prose patterns occur: see internal/layout/prose.go. A count may fall, and never rise.\n" +
		"# area, pattern, count, per 1,000 words. Written by: go test ./internal/layout -run TestProse -write\n")
	for _, k := range c.sortedKeys() {
		if k.Pattern != "words" {
			fmt.Fprintf(&b, "%-9s %-11s %5d %6.2f\n", k.Area, k.Pattern, c[k], c.rate(k))
		}
	}
	return b.String()
}

// ReadProse reads what Text wrote.
func ReadProse(text string) (ProseCounts, error) {
	c := ProseCounts{}
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, "#") {
			continue
		}
		f := strings.Fields(line)
		if len(f) != 4 {
			return nil, fmt.Errorf("layout: a line of %d words: %q", len(f), line)
		}
		n, err := strconv.Atoi(f[2])
		if err != nil {
			return nil, fmt.Errorf("layout: %q: %w", line, err)
		}
		c[ProseKey{f[0], f[1]}] = n
	}
	return c, nil
}

// Rises lists the counts that are above those committed.
func (c ProseCounts) Rises(committed ProseCounts) (problems []string) {
	for _, k := range c.sortedKeys() {
		if k.Pattern != "words" && c[k] > committed[k] {
			advice := "write plain technical English"
			if k.Pattern == "long-lines" {
				advice = fmt.Sprintf("break lines of more than %d characters", maxLine)
			}
			problems = append(problems, fmt.Sprintf("%s: %d uses of %q, and %d are committed: %s",
				k.Area, c[k], k.Pattern, committed[k], advice))
		}
	}
	return problems
}
