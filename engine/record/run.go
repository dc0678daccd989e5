package record

// Run identifies the run that a request is; it is zero for others.
type Run struct {
	Org      string `journal:"1,always"`
	Workflow string `journal:"2"`
}

// AppendRun writes what kind of run a request is, for its event.
func AppendRun(b []byte, x *Run) []byte {
	if x == nil {
		return b
	}
	return appendRun(b, x)
}

// Run returns the organisation and the workflow of a run that a request starts, "" for other
// events. An unreadable value was refused when the journal was replayed.
func (ev *Event) Run() (org, workflow string) {
	if ev.Kind != Queued && ev.Kind != Granted {
		return "", ""
	}
	x, _ := DecodeRun(ev.Blob)
	return x.Org, x.Workflow
}

// DecodeRun reads what AppendRun wrote.
func DecodeRun(b []byte) (x Run, err error) {
	err = readRun(b, &x)
	return x, err
}
