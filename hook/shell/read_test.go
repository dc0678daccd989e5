package shell

import (
	"runtime/debug"
	"strings"
	"testing"
)

func TestUnknownFolder(t *testing.T) {
	out := Read("rm a /b; git pull; cd /x; rm c", "")
	if len(out.Writes) != 2 || out.Writes[0].Path != "/b" || out.Writes[1].Path != "/x/c" || out.Trees != nil ||
		out.Unknown == "" {
		t.Errorf("it reads as %+v", out)
	}
	out = Read(`rm a.txt C:\x\b.txt`, `C:\w`)
	if len(out.Writes) != 2 || out.Writes[0].Path != "C:/w/a.txt" {
		t.Errorf("it reads as %+v", out)
	}
}

// hostile are texts that cost much more than their length, if nothing bounds that.
var hostile = map[string]string{
	"parentheses":     strings.Repeat("(", maxCommand),
	"substitutions":   strings.Repeat("$(", maxCommand/2),
	"quoted":          strings.Repeat(`"$(`, maxCommand/3),
	"backquotes":      strings.Repeat("`", maxCommand),
	"negations":       strings.Repeat("! ", maxCommand/2),
	"ifs":             strings.Repeat("if ", maxCommand/3),
	"blocks":          strings.Repeat("{ ", maxCommand/2),
	"defaults":        "echo " + strings.Repeat("${a:-", maxCommand/6),
	"arithmetic":      "echo $((" + strings.Repeat("-(", maxCommand/2),
	"sum":             "echo $((1" + strings.Repeat("+1", maxCommand/3) + "))",
	"tests":           "[[ " + strings.Repeat("! ", maxCommand/2),
	"braces":          "rm " + strings.Repeat("{a,b}", 5000),
	"nested braces":   "rm " + strings.Repeat("{a,", 20000),
	"lists":           "ls" + strings.Repeat("&&ls", maxCommand/5),
	"pipes":           "ls" + strings.Repeat("|ls", maxCommand/4),
	"commands":        strings.Repeat("rm a;", maxCommand/5),
	"doubling":        "x=aaaaaaaa;" + strings.Repeat("x=$x$x;", 1000) + "rm $x",
	"long here":       "x=" + strings.Repeat("a", 60<<10) + ";cat <<E|sh\n" + strings.Repeat("$x", 60<<10) + "\nE\n",
	"evals":           "x='" + strings.Repeat("rm a;", 10000) + "';" + strings.Repeat(`eval "$x";`, 10000),
	"loops":           strings.Repeat("for i in 1 2 3 4 5 6 7 8 9;do ", 12) + "rm $i" + strings.Repeat(";done", 12),
	"whiles":          strings.Repeat("while true;do ", 300) + "rm a" + strings.Repeat(";done", 300),
	"fork bomb":       ":(){ :|:& };:",
	"functions":       "f(){ g;g; };g(){ h;h; };h(){ f;f; };f",
	"arguments":       "set -- " + strings.Repeat("a ", 19000) + ";" + strings.Repeat(`rm "$@";`, 10000),
	"parallel":        "parallel rm ::: " + strings.Repeat("a ", 50000),
	"here-documents":  strings.Repeat("cat <<E\n", 20000) + strings.Repeat("E\n", 20000),
	"process":         strings.Repeat("<(", maxCommand/2),
	"cases":           strings.Repeat("case x in a) ", maxCommand/13),
	"find":            "find " + strings.Repeat("a ", 1000) + strings.Repeat("-exec rm {} ; ", 10000),
	"shells":          strings.Repeat("sh -c ", 20000) + "rm",
	"prefixes":        strings.Repeat("sudo ", 50000) + "rm a",
	"escapes":         "rm " + strings.Repeat(`\`, maxCommand),
	"names in texts":  "find . -exec sh -c '" + strings.Repeat("rm {};", 10000) + "' ;",
	"marks":           "find . -exec sh -c '" + strings.Repeat("{}", 30000) + "' ;",
	"joined names":    `for f in *; do sh -c "` + strings.Repeat("$f", 100000) + `"; done`,
	"nested names":    "find . -exec sh -c '" + strings.Repeat("find . -exec sh -c \"rm {} {} {} ", 5000) + "' ;",
	"sed":             "sed '" + strings.Repeat("s/a/b/;", 30000) + "' a",
	"awk":             "awk '" + strings.Repeat(`{print>"a"}`, 20000) + "' a",
	"python":          "python3 -c '" + strings.Repeat(`p="a";open(p,"w");`, 10000) + "'",
	"long assignment": "a=(" + strings.Repeat("b ", 100000) + `);rm "${a[@]}" "${a[@]}"`,
}

// Each reading takes few steps and a small stack, whatever the text is.
func TestBounds(t *testing.T) {
	defer debug.SetMaxStack(debug.SetMaxStack(16 << 20)) // beyond it the program ends
	for name, text := range hostile {
		t.Run(name, func(t *testing.T) {
			r := newReader("/w")
			r.text(text)
			if r.steps > maxSteps+len(text) {
				t.Errorf("it takes %d steps", r.steps)
			}
			out := r.reading()
			if len(out.Writes) > maxTargets || len(out.Trees) > maxTrees+6 {
				t.Errorf("it has %d files and %d folders", len(out.Writes), len(out.Trees))
			}
		})
	}
}

// FuzzRead has commands of any form: each is read to its end within the bounds, and each path is absolute.
func FuzzRead(f *testing.F) {
	_, rows := commands(f)
	for _, row := range rows {
		f.Add(strings.ReplaceAll(row[0], "⏎", "\n"))
	}
	for _, seed := range []string{
		"a)(b>&1<<-\t'", "tee `", "cp $(a '(' ) b", "\\\n>\\", "rm {a..}", "${x[@]:1}", "a=([x]=y)", `sed 's'`, `sed '\'`,
		`sed 'a\'`, `awk '\'`, `awk '"\'`, "sed w",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, command string) {
		out := Read(command, "/w")
		for _, target := range out.Writes {
			if !IsAbs(target.Path) {
				t.Errorf("%q: the path %q is not absolute", command, target.Path)
			}
		}
		for _, tree := range out.Trees {
			if !IsAbs(tree.Path) {
				t.Errorf("%q: the folder %q is not absolute", command, tree.Path)
			}
		}
		Narrow(command, "/w", func(string) []string { return []string{"a b", "-c"} })
	})
}
