package script

import (
	"strconv"
	"strings"
)

const (
	// maxText is the longest text that is examined, in bytes; known scripts have at most 700.
	maxText = 4 << 10
	// separator stands between the tokens of a canonical form, and in no token.
	separator = "\n"
)

// Canonical returns the canonical form of a Lua script: its tokens without comments, semicolons and
// differences that mean nothing. Quotes are double, letters in strings small, and locals are numbered
// in the order of their declarations; "$" begins their names, since no name in Lua contains it. ok is
// false for a text that no known script resembles: too long, or with an escape, a long string or a
// character that is no token of Lua.
func Canonical(text string) (form string, ok bool) {
	tokens, ok := tokenise(text)
	if !ok {
		return "", false
	}
	return strings.Join(renameLocals(tokens), separator), true
}

// tokenise returns the tokens of a script, without comments and semicolons.
func tokenise(text string) (tokens []string, ok bool) {
	if len(text) > maxText {
		return nil, false
	}
	for len(text) > 0 {
		c := text[0]
		n := 1
		switch {
		case c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == ';':
			text = text[1:]
			continue
		case strings.HasPrefix(text, "--"):
			if text, ok = skipComment(text[2:]); !ok {
				return nil, false
			}
			continue
		case c == '"' || c == '\'':
			end := strings.IndexByte(text[1:], c)
			if end < 0 || strings.ContainsAny(text[1:1+end], "\\\n\r\"") {
				return nil, false
			}
			tokens = append(tokens, `"`+lower(text[1:1+end])+`"`)
			text = text[end+2:]
			continue
		case isNameByte(c):
			for n < len(text) && isNameByte(text[n]) {
				n++
			}
		case strings.HasPrefix(text, "[[") || strings.HasPrefix(text, "[="):
			return nil, false // a long string
		case len(text) > 1 && isPair(text[:2]):
			n = 2
		case !strings.ContainsRune("+-*/%^#<>=(){}[],.:", rune(c)):
			return nil, false
		}
		tokens = append(tokens, text[:n])
		text = text[n:]
	}
	return tokens, true
}

// skipComment returns what follows a comment, of a line or in long brackets without a level.
func skipComment(text string) (rest string, ok bool) {
	if strings.HasPrefix(text, "[[") {
		_, rest, ok = strings.Cut(text, "]]")
		return rest, ok
	}
	if strings.HasPrefix(text, "[=") {
		return "", false
	}
	_, rest, _ = strings.Cut(text, "\n")
	return rest, true
}

func isPair(s string) bool {
	return s == "==" || s == "~=" || s == "<=" || s == ">=" || s == ".."
}

func isNameByte(c byte) bool {
	return c == '_' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}

// lower makes the letters of ASCII small. Redis takes its commands in any case.
func lower(s string) string {
	b := []byte(s)
	for i, c := range b {
		if c >= 'A' && c <= 'Z' {
			b[i] = c + 'a' - 'A'
		}
	}
	return string(b)
}

// renameLocals numbers the names that "local" and "for" declare, from their declaration on. A name after
// a dot is that of a field.
func renameLocals(tokens []string) []string {
	names := map[string]string{}
	declares := false
	for i, t := range tokens {
		if !isNameByte(t[0]) || t[0] <= '9' {
			declares = declares && t == ","
			continue
		}
		if declares && !isKeyword(t) {
			if _, known := names[t]; !known {
				names[t] = "$" + strconv.Itoa(len(names))
			}
		}
		if t == "local" || t == "for" {
			declares = true
			continue
		}
		if renamed, known := names[t]; known && (i == 0 || tokens[i-1] != ".") {
			tokens[i] = renamed
		}
		if isKeyword(t) {
			declares = false
		}
	}
	return tokens
}

func isKeyword(t string) bool {
	switch t {
	case "and", "break", "do", "else", "elseif", "end", "false", "for", "function", "if", "in", "local", "nil", "not",
		"or", "repeat", "return", "then", "true", "until", "while":
		return true
	}
	return false
}
