package main

import (
	"testing"

	"github.com/interlockdev/interlock/internal/test/exampletest"
)

const want = `billing reads version 1: {"plan":"basic","late_fee":false}
support waives the fee
billing is refused (stale): support changed account:12345: [{"op":"add","path":"/waived","value":"illness"}]
billing decides again: {"plan":"basic","late_fee":false,"waived":"illness"}
-4200 cents, the balance is -4200
1500 cents, the balance is -2700
-99900 cents would be too much
a mail is sent
reminded: {"mail":"m-1"}
reminded: {"mail":"m-1"}
`

func TestRun(t *testing.T) { exampletest.Run(t, run, want) }
