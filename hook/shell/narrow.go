package shell

import (
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// Narrow returns the same command with calls of git add and git commit that take only some files: those that
// own returns for a folder, relative to it. ok is false where nothing could be narrowed; what is left then may
// still take more, so the result has to be read again.
func Narrow(command, dir string, own func(dir string) []string) (narrowed string, ok bool) {
	if len(command) > maxCommand || strings.Contains(command, "\r") {
		return "", false
	}
	list, err := parseAs(command, syntax.LangBash)
	if err != nil {
		return "", false
	}
	n := &narrower{text: command, reader: newReader(dir), own: own}
	follower := newReader(dir)
	for _, s := range list {
		n.stmt(s)
		if follower.stmt(s); follower.dir != n.dir || len(follower.also) > 0 {
			break // from here on the folder is not sure
		}
	}
	slices.Reverse(n.changes)
	for _, c := range n.changes {
		command = command[:c.from] + c.text + command[c.to:]
	}
	return command, len(n.changes) > 0
}

// narrower goes through the calls of a text that stand in no construct but a list: elsewhere the folder is not sure.
type narrower struct {
	*reader
	text    string
	own     func(string) []string
	changes []change
}

// change is a part of the text with what is to stand there.
type change struct {
	from, to uint
	text     string
}

func (n *narrower) stmt(s *syntax.Stmt) {
	switch c := s.Cmd.(type) {
	case *syntax.BinaryCmd:
		n.stmt(c.X)
		n.stmt(c.Y)
	case *syntax.CallExpr:
		if len(c.Args) == 0 || len(c.Assigns) > 0 {
			return
		}
		words := n.words(c.Args)
		if len(words) != len(c.Args) || words[0].loose {
			return
		}
		if len(words) < 2 || words[0].text != "git" || words[1].loose || n.dir.path == "" || n.dir.below {
			n.run(words)
			return
		}
		sub, known := git.subs[words[1].text]
		if !known {
			return
		}
		switch words[1].text {
		case "add", "stage":
			n.add(c, sub.parse(words[2:]))
		case "commit":
			n.commit(c, &sub, words)
		}
	}
}

// effects returns what a call does to files that are taken into the index or a commit.
func (n *narrower) effects(do func(*reader)) []Tree {
	r := newReader(n.dir.path)
	do(r)
	return r.out.Trees
}

// files returns the own files that are below one of the trees, as words of a shell; "" if that is not sure.
func (n *narrower) files(trees []Tree) (list string) {
	computed := strings.Count(n.dir.path, top)
	if slices.ContainsFunc(trees, func(t Tree) bool { return strings.Count(t.Path, top) > computed }) {
		return ""
	}
	for _, name := range n.own(n.dir.path) {
		full := Join(n.dir.path, name)
		if slices.ContainsFunc(trees, func(t Tree) bool {
			return t.Whole || full == t.Path || strings.HasPrefix(full, strings.TrimSuffix(t.Path, "/")+"/")
		}) {
			list += " " + Pathspec(name)
		}
	}
	return list
}

func (n *narrower) replace(c *syntax.CallExpr, text string) {
	n.changes = append(n.changes, change{c.Pos().Offset(), c.End().Offset(), text})
}

func (n *narrower) add(c *syntax.CallExpr, args *arguments) {
	trees := n.effects(func(r *reader) { r.gitAdd(args) })
	if len(trees) == 0 || excludes(args) || args.any("-p --patch -i --interactive -e --edit --pathspec-from-file "+
		"-f --force --chmod --renormalize") {
		return
	}
	if files := n.files(trees); files != "" {
		n.replace(c, "git add -A --"+files)
	}
}

// excludes reports whether a path is one to leave out, as own files are not.
func excludes(args *arguments) bool {
	return slices.ContainsFunc(args.operands, func(w word) bool { return w.pathspec().excludes })
}

// commit leaves out the options and paths that make a commit take files, and names the own ones.
func (n *narrower) commit(c *syntax.CallExpr, p *program, words []word) {
	args := p.parse(words[2:])
	trees := n.effects(func(r *reader) { r.gitCommit(args) })
	if len(trees) == 0 || excludes(args) || args.any("--amend -p --patch --interactive --pathspec-from-file "+p.never) {
		return
	}
	files := n.files(trees)
	if files == "" {
		return
	}
	text := "git commit --only"
	for i := 2; i < len(words); i++ {
		source := n.text[c.Args[i].Pos().Offset():c.Args[i].End().Offset()]
		w := words[i]
		if w.text == "--" && !w.loose {
			break
		}
		if !isOption(&w, false) {
			continue // a path
		}
		one := p.parse(words[i : i+1])
		last := option{}
		if len(one.options) > 0 {
			last = one.options[len(one.options)-1]
		}
		switch {
		case has("--all --only --include --no-only -a -o -i", w.text):
			continue
		case strings.HasPrefix(source, "-") && !strings.HasPrefix(source, "--"):
			if source = letters(p, source); source == "-" {
				continue
			}
		}
		text += " " + source
		if p.takesValue(last.name) && last.value.text == "" && !last.value.loose && i+1 < len(words) &&
			!strings.Contains(w.text, "=") {
			i++
			text += " " + n.text[c.Args[i].Pos().Offset():c.Args[i].End().Offset()]
		}
	}
	text += " --" + files
	if slices.ContainsFunc(trees, func(t Tree) bool { return t.Effect == Commits }) { // some may be new
		text = "{ git add -A --" + files + " && " + text + "; }"
	}
	n.replace(c, text)
}

// letters leaves the letters out of a cluster of options that make a commit take files.
func letters(p *program, cluster string) string {
	out := "-"
	for i := 1; i < len(cluster); i++ {
		if p.takesValue("-"+cluster[i:i+1]) || has(p.maybe, "-"+cluster[i:i+1]) {
			return out + cluster[i:]
		}
		if cluster[i] != 'a' && cluster[i] != 'o' && cluster[i] != 'i' {
			out += cluster[i : i+1]
		}
	}
	return out
}

// Pathspec returns a path as a word of a shell that git takes for that path, and not for a pattern.
func Pathspec(name string) string {
	if strings.ContainsAny(name, `*?[\`) || strings.HasPrefix(name, ":") {
		name = ":(literal)" + name
	}
	return Quote(name)
}

// Quote returns a text as a word of a shell.
func Quote(text string) string {
	if text != "" && !strings.ContainsFunc(text, func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune("_./+-@%,=", r)
	}) {
		return text
	}
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}
