package proto

import (
	"reflect"
	"testing"

	"github.com/interlockdev/interlock"
)

// A new field of interlock.Terms must reach the stream.
func TestTermsReachTheStream(t *testing.T) {
	for i := range reflect.TypeFor[interlock.Terms]().NumField() {
		o := Op{Kind: OpAcquire}
		name := reflect.TypeOf(o.Terms).Field(i).Name
		switch field := reflect.ValueOf(&o.Terms).Elem().Field(i); field.Kind() {
		case reflect.Int64:
			field.SetInt(2e9)
		case reflect.Uint8:
			field.SetUint(1)
		case reflect.String:
			field.SetString("batch")
		default:
			t.Fatalf("interlock.Terms.%s is of a kind that this test does not know: teach it", name)
		}
		var frame ClientFrame
		if err := frame.Decode((&ClientFrame{Ops: []Op{o}}).AppendTo(nil)); err != nil {
			t.Fatal(err)
		}
		if got := frame.Ops[0].Terms; got != o.Terms {
			t.Errorf("%s: sent %+v, received %+v", name, o.Terms, got)
		}
	}
}
