package main

import (
	"testing"

	"github.com/interlockdev/interlock/internal/test/exampletest"
)

const want = `truck may deliver 10: 10 left
alice may reserve 7: 3 left
bob may not reserve 5: ask for 3 at most, or wait for a delivery
bob may reserve 3: 0 left
mallory writes the stock: writer_only
1. truck: deliver {"n":10} -> {"done":true,"left":10}
2. alice: reserve {"n":7} -> {"done":true,"left":3}
3. bob: reserve {"n":5} -> {"done":false,"left":3,"next":"ask for 3 at most, or wait for a delivery"}
4. bob: reserve {"n":3} -> {"done":true,"left":0}
`

func TestRun(t *testing.T) { exampletest.Run(t, run, want) }
