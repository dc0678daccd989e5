package hook

import (
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// shells run the command behind -c.
var shells = words("sh bash zsh dash ksh ash")

// ReadCommand returns the files that a shell command plainly writes, and the folders with files that it changes at
// large. It knows redirections and common programs; what other programs write, it cannot know. dir is the folder that
// the command runs in, "" if it is not known.
func ReadCommand(command, dir string) (writes []Target, trees []string) {
	r := commandReader{dir: dir}
	r.read(command, 0)
	return r.writes, r.trees
}

// commandReader gathers what a command writes.
type commandReader struct {
	dir    string // the present folder; "" if it is not known
	outer  []string
	writes []Target
	trees  []string
}

// maxShells bounds how deep shells in shells are followed.
const maxShells = 3

func (r *commandReader) read(command string, depth int) {
	for _, c := range split(command) {
		for range c.opens {
			r.outer = append(r.outer, r.dir)
		}
		for _, out := range c.outputs {
			r.write(out.to)
		}
		r.simple(c, depth)
		for range min(c.closes, len(r.outer)) {
			r.dir = r.outer[len(r.outer)-1]
			r.outer = r.outer[:len(r.outer)-1]
		}
	}
}

// Words before a command that leave it the command.
var prefixes = words("sudo command exec nohup time builtin then do else if while until ! { env stdbuf nice")

func (r *commandReader) simple(c simple, depth int) {
	w := c.words
	for len(w) > 0 {
		name, _, assigns := strings.Cut(w[0].text, "=")
		switch {
		case prefixes[w[0].text], assigns && isName(name):
			w = w[1:]
			for len(w) > 0 && strings.HasPrefix(w[0].text, "-") {
				w = w[1:]
			}
			continue
		case w[0].text == "timeout" && len(w) > 2:
			w = w[2:]
			continue
		}
		break
	}
	if len(w) == 0 || w[0].loose {
		return
	}
	name, args := base(w[0].text), w[1:]
	switch {
	case name == "cd" || name == "pushd":
		r.enter(args)
	case shells[name]:
		r.shell(c, args, depth)
	case name == "git":
		r.git(args)
	default:
		r.program(c, name, args)
	}
}

// isName reports whether a shell may have a variable of that name.
func isName(s string) bool {
	return s != "" && strings.Trim(s, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_") == ""
}

// base returns the name of a program without its folder.
func base(program string) string { return path.Base(filepath.ToSlash(program)) }

func (r *commandReader) enter(args []word) {
	_, operands := options(args, "")
	if len(operands) != 1 || operands[0].loose || operands[0].glob >= 0 || operands[0].text == "-" {
		r.dir = ""
		return
	}
	r.dir = join(r.dir, operands[0].text)
}

func (r *commandReader) shell(c simple, args []word, depth int) {
	for i, a := range args {
		if !strings.HasPrefix(a.text, "-") {
			return
		}
		if strings.HasSuffix(a.text, "c") && !strings.HasPrefix(a.text, "--") && i+1 < len(args) {
			if depth < maxShells {
				dir, outer := r.dir, r.outer
				r.outer = nil
				r.read(args[i+1].text, depth+1)
				r.dir, r.outer = dir, outer
			}
			return
		}
	}
	if c.heredoc != "" && depth < maxShells {
		dir, outer := r.dir, r.outer
		r.outer = nil
		r.read(c.heredoc, depth+1)
		r.dir, r.outer = dir, outer
	}
}

// Formatters rewrite files in place: always, or with one of these options.
var (
	alwaysInPlace = words("black isort")
	formatters    = map[string][]string{
		"gofmt": {"-w"}, "gofumpt": {"-w"}, "goimports": {"-w"}, "golines": {"-w"}, "shfmt": {"-w"},
		"prettier": {"-w", "--write"}, "biome": {"--write"}, "eslint": {"--fix"}, "stylelint": {"--fix"},
		"clang-format": {"-i"}, "autopep8": {"-i", "--in-place"}, "yapf": {"-i", "--in-place"}, "terraform": {"fmt"},
		"ruff": {"format", "--fix"}, "rustfmt": {""}, "dos2unix": {""},
	}
	runnersOfTools = words("npx bunx pnpx uvx")
)

func (r *commandReader) program(c simple, name string, args []word) {
	if runnersOfTools[name] && len(args) > 0 {
		for len(args) > 0 && strings.HasPrefix(args[0].text, "-") {
			args = args[1:]
		}
		if len(args) > 0 {
			r.program(c, base(args[0].text), args[1:])
		}
		return
	}
	switch name {
	case "tee":
		_, files := options(args, "")
		r.writeAll(files)
	case "truncate":
		_, files := options(args, "sr")
		r.writeAll(files)
	case "sed":
		r.sed(args)
	case "perl":
		r.perl(args)
	case "rm", "unlink":
		r.remove(args)
	case "mv", "cp":
		r.move(args, name == "mv")
	case "dd":
		for _, a := range args {
			if file, ok := strings.CutPrefix(a.text, "of="); ok {
				r.write(word{file, a.loose, -1})
			}
		}
	case "patch":
		r.patch(c, args)
	case "apply_patch", "applypatch":
		text := c.heredoc
		for _, a := range args {
			text += "\n" + a.text
		}
		for _, target := range patched(text) {
			r.write(word{target.Path, false, -1})
		}
	default:
		r.format(name, args)
	}
}

func (r *commandReader) format(name string, args []word) {
	flags, files := options(args, "l")
	writes := alwaysInPlace[name]
	for _, option := range formatters[name] {
		writes = writes || option == "" || slices.Contains(flags, option) ||
			slices.ContainsFunc(files, func(w word) bool { return w.text == option })
	}
	if !writes {
		return
	}
	for _, file := range files {
		switch ext := path.Ext(file.text); {
		case slices.Contains(formatters[name], file.text), name == "ruff" && file.text == "check":
		case ext == "" || strings.Trim(ext, ".") == "" || strings.HasSuffix(file.text, "/..."):
			r.tree(word{strings.TrimSuffix(file.text, "..."), file.loose, file.glob})
		default:
			r.write(file)
		}
	}
}

// options parts the options of a command from the rest. valued lists the letters of options with a
// value in the next word.
func options(args []word, valued string) (flags []string, rest []word) {
	for i := 0; i < len(args); i++ {
		a := args[i]
		if a.text == "--" {
			return flags, append(rest, args[i+1:]...)
		}
		if len(a.text) < 2 || a.text[0] != '-' {
			rest = append(rest, a)
			continue
		}
		flags = append(flags, a.text)
		if a.text[1] != '-' && strings.ContainsRune(valued, rune(a.text[len(a.text)-1])) {
			i++
		}
	}
	return flags, rest
}

// hasLetter reports whether a cluster of options has a letter.
func hasLetter(flags []string, letters string) bool {
	return slices.ContainsFunc(flags, func(f string) bool {
		return !strings.HasPrefix(f, "--") && strings.ContainsAny(f[1:], letters)
	})
}

func hasLong(flags []string, names ...string) bool {
	return slices.ContainsFunc(flags, func(f string) bool {
		f, _, _ = strings.Cut(f, "=")
		return slices.Contains(names, f)
	})
}

func (r *commandReader) sed(args []word) {
	flags, rest := options(args, "ef")
	inPlace := hasLong(flags, "--in-place") || slices.ContainsFunc(flags, func(f string) bool {
		letters, _, _ := strings.Cut(f, "i")
		return f[1] != '-' && letters != f && strings.Trim(letters, "-nErsuz") == ""
	})
	if !inPlace {
		return
	}
	rest = slices.DeleteFunc(rest, func(w word) bool { return w.text == "" && !w.loose }) // -i '' of BSD
	scripted := hasLong(flags, "--expression", "--file") ||
		slices.ContainsFunc(flags, func(f string) bool { return f[1] != '-' && strings.ContainsAny(f[len(f)-1:], "ef") })
	if !scripted && len(rest) > 0 {
		rest = rest[1:]
	}
	r.writeAll(rest)
}

func (r *commandReader) perl(args []word) {
	flags, rest := options(args, "eE")
	if !slices.ContainsFunc(flags, func(f string) bool {
		letters, _, _ := strings.Cut(f, "i")
		return letters != f && strings.Trim(letters, "-pnw0lasF") == ""
	}) {
		return
	}
	if !hasLetter(flags, "eE") && len(rest) > 0 {
		rest = rest[1:]
	}
	r.writeAll(rest)
}

func (r *commandReader) remove(args []word) {
	flags, files := options(args, "")
	if hasLetter(flags, "rR") || hasLong(flags, "--recursive") {
		for _, file := range files {
			r.tree(file)
		}
		return
	}
	r.writeAll(files)
}

// move reads mv, cp and git mv: the target is written, and the source, too, if it goes away.
func (r *commandReader) move(args []word, goes bool) {
	flags, files := options(args, "tS")
	for i, a := range args {
		if a.text == "-t" && i+1 < len(args) {
			files = append(files, word{args[i+1].text + "/", args[i+1].loose, args[i+1].glob})
		}
	}
	if len(files) < 2 {
		return
	}
	sources, target := files[:len(files)-1], files[len(files)-1]
	if goes {
		r.writeAll(sources)
	}
	if !goes && (hasLetter(flags, "rRa") || hasLong(flags, "--recursive", "--archive")) {
		r.tree(target)
		return
	}
	for _, source := range sources {
		name := path.Base(source.text)
		switch {
		case source.loose || source.glob >= 0:
			r.tree(target)
		case len(sources) > 1 || strings.HasSuffix(target.text, "/"):
			r.write(word{target.text + "/" + name, target.loose, target.glob})
		default:
			r.writeInto(target, name)
		}
	}
}

func (r *commandReader) patch(c simple, args []word) {
	flags, files := options(args, "pidoBDFgrVYz")
	if hasLong(flags, "--dry-run") {
		return
	}
	if len(files) > 0 {
		r.write(files[0])
		return
	}
	if c.input || c.heredoc != "" || hasLetter(flags, "ip") {
		r.tree(word{".", false, -1})
	}
}

// git reads the commands of git that change files of the working tree.
func (r *commandReader) git(args []word) {
	dir := r.dir
	defer func() { r.dir = dir }()
	for len(args) > 0 && strings.HasPrefix(args[0].text, "-") {
		if takes := args[0].text == "-C" || args[0].text == "-c"; takes && len(args) > 1 {
			if args[0].text == "-C" {
				r.enter(args[1:2])
			}
			args = args[1:]
		}
		args = args[1:]
	}
	if len(args) == 0 {
		return
	}
	verb, args := args[0].text, args[1:]
	flags, rest := options(args, "mbBcC")
	first := ""
	if len(rest) > 0 {
		first = rest[0].text
	}
	here := word{".", false, -1}
	switch verb {
	case "checkout":
		if i := slices.IndexFunc(args, func(w word) bool { return w.text == "--" }); i >= 0 {
			r.paths(args[i+1:])
		} else if !hasLetter(flags, "bB") && !hasLong(flags, "--orphan") && first != "" {
			r.tree(here)
		}
	case "restore":
		if _, files := options(args, "s"); !hasLong(flags, "--staged") || hasLong(flags, "--worktree") {
			r.paths(files)
		}
	case "switch":
		if !hasLetter(flags, "cC") && !hasLong(flags, "--create", "--orphan") {
			r.tree(here)
		}
	case "stash":
		switch first {
		case "list", "show", "drop", "clear", "create", "store", "branch":
		default:
			r.tree(here)
		}
	case "reset":
		if hasLong(flags, "--hard", "--merge", "--keep") {
			r.tree(here)
		}
	case "clean":
		if hasLetter(flags, "f") || hasLong(flags, "--force") {
			r.tree(here)
		}
	case "merge", "rebase", "pull", "cherry-pick", "revert", "am":
		r.tree(here)
	case "apply":
		if !hasLong(flags, "--check", "--stat", "--cached", "--numstat", "--summary") {
			r.tree(here)
		}
	case "rm":
		if !hasLong(flags, "--cached") {
			r.remove(args)
		}
	case "mv":
		r.move(args, true)
	}
}

// paths are the paths of a git command: files, or folders with all below.
func (r *commandReader) paths(list []word) {
	for _, w := range list {
		if strings.Trim(w.text, "./:") == "" || strings.HasSuffix(w.text, "/") {
			r.tree(w)
			continue
		}
		r.write(w)
	}
}

func (r *commandReader) writeAll(files []word) {
	for _, file := range files {
		r.write(file)
	}
}

func (r *commandReader) write(w word) { r.writeInto(w, "") }

func (r *commandReader) writeInto(w word, into string) {
	if w.glob >= 0 && !w.loose {
		r.tree(word{w.text[:strings.LastIndexByte(w.text[:w.glob], '/')+1] + ".", false, -1})
		return
	}
	file := r.locate(w)
	if file == "" {
		return
	}
	target := Target{Path: file, Into: into}
	if !slices.Contains(r.writes, target) {
		r.writes = append(r.writes, target)
	}
}

func (r *commandReader) tree(w word) {
	if w.glob >= 0 && !w.loose {
		w = word{w.text[:strings.LastIndexByte(w.text[:w.glob], '/')+1] + ".", false, -1}
	}
	if folder := r.locate(w); folder != "" && !slices.Contains(r.trees, folder) {
		r.trees = append(r.trees, folder)
	}
}

// locate returns the path of a word, "" if it cannot be known, or is no file that an agent has in common
// with another.
func (r *commandReader) locate(w word) string {
	if w.loose || w.text == "" || w.text == "-" {
		return ""
	}
	file := join(r.dir, w.text)
	for _, device := range []string{"/dev/", "/proc/", "/sys/"} {
		if strings.HasPrefix(file, device) {
			return ""
		}
	}
	return file
}

// join returns a path that begins at a folder; "" if the folder is not known and the path begins at it.
func join(dir, file string) string {
	switch {
	case isAbs(file):
		return cleanPath(file)
	case dir == "" || file == "":
		return ""
	}
	return cleanPath(dir + "/" + file)
}

// isAbs reports whether a path begins at a root, of Unix or of a drive of Windows.
func isAbs(file string) bool {
	if strings.HasPrefix(file, "/") || strings.HasPrefix(file, `\\`) {
		return true
	}
	return len(file) > 2 && file[1] == ':' && (file[2] == '\\' || file[2] == '/') &&
		('a' <= file[0]|0x20 && file[0]|0x20 <= 'z')
}

// cleanPath cleans a path of this system, or of another one.
func cleanPath(file string) string {
	if isAbs(file) && !strings.HasPrefix(file, "/") {
		return path.Clean(strings.ReplaceAll(file, `\`, "/"))
	}
	return path.Clean(file)
}
