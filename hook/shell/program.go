package shell

import (
	"path"
	"strings"
)

// program is a row of the table: what a program does with its words. Lists of options are separated by blanks.
type program struct {
	// value are options with a value, in the same word or the next one; maybe those with a value in the same word, if
	// any; digits those that digits may follow.
	value, maybe, digits string
	whole                bool // -name is one option, not a cluster of letters
	first                bool // the options end at the first operand
	plus                 bool // options begin with +, too
	assigns              bool // NAME=VALUE stands before the operands
	// ends are options with a value that all operands follow.
	ends string

	// only are the options without which the program writes none of its operands, never those with which it writes
	// nothing at all.
	only, never string
	// output are options with a file as the value that is written, folder those with a folder that is filled, and
	// chdir those with the folder to work in.
	output, folder, chdir string
	// skip is how many operands stand before those that do counts, unless one of the options of script is given.
	skip   int
	script string
	// bare means that without an operand the program works at the present folder.
	bare bool
	does effect
	// touches are files of the present folder that it writes.
	touches string
	// special follows what no row can tell. It comes after all else.
	special func(*reader, *arguments) stream
	// subs are the commands of a program that has some. One that is not there does what the row itself does.
	subs map[string]program
}

// plain reports whether the program only reads, whatever its words are.
func (p *program) plain() bool {
	return p.does == reads && p.special == nil && p.subs == nil && p.output == "" && p.touches == ""
}

// effect is what a program does with its operands.
type effect int

const (
	reads  effect = iota // nothing
	files                // writes each
	paths                // writes each, or what is below it
	copies               // writes the last one, or files in it
	moves                // as copies, and the others go away
	first                // writes the first one
	second               // writes the second one
	last                 // writes the last one of several
	large                // changes files below the operands, or the present folder, at large
	around               // changes files below the present folder at large
	whole                // changes files of the checkout at large
	opaque               // could write anything
	runs                 // runs the rest as a command
	passes               // prints what it reads, or less
	lists                // prints names of files
)

// always are options that make a program tell of itself.
const always = "--help --version"

// program follows a call of a program of the table.
func (r *reader) program(name string, p *program, args []word) stream {
	if p.subs != nil {
		return r.command2(name, p, args)
	}
	c := p.parse(args)
	if c.any(always) || p.never != "" && c.any(p.never) {
		return stream{}
	}
	if dirs := c.values(p.chdir); len(dirs) > 0 {
		before := r.place
		defer func() { r.place = before }()
		for _, dir := range dirs {
			r.enter(dir)
		}
	}
	for _, w := range c.settings {
		defer r.exported(w.assigned())()
	}
	r.writeAll(c.values(p.output))
	for _, folder := range c.values(p.folder) {
		r.tree(folder)
	}
	if p.only != "" && !c.any(p.only) {
		return r.quiet(p, c)
	}
	for name := range strings.FieldsSeq(p.touches) {
		r.write(literal(name))
	}
	out := r.effect(name, p, c)
	if p.special != nil {
		return p.special(r, c)
	}
	return out
}

// quiet is what a program prints that writes nothing.
func (r *reader) quiet(p *program, c *arguments) stream {
	if p.does == files && p.skip > 0 { // a filter such as sed
		return r.effect("", &program{does: passes, skip: p.skip, script: p.script}, c)
	}
	return stream{}
}

// command2 follows a program that has commands, such as git.
func (r *reader) command2(name string, p *program, args []word) stream {
	outer := *p
	outer.first = true
	c := outer.parse(args)
	if c.any(always) || p.never != "" && c.any(p.never) {
		return stream{}
	}
	before := r.place
	defer func() { r.place = before }()
	for _, dir := range c.values(p.chdir) {
		r.enter(dir)
	}
	if name == "git" {
		r.gitOptions(c)
	}
	if len(c.operands) == 0 {
		if p.does == opaque {
			return stream{}
		}
		c.operands = []word{literal("")}
	}
	verb := c.operands[0]
	sub, ok := p.subs[verb.text]
	switch {
	case verb.loose:
		r.unknown(name)
		return stream{}
	case verb.text == "help":
		return stream{}
	case ok:
		return r.program(name+" "+verb.text, &sub, c.operands[1:])
	}
	rest := *p
	rest.subs, rest.chdir, rest.value = nil, "", rest.value+" "+rest.chdir
	if rest.does == opaque {
		r.unknown(name + " " + verb.text)
		return stream{}
	}
	return r.program(name, &rest, args)
}

// effect follows what a program does with its operands.
func (r *reader) effect(name string, p *program, c *arguments) stream {
	operands := c.operands
	if p.script == "" || !c.any(p.script) {
		operands = operands[min(p.skip, len(operands)):]
	}
	switch p.does {
	case files:
		r.writeAll(operands)
	case paths, large:
		if len(operands) == 0 && (p.bare || p.does == large) {
			r.tree(here)
		}
		for _, w := range operands {
			if p.does == large {
				w.text = strings.TrimSuffix(w.text, "...")
				r.tree(w)
			} else {
				r.path(w, Changes)
			}
		}
	case around:
		r.tree(here)
	case copies, moves:
		r.copies(c, p.does == moves)
	case first:
		r.writeAll(operands[:min(1, len(operands))])
	case second:
		if len(operands) > 1 {
			r.write(operands[1])
		}
	case last:
		if len(operands) > 1 {
			r.write(operands[len(operands)-1])
		}
	case whole:
		r.checkout(Changes)
	case opaque:
		r.unknown(name)
	case runs:
		return r.run(operands)
	case passes:
		if len(operands) == 0 {
			return stream{names: r.in.names}
		}
	case lists:
		return listing(operands)
	case reads:
	}
	return stream{}
}

// listing returns the files that a program lists which is given some folders.
func listing(folders []word) stream {
	var names []word
	for _, w := range folders {
		switch {
		case w.loose:
			names = append(names, word{loose: true, fixed: w.fixed, text: w.text, glob: -1})
		case w.isPattern():
			names = append(names, w)
		default:
			names = append(names, some(w.text))
		}
	}
	if len(names) == 0 {
		names = []word{some("")}
	}
	return stream{names: names}
}

// copies reads cp, mv, ln and install: the target is written, and the source, too, if it goes away.
func (r *reader) copies(c *arguments, goes bool) {
	sources := c.operands
	target := c.values("-t --target-directory")
	switch {
	case len(target) > 0:
		target[0].text += "/"
	case len(sources) > 1:
		target, sources = sources[len(sources)-1:], sources[:len(sources)-1]
	default:
		return
	}
	if goes {
		r.writeAll(sources)
	}
	to := target[0]
	if to.isPattern() {
		r.tree(to)
		return
	}
	if !goes && c.any("-r -R -a --recursive --archive --parents") {
		r.tree(to)
		return
	}
	for _, source := range sources {
		name := path.Base(source.text)
		switch {
		case source.loose, source.isPattern(), name == ".", name == "..":
			r.tree(to)
		case c.any("-T --no-target-directory"):
			r.write(to)
		case len(sources) > 1 || strings.HasSuffix(to.text, "/"):
			into := to
			into.text += "/" + name
			r.write(into)
		default:
			r.writeInto(to, name)
		}
	}
}
