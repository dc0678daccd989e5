package collection

// Set is an unordered array of members, which a caller can visit in parts while members come
// and go between the visits. Each member records its index, and a removal moves the last
// member to the free place.
type Set[M SetMember] []M

// SetMember is a member of a Set.
type SetMember interface {
	comparable
	// SetIndex returns where the member keeps its index in the set plus one; 0 means
	// that it is in none. Only the set changes the value.
	SetIndex() *int32
}

// Part calls visit with member i. It reports whether there is one.
func (s Set[M]) Part(i int, visit func(M)) bool {
	if i >= len(s) {
		return false
	}
	visit(s[i])
	return true
}

// Add adds m, which must not be in a set.
func (s *Set[M]) Add(m M) {
	*s = append(*s, m)
	*m.SetIndex() = int32(len(*s))
}

// Remove removes m. It does nothing if m is not in the set.
func (s *Set[M]) Remove(m M) {
	index, list := m.SetIndex(), *s
	if *index == 0 {
		return
	}
	var none M
	last := list[len(list)-1]
	list[*index-1], *last.SetIndex() = last, *index
	list[len(list)-1] = none
	*s, *index = list[:len(list)-1], 0
}
