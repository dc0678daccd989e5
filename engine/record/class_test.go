package record_test

import (
	"testing"

	"github.com/interlockdev/interlock/engine/record"
)

func TestClass(t *testing.T) {
	for key, want := range map[string]string{
		"account:12": "account:", "repo:web/a": "repo:", "src/a:b": "src", "plain": "",
	} {
		if got := record.Class(key); got != want {
			t.Errorf("the class of %q is %q, want %q", key, got, want)
		}
	}
}
