package train

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the answers of the scripts anew")

// The scripts of testdata: a command on a line, and the train's answer below "----", up to an empty line.
//
//	config lanes runners=N whole=N   a new train
//	add ID [IMPACT...]               a submission comes; also ahead=ID of another one, after=ID of its base
//	hold [ID...]                     these must not land now
//	withdraw ID                      a submission is withdrawn
//	verdict NUMBER pass|fail         a check ends
//
// After each command the plan is carried out until nothing is left to do; the answer tells how.
func TestScripts(t *testing.T) {
	names, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(names) == 0 {
		t.Fatal("there are no scripts", err)
	}
	for _, name := range names {
		t.Run(filepath.Base(name), func(t *testing.T) {
			text, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			var got strings.Builder
			s := &script{train: New(Config{})}
			answer := false
			for line := range strings.Lines(string(text)) {
				switch line = strings.TrimRight(line, "\n"); {
				case line == "":
					answer = false
					got.WriteString("\n")
				case answer:
				case strings.HasPrefix(line, "#"):
					got.WriteString(line + "\n")
				default:
					fmt.Fprintf(&got, "%s\n----\n%s", line, s.run(t, strings.Fields(line)))
					answer = true
				}
			}
			if *update {
				if err := os.WriteFile(name, []byte(got.String()), 0o644); err != nil {
					t.Fatal(err)
				}
			} else if got.String() != string(text) {
				t.Errorf("the script is now:\n%s", got.String())
			}
		})
	}
}

type script struct {
	train *Train
	place uint64
}

func (s *script) run(t *testing.T, words []string) string {
	t.Helper()
	switch words[0] {
	case "config":
		c := Config{}
		for _, w := range words[1:] {
			name, value, _ := strings.Cut(w, "=")
			n, _ := strconv.Atoi(value)
			switch name {
			case "lanes":
				c.Lanes = true
			case "runners":
				c.Runners = n
			case "whole":
				c.WholeEvery = n
			default:
				t.Fatalf("unknown setting %q", w)
			}
		}
		s.train = New(c)
	case "add":
		s.place++
		n := Submission{ID: ID(words[1]), Place: s.place}
		for _, w := range words[2:] {
			switch name, value, _ := strings.Cut(w, "="); name {
			case "after":
				n.After = ID(value)
			case "ahead":
				i := slices.IndexFunc(s.train.order, func(o Submission) bool { return o.ID == ID(value) })
				n.Place, n.Ahead = s.train.order[i].Place, s.place
			default:
				n.Impacts = append(n.Impacts, w)
			}
		}
		s.train.Add(n)
	case "hold":
		held := map[ID]bool{}
		for _, w := range words[1:] {
			held[ID(w)] = true
		}
		s.train.Hold(held)
	case "withdraw":
		s.train.Withdraw(ID(words[1]))
	case "verdict":
		n, err := strconv.ParseUint(words[1], 10, 64)
		if err != nil || words[2] != "pass" && words[2] != "fail" {
			t.Fatalf("%v: want a number, and pass or fail", words)
		}
		s.train.Verdict(n, words[2] == "pass")
	default:
		t.Fatalf("unknown command %q", words[0])
	}
	return s.carryOut()
}

// carryOut carries out plans, and tells what they were.
func (s *script) carryOut() string {
	var b strings.Builder
	for range 1000 {
		p := s.train.Plan()
		if len(p.Settle)+len(p.Cancel)+len(p.Start) == 0 {
			break
		}
		for _, o := range p.Settle {
			apart := ""
			if o.Apart {
				apart = " apart"
			}
			fmt.Fprintf(&b, "%s %s%s\n", o.Reason, o.ID, apart)
			s.train.Settle(o)
		}
		for _, n := range p.Cancel {
			fmt.Fprintf(&b, "cancel %d\n", n)
			s.train.Cancel(n)
		}
		for _, c := range p.Start {
			what := "the whole head"
			if len(c.Chain) > 0 {
				what = fmt.Sprint(c.Chain)
			}
			fmt.Fprintf(&b, "check %d: %s\n", c.Number, what)
			s.train.Start(c)
		}
	}
	if s.train.HeadFails() {
		b.WriteString("the head fails\n")
	}
	return b.String()
}
