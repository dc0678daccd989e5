package securitytest

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"testing"

	"github.com/interlockdev/interlock/internal/test/launchtest"
)

func TestMain(m *testing.M) {
	if text := os.Getenv(errandVariable); text != "" {
		if err := runErrand(text); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	launchtest.Main(m)
}

// attack is one case.
type attack struct {
	number int    // stays with it for ever; a new one gets the next free one
	title  string // of the attacked part
	does   string // what the attacker does
	must   string // what has to happen
	run    func(t *testing.T, s *site)
	beside []string // tests elsewhere that look at the same more closely, as package.TestName
}

// room is the attacks on one thing.
type room struct {
	name    string
	attacks []attack
}

// catalogue is every case, in the order in which they are carried out and listed.
var catalogue = []room{
	{"Pages of other sites", foreignAttacks},
	{"Credentials", credentialAttacks},
	{"Tenants", tenantAttacks},
	{"Names", nameAttacks},
	{"Files and git", fileAttacks},
	{"Text of agents", textAttacks},
	{"What is too large", oversizeAttacks},
	{"What is too slow, or too much", slowAttacks},
	{"Signed fences", fenceAttacks},
	{"Doors", doorAttacks},
	{"The Redis port", redisAttacks},
	{"Secrets", secretAttacks},
}

// TestCases carries out all of them, one after the other, against one server.
func TestCases(t *testing.T) {
	s := newSite(t)
	passed := 0
	for _, r := range catalogue {
		for _, a := range r.attacks {
			if t.Run(fmt.Sprintf("%02d %s", a.number, a.title), func(t *testing.T) { a.run(t, s) }) {
				passed++
			}
		}
	}
	t.Attr("count.security_cases", strconv.Itoa(passed))
}

// Numbers name cases in texts that this repository does not see, so each stands once.
func TestNumbers(t *testing.T) {
	var numbers []int
	for _, r := range catalogue {
		for _, a := range r.attacks {
			numbers = append(numbers, a.number)
			if a.title == "" || a.does == "" || a.must == "" || a.run == nil {
				t.Errorf("case %d lacks something", a.number)
			}
		}
	}
	slices.Sort(numbers)
	for i, n := range numbers {
		if n != i+1 {
			t.Fatalf("the numbers are %v: want each from 1 to %d once", numbers, len(numbers))
		}
	}
	if least := 45; len(numbers) < least {
		t.Errorf("%d cases, want at least %d", len(numbers), least)
	}
}
