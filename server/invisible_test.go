package server

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode"
)

// hiddenTables are the characters that a reader cannot see, by the tables of Unicode: those
// that control, format and separate, those for private use, and those to ignore by default.
var hiddenTables = []*unicode.RangeTable{
	unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp, unicode.Co, unicode.Variation_Selector,
	unicode.Other_Default_Ignorable_Code_Point,
}

// hiddenRunes returns them and the blank Braille pattern; of the long ranges for private use and
// of unassigned tags it returns the first and the last. It does not ask the predicate under test.
func hiddenRunes() (list []rune) {
	for r := range rune(unicode.MaxRune + 1) {
		is := func(r rune) bool { return r == '\u2800' || r != '\ufe0f' && unicode.In(r, hiddenTables...) }
		if long := unicode.Is(unicode.Co, r) || r > 0xe01ef; is(r) && !(long && is(r-1) && is(r+1)) {
			list = append(list, r)
		}
	}
	return list
}

// hasHidden returns a string in a decoded answer that has a character of the list, or "".
func hasHidden(v any, hidden map[rune]bool) string {
	switch x := v.(type) {
	case string:
		if strings.ContainsFunc(x, func(r rune) bool { return hidden[r] && r != '\n' && r != '\t' }) {
			return x
		}
	case []any:
		for _, v := range x {
			if s := hasHidden(v, hidden); s != "" {
				return s
			}
		}
	case map[string]any:
		for k, v := range x {
			if s := hasHidden(k, hidden) + hasHidden(v, hidden); s != "" {
				return s
			}
		}
	}
	return ""
}

// No character that a reader cannot see passes from one agent to another in a name, a
// purpose, a note or a packet, and none stands in a key.
func TestInvisibleCharacters(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		d := newDoor(t)
		list := hiddenRunes()
		hidden := map[rune]bool{}
		for _, r := range list {
			hidden[r] = true
		}
		if !hidden['\u200b'] || !hidden['\u202e'] || !hidden['\u3164'] || !hidden['\u034f'] || !hidden['\ufe00'] ||
			!hidden['\U000e0101'] {
			t.Fatal("the list lacks characters")
		}
		check := func(r *reply) *reply {
			t.Helper()
			if s := hasHidden(r.want(200).body, hidden); s != "" {
				t.Errorf("%s: the answer shows %q", r.what, s)
			}
			return r
		}
		n := 0
		for chunk := range slices.Chunk(list, 25) {
			n++
			var text strings.Builder
			for _, r := range chunk {
				text.WriteString("a" + string(r))
			}
			quoted, err := json.Marshal(text.String())
			if err != nil {
				t.Fatal(err)
			}
			key := fmt.Sprintf("doc:%d", n)
			held := check(d.post(
				"/v1/leases", fmt.Sprintf(`{"agent":%s,"purpose":%s,"claims":[{"key":%q}]}`, quoted, quoted, key),
			))
			check(d.get("/v1/why?key=" + key))
			lease := held.str("lease.id")
			d.post(
				"/v1/commits", fmt.Sprintf(`{"leases":[%q],"writes":[{"key":%q,"put":{"n":1}}],"note":%s}`, lease, key, quoted),
			).want(200)
			d.post("/v1/leases/"+lease+"/release", fmt.Sprintf(`{"outcome":"done","note":%s}`, quoted)).want(200)
			next := check(d.post("/v1/leases", fmt.Sprintf(`{"agent":"bob","claims":[{"key":%q}]}`, key)))
			if note := next.str("notes.0.text"); strings.Count(note, "a") != len(chunk) {
				t.Errorf("of the note %q is left", note)
			}
			d.post("/v1/leases/"+next.str("lease.id")+"/release", `{}`).want(200)
			late := d.put("/v1/state/"+key, `{"n":2}`, "If-None-Match", "*").want(412, "stale").says("packet.message", "a")
			if s := hasHidden(late.body, hidden); s != "" {
				t.Errorf("the packet shows %q", s)
			}
		}
		for _, r := range append(list, '\ufe0f') {
			quoted, err := json.Marshal("k:a" + string(r) + "b")
			if err != nil {
				t.Fatal(err)
			}
			d.post("/v1/leases", fmt.Sprintf(`{"agent":"eve","claims":[{"key":%s}]}`, quoted)).want(400, "invalid_key")
		}
	})
}
