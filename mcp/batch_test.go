package mcp

import (
	"fmt"
	"strings"
	"testing"
)

// A batch of an older revision is answered completely, and bounded.
func TestBatch(t *testing.T) {
	address, credentials := guarded(t)
	set := headerSet{"Authorization": "Bearer " + credentials["red"], "MCP-Protocol-Version": lastBatches}
	batchOf := func(n int) string {
		var list []string
		for i := range n {
			list = append(list, fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"ping"}`, i))
		}
		return "[" + strings.Join(list, ",") + "]"
	}
	if status, text := post(t, address, batchOf(maxBatch), set); status != 200 ||
		strings.Count(text, `"result"`) != maxBatch {
		t.Errorf("status %d, %d results: %.300s", status, strings.Count(text, `"result"`), text)
	}
	for name, body := range map[string]string{
		"too many": batchOf(maxBatch + 1), "empty": "[]", "nested": "[[" + listTools + "]]",
	} {
		if status, text := post(t, address, body, set); status != 400 || !strings.Contains(text, `"code":-32600`) {
			t.Errorf("%s: status %d, %.300s", name, status, text)
		}
	}
	set["MCP-Protocol-Version"] = oldRevision
	if status, text := post(t, address, batchOf(1), set); status != 400 || !strings.Contains(text, "batches exist in") {
		t.Errorf("status %d, %.300s", status, text)
	}
}
