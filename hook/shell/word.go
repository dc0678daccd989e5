package shell

import (
	"slices"
	"strconv"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// word is a word of a command, as the program gets it.
type word struct {
	text string
	// loose means that a part of the text is not known; the text is without that part. fixed is the length of that
	// before the first such part.
	loose bool
	fixed int
	// glob is where a pattern of files begins, -1 without one. The word stands for some files that match.
	glob int
	// exact means that the program takes the word for no pattern either.
	exact bool
	// marked is the text of a word that was joined, with a mark in place of each part that is a pattern, or not known:
	// what the word is as the text of a command. See mark.go. With more than maxMarks it is not kept.
	marked string
	marks  int
}

// here is the present folder.
var here = word{text: ".", glob: -1}

func literal(text string) word { return word{text: text, glob: -1} }

// some is any file of a folder, or below it.
func some(folder string) word {
	if folder == "" || folder == "." {
		return word{text: "*"}
	}
	folder = strings.TrimSuffix(folder, "/") + "/"
	return word{text: folder + "*", glob: len(folder)}
}

// assigned parts NAME=VALUE.
func (w word) assigned() (name string, value word) {
	name, w.text, _ = strings.Cut(w.text, "=")
	w.glob, w.fixed, w.marked = -1, 0, ""
	return name, w
}

func (w word) isPattern() bool { return w.glob >= 0 }

// folder returns the folder above all files that match a pattern.
func (w word) folder() word {
	return literal(w.text[:strings.LastIndexByte(w.text[:w.glob], '/')+1] + ".")
}

// maxText bounds a word, and a text that is made of words: a variable may double with each of its uses.
const maxText = 64 << 10

// join appends another word to a word.
func (w *word) join(other word) {
	if len(w.text)+len(other.text) > maxText || len(w.marked)+len(other.marked) > maxCommand {
		other = word{loose: true, glob: -1}
	}
	w.mark(other)
	if w.glob < 0 && other.glob >= 0 {
		w.glob = len(w.text) + other.glob
	}
	if other.loose && !w.loose {
		w.loose, w.fixed = true, len(w.text)+other.fixed
	}
	w.text += other.text
}

// builder makes words out of the parts of one word: an unquoted variable may be several words.
type builder struct {
	done    []word
	now     word
	present bool // now is a word, be it empty
}

func (b *builder) add(w word) {
	if !b.present {
		b.now, b.present = word{glob: -1}, true
	}
	b.now.join(w)
}

func (b *builder) end() {
	if b.present && len(b.done) < maxFields {
		b.done = append(b.done, b.now)
	}
	b.present = false
}

// addList appends words: the first to the present one.
func (b *builder) addList(list []word) {
	for i, w := range list {
		if i > 0 {
			b.end()
		}
		b.add(w)
	}
}

// addSplit appends an unquoted value, which the shell splits at blanks, or as IFS has it.
func (b *builder) addSplit(list []word, blanks string) {
	for i, w := range list {
		if i > 0 {
			b.end()
		}
		fields := []word{w}
		if !w.loose && strings.ContainsAny(w.text, blanks) {
			fields = nil
			for _, text := range splitAt(w.text, blanks) {
				fields = append(fields, literal(text))
			}
		}
		for k, field := range fields {
			if k > 0 {
				b.end()
			}
			if field.glob < 0 && !field.loose {
				field.glob = strings.IndexAny(field.text, "*?[")
			}
			b.add(field)
		}
	}
}

// words returns the words that a shell makes of some words.
func (r *reader) words(list []*syntax.Word) (all []word) {
	for _, w := range list {
		if len(all) > maxFields {
			r.unknown("a command with very many words")
			break
		}
		all = append(all, r.fields(w)...)
	}
	r.steps += len(all) / 16
	return all
}

// fields returns the words that a shell makes of one.
func (r *reader) fields(w *syntax.Word) []word {
	if w == nil {
		return nil
	}
	var b builder
	if open := openBraces(w); open > maxOpen {
		r.unknown("a word of very many braces")
	}
	for _, parts := range braces(w) {
		if slices.ContainsFunc(parts, func(p syntax.WordPart) bool { return !isEmpty(p) }) {
			r.parts(&b, parts)
			b.end()
		}
	}
	return b.done
}

// isEmpty reports whether a part is an empty element of braces: {a,} is one word, unless that is in quotes.
func isEmpty(p syntax.WordPart) bool {
	lit, ok := p.(*syntax.Lit)
	return ok && lit.Value == ""
}

// one returns a word where the shell makes a single one: in an assignment, or behind a redirection.
func (r *reader) one(w *syntax.Word) word {
	if w == nil {
		return literal("")
	}
	var b builder
	for _, part := range w.Parts {
		r.part(&b, part, false)
	}
	b.end()
	switch len(b.done) {
	case 0:
		return literal("")
	case 1:
		return b.done[0]
	}
	joined := b.done[0]
	for _, next := range b.done[1:] {
		joined.join(literal(" "))
		joined.join(next)
	}
	return joined
}

const (
	maxBraces = 256 // words that braces make of one
	maxOpen   = 16  // braces of a word: the parser takes long over many
)

func openBraces(w *syntax.Word) (n int) {
	for _, part := range w.Parts {
		if lit, ok := part.(*syntax.Lit); ok {
			n += strings.Count(lit.Value, "{")
		}
	}
	return n
}

// braces expands {a,b}. What is no list, or too long a one, becomes a pattern.
func braces(w *syntax.Word) [][]syntax.WordPart {
	copied := &syntax.Word{Parts: slices.Clone(w.Parts)}
	if openBraces(w) > maxOpen || !syntax.SplitBraces(copied) {
		return [][]syntax.WordPart{w.Parts}
	}
	list := expandBraces(copied.Parts)
	if len(list) > maxBraces {
		pattern := make([]syntax.WordPart, 0, len(copied.Parts))
		for _, part := range copied.Parts {
			if _, ok := part.(*syntax.BraceExp); ok {
				part = &syntax.Lit{Value: "*"}
			}
			pattern = append(pattern, part)
		}
		return [][]syntax.WordPart{pattern}
	}
	return list
}

// expandBraces returns at most one list more than maxBraces.
func expandBraces(parts []syntax.WordPart) [][]syntax.WordPart {
	list := [][]syntax.WordPart{nil}
	for _, part := range parts {
		choices := [][]syntax.WordPart{{part}}
		if brace, ok := part.(*syntax.BraceExp); ok {
			choices = nil
			if brace.Sequence {
				choices = [][]syntax.WordPart{{&syntax.Lit{Value: "*"}}}
			} else {
				for _, elem := range brace.Elems {
					choices = append(choices, expandBraces(elem.Parts)...)
				}
			}
		}
		var next [][]syntax.WordPart
		for _, before := range list {
			for _, choice := range choices {
				if len(next) <= maxBraces {
					next = append(next, append(slices.Clone(before), choice...))
				}
			}
		}
		list = next
	}
	return list
}

func (r *reader) parts(b *builder, parts []syntax.WordPart) {
	for i, part := range parts {
		if lit, ok := part.(*syntax.Lit); ok && i == 0 && strings.HasPrefix(lit.Value, "~") {
			b.add(word{loose: true, glob: -1})
			_, rest, _ := strings.Cut(lit.Value, "/")
			b.add(literal("/" + rest))
			continue
		}
		r.part(b, part, false)
	}
}

// part appends a part of a word.
func (r *reader) part(b *builder, part syntax.WordPart, quoted bool) {
	switch p := part.(type) {
	case *syntax.Lit:
		if quoted {
			b.addText(p.Value, func(text string) word { return literal(unescapeQuoted(text)) })
			return
		}
		b.addText(p.Value, unquote)
	case *syntax.SglQuoted:
		text := p.Value
		if p.Dollar {
			text = ansi(text)
		}
		b.addText(text, literal)
	case *syntax.DblQuoted:
		list := slices.ContainsFunc(p.Parts, func(part syntax.WordPart) bool {
			param, ok := part.(*syntax.ParamExp)
			return ok && param.Param != nil && param.Param.Value == "@"
		})
		if !list {
			b.add(literal(""))
		}
		for _, inner := range p.Parts {
			r.part(b, inner, true)
		}
	case *syntax.ParamExp:
		r.add(b, r.param(p), quoted)
	case *syntax.CmdSubst:
		r.add(b, r.subst(p.Stmts).value(), quoted)
	case *syntax.ProcSubst:
		r.fed = r.subst(p.Stmts)
		b.add(literal("/dev/fd/63"))
	case *syntax.ExtGlob:
		b.add(word{text: "*"})
	case *syntax.BraceExp:
		b.add(word{text: "*"})
	default:
		r.within(part)
		b.add(word{loose: true, glob: -1})
	}
}

func (r *reader) add(b *builder, list []word, quoted bool) {
	if quoted {
		b.addList(list)
		return
	}
	blanks := " \t\n"
	if w, set := r.vars["IFS"]; set && w.isPlain() {
		blanks = w.text
	}
	b.addSplit(list, blanks)
}

// splitAt returns the parts of a text between bytes of a set.
func splitAt(text, set string) []string {
	return strings.FieldsFunc(text, func(c rune) bool { return strings.ContainsRune(set, c) })
}

// unquote returns the text of an unquoted part, which may be a pattern.
func unquote(value string) word {
	if !strings.ContainsAny(value, `\*?[`) {
		return literal(value)
	}
	w := word{glob: -1}
	var text strings.Builder
	for i := 0; i < len(value); i++ {
		switch c := value[i]; c {
		case '\\':
			if i++; i < len(value) && value[i] != '\n' {
				text.WriteByte(value[i])
			}
		case '*', '?', '[':
			if w.glob < 0 && (c != '[' || strings.Contains(value[i:], "]")) {
				w.glob = text.Len()
			}
			text.WriteByte(c)
		default:
			text.WriteByte(c)
		}
	}
	w.text = text.String()
	return w
}

// unescapeQuoted returns the text of a part in double quotes.
func unescapeQuoted(value string) string {
	if !strings.Contains(value, `\`) {
		return value
	}
	var text strings.Builder
	for i := 0; i < len(value); i++ {
		if value[i] == '\\' && i+1 < len(value) {
			switch value[i+1] {
			case '\n':
				i++
				continue
			case '$', '`', '"', '\\':
				i++
			}
		}
		text.WriteByte(value[i])
	}
	return text.String()
}

// ansi returns the text of $'...'.
func ansi(value string) string {
	var text strings.Builder
	for value != "" {
		c, multibyte, rest, err := strconv.UnquoteChar(value, '\'')
		switch {
		case err == nil && (c < 0x80 || multibyte):
			text.WriteRune(c)
			value = rest
		case err == nil:
			text.WriteByte(byte(c))
			value = rest
		case len(value) > 1 && value[0] == '\\' && '0' <= value[1] && value[1] <= '7':
			n := 2
			for n < len(value) && n < 4 && '0' <= value[n] && value[n] <= '7' {
				n++
			}
			code, _ := strconv.ParseUint(value[1:n], 8, 16)
			text.WriteByte(byte(code))
			value = value[n:]
		case len(value) > 1 && value[0] == '\\' && value[1] == 'e':
			text.WriteByte(0x1b)
			value = value[2:]
		case len(value) > 1 && value[0] == '\\':
			text.WriteByte(value[1])
			value = value[2:]
		default:
			text.WriteByte(value[0])
			value = value[1:]
		}
	}
	return text.String()
}

// param returns the value of a variable.
func (r *reader) param(p *syntax.ParamExp) []word {
	unknown := []word{{loose: true, glob: -1}}
	if p.Exp != nil {
		r.within(p.Exp.Word)
	}
	if p.Index != nil {
		r.within(p.Index)
	}
	if p.Param == nil || p.Excl || p.Length || p.Width || p.IsSet || p.Flags != nil || p.Names != 0 {
		return unknown
	}
	name := p.Param.Value
	var list []word
	switch n, err := strconv.Atoi(name); {
	case name == "@" || name == "*":
		list = r.args
	case err == nil && n > 0 && r.argsKnown:
		if n <= len(r.args) {
			list = r.args[n-1 : n]
		}
	case err == nil && n > 0:
		list = unknown
	case p.Index != nil:
		list = r.arrays[name]
		if list == nil {
			list = unknown
		}
	case name == "PWD" && r.dir.path != "":
		list = []word{r.folderWord()}
	default:
		w, ok := r.vars[name]
		if !ok {
			w = unknown[0]
		}
		list = []word{w}
	}
	if (name == "@" || name == "*") && !r.argsKnown {
		list = []word{some("")}
	}
	return r.expansion(p, list)
}

// expansion applies what stands behind the name of a variable.
func (r *reader) expansion(p *syntax.ParamExp, list []word) []word {
	unknown := []word{{loose: true, glob: -1}}
	switch {
	case len(list) == 1 && list[0].isPattern() && (p.Exp != nil || p.Slice != nil || p.Repl != nil):
		w := list[0] // some file: so is what is made of its name
		return []word{some(w.text[:strings.LastIndexByte(w.text[:w.glob], '/')+1])}
	case p.Slice != nil, p.Repl != nil, len(p.Modifiers) > 0:
		return unknown
	case p.Exp == nil:
		return list
	case len(list) != 1:
		return unknown
	}
	w := list[0]
	arg := r.one(p.Exp.Word)
	switch p.Exp.Op {
	case syntax.DefaultUnset, syntax.DefaultUnsetOrNull, syntax.AssignUnset, syntax.AssignUnsetOrNull:
		if w.loose || w.text == "" { // it may have any value, and most often has none
			return []word{arg}
		}
		return list
	case syntax.ErrorUnset, syntax.ErrorUnsetOrNull:
		return list
	case syntax.RemSmallPrefix, syntax.RemLargePrefix:
		if !w.loose && !arg.loose && !arg.isPattern() {
			return []word{literal(strings.TrimPrefix(w.text, arg.text))}
		}
		if !w.loose && arg.text == "*/" {
			at := strings.IndexByte(w.text, '/')
			if p.Exp.Op == syntax.RemLargePrefix {
				at = strings.LastIndexByte(w.text, '/')
			}
			return []word{literal(w.text[at+1:])}
		}
	case syntax.RemSmallSuffix, syntax.RemLargeSuffix:
		if !w.loose && !arg.loose && !arg.isPattern() {
			return []word{literal(strings.TrimSuffix(w.text, arg.text))}
		}
		if at := strings.LastIndexByte(w.text, '/'); !w.loose && arg.text == "/*" && at >= 0 &&
			p.Exp.Op == syntax.RemSmallSuffix {
			return []word{literal(w.text[:at])}
		}
	}
	return unknown
}
