//go:build !linux

package proto

// spinRead is empty on systems on which spinning was never measured.
type spinRead struct{}

// Spin implements [SpinReader]: here it does nothing.
func (l *FramedLink[Out, In]) Spin(func() bool) {}

func (l *FramedLink[Out, In]) receive(b []byte) (int, error) { return l.conn.Read(b) }
