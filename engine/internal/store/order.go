package store

import (
	"slices"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine/internal/keypath"
	"github.com/interlockdev/interlock/engine/message"
)

// OutOfOrder returns why a request breaks the ascending order of keys, or nil. Where a
// namespace demands that order, a flow may ask for a key that it does not hold only
// if that comes after every key that it holds or waits for, in the order of paths.
//
// So flows that claim keys exclusively wait for each other in one direction only, also for keys
// above and below each other. The keys below a key follow it without a gap: in the order of
// bytes, a! would stand between a and a/c, and the holder of a! could ask for a/c while the
// holder of a asks for a!. Readers may still wait in a circle, when they ask to write what they
// or others read; such circles are found like any other.
func (r *Request) OutOfOrder() *Refusal {
	if !r.NS.Settings.StrictOrder || r.FlowState == nil {
		return nil
	}
	*r.NS.Agenda.objects += len(r.FlowState.Leases) + len(r.FlowState.Waits)
	var last interlock.Key
	for _, list := range [][]*Request{r.FlowState.Leases, r.FlowState.Waits} {
		for _, x := range list {
			for _, c := range x.Claims() {
				if keypath.Compare(c.Key, last) > 0 {
					last = c.Key
				}
			}
		}
	}
	for _, want := range r.Claims() {
		holds := func(l *Request) bool { return l.ClaimsAll([]interlock.Claim{want}) }
		if keypath.Compare(want.Key, last) > 0 || slices.ContainsFunc(r.FlowState.Leases, holds) {
			continue
		}
		return &Refusal{
			Code: interlock.CodeKeyOrder, Key: want.Key,
			Message: message.New(
				message.KeyOrder, message.Str(want.Key), message.Str(last), message.Str(r.NS.Name), message.Str(want.Key),
				message.Str(last),
			),
		}
	}
	return nil
}
