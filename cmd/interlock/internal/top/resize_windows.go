package top

import "os"

// resizes reports nothing: Windows has no signal for it, and each picture looks at the size.
func resizes() (sizes <-chan os.Signal, stop func()) { return nil, func() {} }
