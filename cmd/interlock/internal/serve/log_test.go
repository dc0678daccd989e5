package serve

import (
	"errors"
	"slices"
	"strings"
	"testing"
)

// writes notes what is written at once.
type writes struct {
	got  []string
	fail error
}

func (w *writes) Write(b []byte) (int, error) {
	w.got = append(w.got, string(b))
	return len(b), w.fail
}

// Lines go out whole, in their order, as many at once as a pipe takes whole.
func TestLinesOfLogGoOutTogether(t *testing.T) {
	var to writes
	c := &collector{to: &to}
	third, long := strings.Repeat("a", linesTogether/3-1)+"\n", strings.Repeat("b", 2*linesTogether)+"\n"
	for _, line := range []string{third, third, third, third, long, "c\n"} {
		if n, err := c.Write([]byte(line)); n != len(line) || err != nil {
			t.Fatalf("%d bytes were taken, %v", n, err)
		}
	}
	if want := []string{third + third + third, third, long}; !slices.Equal(to.got, want) {
		t.Errorf("written were %.20q", to.got)
	}
	for range 2 {
		if err := c.flush(); err != nil {
			t.Fatal(err)
		}
	}
	if len(to.got) != 4 || to.got[3] != "c\n" {
		t.Errorf("written were %.20q", to.got)
	}

	to.fail = errors.New("no space")
	_, _ = c.Write([]byte("lost\n"))
	if err := c.flush(); !errors.Is(err, to.fail) {
		t.Errorf("flush says %v", err)
	}
	to.fail = nil
	if err := c.flush(); err != nil || len(to.got) != 5 {
		t.Errorf("what was lost is written again: %v, %.20q", err, to.got)
	}
}
