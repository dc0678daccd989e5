package interlock

import "testing"

// TestPartOf pins what programs in other languages compute, too.
func TestPartOf(t *testing.T) {
	for resource, want := range map[string]int{"": 4, "order:1": 12, "order:2": 14, "Bestellung 1": 1} {
		if got := PartOf(resource, 16); got != want {
			t.Errorf("%q is in part %d, want %d", resource, got, want)
		}
	}
}
