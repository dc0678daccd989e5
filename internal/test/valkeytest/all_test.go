package valkeytest

import (
	"testing"

	"github.com/interlockdev/interlock/internal/test/remotetest"
)

// It takes longer than any other test, so it is in the first file: the others run beside it.
func TestHistoryOfShares(t *testing.T) { at(t, pair(t), remotetest.HistoryOfShares) }
