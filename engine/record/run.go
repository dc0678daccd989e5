package record

// Run identifies the run that a request is; it is zero for others.
type Run struct{ Org, Workflow string }

// AppendRun writes what kind of run a request is, for its event.
func AppendRun(b []byte, x *Run) []byte {
	if x == nil {
		return b
	}
	f := Fields{b}
	f.Text(1, x.Org)
	if x.Workflow != "" {
		f.Text(2, x.Workflow)
	}
	return f.Bytes
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
	err = EachField(b, func(id, _ uint64, s string) bool {
		switch id {
		case 1:
			x.Org = s
		case 2:
			x.Workflow = s
		default:
			return false
		}
		return true
	})
	return x, err
}
