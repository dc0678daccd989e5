package main

import "strings"

// register is a set of tests that compare what is kept in two places. The places are in different packages, or one
// is a text, so these tests run with each change.
type register struct {
	dir   string
	tests []string // all of the package's if there are none
	why   string
	// when restricts a register that takes long to changes in these folders or files.
	when []string
}

// registers takes some 20 s in all when something has changed, and 2 s when the go command knows the results.
var registers = []register{
	{dir: "internal/layout", why: "imports go one way, and the pages name only what exists"},
	{dir: "internal/prose", why: "docs/errors.md has each error code, and each message its sentence"},
	{dir: "internal/gen", why: "the generated files are what their sources say"},
	{dir: "internal/gen/schema", why: "clients/schema.json has what server/openapi.json has"},
	{dir: "proto", tests: []string{
		"TestClientFrameIsTheProtosMessage", "TestServerFrameIsTheProtosMessage", "TestServiceIsTheProtos",
	}, why: "the codec of the stream is that of the .proto files"},
	{dir: "server", tests: []string{
		"TestOpenAPI", "TestOpenAPIByTag", "TestOpenAPIStyle", "TestOpenAPIKeywords", "TestOpenAPIHasTheRoutes",
		"TestOpenAPIHasTheFieldsOfBodies", "TestOpenAPIExamples", "TestOpenAPIHasTheCodes",
		"TestOpenAPIHasTheListsAndLimits", "TestOpenAPIServesItsVersion", "TestBriefMembersExist", "TestBoundsOfParameters",
	}, why: "openapi.json has the routes, fields, codes, lists and limits of the server"},
	{dir: "server", tests: []string{"TestGuide", "TestRoot"}, why: "/llms.txt has only requests that the server knows"},
	{
		dir: "server", tests: []string{"TestWebhookMessages"},
		why: "docs/reference/webhook-messages.md has the messages that webhooks send",
	},
	{
		dir: "server", tests: []string{"TestEventKindsHaveNames", "TestClaimsOfAnswersAreClaimsOfRequests"},
		why: "the answers have a name for each kind of event, and the fields of a claim",
	},
	{
		dir: "engine",
		tests: []string{
			"TestBytes", "TestNumbersStay", "TestNamesComplete", "TestFieldsChangeTheFingerprint", "TestStoredReasons",
			"TestSettingsOfEarlierVersions",
		},
		why: "journals of earlier versions have these bytes, numbers and names",
	},
	{
		dir: "cmd/interlock",
		tests: []string{
			"TestReference", "TestFirstScreen", "TestShortFlags", "TestDashboardCommands", "TestHints", "TestCompareAnswers",
		},
		why: "docs/reference has the commands and flags, and hints and dashboard name only these",
	},
	{
		dir: "cmd/interlock", tests: []string{"TestPagesRunWhatTheyShow", "TestPagesLinkToHeadings"},
		why: "each block of a page is run or marked, and each link has its heading",
	},
	{dir: "hook", tests: []string{"TestLimitsPage"}, why: "docs/limits.md has the limits of the hooks"},
	{dir: "mcp", tests: []string{"TestLimitsPage"}, why: "docs/limits.md has the limits of the MCP server"},
	{dir: "web", tests: []string{"TestPaths"}, why: "the dashboard asks only for paths of openapi.json"},
	{dir: "workspace/sandbox", tests: []string{"TestPage"}, why: "docs/sandbox.md has the table of the sandbox"},
	{
		dir: "writer/account", tests: []string{"TestGuideExplainsCodes"},
		why: "docs/account.md explains the codes of the account",
	},
	{
		dir: "sim/seeded", tests: []string{"TestMistakesApply", "TestEveryInvariantIsBroken"},
		why: "each deliberate mistake replaces lines that exist, and each invariant has a mistake",
	},
	{dir: "internal/test/reliability", why: "docs/guarantees.md quotes reliability.json"},
	{
		dir: "internal/test/securitytest", tests: []string{"TestPage"},
		why: "docs/security.md lists the cases that are tried",
	},
	{
		dir: "internal/test/securitytest", tests: []string{"TestRoles"},
		why:  "the table of rights in docs/security.md has each operation; 30 s",
		when: []string{"server", "proto", "docs/security.md", "cmd/interlock"},
	},
}

// applies reports whether a register runs for a change of these files.
func (r *register) applies(files []string) bool {
	if len(r.when) == 0 {
		return true
	}
	for _, file := range files {
		for _, at := range r.when {
			if file == at || strings.HasPrefix(file, at+"/") {
				return true
			}
		}
	}
	return false
}
