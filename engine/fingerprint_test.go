package engine_test

import (
	"cmp"
	"reflect"
	"slices"
	"testing"

	"github.com/interlockdev/interlock/engine"
)

// unprinted are the fields of package interlock in commands that no fingerprint has, by command and
// path. Those of commands have the tag -. A repetition with another value is the same request.
var unprinted = []string{"Acquire.Trace", "Submit.Task.Trace", "Ack.Tasks[].Trace"}

// TestFieldsChangeTheFingerprint sets each field of each repeatable command alone: a repetition
// under the same request id with another value is another request, unless the tag leaves it out.
func TestFieldsChangeTheFingerprint(t *testing.T) {
	for _, cmd := range engine.Repeatables {
		typ := reflect.TypeOf(cmd).Elem()
		whole := func(root reflect.Value) reflect.Value { return root }
		nothing := func(reflect.Value) {}
		eachField(typ.Name(), "", typ, nothing, whole, func(path, tag string, base, change func(reflect.Value)) {
			plain, changed := reflect.New(typ), reflect.New(typ)
			base(plain.Elem())
			base(changed.Elem())
			change(changed.Elem())
			same := engine.Fingerprint(plain.Interface().(engine.Command)) ==
				engine.Fingerprint(changed.Interface().(engine.Command))
			if left := tag == "-" || slices.Contains(unprinted, path); same != left {
				t.Errorf("%s is left out of the fingerprint: %v, want %v", path, same, left)
			}
		})
	}
}

// eachField calls visit for each exported field below get(root), with the tag of the nearest field
// that has one. base makes what the field is in.
func eachField(
	path, tag string, typ reflect.Type, base func(root reflect.Value), get func(root reflect.Value) reflect.Value,
	visit func(path, tag string, base, change func(root reflect.Value)),
) {
	set := func(value func(v reflect.Value)) func(reflect.Value) {
		return func(root reflect.Value) { value(get(root)) }
	}
	within := func(value func(v reflect.Value)) func(reflect.Value) {
		return func(root reflect.Value) {
			base(root)
			value(get(root))
		}
	}
	switch typ.Kind() {
	case reflect.Struct:
		for i := range typ.NumField() {
			f := typ.Field(i)
			if f.Name == "Head" || !f.IsExported() {
				continue
			}
			name := path + "." + f.Name
			if f.Anonymous {
				name = path
			}
			inner := func(root reflect.Value) reflect.Value { return get(root).Field(i) }
			eachField(name, cmp.Or(f.Tag.Get("fingerprint"), tag), f.Type, base, inner, visit)
		}
	case reflect.Pointer:
		one := func(v reflect.Value) { v.Set(reflect.New(typ.Elem())) }
		visit(path+"*", tag, base, set(one)) // zero, but not nil
		inner := func(root reflect.Value) reflect.Value { return get(root).Elem() }
		eachField(path, tag, typ.Elem(), within(one), inner, visit)
	case reflect.Slice:
		one := func(v reflect.Value) { v.Set(reflect.MakeSlice(typ, 1, 1)) }
		if typ.Elem().Kind() == reflect.Uint8 {
			visit(path, tag, base, set(func(v reflect.Value) { v.SetBytes([]byte("1")) }))
			return
		}
		visit(path, tag, base, set(one))
		inner := func(root reflect.Value) reflect.Value { return get(root).Index(0) }
		eachField(path+"[]", tag, typ.Elem(), within(one), inner, visit)
	case reflect.Array:
		visit(path, tag, base, set(func(v reflect.Value) { v.Index(0).SetUint(1) }))
	case reflect.String:
		visit(path, tag, base, set(func(v reflect.Value) { v.SetString("x") }))
	case reflect.Bool:
		visit(path, tag, base, set(func(v reflect.Value) { v.SetBool(true) }))
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		visit(path, tag, base, set(func(v reflect.Value) { v.SetInt(1) }))
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		visit(path, tag, base, set(func(v reflect.Value) { v.SetUint(3) }))
	default:
		panic("no value is known for " + path)
	}
}
