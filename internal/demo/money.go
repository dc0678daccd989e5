package demo

import (
	"fmt"
	"strconv"
	"strings"
)

// cents is an amount of money. It is text in JSON, with two decimals.
type cents int64

func (c cents) String() string {
	sign, n := "", c
	if n < 0 {
		sign, n = "-", -n
	}
	return fmt.Sprintf("%s%d.%02d", sign, n/100, n%100)
}

// signed is String with a plus where it is due.
func (c cents) signed() string {
	if c > 0 {
		return "+" + c.String()
	}
	return c.String()
}

func (c cents) abs() cents {
	if c < 0 {
		return -c
	}
	return c
}

// MarshalText writes what String returns.
func (c cents) MarshalText() ([]byte, error) { return []byte(c.String()), nil }

// UnmarshalText reads what MarshalText wrote.
func (c *cents) UnmarshalText(text []byte) error {
	whole, part, ok := strings.Cut(strings.TrimPrefix(string(text), "-"), ".")
	if !ok || len(part) != 2 {
		return fmt.Errorf("not an amount of money: %q", text)
	}
	n, err := strconv.ParseUint(whole+part, 10, 63)
	if err != nil {
		return fmt.Errorf("not an amount of money: %q", text)
	}
	*c = cents(n)
	if strings.HasPrefix(string(text), "-") {
		*c = -*c
	}
	return nil
}
