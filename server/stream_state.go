package server

import (
	"slices"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine"
	"github.com/interlockdev/interlock/internal/packet"
	"github.com/interlockdev/interlock/internal/prose"
	"github.com/interlockdev/interlock/proto"
)

// addState adds an answer's documents and effects.
func (d *outgoingEffect) addState(r *proto.Reply, st *stream) {
	eff := &d.eff
	r.Version, r.Documents = eff.Version, cleanDocuments(eff.Documents)
	if l := &eff.Lease; l.Documents != nil {
		r.Version, r.Documents, r.More = l.AsOf, cleanDocuments(l.Documents), l.DocumentsMore
	}
	switch {
	case len(eff.Stale) > 0:
		r.Packet = st.packet(eff.Stale, eff.StaleMore, packet.Commit)
	case len(eff.Lease.Stale) > 0:
		r.Packet = st.packet(eff.Lease.Stale, eff.Lease.StaleMore, packet.Grant)
	}
	if eff.Effect != nil {
		r.Effects = []interlock.Effect{cleanEffect(*prose.Effect(eff.Effect))}
	}
	if d.read == nil {
		return
	}
	for i := range d.read.effects {
		r.Effects = append(r.Effects, cleanEffect(*prose.Effect(&d.read.effects[i])))
	}
	for _, c := range d.read.contention {
		if advice := prose.ForContention(&c); advice != (interlock.Advice{}) {
			c.Advice = &advice
		}
		c.Pattern = cleanText(c.Pattern)
		r.Contention = append(r.Contention, c)
	}
}

// weigh returns how much memory is kept for an answer because of documents.
func weigh(eff *engine.Effect, read *queryResult) int {
	n := weighTasks(eff, read)
	add := func(doc *interlock.Document) { n += 512 + len(doc.Body) + len(doc.Note) }
	for _, list := range [...][]interlock.Document{eff.Documents, eff.Lease.Documents} {
		for i := range list {
			add(&list[i])
			for k := range list[i].Earlier {
				add(&list[i].Earlier[k])
			}
		}
	}
	for _, list := range [...][]interlock.Stale{eff.Stale, eff.Lease.Stale} {
		for i := range list {
			add(&list[i].Then)
			add(&list[i].Now)
			for k := range list[i].Between {
				add(&list[i].Between[k])
			}
		}
	}
	if read == nil {
		return n
	}
	for i := range read.effects {
		n += 512 + len(read.effects[i].Action) + len(read.effects[i].Result)
	}
	for i := range read.patterns {
		n += proto.PatternSize(&read.patterns[i])
	}
	return n
}

// packet makes the packet with its texts cleaned. Differences are documents' data,
// and stay as they are.
func (st *stream) packet(stale []interlock.Stale, more bool, occasion packet.Occasion) *interlock.Packet {
	p := st.d.s.packet(st.namespace, stale, more, occasion)
	for i := range p.Changes {
		cleanDocument(&p.Changes[i].Then)
		cleanDocument(&p.Changes[i].Now)
		for k := range p.Changes[i].Between {
			cleanDocument(&p.Changes[i].Between[k])
		}
	}
	return p
}

func cleanDocuments(list []interlock.Document) []interlock.Document {
	list = slices.Clone(list)
	for i := range list {
		cleanDocument(&list[i])
	}
	return list
}

func cleanDocument(d *interlock.Document) {
	d.Agent, d.Flow, d.Principal, d.Note = cleanText(d.Agent), cleanText(d.Flow), cleanText(d.Principal), cleanNote(d.Note)
	if len(d.Earlier) > 0 {
		d.Earlier = cleanDocuments(d.Earlier)
	}
}

// cleanEffect cleans the texts about an effect. The action and its result are data, like a
// document.
func cleanEffect(f interlock.Effect) interlock.Effect {
	f.Agent, f.Flow, f.Principal, f.Reason = cleanText(f.Agent), cleanText(f.Flow), cleanText(f.Principal),
		cleanText(f.Reason)
	return f
}
