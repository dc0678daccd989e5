package store

import (
	"fmt"
	"os"
	"reflect"
	"testing"

	"github.com/interlockdev/interlock/engine/record"
)

// TestMain finds out whether anything wrote to what those share that have nothing of
// their own: it would be said of all of them, in every engine.
func TestMain(m *testing.M) {
	code := m.Run()
	for _, shared := range []any{*NoTrail, *record.NoExtras, *noExt, *noFeature, *noIndex, *noTerms, *NoDetails} {
		if !reflect.ValueOf(shared).IsZero() {
			fmt.Printf("a shared %T is not empty: %+v\n", shared, shared)
			code = 1
		}
	}
	os.Exit(code)
}
