package main

import (
	"testing"

	"github.com/interlockdev/interlock/internal/test/exampletest"
)

const want = `opening credit of 200.00: done, 20000 cents available
late fee of 50.00: done, 15000 cents available
late fee of 50.00, again: refused (over_budget): billing-7 has taken 50.00 EUR of its 80.00 EUR today; 50.00 EUR is too much
  -> ask for 30.00 EUR at most, or wait until the next day begins (00:00 UTC)
critically urgent: refused (too_urgent): priority 100 is more than the 10 that billing-7 may give a debit
  -> send it with priority 10: urgency changes the order of the line, and never what is allowed
hold of 60.00: done, 9000 cents available
capture of 45.00: done, 10500 cents available
transfer of 100.00: pending, 500 cents available
the transfer is posted
account:12345 has 500 cents, by its log
account:777 has 10000 cents, by its log
`

func TestRun(t *testing.T) { exampletest.Run(t, run, want) }
