package action

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"

	"github.com/gowebpki/jcs"

	"github.com/interlockdev/interlock"
)

// Limits of numbers: see Canonical.
const (
	maxExact  = 1 << 53 // above it not every whole number has a double of its own
	maxDigits = 15      // so many significant digits every double keeps
	minExact  = 1e-290  // below it doubles begin to lose digits
)

// Canonical returns the canonical form of an action: of applying tool to target with arguments,
// a JSON object ("" and nil stand for {}). Only meaningful values belong into arguments: with a
// timestamp or a random number in it, no action is ever the same as another.
//
// The canonical form has numbers as IEEE 754 doubles. A number that is none exactly
// would have the same form as its neighbour, so it is refused: whole numbers beyond
// 2^53, and others of more than 15 significant digits. Send those, amounts of money
// among them, as strings. Refused are also two members of one name, and text that is
// not UTF-8. The error is an *interlock.Error with CodeInvalidRequest or CodeTooLong.
func Canonical(tool, target string, arguments []byte) (string, error) {
	switch {
	case tool == "":
		return "", refuse("tool is empty: name what acts, such as stripe.charge")
	case target == "":
		return "", refuse("target is empty: name what is acted on, such as account:12345")
	}
	if len(bytes.TrimSpace(arguments)) == 0 {
		arguments = []byte("{}")
	}
	if err := exact(arguments); err != nil {
		return "", refuse("arguments: %v", err)
	}
	whole := []byte(`{"arguments":`)
	whole = append(whole, arguments...)
	whole = append(whole, `,"target":`...)
	whole = appendString(whole, target)
	whole = append(whole, `,"tool":`...)
	whole = appendString(whole, tool)
	whole = append(whole, '}')
	form, err := jcs.Transform(whole)
	if err != nil {
		return "", refuse("it has no canonical form: %v", err)
	}
	if len(form) > interlock.MaxActionBytes {
		return "", &interlock.Error{Code: interlock.CodeTooLong, Message: fmt.Sprintf(
			"the canonical action has %d bytes, and the maximum is %d; name large things "+
				"by a hash", len(form), interlock.MaxActionBytes,
		)}
	}
	return string(form), nil
}

func refuse(format string, args ...any) error {
	return &interlock.Error{Code: interlock.CodeInvalidRequest, Message: "the action: " + fmt.Sprintf(format, args...)}
}

// appendString quotes s. Invalid UTF-8 stays so, and is refused with the rest.
func appendString(b []byte, s string) []byte {
	b = append(b, '"')
	for i := range len(s) {
		switch c := s[i]; {
		case c == '"' || c == '\\':
			b = append(b, '\\', c)
		case c < ' ':
			b = fmt.Appendf(b, `\u%04x`, c)
		default:
			b = append(b, c)
		}
	}
	return append(b, '"')
}

// exact checks that arguments is one JSON object with numbers that are represented exactly.
func exact(arguments []byte) error {
	d := json.NewDecoder(bytes.NewReader(arguments))
	d.UseNumber()
	for first, depth := true, 0; first || depth > 0; first = false {
		token, err := d.Token()
		if err != nil {
			if errors.Is(err, io.EOF) {
				err = io.ErrUnexpectedEOF
			}
			return err
		}
		if first && token != json.Delim('{') {
			return errors.New("want a JSON object")
		}
		switch token := token.(type) {
		case json.Delim:
			if token == '{' || token == '[' {
				depth++
			} else {
				depth--
			}
		case json.Number:
			if err := exactNumber(string(token)); err != nil {
				return err
			}
		}
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return errors.New("want one JSON object and nothing after it")
	}
	return nil
}

// exactNumber refuses a number that another one would have the same form as.
func exactNumber(literal string) error {
	v, err := strconv.ParseFloat(literal, 64)
	if err != nil || math.Abs(v) > maxExact {
		return fmt.Errorf("%s is beyond 2^53: send it as a string", clipped(literal))
	}
	mantissa, _, _ := strings.Cut(strings.ToLower(strings.TrimPrefix(literal, "-")), "e")
	whole := !strings.ContainsAny(literal, ".eE")
	digits := strings.Trim(strings.Replace(mantissa, ".", "", 1), "0")
	switch {
	case digits == "":
		return nil // zero, however it is written
	case math.Abs(v) < minExact:
		return fmt.Errorf("%s is too small to be exact: send it as a string", clipped(literal))
	case whole:
		// 2^53+1 is read as 2^53: only the literal tells them apart.
		if n, err := strconv.ParseInt(literal, 10, 64); err != nil || n > maxExact || n < -maxExact {
			return fmt.Errorf("%s is beyond 2^53: send it as a string", clipped(literal))
		}
	case len(digits) > maxDigits:
		return fmt.Errorf("%s has more than %d significant digits: send it as a string", clipped(literal), maxDigits)
	}
	return nil
}

func clipped(literal string) string {
	const limit = 40
	if len(literal) > limit {
		return literal[:limit] + "..."
	}
	return literal
}
