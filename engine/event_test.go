package engine_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"testing"

	"github.com/interlockdev/interlock"
	"github.com/interlockdev/interlock/engine"
	"github.com/interlockdev/interlock/engine/record"
)

// TestNumbersStay holds the numbers that are in journals. A line here is never
// changed, only added.
func TestNumbersStay(t *testing.T) {
	kinds := map[record.Kind]int{
		record.Opened: 1, record.SessionOpened: 2, record.SessionEnded: 3, record.Queued: 4, record.Granted: 5,
		record.Admitted: 6, record.Claimed: 7, record.Grace: 8, record.Ended: 9, record.Left: 10, record.Answered: 11,
		record.Counters: 64, record.Tombstone: 65, record.Noted: 66, record.HoldTime: 67, record.SessionGone: 68,
	}
	for kind, number := range kinds {
		if int(kind) != number {
			t.Errorf("%v is %d, was %d in journals", kind, kind, number)
		}
	}
	reasons := map[record.Reason]int{
		record.ByRelease: 1, record.ByTTL: 2, record.ByMaxHold: 3, record.ByStall: 4, record.ByRevocation: 5,
		record.BySession: 6,
		record.ByDeath:   7, record.ByLapse: 8, record.ByLeaving: 9, record.ByDeadlock: 10,
	}
	for reason, number := range reasons {
		if int(reason) != number {
			t.Errorf("%v is %d, was %d in journals", reason, reason, number)
		}
	}
	outcomes := map[interlock.Outcome]int{
		engine.Granted: 1, engine.Queued: 2, engine.Skipped: 3, engine.Done: 4, engine.Refused: 5,
	}
	for outcome, number := range outcomes {
		if int(outcome) != number {
			t.Errorf("%v is %d, was %d in journals", outcome, outcome, number)
		}
	}
}

// TestNamesComplete reads the constants from the source, so that a new one
// without a name is found, and two with the same one.
func TestNamesComplete(t *testing.T) {
	seen := map[string]int{}
	check := func(typ, constant, name string) {
		seen[typ]++
		switch {
		case name == "":
			t.Errorf("%s %s has no name", typ, constant)
		case seen[typ+" "+name] > 0:
			t.Errorf("%s %s has the name %q, which another one has, too", typ, constant, name)
		}
		seen[typ+" "+name]++
	}
	for _, file := range []string{"record/kind.go", "record/reason.go", "../outcome.go"} {
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, decl := range parsed.Decls {
			group, ok := decl.(*ast.GenDecl)
			if !ok || group.Tok != token.CONST {
				continue
			}
			var typ string
			for i, spec := range group.Specs {
				value := spec.(*ast.ValueSpec)
				if id, ok := value.Type.(*ast.Ident); ok {
					typ = id.Name
				}
				number := i + 1 // of an iota that begins with 1
				if len(value.Values) == 1 {
					if lit, ok := value.Values[0].(*ast.BasicLit); ok {
						number = atoi(lit.Value)
					}
				}
				switch typ {
				case "Kind":
					check(typ, value.Names[0].Name, record.Kind(number).String())
				case "Reason":
					check(typ, value.Names[0].Name, record.Reason(number).String())
				case "Outcome":
					check(typ, value.Names[0].Name, interlock.Outcome(number).String())
				}
			}
		}
	}
	for typ, least := range map[string]int{"Kind": 15, "Reason": 10, "Outcome": 7} {
		if seen[typ] < least {
			t.Errorf("found %d constants of %s, want %d at least", seen[typ], typ, least)
		}
	}
}

func atoi(s string) (n int) {
	for _, c := range s {
		n = 10*n + int(c-'0')
	}
	return n
}
