package merger

import "testing"

func TestRecentKeepsTheLast(t *testing.T) {
	var r recent[int, int]
	const n = 5*roomForRecent + 1
	for i := range n {
		r.set(i, -i)
	}
	for i := n - roomForRecent; i < n; i++ {
		if v, ok := r.get(i); !ok || v != -i {
			t.Fatalf("%d is %d, %v", i, v, ok)
		}
	}
	if _, ok := r.get(0); ok || len(r.young)+len(r.old) > 2*roomForRecent {
		t.Errorf("%d values are kept, the first one: %v", len(r.young)+len(r.old), ok)
	}
}
