package client

import "time"

// Sleep advances the clock of all clients as a sleep of the machine does, without waking any goroutine.
func Sleep(d time.Duration) { lastSlept.Store(int64(slept() + d)) }
