package loopback

import "testing"

func TestIs(t *testing.T) {
	for host, want := range map[string]bool{
		"127.0.0.1":             true,
		"127.255.255.254":       true,
		"::1":                   true,
		"[::1]":                 true,
		"0:0:0:0:0:0:0:1":       true,
		"::ffff:127.0.0.1":      true,
		"[::ffff:127.1.2.3]":    true,
		"::1%lo":                true,
		"localhost":             true,
		"LocalHost":             true,
		"localhost.":            true,
		"a.localhost":           false,
		"localhost.example.org": false,
		"localhost..":           false,
		".localhost":            false,
		"localhost:80":          false,
		"notlocalhost":          false,
		"ip6-localhost":         false,
		"0.0.0.0":               false,
		"::":                    false,
		"[::]":                  false,
		"128.0.0.1":             false,
		"126.255.255.255":       false,
		"::2":                   false,
		"::127.0.0.1":           false,
		"::ffff:128.0.0.1":      false,
		"fe80::1%lo":            false,
		"[127.0.0.1]":           false,
		"[::1":                  false,
		"::1]":                  false,
		"[]":                    false,
		"127.1":                 false,
		"2130706433":            false,
		"0x7f.0.0.1":            false,
		"127.0.0.01":            false,
		"127.0.0.1.":            false,
		" 127.0.0.1":            false,
		"127.0.0.1:80":          false,
		"127.0.0.1.nip.io":      false,
		"localtest.me":          false,
		"example.org":           false,
		"":                      false,
		".":                     false,
	} {
		if got := Is(host); got != want {
			t.Errorf("%q is loopback: %v, want %v", host, got, want)
		}
	}
}
