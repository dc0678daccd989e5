package merger

import (
	"testing"

	"github.com/interlockdev/interlock/internal/test/memory"
)

func TestMain(m *testing.M) { memory.Main(m) }
