package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
)

// ResultOf returns a text as the result of an effect: as JSON if it is, or as a string.
func ResultOf(text string) any {
	if result := json.RawMessage(strings.TrimSpace(text)); json.Valid(result) {
		return result
	}
	return text
}

// ReadObjects reads a file of JSON that has one object, or a list of them, or an
// object with such a list under a name, as a listing has it.
func ReadObjects(in io.Reader, file, list string) ([]map[string]any, error) {
	content, err := ReadAll(in, file)
	if err != nil {
		return nil, err
	}
	var objects []map[string]any
	var one map[string]any
	switch err = DecodeNumbers(content, &one); {
	case err == nil && one[list] != nil:
		var whole map[string]json.RawMessage
		if err = json.Unmarshal(content, &whole); err == nil {
			err = DecodeNumbers(whole[list], &objects)
		}
	case err == nil:
		objects = []map[string]any{one}
	default:
		if DecodeNumbers(content, &objects) == nil {
			err = nil
		}
	}
	if err != nil {
		return nil, Usagef("%s cannot be read as JSON: %w", Clean(file), err)
	}
	for _, o := range objects {
		dropAnswer(o)
	}
	return objects, nil
}

// dropAnswer leaves out what an answer contains about itself.
func dropAnswer(fields map[string]any) {
	delete(fields, "at")
	delete(fields, "server_time")
}

// DecodeNumbers keeps numbers as they are written.
func DecodeNumbers(content []byte, v any) error {
	d := json.NewDecoder(bytes.NewReader(content))
	d.UseNumber()
	if err := d.Decode(v); err != nil {
		return err
	}
	if d.More() {
		return errors.New("there is something behind the first value")
	}
	return nil
}

// ReadAll reads a file, or in for "-".
func ReadAll(in io.Reader, file string) ([]byte, error) {
	if file == "-" {
		return io.ReadAll(io.LimitReader(in, 64<<20))
	}
	content, err := os.ReadFile(file)
	if err != nil {
		return nil, ExitWith(ExitUsage, err)
	}
	return content, nil
}

// OldFields are those of a resource as PUT takes them.
func (a *App) OldFields(ctx context.Context, path string) (map[string]any, error) {
	_, answer, err := a.API().Do(ctx, Request{Method: http.MethodGet, Path: path})
	if err != nil {
		return nil, err
	}
	var fields map[string]any
	if err := DecodeNumbers(answer, &fields); err != nil {
		return nil, fmt.Errorf("the answer cannot be read: %w", err)
	}
	dropAnswer(fields)
	delete(fields, "name")
	return fields, nil
}

// JSONArg returns the JSON of an argument: JSON, @FILE with it, or - for standard input.
func JSONArg(in io.Reader, text, what string, most int) (json.RawMessage, error) {
	content := []byte(text)
	switch {
	case text == "-":
		var err error
		if content, err = ReadAll(in, "-"); err != nil {
			return nil, err
		}
	case strings.HasPrefix(text, "@"):
		var err error
		if content, err = os.ReadFile(text[1:]); err != nil {
			return nil, ExitWith(ExitUsage, err)
		}
	}
	switch {
	case !json.Valid(content):
		return nil, Usagef("%s is not JSON: use JSON, such as '{\"cents\": 2000}', @FILE, or - for standard input", what)
	case len(content) > most:
		return nil, Usagef("%s has %s, of at most %s", what, Bytes(int64(len(content))), Bytes(int64(most)))
	}
	return content, nil
}
