package proxy

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/interlockdev/interlock/internal/jsonname"
)

// decodeStrict reads JSON that a person wrote and security depends on: fields that
// are not known, fields that stand twice, and anything behind the end are errors, and
// an error names the line.
func decodeStrict(content []byte, v any) error {
	if err := jsonname.Unique(content, true); err != nil {
		return located(content, err)
	}
	d := json.NewDecoder(bytes.NewReader(content))
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		return located(content, err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return errors.New("there is data after the object")
	}
	return nil
}

// located returns the line of a syntax error.
func located(content []byte, err error) error {
	offset := int64(-1)
	if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
		offset = syntax.Offset
	} else if kind, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		offset = kind.Offset
		err = fmt.Errorf("field %s: invalid type %s", kind.Field, kind.Value)
	} else if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return errors.New("it is truncated")
	}
	if offset < 0 {
		return err
	}
	return fmt.Errorf("line %d: %w", 1+bytes.Count(content[:min(offset, int64(len(content)))], []byte("\n")), err)
}
