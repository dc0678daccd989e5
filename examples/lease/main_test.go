package main

import (
	"testing"

	"github.com/interlockdev/interlock/internal/test/exampletest"
)

const want = `billing holds account:12345
support is refused (held): billing holds it to "apply late fee"
support stands in line, place 1 of 1
billing has released it
support holds it; changed while waiting: true
note of billing: "charged a late fee of 35.00"
a write of billing is refused: its fence is old
a write of support may go ahead
`

func TestRun(t *testing.T) { exampletest.Run(t, run, want) }
