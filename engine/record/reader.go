package record

import "github.com/interlockdev/interlock"

// Reader decodes entries, one after the other, for a replay: with far fewer
// allocations than DecodeEntry makes, and ahead of the fold if the caller wants that.
// The zero value is ready. It is for one goroutine at a time.
type Reader struct{ names names }

// Append decodes an entry and appends its events to list. They are of no use after an
// error.
func (r *Reader) Append(list []Event, entry []byte) ([]Event, error) {
	d := decoder{names: &r.names}
	at, err := d.open(entry)
	for err == nil && len(d.b) > 0 {
		list = append(list, Event{})
		ev := &list[len(list)-1]
		ev.At = at
		err = d.event(ev)
	}
	return list, err
}

// names has the texts that were read last: of the many events of a journal most have
// the same few namespaces, agents and flows, which then are the same strings, too.
type names [1024]string

// longestName bounds the length of a name to search for.
const longestName = 64

func (t *names) of(b []byte) string {
	if len(b) > longestName {
		return string(b)
	}
	hash := uint32(2166136261) // FNV-1a
	for _, c := range b {
		hash = (hash ^ uint32(c)) * 16777619
	}
	s := &t[(hash^hash>>16)%uint32(len(t))]
	if *s != string(b) {
		*s = string(b)
	}
	return *s
}

// DecodeEntryOf is DecodeEntry for the events of one namespace, and for those of the
// whole shard, which have none. It steps over the events of other namespaces without
// making anything of them.
func DecodeEntryOf(entry []byte, namespace interlock.Namespace, visit func(*Event) error) error {
	var d decoder
	at, err := d.open(entry)
	if err != nil {
		return err
	}
	ev := Event{At: at}
	for len(d.b) > 0 {
		d.dry = !d.concerns(namespace)
		if err := d.event(&ev); err != nil {
			return err
		}
		if d.dry {
			continue
		}
		if err := visit(&ev); err != nil {
			return err
		}
	}
	return nil
}

// concerns reports whether the next event is of a namespace or of the whole shard. It works on
// a copy: the decoder stays where it is. A truncated event concerns every namespace.
func (d decoder) concerns(namespace interlock.Namespace) bool {
	d.byte()
	if mask := d.number(); d.failed || mask&hasNamespace == 0 {
		return true
	}
	name := d.bytes(d.number())
	return d.failed || string(name) == string(namespace)
}
