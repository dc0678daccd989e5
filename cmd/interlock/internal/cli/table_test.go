package cli

import (
	"bytes"
	"testing"
)

func TestTable(t *testing.T) {
	var out bytes.Buffer
	a := &App{Out: &out, paint: true}
	table := a.Table("KEY", "STATE", "N")
	table.Row("ä", Coloured("live", Green), 1)
	table.Row("account:12345", Coloured("suspect", Yellow), 23)
	table.Row("", "", "last")
	if err := table.Write(&out); err != nil {
		t.Fatal(err)
	}
	want := "\x1b[1mKEY\x1b[0m            \x1b[1mSTATE\x1b[0m    \x1b[1mN\x1b[0m\n" +
		"ä              \x1b[32mlive\x1b[0m     1\n" +
		"account:12345  \x1b[33msuspect\x1b[0m  23\n" +
		"                        last\n"
	if out.String() != want {
		t.Errorf("got\n%q\nwant\n%q", out.String(), want)
	}
}
