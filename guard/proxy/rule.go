package proxy

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/interlockdev/interlock"
)

// A rule is a route, ready to be matched.
type rule struct {
	Route
	segments []segment
	key      []segment // the template taken apart: literals and variables
}

// A segment is a literal, or a variable that stands for one segment of a path, for a
// number (":int"), or at the end of a path for all that follow ("...").
type segment struct {
	literal string
	name    string
	number  bool
	rest    bool
}

// values are the values of a rule's variables.
type values map[string]string

func newRule(r Route) (*rule, error) {
	rule := &rule{Route: r}
	names := map[string]bool{}
	segments, err := splitPath(r.Path)
	if err != nil {
		return nil, fmt.Errorf("path %q: %w", r.Path, err)
	}
	for i, text := range segments {
		s := segment{literal: text}
		if strings.ContainsAny(text, "{}") {
			if s, err = parseVariable(text); err != nil {
				return nil, fmt.Errorf("path %q: %w", r.Path, err)
			}
			if names[s.name] {
				return nil, fmt.Errorf("path %q: variable %s occurs twice", r.Path, s.name)
			}
			if s.rest && i < len(segments)-1 {
				return nil, fmt.Errorf("path %q: {%s...} matches the rest, so it must be last", r.Path, s.name)
			}
			names[s.name] = true
		}
		rule.segments = append(rule.segments, s)
	}
	for text := r.Key; text != ""; {
		literal, after, found := strings.Cut(text, "{")
		rule.key = append(rule.key, segment{literal: literal})
		if text = ""; found {
			name, rest, closed := strings.Cut(after, "}")
			name = strings.TrimSuffix(name, "...")
			if !closed || !names[name] {
				return nil, fmt.Errorf("key %q: the path has no variable %s", r.Key, name)
			}
			rule.key = append(rule.key, segment{name: name})
			text = rest
		}
	}
	return rule, nil
}

// parseVariable reads {name}, {name:int} or {name...}.
func parseVariable(text string) (s segment, err error) {
	inner, opened := strings.CutPrefix(text, "{")
	inner, closed := strings.CutSuffix(inner, "}")
	if inner, s.rest = strings.CutSuffix(inner, "..."); !s.rest {
		inner, s.number = strings.CutSuffix(inner, ":int")
	}
	s.name = inner
	if !opened || !closed || !isName(inner) {
		return s, fmt.Errorf("segment %q: want a literal, {name}, {name:int} or {name...}", text)
	}
	return s, nil
}

func isName(s string) bool {
	return s != "" &&
		!strings.ContainsFunc(s, func(r rune) bool { return r != '_' && !('a' <= r && r <= 'z') && !('0' <= r && r <= '9') })
}

// fits matches the segments of a path.
func (r *rule) fits(path []string) (values, bool) {
	found := values{}
	for i, s := range r.segments {
		if s.rest && i < len(path) && path[i] != "" {
			found[s.name] = strings.Join(path[i:], "/")
			return found, true
		}
		if i >= len(path) || !s.fits(path[i]) {
			return nil, false
		}
		if s.name != "" {
			found[s.name] = path[i]
		}
	}
	return found, len(path) == len(r.segments)
}

func (s *segment) fits(text string) bool {
	switch {
	case s.rest:
		return false
	case s.number:
		// One spelling for each number, or one account had several keys.
		return isNumber(text)
	case s.name != "":
		return text != ""
	}
	return text == s.literal
}

func isNumber(s string) bool {
	if s == "" || s[0] == '0' && len(s) > 1 {
		return false
	}
	return !strings.ContainsFunc(s, func(r rune) bool { return r < '0' || r > '9' })
}

// takes reports whether the rule is for a method. What may be got may be asked
// about.
func (r *rule) takes(method string) bool {
	return slices.Contains(r.Methods, method) || slices.Contains(r.Methods, "*") ||
		method == http.MethodHead && slices.Contains(r.Methods, http.MethodGet)
}

// keyFor fills the template.
func (r *rule) keyFor(v values) interlock.Key {
	var b strings.Builder
	for _, s := range r.key {
		b.WriteString(s.literal)
		b.WriteString(v[s.name])
	}
	return interlock.Key(b.String())
}
