package jsonname

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
)

// Unique refuses a name that stands twice in an object, at any depth. With fold, names that differ in their case alone
// are the same one, as for encoding/json and the fields of a struct. Content is JSON that encoding/json has read: it
// bounds the depth.
func Unique(content []byte, fold bool) error {
	return unique(json.NewDecoder(bytes.NewReader(content)), fold, "")
}

func unique(d *json.Decoder, fold bool, where string) error {
	token, err := d.Token()
	if err != nil {
		return err
	}
	switch token {
	case json.Delim('{'):
		seen := map[string]bool{}
		for d.More() {
			token, err := d.Token()
			if err != nil {
				return err
			}
			field, _ := token.(string)
			name := field
			if fold {
				name = strings.ToLower(strings.ToUpper(name))
			}
			if seen[name] {
				return fmt.Errorf("field %s%s occurs twice", where, field)
			}
			seen[name] = true
			if err := unique(d, fold, where+field+"."); err != nil {
				return err
			}
		}
		_, err = d.Token()
	case json.Delim('['):
		for i := 0; d.More(); i++ {
			if err := unique(d, fold, fmt.Sprintf("%s[%d].", where, i)); err != nil {
				return err
			}
		}
		_, err = d.Token()
	}
	return err
}
