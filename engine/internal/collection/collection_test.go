package collection

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"testing"
)

type member struct {
	rank, order int
	heap, set   int32
	element     Element[*member]
}

func (m *member) Less(o *member) bool { return m.rank < o.rank }
func (m *member) HeapIndex() *int32   { return &m.heap }
func (m *member) SetIndex() *int32    { return &m.set }

// members returns n members with random ranks.
func members(random *rand.Rand, n int) (list []*member) {
	for range n {
		m := &member{rank: random.IntN(n)}
		m.element.Value = m
		list = append(list, m)
	}
	return list
}

// TestHeap pushes, removes and fixes members at random: the first is always the least, and a
// member records its index.
func TestHeap(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 1))
	all := members(random, 100)
	var heap Heap[*member]
	for range 10_000 {
		m := all[random.IntN(len(all))]
		switch random.IntN(3) {
		case 0:
			heap.Push(m)
		case 1:
			heap.Remove(m)
		case 2:
			m.rank = random.IntN(len(all))
			heap.Fix(m)
		}
		n := 0
		for _, m := range all {
			if m.heap == 0 {
				continue
			}
			n++
			if heap[m.heap-1] != m || m.Less(heap[0]) {
				t.Fatalf("a member of rank %d is at %d, the first has rank %d", m.rank, m.heap, heap[0].rank)
			}
		}
		if n != len(heap) {
			t.Fatalf("the heap has %d members, want %d", len(heap), n)
		}
	}
}

type value int

func (v value) Less(o value) bool { return v < o }

// TestValueHeap pops values in their order.
func TestValueHeap(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	var (
		heap ValueHeap[value]
		want []value
	)
	for range 1000 {
		v := value(random.IntN(100))
		heap.Push(v)
		want = append(want, v)
		if random.IntN(4) == 0 {
			slices.Sort(want)
			if got := heap.Pop(); got != want[0] {
				t.Fatalf("popped %d, want %d", got, want[0])
			}
			want = want[1:]
		}
	}
	slices.Sort(want)
	for _, v := range want {
		if got := heap.Pop(); got != v {
			t.Fatalf("popped %d, want %d", got, v)
		}
	}
	if len(heap) != 0 {
		t.Errorf("%d values are left", len(heap))
	}
}

// TestList inserts members by rank, those of one rank in the order of insertion, and removes
// some.
func TestList(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 3))
	var (
		list List[*member]
		want []*member
	)
	for i, m := range members(random, 200) {
		m.order = i
		list.Insert(&m.element, func(a, b *member) bool { return a.rank < b.rank })
		want = append(want, m)
		slices.SortStableFunc(want, func(a, b *member) int { return cmp.Compare(a.rank, b.rank) })
		if i%3 == 0 {
			at := random.IntN(len(want))
			list.Remove(&want[at].element)
			want = slices.Delete(want, at, at+1)
		}
	}
	if got := slices.Collect(list.All); !slices.Equal(got, want) || list.Len() != len(want) {
		t.Fatalf("the list has %d members, in another order than the %d that it should have", list.Len(), len(want))
	}
	if list.Front().Value != want[0] || list.Front().Next().Value != want[1] || list.Back().Value != want[len(want)-1] {
		t.Error("Front, Next or Back is another member")
	}
	slices.Reverse(want)
	if got := slices.Collect(list.Backward); !slices.Equal(got, want) {
		t.Error("Backward has another order")
	}
	for list.Len() > 0 {
		list.Remove(list.Front())
	}
	if list.Front() != nil || list.Back() != nil {
		t.Error("an empty list has a member")
	}
}

// TestSet visits each member once.
func TestSet(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 4))
	var set Set[*member]
	all := members(random, 50)
	in := map[*member]bool{}
	for range 1000 {
		m := all[random.IntN(len(all))]
		if in[m] {
			set.Remove(m)
			delete(in, m)
		} else {
			set.Add(m)
			in[m] = true
		}
		set.Remove(&member{}) // is in none
		seen := map[*member]bool{}
		for i := 0; set.Part(i, func(m *member) { seen[m] = true }); i++ {
		}
		if len(seen) != len(in) || len(set) != len(in) {
			t.Fatalf("visited %d of %d, want %d", len(seen), len(set), len(in))
		}
		for m := range seen {
			if !in[m] {
				t.Fatal("visited a member that was removed")
			}
		}
	}
}

// TestQueue is first in, first out while the array grows and wraps around.
func TestQueue(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 5))
	var (
		queue Queue[int]
		want  []int
	)
	for i := range 5000 {
		if random.IntN(5) < 3 {
			queue.Push(i)
			want = append(want, i)
		} else if len(want) > 0 {
			if got := queue.Pop(); got != want[0] {
				t.Fatalf("popped %d, want %d", got, want[0])
			}
			want = want[1:]
		}
		if queue.Len() != len(want) {
			t.Fatalf("the queue has %d values, want %d", queue.Len(), len(want))
		}
		for i, v := range want {
			if queue.At(i) != v {
				t.Fatalf("At(%d) is %d, want %d", i, queue.At(i), v)
			}
		}
	}
}
