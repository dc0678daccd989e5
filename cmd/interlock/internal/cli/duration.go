package cli

import (
	"errors"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/interlockdev/interlock"
)

// day is the longest unit of a duration.
const day = 24 * time.Hour

var (
	errNoDuration = errors.New("want a duration such as 30s, 10m, 2h, 7d or 1d12h")
	errNoUnit     = errors.New("add a unit, such as 5s")
)

// ParseDuration reads a duration as all flags take it: that of package time, with days before it.
func ParseDuration(s string) (time.Duration, error) {
	rest, sum := s, time.Duration(0)
	if days, after, ok := strings.Cut(s, "d"); ok {
		n, err := strconv.ParseUint(days, 10, 16)
		if err != nil {
			return 0, errNoDuration
		}
		rest, sum = after, time.Duration(n)*day
	}
	if rest == "" && s != "" {
		return sum, nil
	}
	d, err := time.ParseDuration(rest)
	if _, number := strconv.ParseFloat(rest, 64); err != nil && number == nil {
		return 0, errNoUnit
	}
	if err != nil || d < 0 {
		return 0, errNoDuration
	}
	return sum + d, nil
}

// Span is a duration as ParseDuration reads it, without units that are zero.
func Span(d time.Duration) string {
	if d < day || d%time.Second != 0 {
		return trimUnits(d)
	}
	text := strconv.FormatInt(int64(d/day), 10) + "d"
	if d %= day; d != 0 {
		text += trimUnits(d)
	}
	return text
}

func trimUnits(d time.Duration) string {
	text := d.String()
	if d == 0 {
		return "0"
	}
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}

// durationFlag is a flag with a duration.
type durationFlag time.Duration

// DurationVar adds a flag for a duration.
func DurationVar(f *pflag.FlagSet, p *time.Duration, name string, value time.Duration, usage string) {
	*p = value
	f.Var((*durationFlag)(p), name, usage)
}

// TTLVar adds the flag --ttl for a duration that the server decides when it is left out: by the setting of an operator
// that first names, such as "the key pattern's". of is what has the ttl.
func TTLVar(f *pflag.FlagSet, p *time.Duration, of, first string) {
	DurationVar(
		f, p, "ttl", 0, "how long "+of+" outlives the last sign of life (default: "+first+", else "+
			interlock.DefaultTTL.String()+")",
	)
}

func (d *durationFlag) Set(s string) (err error) {
	parsed, err := ParseDuration(s)
	if err == nil {
		*d = durationFlag(parsed)
	}
	return err
}

func (d *durationFlag) String() string { return Span(time.Duration(*d)) }

func (d *durationFlag) Type() string { return "duration" }

// PastTime reads a flag for a time that the server takes: in RFC 3339, or how long ago it is, such as 12h or 7d.
func PastTime(flag, text string) (string, error) {
	if _, err := time.Parse(time.RFC3339, text); err == nil {
		return text, nil
	}
	ago, err := ParseDuration(text)
	if err != nil {
		return "", Usagef(
			"--%s %s: want how long ago, such as 12h or 7d, or a time such as 2026-01-02T03:04:05Z", flag, Clean(text),
		)
	}
	return ago.String(), nil
}
