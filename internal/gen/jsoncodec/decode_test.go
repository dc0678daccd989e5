package jsoncodec

import "testing"

func TestLowerFirst(t *testing.T) {
	for name, want := range map[string]string{
		"TTL": "ttl", "AsOf": "asOf", "Key": "key", "ID": "id", "IDList": "idList", "X": "x",
	} {
		if got := lowerFirst(name); got != want {
			t.Errorf("%s becomes %s, want %s", name, got, want)
		}
	}
}
