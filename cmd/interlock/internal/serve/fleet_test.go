package serve

import (
	"slices"
	"testing"
)

// Calls that are forwarded to the advertised name are not refused as those of a foreign host, and no name is checked
// only because one is advertised.
func TestAdvertisedNameIsOurs(t *testing.T) {
	for _, tt := range []struct {
		cfg  serveConfig
		want []string
	}{
		{serveConfig{Credentials: "c"}, nil},
		{serveConfig{Credentials: "c", AdvertiseHTTP: "https://il-1.internal:7420"}, nil},
		{
			serveConfig{Credentials: "c", Hosts: []string{"il.example.com"}, AdvertiseHTTP: "https://il-1.internal:7420"},
			[]string{"il.example.com", "il-1.internal:7420"},
		},
		{serveConfig{AdvertiseHTTP: "http://il-1.internal:7420"}, []string{"il-1.internal:7420"}},
	} {
		if got := tt.cfg.hosts(); !slices.Equal(got, tt.want) {
			t.Errorf("%+v: hosts %q, want %q", tt.cfg, got, tt.want)
		}
	}
}
