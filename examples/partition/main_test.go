package main

import (
	"testing"

	"github.com/interlockdev/interlock/internal/test/exampletest"
)

const want = `ann crawls 6 parts, ben 0
ann crawls 3 parts, ben 3
ann crawls 0 parts, ben 6
late writes of ann are refused
`

func TestRun(t *testing.T) { exampletest.Run(t, run, want) }
