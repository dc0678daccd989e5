package otlp

import (
	"maps"
	"strings"
	"testing"
)

func TestParseEndpoint(t *testing.T) {
	for _, tt := range []struct{ text, want string }{
		{"http://127.0.0.1:4318", "http://127.0.0.1:4318/v1/metrics"},
		{"https://collector/", "https://collector/v1/metrics"},
		{"https://collector/otlp?tenant=a", "https://collector/otlp?tenant=a"},
		{"collector:4318", ""},
		{"grpc://collector:4317", ""},
		{"http://", ""},
		{"http://a:b@collector", ""},
		{"http://collector/#x", ""},
		{"", ""},
		{"http://%zz", ""},
	} {
		if got, err := ParseEndpoint(tt.text, MetricsPath); got != tt.want || (err == nil) != (tt.want != "") {
			t.Errorf("%q is %q, %v; want %q", tt.text, got, err, tt.want)
		}
	}
}

func TestParseHeaders(t *testing.T) {
	got, err := ParseHeaders("api-key=a%3Db%2C, Authorization = Bearer%20x ,,empty=")
	if err != nil || len(got) != 3 || got.Get("Api-Key") != "a=b," || got.Get("Authorization") != "Bearer x" ||
		got.Get("Empty") != "" {
		t.Errorf("%v, %v", got, err)
	}
	for _, bad := range []string{"secret", "=secret", "a b=secret", "a:=secret", "a=secret%", "a=secret%0d%0aX: y"} {
		_, err := ParseHeaders(bad)
		if err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

func TestParseResource(t *testing.T) {
	got, err := ParseResource("service.name=locks,region=eu%2Dwest")
	if want := map[string]string{"service.name": "locks", "region": "eu-west"}; err != nil || !maps.Equal(got, want) {
		t.Errorf("%v, %v", got, err)
	}
}
