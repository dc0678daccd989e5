package search

import (
	"os"
	"strconv"
	"testing"
)

// Variable is the environment variable with the number of a night's round, from 1 on.
const Variable = "INTERLOCK_NIGHT_ROUND"

// Seeds returns the first seed of a search and the seed after its last one. The short form tries short seeds from
// first on, the long form long ones, and round n of a night the next long ones after round n-1.
func Seeds(t testing.TB, first, short, long uint64) (from, to uint64) {
	t.Helper()
	return SeedsOfNight(t, first, short, long, long)
}

// SeedsOfNight returns the same, with rounds of another size: the first one begins where the long form ends.
func SeedsOfNight(t testing.TB, first, short, long, night uint64) (from, to uint64) {
	t.Helper()
	round := Round(t)
	switch {
	case round > 0:
		from = first + long + (round-1)*night
		return from, from + night
	case testing.Short():
		return first, first + short
	}
	return first, first + long
}

// Round returns the number of the night's round, or 0 by day.
func Round(t testing.TB) uint64 {
	t.Helper()
	s := os.Getenv(Variable)
	if s == "" {
		return 0
	}
	n, err := strconv.ParseUint(s, 10, 32)
	if err != nil || n == 0 {
		t.Fatalf("%s is %q: want a number from 1 on", Variable, s)
	}
	return n
}
