package mcp

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/interlockdev/interlock/internal/api"
)

// misuse is an error in the arguments of a call: one full sentence.
type misuse string

func (m misuse) Error() string { return string(m) }

func misusef(format string, args ...any) error { return misuse(fmt.Sprintf(format, args...)) }

// read reads the arguments of a call into a struct.
func (v *visit) read(into any) error {
	raw := v.arguments
	if len(raw) == 0 || string(raw) == "null" {
		raw = json.RawMessage("{}")
	}
	var members map[string]json.RawMessage
	if json.Unmarshal(raw, &members) == nil {
		known := fieldsOf(reflect.TypeOf(into).Elem())
		for name := range members { // the decoder would also take names in other cases
			if !slices.Contains(known, name) {
				return misusef("%s has no argument %q: it takes %s.", v.tool, clip(name, 24), strings.Join(known, ", "))
			}
		}
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	err := d.Decode(into)
	if err == nil {
		return nil
	}
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		if wrong.Field == "" {
			return misusef("The arguments of %s must be an object, not %s.", v.tool, article(wrong.Value))
		}
		return misusef(
			"The argument %s of %s must be %s, not %s.", wrong.Field, v.tool, kindOf(wrong.Type), article(wrong.Value),
		)
	}
	if name, unknown := strings.CutPrefix(err.Error(), "json: unknown field "); unknown {
		return misusef(
			"%s has no argument %s: it takes %s.", v.tool, clip(name, 24),
			strings.Join(fieldsOf(reflect.TypeOf(into).Elem()), ", "),
		)
	}
	if errors.Is(err, io.ErrUnexpectedEOF) {
		return misusef("The arguments of %s are no complete JSON object.", v.tool)
	}
	return misusef("The arguments of %s are not valid: %s.", v.tool, clip(strings.TrimPrefix(err.Error(), "json: "), 40))
}

func article(value string) string {
	value, _, _ = strings.Cut(value, " ") // a number comes with its digits
	switch {
	case value == "bool":
		return "a boolean"
	case strings.ContainsAny(value[:1], "aeiou"):
		return "an " + value
	}
	return "a " + value
}

func kindOf(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Pointer:
		return kindOf(t.Elem())
	case reflect.String:
		return "a string"
	case reflect.Bool:
		return "a boolean"
	case reflect.Slice:
		return "an array"
	case reflect.Struct, reflect.Map:
		return "an object"
	}
	return "a whole number within its range"
}

func fieldsOf(t reflect.Type) (names []string) {
	for i := range t.NumField() {
		name, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ",")
		names = append(names, name)
	}
	return names
}

// required is the error of an argument that is missing.
func (v *visit) required(name, what string) error {
	return misusef("%s needs the argument %s: %s.", v.tool, name, what)
}

// waitFor returns how long a call may wait: by its argument or by default, and never beyond what
// is left of the call.
func (v *visit) waitFor(seconds *int, standard time.Duration) (time.Duration, error) {
	d := standard
	if seconds != nil {
		if *seconds < 0 {
			return 0, misusef("The argument wait_s of %s cannot be negative: it is 0 to 50 seconds.", v.tool)
		}
		d = time.Duration(min(*seconds, int(maxCall/time.Second))) * time.Second
	}
	return min(d, maxWait), nil
}

// oneOf checks an argument with few values.
func (v *visit) oneOf(name, value string, values ...string) error {
	if slices.Contains(values, value) {
		return nil
	}
	return misusef(
		"The argument %s of %s is %q: it must be one of %s.", name, v.tool, clip(value, 16), strings.Join(values, ", "),
	)
}

// isTicket and isTask tell the two kinds of tickets apart.
func isTicket(id string) bool { return strings.HasPrefix(id, "t_") }
func isTask(id string) bool   { return strings.HasPrefix(id, "q_") }

func claimsOf(keys []string, mode string, permits uint32) (claims []api.ClaimRequest) {
	for _, key := range keys {
		claims = append(claims, api.ClaimRequest{Key: api.Key(key), Mode: mode, Count: api.Count{Permits: permits}})
	}
	return claims
}
