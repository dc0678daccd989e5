package shell

import (
	"path"
	"regexp"
	"slices"
	"strings"
)

// env may change the folder, and may have all words in one.
func (r *reader) env(c *arguments) stream {
	if text := c.values("-S --split-string"); len(text) > 0 {
		return r.textOf(append(text, c.operands...), "env -S")
	}
	operands := c.operands
	if len(operands) > 0 && operands[0].text == "-" { // as -i
		operands = operands[1:]
		for len(operands) > 0 && isAssignment(operands[0].text) {
			operands = operands[1:]
		}
	}
	return r.run(operands)
}

// texts are programs that run a text: the value of an option, or their operands.
func (r *reader) commandOption(c *arguments) stream {
	if text := c.values("-c --command"); len(text) > 0 {
		return r.isolated(func() stream { return r.textOf(text, "a command") })
	}
	if len(c.operands) > 2 && has("-c --command", c.operands[1].text) {
		return r.isolated(func() stream { return r.textOf(c.operands[2:3], "a command") })
	}
	if len(c.operands) > 1 {
		return r.run(c.operands[1:])
	}
	return stream{}
}

// operandsAsText runs its operands as one text, as watch does.
func (r *reader) operandsAsText(c *arguments) stream {
	return r.isolated(func() stream { return r.textOf(c.operands, "a command") })
}

func (r *reader) eachAsText(c *arguments) stream {
	for _, w := range c.operands {
		r.isolated(func() stream { return r.textOf([]word{w}, "a command") })
	}
	return stream{}
}

// behindDashes runs what stands behind --.
func (r *reader) behindDashes(c *arguments) stream {
	if c.dashes < 0 {
		return stream{}
	}
	return r.run(c.operands[c.dashes:])
}

func (r *reader) xargs(c *arguments) stream {
	parts := " \t\n"
	switch delimiter := c.values("-d --delimiter"); {
	case len(delimiter) > 0:
		parts = ansi(delimiter[0].text) + "\n"
	case c.any("-0 --null"):
		parts = "\x00"
	case c.any("-I -i --replace -L --max-lines"):
		parts = "\n"
	}
	names := r.in.files(parts)
	if !r.in.given || c.any("-a --arg-file") {
		names = []word{some("")}
	}
	list := c.operands
	if len(list) == 0 {
		return stream{names: names}
	}
	if replace := c.values("-I -i --replace"); len(replace) > 0 || c.any("-i --replace") {
		mark := "{}"
		if len(replace) > 0 {
			mark = replace[0].text
		}
		var out stream
		for _, name := range names[:min(len(names), maxRounds)] {
			out = r.isolated(func() stream { return r.run(put(list, mark, name)) })
		}
		return out
	}
	return r.isolated(func() stream { return r.run(append(slices.Clip(list), names...)) })
}

// put puts the name of a file in place of a mark.
func put(list []word, mark string, name word) []word {
	out := make([]word, 0, len(list))
	for _, w := range list {
		if mark != "" && !w.loose && strings.Contains(w.text, mark) {
			parts := strings.Split(w.source(), mark)
			w = ofText(parts[0])
			for _, part := range parts[1:] {
				w.join(name)
				w.join(ofText(part))
			}
		}
		out = append(out, w)
	}
	return out
}

func (r *reader) parallel(c *arguments) stream {
	list, names := c.operands, r.in.files("\n")
	at := slices.IndexFunc(list, func(w word) bool { return strings.HasPrefix(w.text, ":::") })
	if at >= 0 {
		names, list = list[at+1:], list[:at]
		if strings.HasPrefix(c.operands[at].text, "::::") {
			names = []word{some("")}
		}
	}
	if len(list) == 0 {
		return stream{}
	}
	for _, name := range names[:min(len(names), maxRounds)] {
		words := put(list, "{}", name)
		if slices.Equal(words, list) {
			words = append(slices.Clip(list), name)
		}
		text, ok := joined(words)
		switch {
		case ok && len(list) == 1:
			r.isolated(func() stream { return r.text(text) })
		default:
			r.isolated(func() stream { return r.run(words) })
		}
	}
	return stream{}
}

// find reads find: its options begin anywhere, and -exec has a command of its own.
func (r *reader) find(c *arguments) stream {
	args := c.args
	var roots []word
	for len(args) > 0 {
		text := args[0].text
		if text == "-H" || text == "-L" || text == "-P" || strings.HasPrefix(text, "-O") {
			args = args[1:]
			continue
		}
		if !args[0].loose && (strings.HasPrefix(text, "-") || text == "(" || text == "!") {
			break
		}
		roots = append(roots, args[0])
		args = args[1:]
	}
	out := listing(roots)
	for i := 0; i < len(args); i++ {
		switch text := args[i].text; text {
		case "-delete":
			if len(roots) == 0 {
				r.tree(here)
			}
			for _, root := range roots {
				r.tree(root)
			}
		case "-name", "-iname", "-path", "-ipath", "-wholename", "-regex", "-iregex", "-lname", "-ilname", "-newer",
			"-samefile", "-user", "-group", "-type", "-xtype", "-size", "-perm", "-mtime", "-mmin", "-maxdepth", "-mindepth":
			i++ // its value
		case "-fprint", "-fprint0", "-fls", "-fprintf":
			if i+1 < len(args) {
				r.write(args[i+1])
			}
		case "-exec", "-execdir", "-ok", "-okdir":
			end := i + 1
			for end < len(args) && args[end].text != ";" && args[end].text != "+" {
				end++
			}
			for _, name := range out.names[:min(len(out.names), maxRounds)] {
				r.isolated(func() stream { return r.run(put(args[i+1:end], "{}", name)) })
			}
			i = end
		}
	}
	return out
}

// fd lists files, and runs the command behind -x or -X with them.
func (r *reader) fd(c *arguments) stream {
	at := slices.IndexFunc(c.args, func(w word) bool {
		return has("-x -X --exec --exec-batch", w.text)
	})
	rest := c
	if at >= 0 {
		rest = (&program{value: fdValues}).parse(c.args[:at])
	}
	out := listing(rest.operands[min(1, len(rest.operands)):])
	if at >= 0 {
		list := c.args[at+1:]
		for _, name := range out.names {
			words := list
			for _, mark := range []string{"{/.}", "{//}", "{.}", "{/}", "{}"} {
				words = put(words, mark, name)
			}
			if slices.Equal(words, list) {
				words = append(slices.Clip(list), name)
			}
			r.isolated(func() stream { return r.run(words) })
		}
	}
	return out
}

const fdValues = "-e -t -E -d -c -j -S -g --extension --type --exclude --max-depth --color --threads --size --owner " +
	"--changed-within --changed-before --base-directory --search-path"

// tar has its mode in a letter, which may stand without a dash.
func (r *reader) tar(c *arguments) stream {
	p := program{value: tarValues}
	if len(c.args) > 0 && !strings.HasPrefix(c.args[0].text, "-") {
		old := c.args[0].text
		args := slices.Clone(c.args[1:])
		var list []word // each letter with a value takes a word of those behind
		for _, letter := range old {
			list = append(list, literal("-"+string(letter)))
			if strings.ContainsRune("fCXTbHgIK", letter) && len(args) > 0 {
				list, args = append(list, args[0]), args[1:]
			}
		}
		c = p.parse(append(list, args...))
	}
	archive := c.values("-f --file")
	folder := append([]word{here}, c.values("-C --directory")...)
	switch {
	case c.any("-t --list -d --diff --compare -O --to-stdout"):
	case c.any("-x --extract --get"):
		r.tree(folder[len(folder)-1])
	case c.any("-c --create -r --append -u --update -A --concatenate --delete"):
		r.writeAll(archive)
		if c.any("--remove-files") {
			r.paths(c.operands, Changes)
		}
	}
	return stream{}
}

// compressed names the files that a compressor makes of others, and removes those.
func (r *reader) compressed(c *arguments) stream {
	for _, w := range c.operands {
		if w.loose || w.isPattern() || c.any("-r") {
			r.tree(w)
			continue
		}
		r.write(w)
		ext := path.Ext(w.text)
		switch ext {
		case ".gz", ".bz2", ".xz", ".zst", ".lzma", ".lz4", ".Z", ".br":
			r.write(literal(strings.TrimSuffix(w.text, ext)))
		case ".tgz":
			r.write(literal(strings.TrimSuffix(w.text, ext) + ".tar"))
		default:
			for _, ext := range []string{".gz", ".bz2", ".xz", ".zst"} {
				r.write(literal(w.text + ext))
			}
		}
	}
	return stream{}
}

// A script of a project is known by its name only.
var (
	fixes = regexp.MustCompile(`(?i)(^|[:_./-])(fmt|format|reformat|fix|autofix|prettier|tidy|codemod|` +
		`codegen|generate|gen|spotlessapply|ktlintformat|javafmt|scalafmt|scalafmtall|fmtall)($|[:_./-])`)
	checks = regexp.MustCompile(`(?i)check|verify|dry|diff|\btest\b|ci$`)
)

// script follows a script of a project: one with such a name formats files at large.
func (r *reader) script(c *arguments) stream {
	if len(c.operands) == 0 {
		if c.dashes < 0 {
			r.unknown("a script of the project")
		}
		return stream{}
	}
	for _, w := range c.operands {
		if isAssignment(w.text) {
			continue
		}
		switch {
		case !w.loose && fixes.MatchString(w.text) && !checks.MatchString(w.text) && !c.any("--check --dry-run"):
			r.tree(here)
		default:
			r.unknown("the script " + clip(w.text))
		}
	}
	return stream{}
}

// oneScript is a script with words of its own behind the name.
func (r *reader) oneScript(c *arguments) stream {
	if len(c.operands) == 0 {
		return r.script(c)
	}
	for _, w := range c.operands[1:] {
		switch {
		case has("--check --list-different -l --dry-run --help", w.text):
			return stream{}
		case has("--fix --write -w", w.text):
			r.tree(here)
			return stream{}
		}
	}
	return r.script(&arguments{options: c.options, operands: c.operands[:1], dashes: -1})
}

// tool runs a program of the project.
func (r *reader) tool(c *arguments) stream {
	if len(c.operands) == 0 {
		return stream{}
	}
	name, rest := base(c.operands[0].text), c.operands[1:]
	name, _, _ = strings.Cut(strings.TrimPrefix(name, "@"), "@")
	if len(rest) > 0 && rest[0].text == "--" {
		rest = rest[1:]
	}
	if _, ok := table[name]; ok && !c.operands[0].loose {
		return r.run(append([]word{literal(name)}, rest...))
	}
	return r.oneScript(c)
}

// runScript runs a script of the project, or a program of that name with words behind it. A program that does nothing
// is no reason to take a script of its name for harmless.
func (r *reader) runScript(c *arguments) stream {
	if len(c.operands) > 1 && c.operands[1].text != "--" {
		if p, ok := table[base(c.operands[0].text)]; !ok || !p.plain() {
			return r.tool(c)
		}
	}
	return r.oneScript(c)
}

func (r *reader) patch(c *arguments) stream {
	if len(c.values("-o --output")) > 0 {
		return stream{}
	}
	if len(c.operands) > 0 {
		r.write(c.operands[0])
		return stream{}
	}
	if r.in.given || c.any("-i --input -p --strip") {
		r.tree(here)
	}
	return stream{}
}

// applyPatch has its patch as a word, or as a here-document.
func (r *reader) applyPatch(args []word) stream {
	text := r.in.text
	loose := r.in.given && !r.in.known
	for _, a := range args {
		text += "\n" + a.text
		loose = loose || a.loose
	}
	targets := Patched(text)
	for _, target := range targets {
		r.write(ofText(target.Path))
	}
	if len(targets) == 0 && loose {
		r.tree(here)
	}
	return stream{}
}

var (
	editorWrites = regexp.MustCompile(
		`(?m)(?:^|[|:%$,.\d])\s*(?:w|W|wq|write|sav|saveas|up|update)!?\s+(?:>>\s*)?([^|!\s][^|\s]*)`,
	)
	editorRuns = regexp.MustCompile(
		`(?m)(?:^|[|:%$,.\d])\s*(?:(?:r|w\s)\s*)?!|\b(?:system|writefile|source|so|py3?|lua|perl)\b`,
	)
)

// editor writes files that its commands name, beside its operands.
func (r *reader) editor(c *arguments) stream {
	texts := c.values("-c --cmd")
	if r.in.known {
		texts = append(texts, literal(r.in.text))
	}
	for _, o := range c.args {
		if text, ok := strings.CutPrefix(o.text, "+"); ok {
			texts = append(texts, literal(text))
		}
	}
	for _, w := range texts {
		for _, match := range editorWrites.FindAllStringSubmatch(w.text, maxNamed) {
			r.write(ofText(match[1]))
		}
		if w.loose || editorRuns.MatchString(w.text) {
			r.unknown("commands of an editor")
		}
	}
	return stream{}
}

func (r *reader) dd(c *arguments) stream {
	for _, w := range c.operands {
		if file, ok := strings.CutPrefix(w.text, "of="); ok {
			w.text, w.fixed = file, max(w.fixed-len("of="), 0)
			if w.glob >= 0 {
				w.glob = max(w.glob-len("of="), 0)
			}
			r.write(w)
		}
	}
	return stream{}
}

func (r *reader) remove(c *arguments) stream {
	if c.any("-r -R --recursive") {
		for _, w := range c.operands {
			r.tree(w)
		}
		return stream{}
	}
	r.writeAll(c.operands)
	return stream{}
}

// install makes folders, or copies.
func (r *reader) install(c *arguments) stream {
	if !c.any("-d --directory") {
		r.copies(c, false)
	}
	return stream{}
}

// link makes names of files: without a target in the present folder.
func (r *reader) link(c *arguments) stream {
	if len(c.operands) == 1 && !c.any("-t --target-directory") {
		r.write(literal(path.Base(c.operands[0].text)))
		return stream{}
	}
	r.copies(c, false)
	return stream{}
}

// remote copies to another machine, or from it: rsync and scp.
func (r *reader) remote(c *arguments) stream {
	if len(c.operands) < 2 {
		return stream{}
	}
	to := c.operands[len(c.operands)-1]
	if host, _, ok := strings.Cut(to.text, ":"); !ok || strings.Contains(host, "/") {
		r.tree(to)
	}
	if c.any("--remove-source-files") {
		for _, w := range c.operands[:len(c.operands)-1] {
			r.tree(w)
		}
	}
	return stream{}
}

// modes are those of chmod and chown: they change files, too.
func (r *reader) modes(c *arguments) stream {
	operands := c.operands
	if !c.any("--reference") {
		operands = operands[min(1, len(operands)):]
	}
	for _, w := range operands {
		if c.any("-R --recursive") {
			r.tree(w)
			continue
		}
		r.write(w)
	}
	return stream{}
}

// rename has the expression first; its targets are not known before.
func (r *reader) rename(c *arguments) stream {
	for _, w := range c.operands[min(1, len(c.operands)):] {
		if i := strings.LastIndexByte(w.text, '/'); i >= 0 && !w.loose {
			r.tree(literal(w.text[:i]))
			continue
		}
		r.tree(here)
	}
	return stream{}
}

func (r *reader) unzip(c *arguments) stream {
	folder := append([]word{here}, c.values("-d")...)
	r.tree(folder[len(folder)-1])
	return stream{}
}

// zip makes an archive, and with -m removes what it has put there.
func (r *reader) zip(c *arguments) stream {
	if len(c.operands) == 0 {
		return stream{}
	}
	r.write(c.operands[0])
	if c.any("-m --move") {
		r.paths(c.operands[1:], Changes)
	}
	return stream{}
}

// zip7 has its command first.
func (r *reader) zip7(c *arguments) stream {
	if len(c.operands) < 2 {
		return stream{}
	}
	switch c.operands[0].text {
	case "x", "e":
		folder := here
		for _, o := range c.options {
			if o.name == "-o" {
				folder = o.value
			}
		}
		r.tree(folder)
	case "a", "d", "u", "rn":
		r.write(c.operands[1])
	}
	return stream{}
}

// split writes files with names of its own.
func (r *reader) split(c *arguments) stream {
	if len(c.operands) > 1 {
		prefix := c.operands[1]
		if i := strings.LastIndexByte(prefix.text, '/'); i >= 0 && !prefix.loose {
			r.tree(literal(prefix.text[:i]))
			return stream{}
		}
	}
	r.tree(here)
	return stream{}
}

// csplit writes numbered files next to a prefix.
func (r *reader) csplit(c *arguments) stream {
	folder := here
	for _, prefix := range c.values("-f --prefix") {
		if folder = prefix; !prefix.loose {
			folder = literal(path.Dir(prefix.text))
		}
	}
	r.tree(folder)
	return stream{}
}

// yq has its expression before the files, and a verb before both.
func (r *reader) yq(c *arguments) stream {
	rest := c.operands
	if len(rest) > 0 && has("e eval ea eval-all", rest[0].text) {
		rest = rest[1:]
	}
	if len(rest) > 0 && !c.any("--from-file") {
		rest = rest[1:]
	}
	r.writeAll(rest)
	return stream{}
}

// dart format writes unless its output goes elsewhere.
func (r *reader) dartFormat(c *arguments) stream {
	if w := c.values("-o --output"); len(w) > 0 && w[0].text != "write" {
		return stream{}
	}
	r.paths(c.operands, Changes)
	return stream{}
}

// yes is for programs that change files unless told not to: the compiler of TypeScript.
func (r *reader) tsc(c *arguments) stream {
	folder := append([]word{here}, c.values("--outDir --outFile")...)
	r.tree(folder[len(folder)-1])
	return stream{}
}

// grep prints names of files with -l, and lines of its input without files.
func (r *reader) grep(c *arguments) stream {
	operands := c.operands
	if !c.any("-e -f --regexp --file") {
		operands = operands[min(1, len(operands)):]
	}
	switch {
	case c.any("-l -L --files-with-matches --files-without-match --files"):
		if len(operands) == 0 && len(c.operands) > 0 && c.any("--files") {
			operands = c.operands
		}
		return listing(operands)
	case len(operands) == 0:
		return stream{names: r.in.names}
	}
	return stream{}
}

func (r *reader) cat(c *arguments) stream {
	if len(c.operands) == 0 || len(c.operands) == 1 && c.operands[0].text == "-" {
		return r.in
	}
	return stream{}
}

func (r *reader) dirname(c *arguments) stream {
	if len(c.operands) != 1 || c.operands[0].loose {
		return stream{}
	}
	w := c.operands[0]
	if w.isPattern() {
		return stream{names: []word{some(w.folder().text)}}
	}
	return stream{known: true, text: path.Dir(w.text) + "\n"}
}

func (r *reader) basename(c *arguments) stream {
	switch {
	case len(c.operands) == 0 || c.operands[0].loose:
		return stream{}
	case c.operands[0].isPattern():
		return stream{names: []word{some("")}}
	}
	text := path.Base(c.operands[0].text)
	if len(c.operands) > 1 && !c.operands[1].loose {
		text = strings.TrimSuffix(text, c.operands[1].text)
	}
	return stream{known: true, text: text + "\n"}
}

func (r *reader) uniq(c *arguments) stream {
	if len(c.operands) > 1 {
		r.write(c.operands[1])
	}
	if len(c.operands) == 0 {
		return stream{names: r.in.names}
	}
	return stream{}
}

// uvRun runs a program in an environment: a script of a project, or a program that the table has.
func (r *reader) uvRun(c *arguments) stream {
	if len(c.operands) == 0 {
		return stream{}
	}
	return r.run(append([]word{literal(base(c.operands[0].text))}, c.operands[1:]...))
}

func (r *reader) cargoFmt(c *arguments) stream {
	if slices.ContainsFunc(c.args, func(w word) bool { return w.text == "--check" }) {
		return stream{}
	}
	r.tree(here)
	return stream{}
}

// allCommit brings all that is changed into a commit, or the named files.
func (r *reader) allCommit(c *arguments) stream {
	if len(c.operands) == 0 {
		r.checkout(Commits)
	}
	r.paths(c.operands, Commits)
	return stream{}
}

// compile writes a.out, or an object beside each source, where no option names the output.
func (r *reader) compile(c *arguments) stream {
	if c.any("-o") {
		return stream{}
	}
	if !c.any("-c -S") {
		r.write(literal("a.out"))
		return stream{}
	}
	for _, w := range c.operands {
		ext := ".o"
		if c.any("-S") {
			ext = ".s"
		}
		name := path.Base(w.text)
		r.write(literal(strings.TrimSuffix(name, path.Ext(name)) + ext))
	}
	return stream{}
}

// ls prints the names in a folder without the folder.
func (r *reader) ls(c *arguments) stream {
	var names []word
	for _, w := range c.operands {
		if !w.isPattern() {
			w = some("")
		}
		names = append(names, w)
	}
	if len(names) == 0 {
		names = []word{some("")}
	}
	return stream{names: names}
}
