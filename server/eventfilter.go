package server

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine"
	"github.com/interlockdev/interlock/engine/record"
)

// eventFilter is the filter of a reader of events. An empty field matches all.
type eventFilter struct {
	since, until     engine.Time // 0: none
	prefix           string      // of a claimed key
	agent, principal string
	about            string // a key with the keys below it, or an agent
	kinds            []record.Kind
	reasons          []record.Reason // an event has one of the kinds, or one of the reasons
}

// seekMargin is how far entries of different namespaces can be out of the order of their times.
const seekMargin = time.Minute

func (f *eventFilter) shows(ev *record.Event) bool {
	if !shown(ev.Kind) || isOfCopy(ev) || ev.At < f.since || f.isPast(ev) {
		return false
	}
	if len(f.kinds)+len(f.reasons) > 0 && !slices.Contains(f.kinds, ev.Kind) && !slices.Contains(f.reasons, ev.Reason) {
		return false
	}
	if f.agent != "" && ev.Agent != f.agent && ev.Asker != f.agent || f.principal != "" && ev.Actor != f.principal {
		return false
	}
	if f.about != "" && !isAbout(ev, f.about) {
		return false
	}
	return f.prefix == "" || slices.ContainsFunc(ev.Claims, func(c interlock.Claim) bool {
		return strings.HasPrefix(string(c.Key), f.prefix)
	})
}

// isAbout reports whether an event is of a key, a key below it, or the agent of that name.
func isAbout(ev *record.Event, name string) bool {
	return ev.Agent == name || ev.Asker == name || slices.ContainsFunc(ev.Claims, func(c interlock.Claim) bool {
		below, ok := strings.CutPrefix(string(c.Key), name)
		return ok && (below == "" || below[0] == '/')
	})
}

// isPast reports whether an event is after the end of the filter.
func (f *eventFilter) isPast(ev *record.Event) bool { return f.until > 0 && ev.At >= f.until }

// ends reports whether nothing that is asked for can follow the events of an entry. The times of the
// namespace's own events are in their order.
func (f *eventFilter) ends(events []record.Event) bool {
	return slices.ContainsFunc(events, func(ev record.Event) bool { return ev.Namespace != "" && f.isPast(&ev) })
}

// eventFilter reads the parameters that choose events. ok is false when the call was answered.
func (c *call) eventFilter() (f eventFilter, ok bool) {
	f.agent, f.principal, f.about = c.query.Get("agent"), c.query.Get("principal"), c.query.Get("about")
	if f.prefix, ok = c.prefixParam(); !ok {
		return f, false
	}
	if f.since, ok = c.momentParam("since"); !ok {
		return f, false
	}
	if f.until, ok = c.momentParam("until"); !ok {
		return f, false
	}
	if f.until > 0 && f.until <= f.since {
		c.refuse(interlock.CodeInvalidRequest, "parameter until: want a time after since")
		return f, false
	}
	names := c.query.Get("event")
	for name := range strings.SplitSeq(names, ",") {
		if names == "" {
			break
		}
		if near := f.addEvent(name); near != "" {
			c.refuse(
				interlock.CodeInvalidRequest,
				fmt.Sprintf("parameter event: there is no event %q, the nearest is %q", clipped(name), near),
			)
			return f, false
		}
	}
	return f, true
}

// momentParam reads a time: in RFC 3339, or how long it is ago. 0 stands for none.
func (c *call) momentParam(name string) (t engine.Time, ok bool) {
	text := c.query.Get(name)
	if text == "" {
		return 0, true
	}
	if t, ok = parseMoment(text); !ok {
		c.refuse(interlock.CodeInvalidRequest, fmt.Sprintf(
			"parameter %s: want a time such as 2026-01-02T03:04:05Z, or how long it is ago, such as 12h or 7d, found %q", name,
			clipped(text),
		))
	}
	return t, ok
}

// parseMoment reads a time in RFC 3339, or how long it is ago.
func parseMoment(text string) (t engine.Time, ok bool) {
	moment, err := time.Parse(time.RFC3339, text)
	if err != nil {
		ago, valid := parseAgo(text)
		if !valid {
			return 0, false
		}
		moment = time.Now().Add(-ago)
	}
	return engine.Time(max(1, moment.UnixNano())), true
}

// parseAgo reads a positive duration: as of Go, with days before it.
func parseAgo(text string) (d time.Duration, ok bool) {
	if days, rest, found := strings.Cut(text, "d"); found {
		n, err := parseDecimal(days)
		if err != nil || n > maxAgoDays {
			return 0, false
		}
		d = time.Duration(n) * 24 * time.Hour
		if text = rest; text == "" {
			return d, true
		}
	}
	more, err := time.ParseDuration(text)
	return d + more, err == nil && more >= 0 && more <= maxAgoDays*24*time.Hour
}

// maxAgoDays is a hundred years.
const maxAgoDays = 36_500

// addEvent adds the kind of event with a name, else the reason of that name. If there is neither, it
// returns the nearest name.
func (f *eventFilter) addEvent(name string) (near string) {
	var names []string
	for k := record.Kind(1); k < record.Counters; k++ {
		if !shown(k) || k.String() == "" {
			continue
		}
		if k.String() == name {
			f.kinds = append(f.kinds, k)
			return ""
		}
		names = append(names, k.String())
	}
	for _, r := range record.Reasons() {
		if r.String() == name {
			f.reasons = append(f.reasons, r)
			return ""
		}
		names = append(names, r.String())
	}
	return engine.NearestName(clipped(name), names)
}
