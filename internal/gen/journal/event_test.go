package journal

import (
	"go/types"
	"reflect"
	"strings"
	"testing"

	"github.com/interlockdev/interlock/internal/gen/source"
)

func TestReadRefuses(t *testing.T) {
	text, number := types.Typ[types.String], types.Typ[types.Uint64]
	f := func(name string, typ types.Type, tag string) source.Field {
		return source.Field{Name: name, Type: typ, Tag: reflect.StructTag(`journal:"` + tag + `"`)}
	}
	for want, fields := range map[string][]source.Field{
		"no field has bit 1":         {f("A", text, "0"), f("B", text, "2")},
		"begins with \"x\"":          {f("A", text, "x")},
		"have different types":       {f("A", text, "0"), f("B", number, "0,for=K")},
		"2 are for all other kinds":  {f("A", text, "0"), f("B", text, "0")},
		"0 are for all other kinds":  {f("A", text, "0,for=K"), f("B", text, "0,for=L")},
		"two fields of bit 0 are fo": {f("A", text, "0"), f("B", text, "0,for=K"), f("C", text, "0,for=K")},
	} {
		if _, err := read(&source.Struct{Name: "Event", Fields: fields}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	bits, err := read(&source.Struct{Name: "Event", Fields: []source.Field{
		f("A", text, "1,name"), f("B", text, "1,for=K|L"), {Name: "C", Type: text}, f("D", number, "0,fixed"),
	}})
	if err != nil || len(bits) != 2 || len(bits[1].fields) != 2 || bits[1].plain().name != "A" {
		t.Errorf("read %+v, %v", bits, err)
	}
}
