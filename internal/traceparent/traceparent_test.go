package traceparent

import (
	"strings"
	"testing"
)

const (
	trace  = "0af7651916cd43dd8448eb211c80319c"
	parent = "b7ad6b7169203331"
	good   = "00-" + trace + "-" + parent + "-01"
)

func TestParse(t *testing.T) {
	for _, tt := range []struct {
		text string
		ok   bool
	}{
		{good, true},
		{"01" + good[2:], true},
		{"01" + good[2:] + "-more", true},
		{"01" + good[2:] + "more", false},
		{good + "-more", false}, // version 00 has no more
		{"", false},
		{good[:54], false},
		{"ff" + good[2:], false},
		{strings.ToUpper(good), false},
		{strings.Replace(good, "-", "_", 1), false},
		{strings.Replace(good, "a", "\x1b", 1), false},
		{"00-" + strings.Repeat("0", 32) + "-" + parent + "-01", false},
		{"00-" + trace + "-0000000000000000-01", false},
		{"00-" + trace[:31] + "-" + parent + "-01", false},
		{"00-" + trace[:30] + "é-" + parent + "-01", false},
		{"00-" + trace + "-" + parent + "-0x", false},
		{"0x-" + trace + "-" + parent + "-01", false},
	} {
		c, ok := Parse(tt.text)
		if ok != tt.ok || ok && c != (Context{trace, parent, "01"}) || !ok && c != (Context{}) {
			t.Errorf("%q is %+v, %v", tt.text, c, ok)
		}
		if clean := Clean(tt.text); ok && clean != tt.text[:len(good)] || !ok && clean != "" {
			t.Errorf("%q is %q", tt.text, clean)
		}
	}
}

func TestSampled(t *testing.T) {
	for flags, want := range map[string]bool{"00": false, "01": true, "02": false, "03": true, "10": false, "ff": true} {
		c, ok := Parse(good[:53] + flags)
		if !ok || c.Sampled() != want {
			t.Errorf("the flags %s are sampled: %v", flags, c.Sampled())
		}
	}
	if (Context{}).Sampled() {
		t.Error("none is sampled")
	}
}
