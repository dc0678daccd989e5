package main

import (
	"testing"

	"github.com/interlockdev/interlock/internal/test/exampletest"
)

const want = `planner calls the model with 600 units
coder calls the model with 300 units
tester is refused (at_capacity): 2 of 2 calls run, the first is planner's
tester calls the model with 50 units
critic is refused (rate_limited): it wants 500 units of the 50 that are left
`

func TestRun(t *testing.T) { exampletest.Run(t, run, want) }
