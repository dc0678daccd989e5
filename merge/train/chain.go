package train

// node is what is known about one chain: the path from the head to the node. All facts are relative to the head;
// when a submission lands, its node becomes the head.
type node struct {
	id       ID
	parent   *node
	children map[ID]*node
	// conflicts holds the submissions that cannot be merged onto this chain.
	conflicts map[ID]bool
	// passes, fails and running count checks of this chain's tree.
	passes, fails, running int
	// refused is set if the chain cannot land although it passes.
	refused bool
	// apart is set if the chain passed on an earlier head, and another lane has landed since.
	apart bool
	// batch is set if a check of this chain was planned as the end of a batch.
	batch bool
}

func newNode(parent *node, id ID) *node {
	return &node{id: id, parent: parent, children: map[ID]*node{}, conflicts: map[ID]bool{}}
}

// passed and failed are the verdict on a chain: one pass is enough, because a failure may be a flaky check.
func (n *node) passed() bool { return n != nil && n.passes > 0 && !n.refused }
func (n *node) failed() bool { return n != nil && (n.refused || n.fails > 0 && n.passes == 0) }

// leadsToPass reports whether this chain or a longer one has passed. It accepts a nil node.
func (n *node) leadsToPass() bool {
	if n == nil || n.passed() {
		return n != nil
	}
	for _, child := range n.children {
		if child.leadsToPass() {
			return true
		}
	}
	return false
}

// useful adds the submissions of chains that run or have passed, and reports whether the node is in one.
func (n *node) useful(ids map[ID]bool) bool {
	found := n.running > 0 || n.passed()
	for id, child := range n.children {
		if child.useful(ids) {
			ids[id], found = true, true
		}
	}
	return found
}

// walk returns the node of a chain, and makes what is missing of it.
func (n *node) walk(chain []ID) *node {
	for _, id := range chain {
		next := n.children[id]
		if next == nil {
			next = newNode(n, id)
			n.children[id] = next
		}
		n = next
	}
	return n
}

// child returns the node of the chain that is longer by id, or nil if nothing is known about it. It accepts a nil
// node.
func (n *node) child(id ID) *node {
	if n == nil {
		return nil
	}
	return n.children[id]
}

// refuses reports whether id cannot be merged onto the chain. It accepts a nil node.
func (n *node) refuses(id ID) bool { return n != nil && n.conflicts[id] }

// advance returns the facts on the head that one submission of a lane makes. Chains of the lane that do not begin
// with it are void; those of other lanes stay, and have been checked apart.
func (n *node) advance(landed ID, lane []Submission) *node {
	head, first := newNode(nil, ""), n.children[landed]
	for id := range n.conflicts {
		if !holds(lane, id) {
			head.conflicts[id] = true
		}
	}
	for id, child := range n.children {
		if !holds(lane, id) {
			child.setApart()
			head.adopt(child)
		}
	}
	for id := range first.conflicts {
		head.conflicts[id] = true
	}
	for _, child := range first.children {
		child.refused = false // it was refused together with what has landed now: it has its own try
		head.adopt(child)
	}
	return head
}

// setApart marks what has passed at and below the node.
func (n *node) setApart() {
	n.apart = n.apart || n.passes > 0
	for _, child := range n.children {
		child.setApart()
	}
}

// forgive forgets the failures at and below the node.
func (n *node) forgive() {
	n.fails = 0
	for _, child := range n.children {
		child.forgive()
	}
}

// first returns the first submission of a chain.
func (n *node) first() ID {
	for n.parent != nil && n.parent.parent != nil {
		n = n.parent
	}
	return n.id
}

func (n *node) adopt(child *node) {
	child.parent = n
	n.children[child.id] = child
}

// prune removes what is known about chains with id.
func (n *node) prune(id ID) {
	if gone := n.children[id]; gone != nil {
		gone.parent = nil
		delete(n.children, id)
	}
	delete(n.conflicts, id)
	for _, child := range n.children {
		child.prune(id)
	}
}

// top returns the node that a chain begins at: the head, if the chain can still happen.
func (n *node) top() *node {
	for n.parent != nil {
		n = n.parent
	}
	return n
}
