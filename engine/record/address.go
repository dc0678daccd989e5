package record

// Address is where a task comes from, and where it goes. Many tasks share one.
type Address struct {
	Queue string `journal:"1,required"`
	Kind  string `journal:"2"`
	Group string `journal:"-"`

	// Its submitter.
	Agent     string `journal:"-"`
	Flow      string `journal:"-"`
	Session   string `journal:"9"` // public name
	Principal string `journal:"-"`
	Sender    string `journal:"13"` // the sender that determines the order of messages; "" for no order
}

// Hash returns a hash of the address.
func (a *Address) Hash() (p Fingerprint) {
	for _, text := range a.texts() {
		p.Text(text)
	}
	return p
}

func (a *Address) texts() [8]string {
	return [...]string{a.Queue, a.Kind, a.Group, a.Agent, a.Flow, a.Session, a.Principal, a.Sender}
}

// Size returns the cost of remembering the texts of an address.
func (a *Address) Size() (n int) {
	for _, text := range a.texts() {
		n += len(text)
	}
	return n
}
