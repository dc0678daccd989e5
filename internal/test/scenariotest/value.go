package scenariotest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// decode reads JSON into a struct that has a field for every member.
func decode(text []byte, to any) error {
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	return d.Decode(to)
}

// results are those that steps have kept, by their names: each an object, with the lease in lease.
type results map[string]map[string]any

// resolve replaces the references in a value.
func (r results) resolve(v any) (any, error) {
	switch v := v.(type) {
	case string:
		if !strings.HasPrefix(v, "$") {
			return v, nil
		}
		name, member, _ := strings.Cut(v[1:], ".")
		kept, ok := r[name]
		if member == "" {
			member = "lease"
		}
		if !ok || kept[member] == nil {
			return nil, fmt.Errorf("there is no result %s", v)
		}
		return kept[member], nil
	case []any:
		list := make([]any, len(v))
		for i := range v {
			var err error
			if list[i], err = r.resolve(v[i]); err != nil {
				return nil, err
			}
		}
		return list, nil
	case map[string]any:
		object := map[string]any{}
		for name := range v {
			var err error
			if object[name], err = r.resolve(v[name]); err != nil {
				return nil, err
			}
		}
		return object, nil
	}
	return v, nil
}

// match compares a value with what is expected, and returns the first difference.
func match(where string, want, got any) error {
	switch want := want.(type) {
	case map[string]any:
		if least, ok := want["above"]; ok {
			low, err := number(least)
			if high, no := number(got); err != nil || no != nil || high <= low {
				return fmt.Errorf("%s is %v, and should be above %v", where, got, least)
			}
			return nil
		}
		object, ok := got.(map[string]any)
		if !ok {
			return fmt.Errorf("%s is %v, want an object", where, got)
		}
		for _, name := range slices.Sorted(maps.Keys(want)) {
			if err := match(where+"."+name, want[name], object[name]); err != nil {
				return err
			}
		}
		return nil
	case []any:
		list, ok := got.([]any)
		if !ok || len(list) != len(want) {
			return fmt.Errorf("%s is %v, want %d entries", where, got, len(want))
		}
		for i := range want {
			if err := match(fmt.Sprintf("%s[%d]", where, i), want[i], list[i]); err != nil {
				return err
			}
		}
		return nil
	case string:
		pattern := "(?s)^" + strings.ReplaceAll(regexp.QuoteMeta(want), `\*`, ".*") + "$"
		if text, ok := got.(string); !ok || !regexp.MustCompile(pattern).MatchString(text) {
			return fmt.Errorf("%s is %v, want %q", where, got, want)
		}
		return nil
	}
	if want != got {
		return fmt.Errorf("%s is %v, want %v", where, got, want)
	}
	return nil
}

func number(v any) (float64, error) { return strconv.ParseFloat(fmt.Sprint(v), 64) }
