package frameworkpage

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/interlockdev/interlock/internal/test/tools"
)

// file is the page, and folder has its examples, below the root of the repository.
const (
	file   = "docs/frameworks.md"
	folder = "examples/frameworks"
)

// block is a block of code that stands below a link to an example.
type block struct{ example, kind, text string }

var (
	link    = regexp.MustCompile(`\]\(\.\./` + folder + `/([\w.]+)\)`)
	printed = regexp.MustCompile("(?s)\n## The examples\n.*?```text\n(.*?)```")
)

// read returns the text of the page.
func read(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(tools.Root(), file))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// blocks returns the blocks of a page that stand below a link to an example, in its section.
func blocks(page string) (found []block) {
	example := ""
	lines := strings.Split(page, "\n")
	for i := 0; i < len(lines); i++ {
		kind, opens := strings.CutPrefix(lines[i], "```")
		if opens {
			first := i + 1
			for i++; i < len(lines) && lines[i] != "```"; i++ {
			}
			if example != "" && kind != "text" {
				found = append(found, block{example, kind, strings.Join(lines[first:i], "\n") + "\n"})
			}
			continue
		}
		if strings.HasPrefix(lines[i], "#") {
			example = ""
		}
		if links := link.FindAllStringSubmatch(lines[i], -1); links != nil {
			example = links[len(links)-1][1]
		}
	}
	return found
}

// Folder returns the folder of the examples.
func Folder() string { return filepath.Join(tools.Root(), folder) }

// Examples returns the files of a language that the page shows.
func Examples(t *testing.T, extension string) (names []string) {
	t.Helper()
	for _, b := range blocks(read(t)) {
		if filepath.Ext(b.example) == extension && (len(names) == 0 || names[len(names)-1] != b.example) {
			names = append(names, b.example)
		}
	}
	if len(names) == 0 {
		t.Fatalf("%s shows no example in a file *%s", file, extension)
	}
	return names
}

// Check fails the test unless an example printed what stands on the page, but for the numbers of fences.
func Check(t *testing.T, example, out string) {
	t.Helper()
	want := printed.FindStringSubmatch(read(t))
	if want == nil {
		t.Fatalf("%s does not have what the examples print", file)
	}
	fence := regexp.MustCompile(`fence \d+`)
	if fence.ReplaceAllString(out, "fence") != fence.ReplaceAllString(want[1], "fence") {
		t.Errorf("%s prints\n%s\nand %s has\n%s", example, out, file, want[1])
	}
}
