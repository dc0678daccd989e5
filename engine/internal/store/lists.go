package store

import (
	"github.com/interlockdev/interlock"
)

// claimLists are a request's claims and needs, if they do not fit into the request. They are
// separate, because most requests claim one key, and most of these have no ancestors.
type claimLists struct {
	claims []interlock.Claim
	needs  []Need
}

// Claims returns the claims of r. Callers may keep the slice; only shareKeys changes it, as
// long as it is r's alone.
func (r *Request) Claims() []interlock.Claim {
	switch {
	case r.claim != nil:
		return r.claim[:]
	case r.more != nil:
		return r.more.claims
	}
	return nil
}

// SetClaims has r claim something else.
func (r *Request) SetClaims(list []interlock.Claim) {
	r.claim = nil
	if r.more != nil {
		r.more.claims = nil
	}
	switch len(list) {
	case 0:
	case 1:
		r.claim = (*[1]interlock.Claim)(list)
	default:
		r.lists().claims = list
	}
}

// Needs returns what r needs, in the order of its claims, and ancestors first. It is good
// until r needs something else.
func (r *Request) Needs() []Need {
	switch {
	case r.only[0].Node != nil:
		return r.only[:]
	case r.more != nil:
		return r.more.needs
	}
	return nil
}

// addNeed has r need one thing more, at the end.
func (r *Request) addNeed(m Need) {
	if len(r.Needs()) == 0 {
		r.only[0] = m
		return
	}
	l := r.lists()
	if r.only[0].Node != nil {
		l.needs = append(l.needs, r.only[0])
		r.only[0] = Need{}
	}
	l.needs = append(l.needs, m)
}

// forgetNeeds has r need nothing, and keeps its memory.
func (r *Request) forgetNeeds() {
	needs := r.Needs()
	clear(needs)
	if r.more != nil {
		r.more.needs = r.more.needs[:0]
	}
}

func (r *Request) lists() *claimLists {
	if r.more == nil {
		r.more = &claimLists{}
	}
	return r.more
}
