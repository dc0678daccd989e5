package script

import "strings"

// maxText is the longest text that is examined, in bytes.
const maxText = 4 << 10

// token is a word, a number, a sign or a string of a script.
type token struct {
	text   string
	line   int
	quoted bool // a string; text is what it contains
}

// tokenise returns the tokens of a script, without comments. The last one is empty, with the line of the end.
func tokenise(text string) (tokens []token, err error) {
	if len(text) > maxText {
		return nil, refuse(1, "it has more than %d bytes", maxText)
	}
	line := 1
	for len(text) > 0 {
		c, n, quoted := text[0], 1, false
		switch {
		case c == '\n':
			line++
			fallthrough
		case c == ' ' || c == '\t' || c == '\r':
			text = text[1:]
			continue
		case strings.HasPrefix(text, "--"):
			if n = comment(text[2:]); n < 0 {
				return nil, refuse(line, "a comment has no end, or a long bracket with a level")
			}
			line += strings.Count(text[:n+2], "\n")
			text = text[n+2:]
			continue
		case c == '"' || c == '\'':
			if n = strings.IndexByte(text[1:], c); n < 0 || strings.ContainsAny(text[1:1+n], "\\\n\r") {
				return nil, refuse(line, "a string has no end, or an escape")
			}
			tokens = append(tokens, token{text[1 : 1+n], line, true})
			text = text[n+2:]
			continue
		case isNameByte(c):
			for n < len(text) && isNameByte(text[n]) {
				n++
			}
		case strings.HasPrefix(text, "[[") || strings.HasPrefix(text, "[="):
			return nil, refuse(line, "it has a string in long brackets")
		case len(text) > 1 && strings.Contains("== ~= <= >= ..", text[:2]) && text[1] != ' ':
			n = 2
		case !strings.ContainsRune("+-*/%^#<>=(){}[],.:;", rune(c)):
			return nil, refuse(line, "%q is no sign of Lua", c)
		}
		tokens = append(tokens, token{text[:n], line, quoted})
		text = text[n:]
	}
	return append(tokens, token{line: line}), nil
}

// comment returns the length of a comment, of a line or in long brackets without a level, behind its dashes; -1 if it
// has none. Lua ends a line at a carriage return, too.
func comment(text string) int {
	if strings.HasPrefix(text, "[[") {
		end := strings.Index(text, "]]")
		if end < 0 {
			return -1
		}
		return end + 2
	}
	if strings.HasPrefix(text, "[=") {
		return -1
	}
	if end := strings.IndexAny(text, "\r\n"); end >= 0 {
		return end
	}
	return len(text)
}

func isNameByte(c byte) bool {
	return c == '_' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}

func isKeyword(t string) bool {
	switch t {
	case "and", "break", "do", "else", "elseif", "end", "false", "for", "function", "if", "in", "local", "nil", "not",
		"or", "repeat", "return", "then", "true", "until", "while":
		return true
	}
	return false
}
