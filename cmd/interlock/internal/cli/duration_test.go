package cli

import (
	"testing"
	"time"
)

func TestParseDuration(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"0": 0, "0s": 0, "30s": 30 * time.Second, "1.5h": 90 * time.Minute, "7d": 7 * 24 * time.Hour, "0d": 0,
		"1d12h": 36 * time.Hour, "2d30m5s": 48*time.Hour + 30*time.Minute + 5*time.Second,
	} {
		if got, err := ParseDuration(text); err != nil || got != want {
			t.Errorf("%q: got %v, %v, want %v", text, got, err, want)
		}
	}
	for text, want := range map[string]error{
		"": errNoDuration, "5": errNoUnit, "1.5": errNoUnit, "1d5": errNoUnit, "soon": errNoDuration, "d": errNoDuration,
		"-5s": errNoDuration, "-1d": errNoDuration, "1h2d": errNoDuration, "1dd": errNoDuration, "99999d": errNoDuration,
		"1.5d": errNoDuration, "1d-5s": errNoDuration,
	} {
		if got, err := ParseDuration(text); err != want {
			t.Errorf("%q: got %v, %v, want %v", text, got, err, want)
		}
	}
}

func TestSpan(t *testing.T) {
	for want, d := range map[string]time.Duration{
		"0": 0, "250ms": 250 * time.Millisecond, "30s": 30 * time.Second, "5m": 5 * time.Minute, "10h": 10 * time.Hour,
		"1m30s": 90 * time.Second, "90d": 90 * 24 * time.Hour, "1d12h": 36 * time.Hour, "1h0m1s": time.Hour + time.Second,
	} {
		if got := Span(d); got != want {
			t.Errorf("%v is %q, want %q", d, got, want)
		}
		if back, err := ParseDuration(want); err != nil || back != d {
			t.Errorf("%q is read as %v, %v, want %v", want, back, err, d)
		}
	}
}
