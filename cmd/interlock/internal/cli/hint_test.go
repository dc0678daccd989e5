package cli

import "testing"

func TestDistance(t *testing.T) {
	for _, tt := range []struct {
		a, b string
		want int
	}{
		{"", "", 0},
		{"", "ab", 2},
		{"list", "list", 0},
		{"lsit", "list", 1},
		{"wiat", "wait", 1},
		{"relaese", "release", 1},
		{"shard", "shared", 1},
		{"lock", "unlock", 2},
		{"set", "list", 3},
		{"abc", "cba", 2},
	} {
		if got, back := distance(tt.a, tt.b), distance(tt.b, tt.a); got != tt.want || back != tt.want {
			t.Errorf("%q and %q: got %d and %d, want %d", tt.a, tt.b, got, back, tt.want)
		}
	}
}
