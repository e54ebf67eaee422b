package clients

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
)

func theHooks() *Hooks {
	return &Hooks{Command: "/usr/bin/writ hook claude-code", Timeout: 60, Events: []HookEvent{{"UserPromptSubmit", ""}, {"PreToolUse", "*"}, {"PostToolUse", "*"}}}
}

// TestHooks: the hooks go in and come out, byte for byte, whatever was there.
func TestHooks(t *testing.T) {
	other := `{"matcher":"Bash","hooks":[{"type":"command","command":"other"}]}`
	for _, c := range []string{
		"", " \n", "\ufeff", "\ufeff\r\n", "{}", "{ }\n", "{\n}\n", "{\n  \"model\": \"x\"\n}\n", "{\"model\":\"x\"}", "\ufeff{\"a\":1}\n",
		"{\r\n\t\"a\": 1,\r\n\t\"b\": 2\r\n}\r\n",
		`{"hooks":{}}`, `{"hooks": { } , "a":1}`, `{"hooks":{"PreToolUse":[]}}`, `{"hooks":{"PreToolUse":[ ]}}`,
		`{"hooks":{"PreToolUse":[` + other + `]},"z":1}`,
		"{\n  \"hooks\": {\n    \"Stop\": [\n      " + other + "\n    ],\n    \"PreToolUse\": [\n      " + other + "\n    ]\n  }\n}\n",
		"{ // mine\n  \"a\": 1, /* b */ \"hooks\": { \"PreToolUse\": [ " + other + ", ], },\n}\n",
	} {
		h := theHooks()
		out, err := h.Add([]byte(c))
		if err != nil {
			t.Errorf("%q: %v", c, err)
			continue
		}
		if n := bytes.Count(out, []byte("writ hook claude-code")); n != 3 {
			t.Errorf("%q: %d hooks in %s", c, n, out)
		}
		if again, err := theHooks().Add(out); err != nil || !bytes.Equal(again, out) {
			t.Errorf("%q: added twice: %v %s", c, err, again)
		}
		kept, _ := json.Marshal(h)
		var h2 Hooks
		_ = json.Unmarshal(kept, &h2)
		back, left, err := h2.Remove(out)
		if err != nil || len(left) > 0 || string(back) != c {
			t.Errorf("%q: back %q %v %v", c, back, left, err)
		}
	}
}

// TestHooksBehindComment: a hook stands on a line of its own behind a member that does, whatever
// comment that has.
func TestHooksBehindComment(t *testing.T) {
	const before = "{\n  // mine\n  \"a\": 1\n}\n"
	h := theHooks()
	out, err := h.Add([]byte(before))
	if err != nil || !bytes.Contains(out, []byte("\"a\": 1,\n  \"hooks\": {")) {
		t.Errorf("%v %s", err, out)
	}
	if back, left, err := h.Remove(out); err != nil || len(left) > 0 || string(back) != before {
		t.Errorf("%v %v %s", err, left, back)
	}
}

// TestHooksChanged: what somebody else did to the file meanwhile stays.
func TestHooksChanged(t *testing.T) {
	h := theHooks()
	out, err := h.Add([]byte(`{"a":1}`))
	if err != nil {
		t.Fatal(err)
	}
	var all map[string]any
	if err := json.Unmarshal(out, &all); err != nil {
		t.Fatal(err)
	}
	all["b"] = 2
	delete(all["hooks"].(map[string]any), "PostToolUse")
	all["hooks"].(map[string]any)["Stop"] = []any{}
	rewritten, _ := json.MarshalIndent(all, "", "  ")
	back, left, err := h.Remove(rewritten)
	var got map[string]any
	if err != nil || json.Unmarshal(back, &got) != nil || len(left) != 1 || left[0] != "PostToolUse" {
		t.Fatalf("%v %v %s", err, left, back)
	}
	if hooks := got["hooks"].(map[string]any); len(hooks) != 1 || hooks["Stop"] == nil || got["b"] != 2.0 {
		t.Errorf("%s", back)
	}
	for _, bad := range []string{"[]", `{"hooks":[]}`, `{"hooks":{"PreToolUse":{}}}`, `{"hooks":{},"hooks":{}}`, "{", strings.Repeat("[", 200)} {
		if out, err := theHooks().Add([]byte(bad)); err == nil {
			t.Errorf("%q became %q", bad, out)
		}
	}
}
