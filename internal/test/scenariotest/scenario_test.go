package scenariotest

import "testing"

func TestMain(m *testing.M) { Main(m) }

// TestScenarios carries out every scenario with every library.
func TestScenarios(t *testing.T) { Run(t, "clients/scenarios", Single) }

// TestHistory lets clients of all libraries compete for the keys of one server.
func TestHistory(t *testing.T) { History(t, Single(t)) }
