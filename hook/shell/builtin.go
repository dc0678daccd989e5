package shell

import (
	"path"
	"slices"
	"strconv"
	"strings"
)

// shells run the text behind -c, or that of standard input.
var shells = words("sh bash zsh dash ksh mksh ash fish csh tcsh rbash")

// builtins are the commands of the shell that change what it knows, or run others.
var builtins map[string]func(*reader, []word) stream

func init() {
	builtins = map[string]func(*reader, []word) stream{
		"cd": (*reader).cd, "chdir": (*reader).cd, "pushd": (*reader).pushd, "popd": (*reader).popd,
		"eval": (*reader).eval, "read": (*reader).bind, "mapfile": (*reader).mapfile, "readarray": (*reader).mapfile,
		"set": (*reader).setArgs, "shift": (*reader).shift, "trap": (*reader).trap, "echo": (*reader).echo,
		"printf": (*reader).printf, "unset": (*reader).unset, "export": (*reader).export, "local": (*reader).export,
		"declare": (*reader).export, "readonly": (*reader).export, "typeset": (*reader).export,
		".": (*reader).source, "source": (*reader).source, "pwd": (*reader).pwd, "seq": (*reader).seq,
	}
}

func (r *reader) cd(args []word) stream {
	c := (&program{}).parse(args)
	switch {
	case len(c.operands) == 0:
		r.old, r.dir = r.dir, folder{}
	case c.operands[0].text == "-" && !c.operands[0].loose:
		r.old, r.dir = r.dir, r.old
	default:
		r.enter(c.operands[0])
	}
	return stream{}
}

func (r *reader) pushd(args []word) stream {
	c := (&program{plus: true}).parse(args)
	before := r.dir
	if len(c.options) > 0 || len(c.operands) == 0 { // it turns the stack
		r.pushed, r.old, r.dir = nil, r.dir, folder{}
		return stream{}
	}
	r.enter(c.operands[0])
	r.pushed = append(slices.Clip(r.pushed), before)
	if r.plain { // it may lack the stack
		r.maybeIn(before)
	}
	return stream{}
}

func (r *reader) popd([]word) stream {
	r.old = r.dir
	if len(r.pushed) == 0 {
		r.dir = folder{}
		return stream{}
	}
	r.dir = r.pushed[len(r.pushed)-1]
	r.pushed = r.pushed[:len(r.pushed)-1]
	if r.plain {
		r.maybeIn(r.old)
	}
	return stream{}
}

func (r *reader) pwd([]word) stream {
	w := r.folderWord()
	switch {
	case w.loose:
		return stream{}
	case w.isPattern():
		return stream{names: []word{w}}
	}
	return stream{known: true, text: w.text + "\n"}
}

// joined returns words as one text of a command, with blanks between; ok is false if some are not known.
func joined(list []word) (text string, ok bool) {
	w := literal("")
	for i, next := range list {
		if i > 0 {
			w.join(literal(" "))
		}
		w.join(next)
	}
	return w.source(), !w.loose
}

func (r *reader) eval(args []word) stream { return r.textOf(args, "eval") }

// textOf follows words as the text of a command.
func (r *reader) textOf(args []word, name string) stream {
	if len(args) == 0 {
		return stream{}
	}
	text, ok := joined(args)
	if !ok {
		r.unknown(name)
	}
	return r.text(text)
}

// bind sets variables to what is read: the name of some file.
func (r *reader) bind(args []word) stream {
	return r.bindAll((&program{value: "-d -i -n -N -p -t -u -a"}).parse(args))
}

func (r *reader) mapfile(args []word) stream {
	return r.bindAll((&program{value: "-d -n -O -s -u -C -c"}).parse(args))
}

func (r *reader) bindAll(c *arguments) stream {
	value := some("")
	if r.in.names != nil {
		value = r.in.names[0]
		if len(r.in.names) > 1 {
			value = some(Above(texts(r.in.names)))
		}
	}
	for _, w := range c.operands {
		r.set(w.text, value)
		r.arrays[w.text] = []word{value}
	}
	for _, w := range c.values("-a") {
		r.set(w.text, value)
	}
	return stream{}
}

func texts(list []word) []string {
	all := make([]string, 0, len(list))
	for _, w := range list {
		if w.isPattern() {
			w = w.folder()
		}
		all = append(all, path.Clean(w.text))
	}
	return all
}

func (r *reader) setArgs(args []word) stream {
	if len(args) > 0 && (args[0].text == "--" || !isOption(&args[0], true)) {
		if args[0].text == "--" {
			args = args[1:]
		}
		r.args, r.argsKnown = args, true
	}
	return stream{}
}

func (r *reader) shift(args []word) stream {
	n := 1
	if len(args) > 0 {
		n, _ = strconv.Atoi(args[0].text)
	}
	r.args = r.args[min(max(n, 0), len(r.args)):]
	return stream{}
}

func (r *reader) trap(args []word) stream {
	if len(args) > 0 && args[0].text == "--" {
		args = args[1:]
	}
	if len(args) > 1 && !isOption(&args[0], false) && args[0].text != "-" {
		r.isolated(func() stream { return r.textOf(args[:1], "trap") })
	}
	return stream{}
}

func (r *reader) unset(args []word) stream {
	for _, w := range args {
		delete(r.vars, w.text)
		delete(r.funcs, w.text)
	}
	return stream{}
}

// noFunction runs a program although a function has its name.
func (r *reader) noFunction(c *arguments) stream {
	if len(c.operands) > 0 {
		name := c.operands[0].text
		if f := r.funcs[name]; f != nil {
			delete(r.funcs, name)
			defer func() { r.funcs[name] = f }()
		}
	}
	return r.run(c.operands)
}

// export is reached by words that the shell made up: the parser knows all others.
func (r *reader) export(args []word) stream {
	for _, w := range args {
		if isAssignment(w.text) {
			r.set(w.assigned())
		}
	}
	return stream{}
}

func (r *reader) source(args []word) stream {
	if len(args) == 0 {
		return stream{}
	}
	if in := r.device(args[0].text); in.known {
		return r.text(in.text)
	}
	r.unknown("source")
	return stream{}
}

// device is what a program reads from a path that the shell has made of a pipe.
func (r *reader) device(path string) stream {
	switch {
	case path == "/dev/stdin":
		return r.in
	case strings.HasPrefix(path, "/dev/fd/"):
		return r.fed
	}
	return stream{}
}

func (r *reader) echo(args []word) stream {
	for len(args) > 0 && (args[0].text == "-n" || args[0].text == "-e" || args[0].text == "-E") {
		args = args[1:]
	}
	return printed(args)
}

// printed returns what a command prints that repeats these words.
func printed(args []word) stream {
	out := stream{}
	if text, ok := joined(args); ok {
		out = stream{known: true, text: text + "\n"}
	}
	if slices.ContainsFunc(args, word.isPattern) {
		out.names = args
	}
	return out
}

func (r *reader) printf(args []word) stream {
	if len(args) == 0 {
		return stream{}
	}
	switch format, rest := args[0], args[1:]; {
	case strings.Contains(strings.ReplaceAll(format.text, "%s", ""), "%"), format.loose:
		return stream{}
	case len(rest) == 0, !strings.Contains(format.text, "%s"):
		return stream{known: true, text: ansi(format.text)}
	default:
		return formatted(strings.Split(ansi(format.text), "%s"), rest)
	}
}

// formatted returns what printf prints with words between parts of its format, as often as that takes.
func formatted(parts []string, args []word) stream {
	out := printed(args)
	var text strings.Builder
	for i := 0; out.known && i < len(args) && text.Len() <= maxText; {
		for k, part := range parts {
			if text.WriteString(part); k < len(parts)-1 && i < len(args) {
				text.WriteString(args[i].source())
				i++
			}
		}
	}
	out.text = text.String()
	return out
}

func (r *reader) seq(args []word) stream {
	if text, ok := joined(args); ok && strings.Trim(text, "0123456789 ") == "" && len(args) < 3 && len(args) > 0 {
		from, to := 1, 0
		to, _ = strconv.Atoi(args[len(args)-1].text)
		if len(args) == 2 {
			from, _ = strconv.Atoi(args[0].text)
		}
		var list []string
		for i := from; i <= to && len(list) <= maxRounds; i++ {
			list = append(list, strconv.Itoa(i))
		}
		if len(list) <= maxRounds {
			return stream{known: true, text: strings.Join(list, "\n")}
		}
	}
	return stream{}
}

// shell runs a text of its own.
var shell = program{
	value: "-o -O +o +O --rcfile --init-file", first: true, plus: true, never: "-n", special: (*reader).shell,
}

func (r *reader) shell(c *arguments) stream {
	return r.shellOf(c, false)
}

// plainShell is that of POSIX, or more: sh is dash on some machines, and bash on others.
func (r *reader) plainShell(c *arguments) stream {
	return r.shellOf(c, true)
}

func (r *reader) shellOf(c *arguments, plain bool) stream {
	before := r.plain
	defer func() { r.plain = before }()
	r.plain = plain
	run := func(text string, args []word) stream {
		return r.isolated(func() stream {
			r.args, r.argsKnown = args, true
			r.in = stream{}
			return r.text(text)
		})
	}
	switch {
	case c.any("-c") && len(c.operands) > 0:
		w := c.operands[0]
		if w.loose {
			r.unknown("a text that the shell makes up")
		}
		in := r.in
		return r.isolated(func() stream {
			r.args, r.argsKnown = c.operands[min(2, len(c.operands)):], true
			if len(c.operands) > 1 {
				r.set("0", c.operands[1])
			}
			r.in = in
			return r.text(w.source())
		})
	case len(c.operands) > 0 && !c.any("-s"):
		if in := r.device(c.operands[0].text); in.known {
			return run(in.text, c.operands[1:])
		}
		r.unknown(clip(c.operands[0].text))
		return stream{}
	case r.in.known:
		return run(r.in.text, c.operands)
	}
	r.unknown("a shell that reads its commands")
	return stream{}
}

// clip makes a part of a command fit into a sentence.
func clip(text string) string {
	if len(text) > 60 {
		return text[:60]
	}
	return text
}
