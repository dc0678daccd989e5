package scenariotest_test

import (
	"testing"

	"github.com/interlockdev/interlock/internal/test/scenariotest"
)

func TestMain(m *testing.M) { scenariotest.Main(m) }

// TestScenarios carries out every scenario with every library.
func TestScenarios(t *testing.T) { scenariotest.Run(t, "clients/scenarios", scenariotest.Single) }
