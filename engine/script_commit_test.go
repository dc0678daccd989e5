package engine_test

import (
	"fmt"
	"strings"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine"
)

// commit reads the words of the script's command commit. The options of a write stand after it.
func (s *script) commit(w *words) error {
	c := &engine.Commit{Head: s.head(w), CommitRequest: interlock.CommitRequest{
		Flow: w.get("flow"), Note: w.get("note"), AsOf: interlock.Version(w.number("as_of")),
	}}
	s.asker(&c.Head, &c.Agent, w)
	s.commitWords(c, w)
	return s.tell(c)
}

// commitWords reads what a commit is based on and what it writes.
func (s *script) commitWords(c *engine.Commit, w *words) {
	for _, x := range w.list {
		key, value, _ := strings.Cut(x.value, "=")
		write := interlock.Write{Key: interlock.Key(key)}
		switch x.key {
		case "read":
			at := strings.LastIndexByte(x.value, '@')
			c.Reads = append(
				c.Reads, interlock.Read{Key: interlock.Key(x.value[:at]), Version: interlock.Version(parseNumber(x.value[at+1:]))},
			)
		case "absent":
			c.Reads = append(c.Reads, interlock.Read{Key: interlock.Key(x.value), Absent: true})
		case "present":
			c.Reads = append(c.Reads, interlock.Read{Key: interlock.Key(x.value), Present: true})
		case "put":
			write.Op, write.Body = interlock.Put, []byte(value)
		case "delete":
			write.Op = interlock.Delete
		case "merge":
			write.Op, write.Body = interlock.Merge, []byte(value)
		case "add":
			write.Op, write.Delta = interlock.Add, parseNumber(value)
		case "type":
			c.Writes[len(c.Writes)-1].ContentType = x.value
		case "min":
			least := parseNumber(x.value)
			c.Writes[len(c.Writes)-1].Min = &least
		case "max":
			most := parseNumber(x.value)
			c.Writes[len(c.Writes)-1].Max = &most
		case "fence":
			l := s.leases[interlock.Fence(parseNumber(x.value))]
			if l == nil {
				l = &lease{id: counted(999_999)}
			}
			c.Leases = append(c.Leases, interlock.LeaseID(l.id))
		default:
			continue
		}
		if write.Op != 0 {
			c.Writes = append(c.Writes, write)
		}
		w.used[x.key] = true
	}
}

// printCommitted writes what a commit has made.
func (s *script) printCommitted(who string, e *engine.Effect) {
	again := ""
	if e.Repeated {
		again = " (again)"
	}
	s.printf("committed version=%d by %s%s", e.Version, who, again)
	for _, d := range e.Documents {
		text := fmt.Sprintf("  %v %s", d.Op, d.Key)
		if d.Version != e.Version {
			text += fmt.Sprintf(" version=%d", d.Version)
		}
		if d.Fence > 0 {
			text += fmt.Sprintf(" fence=%d", d.Fence)
		}
		if d.Body != nil {
			text += fmt.Sprintf(" = %s", d.Body)
		}
		s.printf("%s", text)
	}
}

// printStale writes what had changed.
func (s *script) printStale(list []interlock.Stale, more bool) {
	for _, x := range list {
		then := documentText(&x.Then, false)
		switch {
		case !x.Known && x.Then.Version == 0:
			then = "something"
		case !x.Known:
			then = fmt.Sprintf("version=%d (not kept)", x.Then.Version)
		}
		s.printf("  %s was %s, is %s, writes=%d", x.Now.Key, then, documentText(&x.Now, true), x.Writes)
		if left := x.Left(); left > 0 {
			s.printf("    %d before these", left)
		}
		for i := range x.Between {
			d := x.Between[i]
			s.printf("    %v %s", d.Op, documentText(&d, true))
		}
	}
	if more {
		s.printf("  and more")
	}
}

// printHanded writes the documents that come with a lease.
func (s *script) printHanded(l *interlock.Lease) {
	if l.Documents == nil {
		return
	}
	s.printf("  as of version %d:", l.AsOf)
	for i := range l.Documents {
		d := &l.Documents[i]
		s.printf("  %s %s", d.Key, documentText(d, true))
		for k := range d.Earlier {
			s.printf("    %v %s", d.Earlier[k].Op, documentText(&d.Earlier[k], true))
		}
	}
	if l.DocumentsMore {
		s.printf("  and more")
	}
}

// showContention writes how commits and leases fare.
func (s *script) showContention(ns interlock.Namespace) {
	for _, k := range s.e.Contention(ns) {
		s.printf("%q commits=%d conflicts=%d retries=%d leased=%d leases=%d waited=%d",
			k.Pattern, k.Commits, k.Conflicts, k.Retries, k.Leased, k.Leases, k.Waited)
	}
}

// documentText writes a document, and with who its author.
func documentText(d *interlock.Document, who bool) string {
	text := fmt.Sprintf("version=%d", d.Version)
	switch {
	case d.Absent:
		text += " absent"
	case d.Body == nil:
		text += fmt.Sprintf(" of %d bytes", d.Size)
	default:
		text += " " + string(d.Body)
	}
	if !d.Absent && d.ContentType != interlock.JSONType {
		text += " (" + d.ContentType + ")"
	}
	if who && d.Op != 0 {
		text += " by " + flowName(d.Agent, d.Flow)
		if d.Principal != "" {
			text += " for " + d.Principal
		}
		if d.Fence > 0 {
			text += fmt.Sprintf(" fence=%d", d.Fence)
		}
		if d.Note != "" {
			text += fmt.Sprintf(" note=%q", d.Note)
		}
		text += fmt.Sprintf(" age=%v", d.Age)
	}
	return text
}

// showDocuments writes what can be read of the guarded state.
func (s *script) showDocuments(ns interlock.Namespace, w *words) {
	refused := func(err error) bool {
		if err != nil {
			s.refusedQuery(err)
		}
		return err != nil
	}
	switch key := interlock.Key(w.get("doc")); {
	case w.has("doc") && w.has("version"):
		if d, err := s.e.DocumentAt(ns, key, interlock.Version(w.number("version"))); !refused(err) {
			s.printf("%s %s", d.Key, documentText(&d, true))
		}
	case w.has("doc"):
		var keys []interlock.Key
		for _, x := range w.list {
			if x.key == "doc" {
				keys = append(keys, interlock.Key(x.value))
			}
		}
		list, asOf, err := s.e.Documents(ns, keys, true)
		if refused(err) {
			return
		}
		for i := range list {
			s.printf("%s %s", list[i].Key, documentText(&list[i], true))
		}
		s.printf("as of version %d", asOf)
	case w.has("versions"):
		list, trimmed, err := s.e.Versions(ns, interlock.Key(w.get("versions")))
		if refused(err) {
			return
		}
		for i := range list {
			s.printf("%s %s", list[i].Key, documentText(&list[i], true))
		}
		if trimmed {
			s.printf("and earlier ones")
		}
	default:
		l := engine.DocumentList{
			Namespace: ns, Prefix: w.get("prefix"), After: interlock.Key(w.get("after")), Limit: int(w.number("limit")),
			Bodies: w.has("values"),
		}
		for !l.Look(s.e) {
		}
		for i := range l.Rows {
			s.printf("%s %s", l.Rows[i].Key, documentText(&l.Rows[i], true))
		}
		if l.More {
			s.printf("and more")
		}
		s.printf("as of version %d", l.AsOf)
	}
}
