package server

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/interlockdev/interlock"
)

// The brief form of an answer is for agents: each token costs them time and money. A request
// asks for it with the header Prefer: return=minimal (RFC 7240) or the parameter view=agent. It is
// the answer without three kinds of members: those that are empty or false, those that repeat the
// request, and those that detail or advice puts into words. All others are as in the full form, so
// one definition of each answer holds for both. Answers that have neither an outcome nor a code,
// such as listings and documents, have no brief form.

// leave are the members of an object that its brief form leaves out (nil), or has in a brief form of
// their own.
type leave map[string]leave

var leftOut = leave{
	// Of a problem: the words of type, title and status are those of code.
	"type": nil, "title": nil, "status": nil, "retryable": nil,
	"conflict_kind": nil, "holders": nil, "more_holders": nil, "line": nil, "cycle": nil, "capacity": nil,
	"key": nil, "stale": nil, "packet": nil,
	"at": nil, "server_time": nil,
	"advice": {},
	"lease": {
		"holder": nil, "purpose": nil, "ttl_ms": nil, "grace_ms": nil, "group": nil, "progress": nil,
		"lock_delay_ms": nil,
	},
	"ticket": {"length": nil},
	"task":   {"claims": nil, "payload": nil, "purpose": nil, "agent": nil, "session": nil, "flow": nil, "principal": nil},
	"effect": {"canonical": nil, "agent": nil, "session": nil, "flow": nil, "principal": nil},
}

// wantsBrief reports whether the caller prefers the brief form.
func (c *call) wantsBrief() bool { return c.brief || prefersMinimal(c.r.Header["Prefer"]) }

func prefersMinimal(headers []string) bool {
	for _, header := range headers {
		for preference := range strings.SplitSeq(header, ",") {
			preference, _, _ = strings.Cut(preference, ";")
			name, value, _ := strings.Cut(preference, "=")
			if strings.EqualFold(strings.TrimSpace(name), "return") && strings.Trim(value, ` "`) == "minimal" {
				return true
			}
		}
	}
	return false
}

// takeView takes the parameter view from the others. ok is false when the call was answered.
func (c *call) takeView(values map[string][]string) (ok bool) {
	list, given := values["view"]
	if !given {
		return true
	}
	delete(values, "view")
	if len(list) != 1 || list[0] != "agent" {
		c.refuse(interlock.CodeInvalidRequest, fmt.Sprintf("parameter view: want agent, found %q", clipped(list[0])))
		return false
	}
	c.brief = true
	return true
}

// hasBrief reports whether an answer has a brief form: a problem, or one that begins with an outcome.
func hasBrief(contentType []string, answer []byte) bool {
	return contentType[0] == problemType[0] || bytes.HasPrefix(answer, []byte(`{"outcome":`))
}

// shorten puts an answer into its brief form.
func (c *call) shorten(j *jsonOut) {
	short, ok := briefObject(j.b, leftOut)
	if !ok {
		return
	}
	j.b = append(j.b[:0], short...)
	h := c.w.Header()
	h["Preference-Applied"] = []string{"return=minimal"}
	h.Add("Vary", "Prefer")
}

// briefObject returns an object without what its brief form leaves out.
func briefObject(object []byte, without leave) (short []byte, ok bool) {
	d := json.NewDecoder(bytes.NewReader(object))
	if start, err := d.Token(); err != nil || start != json.Delim('{') {
		return nil, false
	}
	short = append(short, '{')
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return nil, false
		}
		var value json.RawMessage
		if err := d.Decode(&value); err != nil {
			return nil, false
		}
		within, listed := without[name.(string)]
		switch {
		case listed && within == nil, isEmpty(name.(string), value):
			continue
		case listed:
			if inner, ok := briefObject(value, within); ok {
				value = inner
			}
		}
		if len(short) > 1 {
			short = append(short, ',')
		}
		short = fmt.Appendf(short, "%q:", name)
		short = append(short, value...)
	}
	return append(short, '}'), true
}

// isEmpty reports whether a member may as well be absent.
func isEmpty(name string, value []byte) bool {
	switch string(value) {
	case `""`, "false", "null", "[]", "{}":
		return true
	case "0":
		return name == "retry_after_ms"
	case `"held"`:
		return name == "state"
	}
	return false
}
