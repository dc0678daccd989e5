package serve

import "io"

// linesTogether are most of the bytes of a log that are written at once: so many a pipe takes
// whole, so that nothing else that is written to it stands inside a line.
const linesTogether = 4096

// collector keeps lines of log back until they are flushed or become too many, so that a busy
// server does not call the system for each. Each Write is whole lines; one goroutine at a
// time uses it. (A bufio.Writer splits lines, and takes nothing more once a write has failed.)
type collector struct {
	to   io.Writer
	kept []byte
}

func (c *collector) Write(lines []byte) (int, error) {
	if len(c.kept)+len(lines) > linesTogether {
		if err := c.flush(); err != nil {
			return 0, err
		}
	}
	c.kept = append(c.kept, lines...)
	return len(lines), nil
}

// flush writes the held-back lines. Lines that cannot be written are lost.
func (c *collector) flush() error {
	kept := c.kept
	c.kept = c.kept[:0]
	if len(kept) == 0 {
		return nil
	}
	_, err := c.to.Write(kept)
	return err
}
