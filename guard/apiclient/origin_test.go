package apiclient

import (
	"net/http/httptest"
	"testing"
)

func TestForeign(t *testing.T) {
	names := map[string]bool{"guard.internal": true, "other:8080": true}
	for _, tt := range []struct {
		host, header, value string
		foreign             bool
	}{
		{"127.0.0.1:7430", "", "", false},
		{"[::1]:7430", "", "", false},
		{"::1", "", "", false},
		{"localhost", "", "", false},
		{"LOCALHOST:7430", "", "", false},
		{"10.1.2.3", "", "", false},
		{"guard.internal", "", "", false},
		{"Guard.Internal:1", "", "", false},
		{"other:8080", "", "", false},
		{"other:8081", "", "", true},
		{"evil.example", "", "", true},
		{"127.0.0.1.evil.example", "", "", true},
		{"", "", "", true},
		{"127.0.0.1", "Origin", "null", true},
		{"127.0.0.1", "Sec-Fetch-Site", "cross-site", true},
		{"127.0.0.1", "Sec-Fetch-Site", "same-site", true},
		{"127.0.0.1", "Sec-Fetch-Site", "none", false},
	} {
		r := httptest.NewRequest("GET", "/", nil)
		r.Host = tt.host
		if tt.header != "" {
			r.Header.Set(tt.header, tt.value)
		}
		if got := Foreign(r, names); got != tt.foreign {
			t.Errorf("%+v: %v", tt, got)
		}
	}
}
