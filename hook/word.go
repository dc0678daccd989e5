package hook

import "strings"

// word is a word of a shell command, without its quotes.
type word struct {
	text string
	// loose means that the shell puts something else in place of the text, or of a part: a variable, a
	// command's output, a home folder.
	loose bool
	// glob is where an unquoted pattern begins, -1 without one.
	glob int
}

// redirect is a redirection of output into a file.
type redirect struct{ to word }

// simple is a command without operators.
type simple struct {
	words   []word
	outputs []redirect
	// input means that standard input is a file, and heredoc is its text where the command has it.
	input   bool
	heredoc string
	// opens and closes count the parentheses before and behind it: a folder that is entered within them is left behind.
	opens, closes int
}

const (
	maxCommand = 256 << 10 // bytes that are looked at
	maxSimple  = 1000      // commands of one line that are looked at
)

// splitter takes a command line apart as a shell does, as far as names of files need it. What it does not
// understand becomes a loose word.
type splitter struct {
	in  string
	pos int

	list    []simple
	now     simple
	pending []heredoc // their texts begin behind the end of the line
}

type heredoc struct {
	end    string
	tabs   bool // leading tabs are cut off
	belong int  // the index of the command; len(list) is the present one
}

// split returns the commands of a line.
func split(line string) []simple {
	s := splitter{in: line[:min(len(line), maxCommand)]}
	for s.pos < len(s.in) && len(s.list) < maxSimple {
		s.step()
	}
	s.end()
	return s.list
}

func (s *splitter) peek(n int) byte {
	if s.pos+n < len(s.in) {
		return s.in[s.pos+n]
	}
	return 0
}

// end ends the present command.
func (s *splitter) end() {
	if len(s.now.words) > 0 || len(s.now.outputs) > 0 || s.now.opens > 0 || s.now.closes > 0 {
		s.list = append(s.list, s.now)
	}
	s.now = simple{}
}

func (s *splitter) step() {
	switch c := s.in[s.pos]; c {
	case ' ', '\t', '\r':
		s.pos++
	case '\n':
		s.pos++
		s.heredocs()
		s.end()
	case '\\':
		if s.peek(1) == '\n' {
			s.pos += 2
			return
		}
		s.word()
	case '#':
		for s.pos < len(s.in) && s.in[s.pos] != '\n' {
			s.pos++
		}
	case ';', '|':
		s.pos++
		s.end()
	case '&':
		if s.peek(1) == '>' {
			s.pos++
			s.redirection()
			return
		}
		s.pos++
		s.end()
	case '(':
		s.pos++
		s.end()
		s.now.opens++
	case ')':
		s.pos++
		s.now.closes++
		s.end()
	case '<', '>':
		s.redirection()
	default:
		s.word()
	}
}

// redirection reads from '<' or '>'.
func (s *splitter) redirection() {
	rest := s.in[s.pos:]
	operator := rest[:1]
	for _, op := range []string{"<<<", "<<-", ">>", ">|", ">&", "<<", "<&", "<>", "<(", ">("} {
		if strings.HasPrefix(rest, op) {
			operator = op
			break
		}
	}
	s.pos += len(operator)
	if operator == "<(" || operator == ">(" { // a process in place of a file
		s.now.words = append(s.now.words, word{loose: true, glob: -1})
		s.enclosed()
		return
	}
	s.blanks()
	target, ok := s.readWord()
	if !ok {
		return
	}
	switch operator {
	case ">", ">>", ">|", "<>":
		s.now.outputs = append(s.now.outputs, redirect{target})
	case ">&":
		if strings.Trim(target.text, "0123456789-") != "" {
			s.now.outputs = append(s.now.outputs, redirect{target})
		}
	case "<":
		s.now.input = true
	case "<<", "<<-":
		s.pending = append(s.pending, heredoc{target.text, operator == "<<-", len(s.list)})
	case "<<<":
		s.now.heredoc = target.text
	}
}

func (s *splitter) blanks() {
	for s.pos < len(s.in) && (s.in[s.pos] == ' ' || s.in[s.pos] == '\t') {
		s.pos++
	}
}

// heredocs reads the texts that begin on this line.
func (s *splitter) heredocs() {
	for _, h := range s.pending {
		var text strings.Builder
		for s.pos < len(s.in) {
			line, _, _ := strings.Cut(s.in[s.pos:], "\n")
			s.pos = min(s.pos+len(line)+1, len(s.in))
			if h.tabs {
				line = strings.TrimLeft(line, "\t")
			}
			if strings.TrimSuffix(line, "\r") == h.end {
				break
			}
			text.WriteString(line + "\n")
		}
		if h.belong < len(s.list) {
			s.list[h.belong].heredoc = text.String()
		} else {
			s.now.heredoc = text.String()
		}
	}
	s.pending = nil
}

func (s *splitter) word() {
	start := s.pos
	w, ok := s.readWord()
	if !ok {
		s.pos = max(s.pos, start+1) // it is no word: go on behind it
		return
	}
	if next := s.peek(0); (next == '>' || next == '<') && strings.Trim(w.text, "0123456789") == "" && !w.loose {
		return // the number of a descriptor
	}
	s.now.words = append(s.now.words, w)
}

// readWord reads one word; ok is false if there is none.
func (s *splitter) readWord() (w word, ok bool) {
	var text strings.Builder
	w.glob = -1
	start := s.pos
	for s.pos < len(s.in) {
		c := s.in[s.pos]
		switch c {
		case ' ', '\t', '\r', '\n', ';', '|', '&', '(', ')', '<', '>':
			w.text = text.String()
			return w, s.pos > start
		case '\'':
			end := strings.IndexByte(s.in[s.pos+1:], '\'')
			if end < 0 {
				end = len(s.in) - s.pos - 1
			}
			text.WriteString(s.in[s.pos+1 : s.pos+1+end])
			s.pos = min(s.pos+end+2, len(s.in))
		case '"':
			w.loose = s.doubleQuoted(&text) || w.loose
		case '\\':
			if s.peek(1) != '\n' && s.pos+1 < len(s.in) {
				text.WriteByte(s.in[s.pos+1])
			}
			s.pos = min(s.pos+2, len(s.in))
		case '$', '`':
			w.loose = true
			s.expansion()
		case '~':
			w.loose = w.loose || text.Len() == 0
			text.WriteByte(c)
			s.pos++
		default:
			if (c == '*' || c == '?' || c == '[' || c == '{') && w.glob < 0 {
				w.glob = text.Len()
			}
			text.WriteByte(c)
			s.pos++
		}
	}
	w.text = text.String()
	return w, s.pos > start
}

// doubleQuoted reads a text in double quotes, and reports whether the shell expands something in it.
func (s *splitter) doubleQuoted(text *strings.Builder) (loose bool) {
	for s.pos++; s.pos < len(s.in); {
		switch c := s.in[s.pos]; c {
		case '"':
			s.pos++
			return loose
		case '\\':
			next := s.peek(1)
			if !strings.ContainsRune("$`\"\\\n", rune(next)) {
				text.WriteByte(c)
			}
			if next != '\n' && s.pos+1 < len(s.in) {
				text.WriteByte(next)
			}
			s.pos = min(s.pos+2, len(s.in))
		case '$', '`':
			loose = true
			s.expansion()
		default:
			text.WriteByte(c)
			s.pos++
		}
	}
	return loose
}

// expansion reads from '$' or '`' what the shell puts something else in place for.
func (s *splitter) expansion() {
	open := s.in[s.pos]
	s.pos++
	if open == '`' {
		for s.pos < len(s.in) && s.in[s.pos] != '`' {
			s.pos++
		}
		s.pos = min(s.pos+1, len(s.in))
		return
	}
	switch s.peek(0) {
	case '(':
		s.pos++
		s.enclosed()
	case '{':
		for s.pos < len(s.in) && s.in[s.pos] != '}' {
			s.pos++
		}
		s.pos = min(s.pos+1, len(s.in))
	}
}

// enclosed reads up to the parenthesis that closes one just read.
func (s *splitter) enclosed() {
	for depth := 1; s.pos < len(s.in) && depth > 0; s.pos++ {
		switch s.in[s.pos] {
		case '(':
			depth++
		case ')':
			depth--
		case '\\':
			s.pos++
		case '\'':
			if end := strings.IndexByte(s.in[s.pos+1:], '\''); end >= 0 {
				s.pos += end + 1
			}
		}
	}
	s.pos = min(s.pos, len(s.in))
}
