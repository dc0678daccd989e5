package engine_test

import (
	"reflect"
	"slices"
	"testing"

	"github.com/interlockdev/interlock/engine"
)

// unprinted are the fields of commands that no fingerprint has, by command and path. A repetition
// with another value is the same request.
var unprinted = []string{
	// fresh random bits of each try
	"Acquire.ID", "Convert.ID", "Arrive.ID", "Declare.ID", "OpenSession.ID", "ClaimEffect.ID", "Submit.Task.ID",
	"Ack.Tasks[].ID", "StartRun.ID", "Nack.Jitter",
	// how the caller waits, and what is only logged
	"Acquire.Attach", "Convert.Attach", "Arrive.Attach", "Declare.Attach", "Resume.Attach", "Submit.Attach",
	"StartRun.Attach", "StartRun.MaxWait", "Acquire.Trace",
	// no caller sets them
	"Declare.On.Request", "Declare.On.Task",
}

// TestFieldsChangeTheFingerprint sets each field of each repeatable command alone: a repetition
// under the same request id with another value is another request.
func TestFieldsChangeTheFingerprint(t *testing.T) {
	var seen []string
	for _, cmd := range engine.Repeatables {
		typ := reflect.TypeOf(cmd).Elem()
		whole := func(root reflect.Value) reflect.Value { return root }
		eachField(typ.Name(), typ, func(reflect.Value) {}, whole, func(path string, base, change func(reflect.Value)) {
			plain, changed := reflect.New(typ), reflect.New(typ)
			base(plain.Elem())
			base(changed.Elem())
			change(changed.Elem())
			same := engine.Fingerprint(plain.Interface().(engine.Command)) ==
				engine.Fingerprint(changed.Interface().(engine.Command))
			if same {
				seen = append(seen, path)
			}
			if same && !slices.Contains(unprinted, path) {
				t.Errorf("%s is in no fingerprint: print it, or list it", path)
			}
		})
	}
	for _, path := range unprinted {
		if !slices.Contains(seen, path) {
			t.Errorf("%s is listed, and is in the fingerprint or no field", path)
		}
	}
}

// eachField calls visit for each exported field below get(root). base makes what the field is in.
func eachField(
	path string, typ reflect.Type, base func(root reflect.Value), get func(root reflect.Value) reflect.Value,
	visit func(path string, base, change func(root reflect.Value)),
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
			eachField(name, f.Type, base, func(root reflect.Value) reflect.Value { return get(root).Field(i) }, visit)
		}
	case reflect.Pointer:
		one := func(v reflect.Value) { v.Set(reflect.New(typ.Elem())) }
		visit(path, base, set(one))
		inner := func(root reflect.Value) reflect.Value { return get(root).Elem() }
		eachField(path, typ.Elem(), within(one), inner, visit)
	case reflect.Slice:
		one := func(v reflect.Value) { v.Set(reflect.MakeSlice(typ, 1, 1)) }
		if typ.Elem().Kind() == reflect.Uint8 {
			visit(path, base, set(func(v reflect.Value) { v.SetBytes([]byte("1")) }))
			return
		}
		visit(path, base, set(one))
		inner := func(root reflect.Value) reflect.Value { return get(root).Index(0) }
		eachField(path+"[]", typ.Elem(), within(one), inner, visit)
	case reflect.Array:
		visit(path, base, set(func(v reflect.Value) { v.Index(0).SetUint(1) }))
	case reflect.String:
		visit(path, base, set(func(v reflect.Value) { v.SetString("x") }))
	case reflect.Bool:
		visit(path, base, set(func(v reflect.Value) { v.SetBool(true) }))
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		visit(path, base, set(func(v reflect.Value) { v.SetInt(1) }))
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		visit(path, base, set(func(v reflect.Value) { v.SetUint(3) }))
	default:
		panic("no value is known for " + path)
	}
}
