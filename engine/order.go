package engine

import (
	"slices"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine/internal/keypath"
	"github.com/interlockdev/interlock/engine/message"
)

// outOfOrder returns why a request breaks the ascending order of keys, or nil. Where a
// namespace demands that order, a flow may ask for a key that it does not hold only
// if that comes after every key that it holds or waits for, in the order of paths.
//
// So flows that claim keys exclusively wait for each other in one direction only, also for keys
// above and below each other. The keys below a key follow it without a gap: in the order of
// bytes, a! would stand between a and a/c, and the holder of a! could ask for a/c while the
// holder of a asks for a!. Readers may still wait in a circle, when they ask to write what they
// or others read; such circles are found like any other.
func (r *request) outOfOrder() *refusal {
	if !r.ns.settings.StrictOrder || r.party == nil {
		return nil
	}
	*r.ns.agenda.objects += len(r.party.leases) + len(r.party.waits)
	var last interlock.Key
	for _, list := range [][]*request{r.party.leases, r.party.waits} {
		for _, x := range list {
			for _, c := range x.claims() {
				if keypath.Compare(c.Key, last) > 0 {
					last = c.Key
				}
			}
		}
	}
	for _, want := range r.claims() {
		holds := func(l *request) bool { return l.claimsAll([]interlock.Claim{want}) }
		if keypath.Compare(want.Key, last) > 0 || slices.ContainsFunc(r.party.leases, holds) {
			continue
		}
		return &refusal{code: interlock.CodeKeyOrder, key: want.Key, message: message.New(message.KeyOrder, message.Str(want.Key), message.Str(last), message.Str(r.ns.name), message.Str(want.Key), message.Str(last))}
	}
	return nil
}
