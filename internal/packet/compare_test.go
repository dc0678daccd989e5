package packet

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
)

func TestJSONPatch(t *testing.T) {
	tests := []struct{ name, then, now, want string }{
		{"same", `{"a":1}`, ` { "a" : 1 } `, `[]`},
		{"member", `{"a":1,"b":2}`, `{"a":1,"b":3}`, `[{"op":"replace","path":"/b","value":3}]`},
		{
			"added and removed", `{"a":1,"bb":[1,2,3]}`, `{"bb":[1,2,3],"c":null}`,
			`[{"op":"remove","path":"/a"},{"op":"add","path":"/c","value":null}]`,
		},
		{
			"names are escaped", `{"a/b":1,"m~n":[1,1,1,1,1,1],"\"":0}`, `{"a/b":2,"m~n":[1,1,1,1,1,2],"\"":1}`,
			`[{"op":"replace","path":"/\"","value":1},{"op":"replace","path":"/a~1b","value":2},{"op":"replace","path":"/m~0n/5","value":2}]`,
		},
		{
			"in front", `["one","two","three","four","five","six","seven"]`,
			`["zero","one","two","three","four","five","six","seven"]`, `[{"op":"add","path":"/0","value":"zero"}]`,
		},
		{
			"in the middle", `["one","two","three","four","five","six","seven"]`, `["one","two","four","five","six","seven"]`,
			`[{"op":"remove","path":"/2"}]`,
		},
		{
			"shorter to say anew", `{"a":{"b":1,"c":2,"d":3}}`, `{"a":{"e":1}}`,
			`[{"op":"replace","path":"/a","value":{"e":1}}]`,
		},
		{"large numbers", `9007199254740993`, `9007199254740992`, `[{"op":"replace","path":"","value":9007199254740992}]`},
		{"of another kind", `{"a":[]}`, `[]`, `[{"op":"replace","path":"","value":[]}]`},
		{"the last of two counts", `{"a":1,"a":2}`, `{"a":2}`, `[]`},
		{
			"not what looks like it", `{"a":"1","b":"true","c":"null"}`, `{"a":1,"b":true,"c":null}`,
			`[{"op":"replace","path":"","value":{"a":1,"b":true,"c":null}}]`,
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			patch, isCut, ok := jsonPatch([]byte(tt.then), []byte(tt.now), false, false, MaxDiffBytes)
			if string(patch) != tt.want || isCut || !ok {
				t.Errorf("got %s, cut %t, ok %t\nwant %s", patch, isCut, ok, tt.want)
			}
		})
	}
	for _, bad := range []string{
		"", "{", `{"a":1} 2`, `"\ud800"`, `{"\ud800":1}`, "\"\xff\"",
		strings.Repeat("[", maxDepth+2) + strings.Repeat("]", maxDepth+2),
	} {
		if patch, _, ok := jsonPatch([]byte("1"), []byte(bad), false, false, MaxDiffBytes); ok {
			t.Errorf("%.30q can be read, and the patch is %s", bad, patch)
		}
	}
}

// A patch makes now of then; and what is left of one that is cut can be applied, too.
func TestJSONPatchApplies(t *testing.T) {
	for seed := range uint64(4000) {
		r := rand.New(rand.NewPCG(seed, 1))
		then := randomJSON(r, 4)
		now := mutate(r, then)
		a, b := mustJSON(t, then), mustJSON(t, now)
		patch, isCut, ok := jsonPatch(a, b, false, false, 1<<20)
		if !ok || isCut {
			t.Fatalf("seed %d: ok %t, cut %t", seed, ok, isCut)
		}
		got, err := apply(decode(t, a), patch)
		if err != nil {
			t.Fatalf("seed %d: %v\nthen %s\nnow %s\npatch %s", seed, err, a, b, patch)
		}
		if !reflect.DeepEqual(got, decode(t, b)) {
			t.Fatalf("seed %d: the patch makes %s\nthen %s\nnow %s\npatch %s", seed, mustJSON(t, got), a, b, patch)
		}
		if anew := len(b) + len(`[{"op":"replace","path":"","value":}]`); len(patch) > 2*anew {
			t.Errorf("seed %d: a patch of %d bytes, where saying the new value takes %d", seed, len(patch), anew)
		}
		limit := 2 + r.IntN(len(patch)+1)
		part, isCut, _ := jsonPatch(a, b, false, false, limit)
		if len(part) > limit {
			t.Errorf("seed %d: %d bytes, limit %d", seed, len(part), limit)
		}
		if got, err := apply(decode(t, a), part); err != nil {
			t.Errorf("seed %d: the part %s: %v", seed, part, err)
		} else if !isCut && !reflect.DeepEqual(got, decode(t, b)) {
			t.Errorf("seed %d: the part %s is not said to be cut", seed, part)
		}
	}
}

func randomJSON(r *rand.Rand, depth int) any {
	n := r.IntN(8)
	if depth == 0 {
		n = r.IntN(5)
	}
	switch n {
	case 0:
		return nil
	case 1:
		return r.IntN(2) == 0
	case 2, 3:
		return json.Number(strconv.Itoa(r.IntN(5)))
	case 4:
		return strings.Repeat(string(rune('a'+r.IntN(3))), r.IntN(30))
	case 5, 6:
		list := make([]any, r.IntN(8))
		for i := range list {
			list[i] = randomJSON(r, depth-1)
		}
		return list
	default:
		m := map[string]any{}
		for range r.IntN(6) {
			m[[]string{"", "a", "b/c", "d~e", "0", "-", "\"", "long name"}[r.IntN(8)]] = randomJSON(r, depth-1)
		}
		return m
	}
}

func mutate(r *rand.Rand, v any) any {
	if r.IntN(8) == 0 {
		return randomJSON(r, 2)
	}
	switch v := v.(type) {
	case []any:
		list := []any{}
		for _, e := range v {
			switch r.IntN(6) {
			case 0:
			case 1:
				list = append(list, randomJSON(r, 1), e)
			case 2:
				list = append(list, mutate(r, e))
			default:
				list = append(list, e)
			}
		}
		return list
	case map[string]any:
		m := map[string]any{}
		for k, e := range v {
			if r.IntN(4) > 0 {
				m[k] = mutate(r, e)
			}
		}
		return m
	}
	return v
}

func mustJSON(t *testing.T, v any) []byte {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func decode(t *testing.T, b []byte) (v any) {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	if err := d.Decode(&v); err != nil {
		t.Fatalf("%v: %s", err, b)
	}
	return v
}

// apply does what RFC 6902 specifies, and nothing that jsonPatch does not write.
func apply(doc any, patch []byte) (any, error) {
	var ops []struct {
		Op, Path string
		Value    json.RawMessage
	}
	if err := json.Unmarshal(patch, &ops); err != nil {
		return nil, err
	}
	for _, op := range ops {
		var value any
		if op.Op != "remove" {
			d := json.NewDecoder(bytes.NewReader(op.Value))
			d.UseNumber()
			if err := d.Decode(&value); err != nil {
				return nil, err
			}
		}
		var path []string
		for _, name := range strings.Split(op.Path, "/")[1:] {
			path = append(path, strings.NewReplacer("~1", "/", "~0", "~").Replace(name))
		}
		var err error
		if doc, err = applyOp(doc, op.Op, path, value); err != nil {
			return nil, fmt.Errorf("%s %s: %w", op.Op, op.Path, err)
		}
	}
	return doc, nil
}

func applyOp(doc any, op string, path []string, value any) (any, error) {
	if len(path) == 0 {
		if op == "remove" {
			return nil, errors.New("removes the root")
		}
		return value, nil
	}
	switch v := doc.(type) {
	case map[string]any:
		old, there := v[path[0]]
		switch {
		case len(path) > 1:
			inner, err := applyOp(old, op, path[1:], value)
			v[path[0]] = inner
			return v, err
		case op != "add" && !there:
			return nil, errors.New("no such member")
		case op == "remove":
			delete(v, path[0])
		default:
			v[path[0]] = value
		}
		return v, nil
	case []any:
		i, err := strconv.Atoi(path[0])
		if err != nil || i < 0 || i > len(v) || i == len(v) && (op != "add" || len(path) > 1) {
			return nil, fmt.Errorf("no element %s of %d", path[0], len(v))
		}
		switch {
		case len(path) > 1:
			v[i], err = applyOp(v[i], op, path[1:], value)
			return v, err
		case op == "add":
			return slices.Insert(v, i, value), nil
		case op == "remove":
			return slices.Delete(v, i, i+1), nil
		}
		v[i] = value
		return v, nil
	}
	return nil, errors.New("not a container")
}

// A unified diff makes now of then, and its counts are right.
func TestUnifiedApplies(t *testing.T) {
	for seed := range uint64(2000) {
		r := rand.New(rand.NewPCG(seed, 2))
		// Few different lines give many ways to go; many lines reach the limit of the
		// search.
		words := 2 + r.IntN(20)
		lines := func(n int) (list []string) {
			for range n {
				list = append(list, fmt.Sprintf("line %d\n", r.IntN(words)))
			}
			return list
		}
		a := lines(r.IntN(400))
		b := slices.Clone(a)
		for range r.IntN(1 + len(b)) {
			i := r.IntN(len(b))
			b = slices.Replace(b, i, min(len(b), i+r.IntN(3)), lines(r.IntN(3))...)
			if len(b) == 0 {
				break
			}
		}
		if r.IntN(4) == 0 {
			b = lines(r.IntN(400))
		}
		then, now := strings.Join(a, ""), strings.Join(b, "")
		if r.IntN(3) == 0 {
			then = strings.TrimSuffix(then, "\n")
		}
		if r.IntN(3) == 0 {
			now = strings.TrimSuffix(now, "\n")
		}
		text, isCut := unified("a", "b", then, now, 1<<20)
		if got := patched(t, then, text); got != now || isCut {
			t.Fatalf("seed %d: cut %t, the diff makes\n%q of\n%q, not\n%q:\n%s", seed, isCut, got, then, now, text)
		}
		limit := r.IntN(len(text) + 1)
		part, isCut := unified("a", "b", then, now, limit)
		if !strings.HasPrefix(text, part) || len(part) > limit || isCut != (len(part) < len(text)) {
			t.Errorf("seed %d: with limit %d it is %q, cut %t", seed, limit, part, isCut)
		}
	}
}

// patched applies a unified diff.
func patched(t *testing.T, then, diff string) string {
	t.Helper()
	if diff == "" {
		return then
	}
	lines := strings.SplitAfter(then, "\n")
	var out strings.Builder
	at := 0
	rows := strings.SplitAfter(diff, "\n")[2:]
	for i, row := range rows {
		noEnd := i+1 < len(rows) && strings.HasPrefix(rows[i+1], `\ No newline`)
		if noEnd {
			row = strings.TrimSuffix(row, "\n")
		}
		switch {
		case row == "", row[0] == '\\':
		case row[0] == '@':
			from, _, _ := strings.Cut(row[len("@@ -"):], " ")
			from, count, _ := strings.Cut(from, ",")
			n, err := strconv.Atoi(from)
			if err != nil {
				t.Fatal(err)
			}
			if count != "0" {
				n--
			}
			for ; at < n; at++ {
				out.WriteString(lines[at])
			}
		case row[0] == '+':
			out.WriteString(row[1:])
		default:
			if at >= len(lines) || lines[at] != row[1:] {
				t.Fatalf("line %d is not %q in\n%s", at+1, row[1:], diff)
			}
			if row[0] == ' ' {
				out.WriteString(lines[at])
			}
			at++
		}
	}
	for ; at < len(lines); at++ {
		out.WriteString(lines[at])
	}
	return out.String()
}

func numbers(n int, format string) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, format, i)
	}
	return b.String()
}

func FuzzJSONPatch(f *testing.F) {
	f.Add([]byte(`{"a":[1,2]}`), []byte(`{"a":[2,1],"b":{}}`), 100)
	f.Fuzz(func(t *testing.T, then, now []byte, limit int) {
		limit = max(2, min(limit, MaxDiffBytes))
		patch, isCut, ok := jsonPatch(then, now, false, false, limit)
		if !ok {
			return
		}
		if len(patch) > limit {
			t.Errorf("%d bytes, limit %d", len(patch), limit)
		}
		got, err := apply(decode(t, then), patch)
		if err != nil {
			t.Fatalf("%v: %s", err, patch)
		}
		if !isCut && !reflect.DeepEqual(got, decode(t, now)) {
			t.Errorf("%s makes %v of %s, not %s", patch, got, then, now)
		}
	})
}

func FuzzUnified(f *testing.F) {
	f.Add("a\nb\n", "a\nc")
	f.Fuzz(func(t *testing.T, then, now string) {
		text, _ := unified("a", "b", then, now, 1<<20)
		if got := patched(t, then, text); got != now {
			t.Errorf("the diff makes %q of %q, not %q:\n%s", got, then, now, text)
		}
	})
}
