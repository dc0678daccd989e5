package bench

import (
	"fmt"
	"math"
	"math/rand/v2"
	"sort"
)

// A choice picks one of several things, each with a probability of its own: the k-th in
// proportion to 1/k^skew. With skew 0 all are alike, with 1 it is Zipf's law.
type choice struct {
	upTo   []float64 // the sum of the weights up to each
	random *rand.Rand
}

func newChoice(n int, skew float64, random *rand.Rand) *choice {
	c := &choice{upTo: make([]float64, n), random: random}
	sum := 0.0
	for k := range n {
		sum += math.Pow(float64(k+1), -skew)
		c.upTo[k] = sum
	}
	return c
}

func (c *choice) next() int {
	n := len(c.upTo)
	return min(sort.SearchFloat64s(c.upTo, c.random.Float64()*c.upTo[n-1]), n-1)
}

// shared returns in words what is chosen from, and how.
func shared(n int, skew float64) string {
	if skew == 0 {
		return Number(float64(n)) + " entities, uniform"
	}
	return fmt.Sprintf("%s entities, Zipf %g", Number(float64(n)), skew)
}
