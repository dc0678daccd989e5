package typescript

import (
	"slices"
	"strings"
)

func (p *printer) codes(list []code) {
	p.line(0, "")
	p.comment(0, "What a code means, and the next step unless the answer has its own advice.", "")
	p.line(0, "export interface CodeInfo {")
	p.line(1, "status: number;")
	p.line(1, "title: string;")
	p.comment(1, "Whether asking again can succeed without a change of the request.", "")
	p.line(1, "retryable: boolean;")
	p.comment(1, "Whether the refusal is about the server's state and not about the request: a client asks again.", "")
	p.line(1, "transient: boolean;")
	p.line(1, "action: Action;")
	p.line(1, "retryAfterMs: number;")
	p.line(1, "next: string;")
	p.line(0, "}")
	p.line(0, "")
	p.line(0, "export const codes: Readonly<Record<Code, CodeInfo>> = {")
	for _, c := range list {
		p.comment(1, c.Description, "")
		p.line(1, "%s: {", c.Code)
		p.line(2, "status: %d,", c.Status)
		p.line(2, "title: %s,", quote(c.Title))
		p.line(2, "retryable: %t,", c.Retryable)
		p.line(2, "transient: %t,", c.Transient)
		p.line(2, "action: %s,", quote(c.Action))
		p.line(2, "retryAfterMs: %d,", c.RetryAfter)
		p.line(2, "next:")
		p.line(3, "%s,", quote(c.Next))
		p.line(1, "},")
	}
	p.line(0, "};")
}

// operations writes what a call of each operation takes and returns, and where it goes.
func (p *printer) operations(list []operation) {
	p.line(0, "")
	p.comment(0, "The parameters, the body and the answer of each operation.", "")
	p.line(0, "export interface Operations {")
	for i := range list {
		o := &list[i]
		p.comment(1, o.Summary+".", "")
		p.line(1, "%s: {", o.ID)
		for _, in := range []string{"path", "query", "header"} {
			p.parameters(o, in)
		}
		if o.Body != nil {
			mark := ""
			if o.Body.Optional {
				mark = "?"
			}
			p.line(2, "body%s: %s;", mark, name(o.Body.Type))
		}
		p.line(2, "answer: %s;", answerType(o))
		p.line(1, "};")
	}
	p.line(0, "}")
	p.line(0, "")
	p.comment(0, "How an operation is called.", "")
	p.line(0, "export interface Call {")
	p.line(1, "method: string;")
	p.line(1, "path: string;")
	p.comment(1, "Whether it takes an Idempotency-Key: a repetition then happens once.", "")
	p.line(1, "keyed?: true;")
	p.comment(1, "The content type of its body.", "")
	p.line(1, "sends?: string;")
	p.comment(1, "Whether the answer is a stream of events.", "")
	p.line(1, "streams?: true;")
	p.line(0, "}")
	p.line(0, "")
	p.line(0, "export const operations: Readonly<Record<keyof Operations, Call>> = {")
	for i := range list {
		p.call(&list[i])
	}
	p.line(0, "};")
}

// idempotencyKey is the header that the client sets by itself.
const idempotencyKey = "Idempotency-Key"

// parameters writes those in one place. The namespace and the key of a repetition are the client's.
func (p *printer) parameters(o *operation, in string) {
	var found []*field
	required := false
	for i := range o.Parameters {
		f := &o.Parameters[i]
		if f.In != in || f.Name == idempotencyKey || f.Name == "Interlock-Namespace" {
			continue
		}
		found = append(found, f)
		required = required || !f.Optional
	}
	if len(found) == 0 {
		return
	}
	mark := "?"
	if required {
		mark = ""
	}
	p.line(2, "%s%s: {", in, mark)
	for _, f := range found {
		p.field(3, f)
	}
	p.line(2, "};")
}

func (p *printer) call(o *operation) {
	members := []string{"method: " + quote(o.Method), "path: " + quote(o.Path)}
	for i := range o.Parameters {
		if o.Parameters[i].Name == idempotencyKey {
			members = append(members, "keyed: true")
		}
	}
	if o.Body != nil {
		members = append(members, "sends: "+quote(o.Body.ContentType))
	}
	for _, a := range o.Answers {
		if a.Stream {
			members = append(members, "streams: true")
		}
	}
	p.line(1, "%s: { %s },", o.ID, strings.Join(members, ", "))
}

// answerType is the type of a successful answer.
func answerType(o *operation) string {
	var types []string
	for _, a := range o.Answers {
		for _, t := range a.Types {
			t = name(t)
			if !slices.Contains(types, t) {
				types = append(types, t)
			}
		}
	}
	if len(types) == 0 {
		return "undefined"
	}
	return strings.Join(types, " | ")
}
