package securitytest

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
)

var write = flag.Bool("write", false, "write the list of cases into docs/security.md")

const (
	pageFile = root + "/docs/security.md"
	pageHead = "<!-- The cases below are written by `go test ./internal/test/securitytest -run TestPage -write`. -->\n"
)

// list is the catalogue as the page has it.
func list() string {
	var b strings.Builder
	for _, r := range catalogue {
		fmt.Fprintf(
			&b,
			"\n### %s\n\n| | what is attacked | what the attacker does | what must happen | also |\n|---|---|---|---|---|\n",
			r.name,
		)
		for _, a := range r.attacks {
			beside := make([]string, len(a.beside))
			for i, name := range a.beside {
				beside[i] = "`" + name[strings.IndexByte(name, '.')+1:] + "`"
			}
			fmt.Fprintf(
				&b, "| %d | %s | %s | %s | %s |\n", a.number, cell(a.title), cell(a.does), cell(a.must), strings.Join(beside, " "),
			)
		}
	}
	return b.String()
}

func cell(text string) string {
	return strings.NewReplacer("|", "\\|", "<", "&lt;", "\n", " ").Replace(text)
}

// TestPage holds the list of docs/security.md equal to the catalogue. That the tests
// it names exist is checked with the other pages, by internal/layout.
func TestPage(t *testing.T) {
	page, err := os.ReadFile(pageFile)
	if err != nil {
		t.Fatal(err)
	}
	above, below, ok := strings.Cut(string(page), pageHead)
	if !ok {
		t.Fatalf("%s lacks the line %s", pageFile, pageHead)
	}
	if *write {
		if err := os.WriteFile(pageFile, []byte(above+pageHead+list()), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if below != list() {
		t.Errorf(
			"docs/security.md lists other cases than there are: run go test ./internal/test/securitytest -run TestPage -write",
		)
	}
	if !strings.Contains(above, fmt.Sprintf("%d cases", count())) {
		t.Errorf("docs/security.md does not say that there are %d cases", count())
	}
}

func count() (n int) {
	for _, r := range catalogue {
		n += len(r.attacks)
	}
	return n
}
