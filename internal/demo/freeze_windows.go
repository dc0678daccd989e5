package demo

import "errors"

// A process cannot be frozen on this system, and no server of a demonstration starts here: its journal is a directory.
func (p *process) freeze() error { return errors.ErrUnsupported }
func (p *process) thaw() error   { return errors.ErrUnsupported }
