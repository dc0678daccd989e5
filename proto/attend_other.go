//go:build !linux

package proto

// attention is for systems on which it is known what waiting without sleeping is worth.
type attention struct{}

// Attend implements [Attentive]: here it does nothing.
func (l *Framed[Out, In]) Attend(func() bool) {}

func (l *Framed[Out, In]) receive(b []byte) (int, error) { return l.conn.Read(b) }
