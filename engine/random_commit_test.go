package engine_test

import (
	"fmt"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine"
)

// commit commits to some documents, mostly on the versions that they have.
func (p *player) commit(o *op) error {
	id := p.id()
	c := &engine.Commit{CommitRequest: interlock.CommitRequest{
		Flow: among(o.r[1]>>4, "", "main", "sub"), Note: among(o.r[1]>>8, "", "", "a note"),
	}}
	if s := p.session(o.r[0], o.r[0]>>8); s != nil && o.r[1]%5 > 0 {
		c.Head = p.in(s)
	} else {
		c.Namespace, c.Agent = among(o.r[0], firstNamespace, firstNamespace, otherNamespace), fmt.Sprintf("bare-%d", p.ids)
	}
	c.Actor = among(o.r[1]>>12, "", "web", "web")
	p.change(c, o, id)
	for i := range among(o.r[8]>>8, 0, 0, 1, 2) {
		list := p.m.inPhase(held, held, inGrace)
		if o.r[8]>>12%8 == 0 {
			list = p.m.inPhase(held, offered, parked, over)
		}
		r, ok := pick(o.r[9]>>(8*i), list)
		if !ok || p.isClosedPart(r) {
			continue
		}
		c.Leases = append(c.Leases, interlock.LeaseID(r.ask.ID))
		if c.Namespace = r.ns; o.r[8]>>16%4 > 0 {
			c.Head = p.head(r, o.r[8]>>20)
			if len(c.Writes) > i && len(r.claims) > 0 {
				c.Writes[i].Key = r.claims[0].Key
			}
		} else {
			c.Session = interlock.SessionID{}
		}
	}
	if o.r[9]>>16%4 == 0 {
		c.RequestID = fmt.Sprintf("r%d", p.ids)
		p.committed = append(p.committed, *c)
	}
	return p.step(c)
}

// change chooses what a commit reads and writes.
func (p *player) change(c *engine.Commit, o *op, id [16]byte) {
	version := p.m.version(c.Namespace)
	for i := range among(o.r[2], 0, 1, 1, 1, 2, 2, 3) {
		c.Writes = append(c.Writes, p.write(o.r[3+i], id))
	}
	for i := range among(o.r[2]>>8, 0, 0, 1, 1, 2) {
		r := o.r[6+i]
		key := p.keys[int(r)%len(p.keys)]
		if i < len(c.Writes) && r>>8%4 > 0 {
			key = c.Writes[i].Key
		}
		now := p.m.documentNow(c.Namespace, p.m.spell(c.Namespace, key))
		read := interlock.Read{Key: key, Version: now.Version, Absent: now.Absent && r>>10%2 == 0}
		switch r >> 12 % 10 {
		case 0:
			read = interlock.Read{Key: key, Version: min(version, interlock.Version(r>>16%8))}
		case 1:
			read = interlock.Read{Key: key, Absent: true}
		case 3:
			read = interlock.Read{Key: key, Present: true, Absent: r>>16%16 == 0}
		case 2:
			read.Version = among(r>>16, version, version, version+1)
		}
		c.Reads = append(c.Reads, read)
	}
	if o.r[8]%6 == 0 {
		c.AsOf = among(o.r[8]>>4, version, version, version-min(1, version), version-min(3, version), version+1)
	}
}

// write chooses what to do to a document.
func (p *player) write(r uint32, id [16]byte) interlock.Write {
	w := interlock.Write{Key: p.keys[int(r)%len(p.keys)]}
	switch r >> 8 % 16 {
	case 0, 1, 2:
		w.Op, w.Body = interlock.Put, fmt.Appendf(nil, `{"v":%d,"deep":{"n":1.50}}`, id[15])
	case 3:
		w.Op, w.Body = interlock.Put, []byte(among(r>>12, " 7\n", "9223372036854775800", "7.0", "[1,2]", "null"))
	case 4:
		w.Op, w.Body, w.ContentType = interlock.Put, fmt.Appendf(nil, "text %d", id[15]), "text/plain"
	case 5:
		w.Op, w.Body, w.ContentType = interlock.Put, []byte(`{"a":[{}]}`), "application/vnd.x+json"
	case 6, 7:
		w.Op = interlock.Delete
	case 8, 9, 10:
		w.Op, w.Body = interlock.Merge, []byte(among(
			r>>12, `{"v":null}`, `{"deep":{"n":1e400,"<":"&"}}`, `{"deep":null,"x":{"y":null,"z":0}}`, `5`, `null`,
		))
	case 15:
		return p.spoilt(w, r>>12)
	default:
		w.Op, w.Delta = interlock.Add, int64(among(r>>12, 1, 1, 5, -3, 0))
		if r>>16%3 == 0 {
			least := int64(-2)
			w.Min = &least
		}
		if r>>18%3 == 0 {
			most := int64(12)
			w.Max = &most
		}
	}
	return w
}

// spoilt is a write that breaks a rule.
func (p *player) spoilt(w interlock.Write, r uint32) interlock.Write {
	switch r % 8 {
	case 0:
		w.Op, w.Body = interlock.Put, []byte(`{"a":1} 2`)
	case 1:
		w.Op, w.Body = interlock.Merge, []byte(`{`)
	case 2:
		w.Op, w.Delta = interlock.Delete, 1
	case 3:
		w.Op, w.Body, w.ContentType = interlock.Put, []byte("1"), "number"
	case 4:
		w.Key, w.Op = "a//b", interlock.Delete
	case 5:
		least, most := int64(3), int64(2)
		w.Op, w.Min, w.Max = interlock.Add, &least, &most
	case 6:
		w.Op, w.Delta = interlock.Add, 1<<62
	}
	return w
}

// recommit sends a commit with an id again, sometimes changed.
func (p *player) recommit(o *op) error {
	c, ok := pick(o.r[0], p.committed)
	if !ok {
		return nil
	}
	if s := p.m.sessionByID(c.Namespace, c.Session); s != nil && s.ended {
		return nil
	}
	if c.From = nil; o.r[1]%4 == 0 {
		c.Note = "something else"
	}
	return p.step(&c)
}
