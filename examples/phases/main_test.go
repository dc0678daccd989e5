package main

import (
	"testing"

	"github.com/interlockdev/interlock/internal/test/exampletest"
)

const want = `plan: api is at it, generation 1
plan: docs is at it, generation 1
plan: web is at it, generation 1
write: api is at it, generation 2
write: docs is at it, generation 2
write: web is at it, generation 2
review: api is at it, generation 3
review: docs is at it, generation 3
review: web is at it, generation 3
end: api is told that the barrier is broken
end: docs has left
end: web is told that the barrier is broken
`

func TestRun(t *testing.T) { exampletest.Run(t, run, want) }
