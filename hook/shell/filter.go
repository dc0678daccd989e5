package shell

import (
	"slices"
	"strings"
)

// scanner goes through the text of a program for sed or awk. A step may lead beyond the end.
type scanner struct {
	text string
	at   int
}

func (s *scanner) more() bool { return s.at < len(s.text) }

// peek returns the present byte, 0 at the end.
func (s *scanner) peek() byte {
	if s.at < len(s.text) {
		return s.text[s.at]
	}
	return 0
}

// skip skips bytes of a set, and returns them.
func (s *scanner) skip(set string) string {
	s.at = min(s.at, len(s.text))
	from := s.at
	for s.more() && strings.IndexByte(set, s.text[s.at]) >= 0 {
		s.at++
	}
	return s.text[from:s.at]
}

// until skips to the first of some bytes, which it leaves, and returns what it has skipped.
func (s *scanner) until(set string) string {
	s.at = min(s.at, len(s.text))
	from := s.at
	for s.more() && strings.IndexByte(set, s.text[s.at]) < 0 {
		s.at++
	}
	return s.text[from:s.at]
}

// delimited skips to behind the next delimiter that no backslash escapes, and that stands in no class if there are
// some; ok is false if there is none.
func (s *scanner) delimited(delimiter byte, classes bool) (text string, ok bool) {
	from := s.at
	for class := -1; s.more(); s.at++ {
		switch c := s.text[s.at]; {
		case c == '\\':
			s.at++
		case classes && class < 0 && c == '[':
			class = s.at
			if s.at+1 < len(s.text) && s.text[s.at+1] == '^' {
				s.at++
			}
			if s.at+1 < len(s.text) && s.text[s.at+1] == ']' {
				s.at++
			}
		case class >= 0:
			if c == ']' {
				class = -1
			}
		case c == delimiter:
			s.at++
			return s.text[from : s.at-1], true
		}
	}
	return "", false
}

const digits = "0123456789"

// sedScript returns the files that a script of sed writes, and whether it may do more: it runs commands, or is not
// understood.
func sedScript(text string) (files []word, more bool) {
	s := &scanner{text: text}
	for {
		s.skip(" \t\n;{}")
		if !s.address() {
			return files, true
		}
		command := s.peek()
		if s.at++; command == 0 {
			return files, false
		}
		switch command {
		case '{', '}', '=', 'd', 'D', 'g', 'G', 'h', 'H', 'n', 'N', 'p', 'P', 'x', 'z', 'F':
		case '#', 'r', 'R', 'v':
			s.until("\n")
		case 'q', 'Q', 'l', 'L':
			s.skip(" " + digits)
		case ':', 'b', 't', 'T':
			s.until("\n;}")
		case 'a', 'i', 'c':
			_, _ = s.delimited('\n', false)
		case 'w', 'W':
			files = append(files, ofText(strings.TrimSpace(s.until("\n"))))
		case 's', 'y':
			delimiter := s.peek()
			s.at++
			_, first := s.delimited(delimiter, command == 's')
			_, second := s.delimited(delimiter, false)
			if !first || !second {
				return files, true
			}
			if command == 's' {
				flags := s.skip("gpIiMme" + digits)
				if strings.Contains(flags, "e") {
					return files, true
				}
				if s.peek() == 'w' {
					s.at++
					files = append(files, ofText(strings.TrimSpace(s.until("\n"))))
				}
			}
		default: // e among them
			return files, true
		}
	}
}

// address skips the address of a command of sed. A part that the shell makes up counts as one.
func (s *scanner) address() (ok bool) {
	for s.more() {
		switch c := s.peek(); {
		case strings.IndexByte(digits+" \t$,!~+", c) >= 0:
			s.at++
		case c == markBegin[0]:
			s.until(markEnd)
			s.at++
		case c == '/' || c == '\\':
			delimiter := c
			if s.at++; c == '\\' {
				delimiter = s.peek()
				s.at++
			}
			if _, ok := s.delimited(delimiter, true); !ok {
				return false
			}
			s.skip("IM")
		default:
			return true
		}
	}
	return true
}

// awkToken is a token of a program of awk: a string, a regular expression, a name or number, or a sign.
type awkToken struct {
	kind byte // one of "/a and the sign's first byte
	text string
}

// awkTokens returns the tokens of a program; ok is false if it has none such.
func awkTokens(text string) (list []awkToken, ok bool) {
	s := &scanner{text: text}
	for {
		s.skip(" \t\r")
		c := s.peek()
		operand := len(list) > 0 && strings.IndexByte(`"/a)]$`, list[len(list)-1].kind) >= 0 &&
			!awkWords[list[len(list)-1].text]
		switch {
		case !s.more():
			return list, true
		case c == '#':
			s.until("\n")
		case c == '\\':
			s.at += 2
		case c == '"' || c == '/' && !operand:
			s.at++
			body, closed := s.delimited(c, c == '/')
			if !closed {
				return nil, false
			}
			list = append(list, awkToken{c, ansi(body)})
		case isNameByte(c):
			from := s.at
			for s.more() && isNameByte(s.peek()) {
				s.at++
			}
			list = append(list, awkToken{'a', s.text[from:s.at]})
		default:
			from := s.at
			if s.at++; s.peek() == c && strings.IndexByte("|&>=", c) >= 0 ||
				s.peek() == '=' && strings.IndexByte("<>!=", c) >= 0 {
				s.at++
			}
			list = append(list, awkToken{c, s.text[from:s.at]})
		}
	}
}

// awkWords stand before a regular expression.
var awkWords = words("print printf return in case else do")

func isNameByte(c byte) bool {
	return c == '_' || c >= 0x80 || '0' <= c && c <= '9' || 'a' <= c|0x20 && c|0x20 <= 'z'
}

// awkScript returns the files that a program of awk writes, the commands that it runs, and whether it may do more. vars
// are the variables that it is given; those that it sets to one string are added.
func awkScript(text string, vars map[string]string) (files, commands []string, more bool) {
	list, ok := awkTokens(text)
	if !ok {
		return nil, nil, true
	}
	at := func(i int) awkToken {
		if i < 0 || i >= len(list) {
			return awkToken{'\n', "\n"}
		}
		return list[i]
	}
	ends := func(i int) bool { return strings.IndexByte(";}\n)", at(i).kind) >= 0 }
	for i := range list {
		if at(i+1).text != "=" || at(i).kind != 'a' {
			continue
		}
		if _, twice := vars[at(i).text]; !twice && at(i+2).kind == '"' && ends(i+3) {
			vars[at(i).text] = at(i + 2).text
		} else {
			vars[at(i).text] = ""
		}
	}
	add := func(to *[]string, i int, alone bool) {
		value := at(i).text
		if at(i).kind == 'a' && strings.Trim(value, digits) != "" {
			value = vars[value]
		}
		if !alone || value == "" || strings.IndexByte(`"a`, at(i).kind) < 0 {
			more = true
			return
		}
		*to = append(*to, value)
	}
	depth, printing := 0, -1
	for i, t := range list {
		switch t.text {
		case "(":
			depth++
			if at(i-1).text == "system" {
				add(&commands, i+1, at(i+2).kind == ')')
			}
		case ")":
			depth--
		case ";", "}", "\n":
			printing = -1
		case "print", "printf":
			if t.kind == 'a' {
				printing = depth
			}
		case ">", ">>":
			if t.kind == '>' && depth == printing {
				add(&files, i+1, ends(i+2))
			}
		case "|":
			next := i + 1
			if at(next).kind == '&' { // beside it
				next++
			}
			switch {
			case t.kind != '|':
			case at(next).text == "getline":
				add(&commands, i-1, ends(i-2) || strings.IndexByte("({=,", at(i-2).kind) >= 0)
			default:
				add(&commands, next, ends(next+1))
			}
		}
	}
	return files, commands, more
}

// scripted returns the script of a filter, and its files.
func scripted(c *arguments, options string) (script, files []word) {
	if c.any(options) {
		return c.values(options), c.operands
	}
	n := min(1, len(c.operands))
	return c.operands[:n], c.operands[n:]
}

func (r *reader) sed(c *arguments) stream {
	script, operands := scripted(c, "-e --expression")
	if c.any("-f --file") {
		operands = c.operands
		r.unknown("a script of sed")
	} else if len(operands) > 1 && len(script) > 0 && script[0].text == "" && !script[0].loose && c.any("-i -I") {
		script, operands = operands[:1], operands[1:] // -i '' of BSD
	}
	var text []string
	for _, w := range script {
		text = append(text, w.source())
	}
	files, more := sedScript(strings.Join(text, "\n"))
	r.writeAll(files)
	if more {
		r.unknown("sed that runs commands")
	}
	if !c.any("-i --in-place -I") {
		if len(operands) == 0 {
			return stream{names: r.in.names}
		}
		return stream{}
	}
	operands = slices.DeleteFunc(slices.Clone(operands), func(w word) bool { return w.text == "" && !w.loose })
	r.inPlace(operands, c.values("-i --in-place"))
	return stream{}
}

// inPlace writes files, and their backups: a * in the suffix of those stands for the name.
func (r *reader) inPlace(list, suffixes []word) {
	r.writeAll(list)
	for _, suffix := range suffixes {
		for _, w := range list {
			switch {
			case w.isPattern():
			case strings.ContainsAny(suffix.text, "*/"):
				r.tree(here)
			default:
				w.text += suffix.text
				r.write(w)
			}
		}
	}
}

func (r *reader) awk(c *arguments) stream {
	script, operands := scripted(c, "-e --source")
	if c.any("-f --file") {
		script, operands = nil, c.operands
		if slices.ContainsFunc(c.values("-f --file"), func(w word) bool { return w.text != "inplace" }) {
			r.unknown("a script of awk")
		}
	}
	vars := map[string]string{}
	for _, w := range append(c.values("-v --assign"), operands...) {
		if name, value, ok := strings.Cut(w.text, "="); ok && w.isPlain() {
			vars[name] = value
		}
	}
	for _, w := range script {
		files, commands, more := awkScript(w.source(), vars)
		for _, file := range files {
			r.write(ofText(file))
		}
		for _, text := range commands {
			r.isolated(func() stream { return r.text(text) })
		}
		if more {
			r.unknown("a program of awk that writes")
		}
	}
	inPlace := slices.ContainsFunc(c.values("-i --include"), func(w word) bool {
		return strings.HasPrefix(base(w.text), "inplace")
	})
	if inPlace {
		for _, w := range operands {
			if !isAssignment(w.text) {
				r.write(w)
			}
		}
		return stream{}
	}
	if len(operands) == 0 {
		return stream{names: r.in.names}
	}
	return stream{}
}
