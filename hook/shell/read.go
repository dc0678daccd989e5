package shell

import (
	"maps"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/syntax"
)

// reader gathers what a text changes, while it follows the text as a shell does, with all its branches.
type reader struct {
	out     Reading
	writes  map[Target]bool
	trees   map[Tree]bool
	crowded bool   // there are more targets than are named
	above   string // the folder above those
	steps   int
	nested  int
	loops   int // how often the present command is repeated, about

	state
}

// state is what a subshell has a copy of.
type state struct {
	place
	pushed    []folder
	vars      map[string]word
	arrays    map[string][]word
	funcs     map[string]*function
	args      []word // $1 and so on
	argsKnown bool
	in        stream // standard input
	fed       stream // of the last process substitution
	plain     bool   // the shell may be no more than that of POSIX
}

type function struct{ body *syntax.Stmt }

// stream is what a command reads, or prints.
type stream struct {
	// given means that it is a pipe or a file, and known that text is all of it.
	given, known bool
	text         string
	// names are the files that its lines name.
	names []word
}

// value returns the words that a substitution stands for.
func (s stream) value() []word {
	switch {
	case s.names != nil:
		return s.names
	case s.known:
		return []word{ofText(strings.TrimRight(s.text, "\n"))}
	}
	return []word{{loose: true, glob: -1}}
}

// files returns the files that the stream may name, parted by bytes of a set: any file below the present folder, if
// nothing is known.
func (s stream) files(parts string) []word {
	switch {
	case s.names != nil:
		return s.names
	case s.known:
		var list []word
		for _, text := range splitAt(s.text, parts) {
			list = append(list, ofText(text))
		}
		return list
	}
	return []word{some("")}
}

// maxCommand is how many bytes of a text are read.
const maxCommand = 256 << 10

// text reads a text as a shell does that runs it.
func (r *reader) text(text string) stream {
	if r.nested >= maxNested {
		r.unknown("shells within shells")
		return stream{}
	}
	r.nested++
	defer func() { r.nested-- }()
	if len(text) > maxCommand {
		text = text[:maxCommand]
		r.unknown("a very long command")
	}
	r.steps += len(text) / 64
	list, err := parse(text)
	if err != nil {
		r.unknown("a part that is no command of a shell")
	}
	return r.stmts(list)
}

// isolated follows what a subshell does.
func (r *reader) isolated(f func() stream) stream {
	before := r.state
	r.vars, r.arrays = maps.Clone(r.vars), maps.Clone(r.arrays)
	r.funcs = maps.Clone(r.funcs)
	out := f()
	r.state = before
	return out
}

// branch follows what may happen or not. The folder is taken to be the one behind it.
func (r *reader) branch(f func() stream) stream {
	before := maps.Clone(r.vars)
	out := f()
	r.merge(before)
	return out
}

// merge makes values that differ between two ways of a text unknown.
func (r *reader) merge(other map[string]word) {
	for name, w := range r.vars {
		if before, ok := other[name]; ok && before != w {
			if before.isPattern() {
				w = before
			}
			if !w.isPattern() {
				w = word{loose: true, glob: -1}
			}
			r.vars[name] = w
		}
	}
}

// set sets a variable. The map of variables is shared with no other state.
func (r *reader) set(name string, w word) { r.vars[name] = w }

func (r *reader) stmts(list []*syntax.Stmt) (out stream) {
	for i, s := range list {
		one := r.stmt(s)
		switch {
		case i == 0:
			out = one
		case one.names != nil:
			out.names = append(out.names, one.names...)
			out.known = false
		default:
			out.known = out.known && one.known && len(out.text)+len(one.text) <= maxText
			if out.known {
				out.text += one.text
			}
		}
	}
	return out
}

func (r *reader) subst(list []*syntax.Stmt) stream {
	return r.isolated(func() stream { return r.stmts(list) })
}

// within follows the substitutions in a part that is no word, such as an expression. A long expression leans to one
// side, so it is no recursion.
func (r *reader) within(node syntax.Node) {
	for todo := []syntax.Node{node}; len(todo) > 0; {
		node, todo = todo[len(todo)-1], todo[:len(todo)-1]
		switch n := node.(type) {
		case *syntax.Word:
			if n != nil {
				r.one(n)
			}
		case *syntax.BinaryArithm:
			todo = append(todo, n.X, n.Y)
		case *syntax.UnaryArithm:
			todo = append(todo, n.X)
		case *syntax.ParenArithm:
			todo = append(todo, n.X)
		case *syntax.FlagsArithm:
			todo = append(todo, n.X)
		case *syntax.ArithmExp:
			todo = append(todo, n.X)
		case *syntax.ArithmCmd:
			todo = append(todo, n.X)
		case *syntax.LetClause:
			for _, x := range n.Exprs {
				todo = append(todo, x)
			}
		case *syntax.CStyleLoop:
			todo = append(todo, n.Init, n.Cond, n.Post)
		case *syntax.BinaryTest:
			todo = append(todo, n.X, n.Y)
		case *syntax.UnaryTest:
			todo = append(todo, n.X)
		case *syntax.ParenTest:
			todo = append(todo, n.X)
		case *syntax.TestClause:
			todo = append(todo, n.X)
		}
	}
}

// stmt follows a statement, and returns what it prints.
func (r *reader) stmt(s *syntax.Stmt) stream {
	if r.steps++; r.steps > maxSteps {
		r.unknown("a very long command")
		return stream{}
	}
	in := r.in
	defer func() { r.in = in }()
	for _, redirect := range s.Redirs {
		r.redirect(redirect)
	}
	if s.Background || s.Coprocess || s.Disown {
		return r.isolated(func() stream { return r.command(s.Cmd) })
	}
	return r.command(s.Cmd)
}

func (r *reader) redirect(redirect *syntax.Redirect) {
	switch redirect.Op {
	case syntax.RdrOut, syntax.AppOut, syntax.RdrClob, syntax.AppClob, syntax.RdrInOut, syntax.RdrAll,
		syntax.RdrAllClob, syntax.AppAll, syntax.AppAllClob:
		r.writeAll(r.fields(redirect.Word))
	case syntax.DplOut:
		for _, w := range r.fields(redirect.Word) {
			if w.loose || strings.Trim(w.text, "0123456789-") != "" {
				r.write(w)
			}
		}
	case syntax.RdrIn:
		if len(redirect.Word.Parts) == 1 {
			if from, ok := redirect.Word.Parts[0].(*syntax.ProcSubst); ok {
				r.in = r.subst(from.Stmts)
				r.in.given = true
				return
			}
		}
		r.fields(redirect.Word)
		r.in = stream{given: true}
	case syntax.Hdoc, syntax.DashHdoc:
		r.in = r.heredoc(redirect)
	case syntax.WordHdoc:
		w := r.one(redirect.Word)
		r.in = stream{given: true, known: !w.loose, text: w.source() + "\n"}
		if w.isPattern() {
			r.in.names = []word{w}
		}
	default:
		r.within(redirect.Word)
	}
}

// heredoc returns a here-document, without the tabs that <<- cuts off.
func (r *reader) heredoc(redirect *syntax.Redirect) stream {
	in := stream{given: true, known: true}
	if redirect.Hdoc == nil {
		return in
	}
	raw := slices.ContainsFunc(redirect.Word.Parts, func(part syntax.WordPart) bool {
		lit, ok := part.(*syntax.Lit)
		return !ok || strings.Contains(lit.Value, `\`)
	})
	var text strings.Builder
	for _, part := range redirect.Hdoc.Parts {
		lit, ok := part.(*syntax.Lit)
		switch {
		case ok && raw:
			text.WriteString(lit.Value)
		case ok:
			text.WriteString(unescapeQuoted(lit.Value))
		default:
			var b builder
			r.part(&b, part, true)
			b.end()
			for _, w := range b.done {
				in.known = in.known && !w.loose && text.Len() <= maxText
				if in.known {
					text.WriteString(w.source())
				}
			}
		}
	}
	in.text = text.String()
	if redirect.Op == syntax.DashHdoc {
		in.text = strings.TrimLeft(strings.ReplaceAll(in.text, "\n\t", "\n"), "\t")
	}
	return in
}

func (r *reader) command(c syntax.Command) stream {
	switch c := c.(type) {
	case *syntax.CallExpr:
		return r.call(c)
	case *syntax.BinaryCmd:
		return r.list(c)
	case *syntax.Subshell:
		return r.isolated(func() stream { return r.stmts(c.Stmts) })
	case *syntax.Block:
		return r.stmts(c.Stmts)
	case *syntax.IfClause:
		return r.ifClause(c)
	case *syntax.WhileClause:
		return r.repeat(func() stream {
			r.stmts(c.Cond)
			return r.stmts(c.Do)
		})
	case *syntax.ForClause:
		return r.forClause(c)
	case *syntax.CaseClause:
		r.one(c.Word)
		ways := []place{}
		for _, item := range c.Items {
			for _, pattern := range item.Patterns {
				r.within(pattern)
			}
			ways = r.way(ways, item.Stmts)
		}
		r.meet(append(ways, r.place))
	case *syntax.FuncDecl:
		if c.Name != nil {
			r.funcs[c.Name.Value] = &function{c.Body}
		}
		for _, name := range c.Names {
			r.funcs[name.Value] = &function{c.Body}
		}
		if c.Name == nil && len(c.Names) == 0 { // zsh runs it at once
			return r.stmt(c.Body)
		}
	case *syntax.DeclClause:
		for _, assign := range c.Args {
			r.assign(assign)
		}
	case *syntax.TimeClause:
		if c.Stmt == nil {
			break
		}
		call, ok := c.Stmt.Cmd.(*syntax.CallExpr)
		if ok && len(call.Args) > 0 && strings.HasPrefix(call.Args[0].Lit(), "-") {
			program := *c.Stmt // the shell's own word has no options
			program.Cmd = &syntax.CallExpr{Args: append([]*syntax.Word{timeWord}, call.Args...)}
			return r.stmt(&program)
		}
		return r.stmt(c.Stmt)
	case *syntax.CoprocClause:
		return r.isolated(func() stream { return r.stmt(c.Stmt) })
	case *syntax.TestDecl:
		return r.stmt(c.Body)
	case nil:
	default: // a test or arithmetic: they write nothing but by the commands within
		r.within(c)
	}
	return stream{}
}

var timeWord = &syntax.Word{Parts: []syntax.WordPart{&syntax.Lit{Value: "time"}}}

func (r *reader) ifClause(c *syntax.IfClause) stream {
	var ways []place
	for ; c != nil; c = c.Else {
		r.stmts(c.Cond)
		ways = r.way(ways, c.Then)
		if c.Else == nil && len(c.Cond) > 0 {
			ways = append(ways, r.place)
		}
	}
	r.meetAny(ways)
	return stream{}
}

// way follows statements that happen or not, and adds the place at their end to those of other ways. It stays where it
// is.
func (r *reader) way(ways []place, list []*syntax.Stmt) []place {
	before := r.place
	r.branch(func() stream { return r.stmts(list) })
	if !leaves(list) {
		ways = append(ways, r.place)
	}
	r.place = before
	return ways
}

// meetAny is meet where there may be no way at all.
func (r *reader) meetAny(ways []place) {
	if len(ways) > 0 {
		r.meet(ways)
	}
}

// leaves reports whether nothing that follows some statements is reached from them.
func leaves(list []*syntax.Stmt) bool {
	if len(list) == 0 {
		return false
	}
	return leaving[firstLit(list[len(list)-1])]
}

var (
	leaving = words("exit return break continue exec")
	// asking are programs with an answer in their exit code.
	asking = words("[ test false grep egrep fgrep rg which command type cmp diff")
)

// firstLit returns the name of a simple command, "" of others.
func firstLit(s *syntax.Stmt) string {
	if call, ok := s.Cmd.(*syntax.CallExpr); ok && len(call.Args) > 0 {
		return call.Args[0].Lit()
	}
	return ""
}

// isTest reports whether a statement asks for something: what hangs on it may not happen.
func isTest(s *syntax.Stmt) bool {
	switch s.Cmd.(type) {
	case *syntax.TestClause, *syntax.ArithmCmd:
		return true
	}
	return s.Negated || asking[firstLit(s)]
}

// list follows commands joined by &&, || and |. The parser makes a chain of them that leans to the left.
func (r *reader) list(c *syntax.BinaryCmd) stream {
	type part struct {
		op syntax.BinCmdOperator
		s  *syntax.Stmt
	}
	var chain []part
	for {
		chain = append(chain, part{c.Op, c.Y})
		next, ok := c.X.Cmd.(*syntax.BinaryCmd)
		if !ok || len(c.X.Redirs) > 0 || c.X.Background {
			break
		}
		c = next
	}
	slices.Reverse(chain)
	pipes := chain[0].op == syntax.Pipe || chain[0].op == syntax.PipeAll
	before, tested := r.place, isTest(c.X)
	out := r.isolatedIf(pipes, c.X)
	var ways []place // to the end of the chain
	for i, next := range chain {
		if next.op != syntax.Pipe && next.op != syntax.PipeAll {
			piped := i+1 < len(chain) && (chain[i+1].op == syntax.Pipe || chain[i+1].op == syntax.PipeAll)
			after := r.place
			if next.op == syntax.OrStmt && before.dir != after.dir { // behind a cd that fails
				r.place = before
			}
			from := r.place
			out = r.branch(func() stream { return r.isolatedIf(piped, next.s) })
			switch moved := r.dir != from.dir; {
			case next.op == syntax.OrStmt && moved:
				ways = append(ways, after)
			case next.op == syntax.OrStmt:
				r.place = after
			case moved && tested:
				ways = append(ways, after)
			}
			before, tested = after, tested || isTest(next.s)
			continue
		}
		in := r.in
		r.in = out
		r.in.given = true
		out = r.isolatedIf(true, next.s)
		r.in = in
	}
	r.meet(append([]place{r.place}, ways...))
	return out
}

func (r *reader) isolatedIf(subshell bool, s *syntax.Stmt) stream {
	if !subshell {
		return r.stmt(s)
	}
	return r.isolated(func() stream { return r.stmt(s) })
}

// repeat follows a loop: what the first round leaves behind meets the second one.
func (r *reader) repeat(round func() stream) (out stream) {
	rounds := 2
	if r.loops > 4 { // loops within loops
		rounds = 1
	}
	r.loops *= 2
	defer func() { r.loops /= 2 }()
	before := maps.Clone(r.vars)
	ways := []place{r.place}
	for range rounds {
		out = round()
		ways = append(ways, r.place)
	}
	slices.Reverse(ways)
	r.meet(ways)
	r.merge(before)
	return stream{given: out.given, names: out.names}
}

// maxRounds bounds the values of a loop that are followed one by one.
const maxRounds = 64

func (r *reader) forClause(c *syntax.ForClause) stream {
	iter, ok := c.Loop.(*syntax.WordIter)
	if !ok {
		r.within(c.Loop)
		return r.repeat(func() stream { return r.stmts(c.Do) })
	}
	items := r.words(iter.Items)
	if !iter.InPos.IsValid() {
		items = r.args
		if !r.argsKnown {
			items = []word{some("")}
		}
	}
	if len(items) > maxRounds || r.loops > maxRounds {
		items = []word{some("")}
	}
	r.loops *= max(len(items), 1)
	defer func() { r.loops /= max(len(items), 1) }()
	var out stream
	for _, item := range items {
		if r.steps > maxSteps {
			break
		}
		if item.loose {
			item = some(item.text[:item.fixed][:strings.LastIndexByte(item.text[:item.fixed], '/')+1])
		}
		r.set(iter.Name.Value, item)
		one := r.stmts(c.Do)
		out.names = append(out.names, one.names...)
	}
	return out
}

func (r *reader) assign(a *syntax.Assign) {
	if a.Index != nil {
		r.within(a.Index)
	}
	if a.Name == nil || a.Naked {
		if a.Value != nil {
			r.one(a.Value)
		}
		return
	}
	name := a.Name.Value
	if a.Array != nil {
		var list []word
		if a.Append {
			list = r.arrays[name]
		}
		for _, elem := range a.Array.Elems {
			list = append(list, r.fields(elem.Value)...)
		}
		r.arrays[name] = list
		if len(list) > 0 {
			r.set(name, list[0])
		}
		return
	}
	w := r.one(a.Value)
	if a.Append {
		before, ok := r.vars[name]
		if !ok {
			before = word{loose: true, glob: -1}
		}
		before.join(w)
		w = before
	}
	if a.Index != nil {
		delete(r.arrays, name)
		return
	}
	r.setting(name, w)
}

func (r *reader) call(c *syntax.CallExpr) stream {
	if len(c.Args) == 0 {
		for _, assign := range c.Assigns {
			r.assign(assign)
		}
		return stream{}
	}
	words := r.words(c.Args)
	for _, assign := range c.Assigns {
		if w := r.one(assign.Value); assign.Name != nil {
			defer r.exported(assign.Name.Value, w)()
		}
	}
	if len(words) == 0 {
		return stream{}
	}
	return r.run(words)
}

// exported sets a variable for one command.
func (r *reader) exported(name string, w word) (end func()) {
	old, set := r.vars[name]
	r.setting(name, w)
	return func() {
		if r.set(name, old); !set {
			delete(r.vars, name)
		}
	}
}

// setting sets a variable. Some are commands.
func (r *reader) setting(name string, w word) {
	r.set(name, w)
	switch {
	case commandVars[name]:
		r.isolated(func() stream { return r.textOf([]word{w}, name) })
	case (name == "BASH_ENV" || name == "ENV") && w.text != "" && w.text != "/dev/null":
		r.unknown(name)
	}
}

// commandVars are variables with a command that programs run.
var commandVars = words(`
	EDITOR VISUAL PAGER MANPAGER BROWSER GIT_EDITOR GIT_SEQUENCE_EDITOR GIT_PAGER GIT_EXTERNAL_DIFF GIT_SSH_COMMAND
	GIT_ASKPASS PROMPT_COMMAND
`)

func words(list string) map[string]bool {
	set := map[string]bool{}
	for word := range strings.FieldsSeq(list) {
		set[word] = true
	}
	return set
}

// run follows a command with its words.
func (r *reader) run(list []word) stream {
	if r.steps++; r.steps > maxSteps {
		r.unknown("a very long command")
		return stream{}
	}
	if len(list) == 0 {
		return stream{}
	}
	if r.nested >= maxNested {
		r.unknown("commands within commands")
		return stream{}
	}
	r.nested++
	defer func() { r.nested-- }()
	if list[0].loose || list[0].isPattern() {
		r.unknown("a program that the shell makes up")
		return stream{}
	}
	name, args := base(list[0].text), list[1:]
	if f := r.funcs[list[0].text]; f != nil {
		before, known := r.args, r.argsKnown
		r.args, r.argsKnown = args, true
		out := r.stmt(f.body)
		r.args, r.argsKnown = before, known
		return out
	}
	if builtin := builtins[name]; builtin != nil {
		return builtin(r, args)
	}
	p, ok := table[name]
	if !ok {
		r.unknown(name)
		return stream{}
	}
	return r.program(name, &p, args)
}
