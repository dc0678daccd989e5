package shell

import (
	"flag"
	"os"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write what the commands read as into testdata/commands.txt")

// commands are the rows of testdata/commands.txt: a command, and what it reads as below /w. A line break of the command
// is "⏎". A reading has the paths that are written (a>b: b in the folder a, if that is one), a mark for an effect
// (see marks) with its folder, and "?" with what is not understood; a second mark stands for the whole checkout. A
// harmless command has nothing.
func commands(t testing.TB) (lines []string, rows [][2]string) {
	text, err := os.ReadFile("testdata/commands.txt")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSuffix(line, "\n")
		lines = append(lines, line)
		if line == "" || strings.HasPrefix(line, "# ") {
			continue
		}
		command, reading, ok := strings.Cut(line, " ⇒")
		if !ok && !*update {
			t.Fatalf("the row %q has no reading", line)
		}
		rows = append(rows, [2]string{command, strings.TrimSpace(reading)})
	}
	return lines, rows
}

// marks are those of Changes, Stages, Commits, Records, Amends, Moves, Switches, Stashes and Resets.
const marks = "@=+%&!*^~"

func describe(out Reading) string {
	var all []string
	below := func(path string) string {
		path = Clean(Top(path, func(folder string) string { return "/top" + folder }))
		if path == "/w" {
			return "."
		}
		return strings.ReplaceAll(strings.TrimPrefix(path, "/w/"), " ", "_")
	}
	for _, target := range out.Writes {
		text := below(target.Path)
		if target.Into != "" {
			text += ">" + target.Into
		}
		all = append(all, text)
	}
	for _, tree := range out.Trees {
		mark := string(marks[tree.Effect])
		if tree.Whole {
			mark += mark
		}
		all = append(all, mark+below(tree.Path))
	}
	if out.Unknown != "" {
		all = append(all, "?"+strings.ReplaceAll(out.Unknown, " ", "_"))
	}
	return strings.Join(all, " ")
}

func TestCommands(t *testing.T) {
	lines, rows := commands(t)
	readings := map[string]string{}
	harmless := 0
	for _, row := range rows {
		got := describe(Read(strings.ReplaceAll(row[0], "⏎", "\n"), "/w"))
		if got == "" {
			harmless++
		}
		if _, twice := readings[row[0]]; twice {
			t.Errorf("%s\nstands twice", row[0])
		}
		readings[row[0]] = got
		if got != row[1] && !*update {
			t.Errorf("%s\nreads as %q, want %q", row[0], got, row[1])
		}
	}
	if len(rows) < 600 || harmless*3 < len(rows) {
		t.Errorf("there are %d commands, %d of them harmless: want 600, and a third", len(rows), harmless)
	}
	if *update {
		for i, line := range lines {
			command, _, _ := strings.Cut(line, " ⇒")
			if reading, ok := readings[command]; ok {
				lines[i] = strings.TrimSpace(command + " ⇒ " + reading)
			}
		}
		if err := os.WriteFile("testdata/commands.txt", []byte(strings.Join(lines, "\n")+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// Each row of the table has a command that tries it out, if it does anything.
func TestTableIsTried(t *testing.T) {
	_, rows := commands(t)
	marks := strings.NewReplacer("/", " ", "(", " ", "⏎", " ", "`", " ", "'", " ")
	var all strings.Builder
	for _, row := range rows {
		all.WriteString(" " + marks.Replace(row[0]) + " ")
	}
	var missing []string
	for name, p := range table {
		if !p.plain() && !strings.Contains(all.String(), " "+name+" ") {
			missing = append(missing, name)
		}
	}
	slices.Sort(missing)
	if len(missing) > 0 {
		t.Errorf("no command tries out %q", missing)
	}
}
