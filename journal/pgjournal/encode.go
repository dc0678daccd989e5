package pgjournal

import (
	"strconv"

	"github.com/interlockdev/interlock"
)

// encode makes a parameter: bytes in the binary format, all else in the text format.
func encode(v any) (value []byte, format int16) {
	switch v := v.(type) {
	case []byte:
		return v, 1
	case string:
		return []byte(v), 0
	case int:
		return strconv.AppendInt(nil, int64(v), 10), 0
	case int64:
		return strconv.AppendInt(nil, v, 10), 0
	case uint32:
		return strconv.AppendUint(nil, uint64(v), 10), 0
	case interlock.Epoch:
		return strconv.AppendUint(nil, uint64(v), 10), 0
	case interlock.Index:
		return strconv.AppendUint(nil, min(uint64(v), 1<<63-1), 10), 0
	}
	panic("pgjournal: a parameter of this type has no form")
}
