package record

// LogText has the fields of a log entry besides those of its event.
type LogText struct {
	Kind   string `journal:"1"`
	Sender string `journal:"2"`
	Agent  string `journal:"3"`
	Body   []byte `journal:"4"`
	Reply  []byte `journal:"5"`
	Absent bool   `journal:"6"` // the document was deleted
	Made   []byte `journal:"7"` // an entry with the write that it made, if no other event has that
}

// AppendLogText appends x to b.
func AppendLogText(b []byte, x *LogText) []byte { return appendLogText(b, x) }

// DecodeLogText reads what AppendLogText wrote.
func DecodeLogText(b []byte) (x LogText, err error) {
	err = readLogText(b, &x)
	return x, err
}
