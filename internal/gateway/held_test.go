package gateway_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	writ "github.com/writ-project/writ"
	"github.com/writ-project/writ/internal/gateway"
	"github.com/writ-project/writ/internal/hook"
	"github.com/writ-project/writ/internal/mcp/downstream"
	"github.com/writ-project/writ/internal/strictjson"
)

// hosted is a gateway that judges a client's own tools, with a session of that client.
type hosted struct {
	*rig
	t    *testing.T
	host *hook.Host
	s    downstream.Session
}

func newHosted(t *testing.T, st gateway.Store, changes ...string) *hosted {
	h := hook.Named("claude-code")
	h.Contracts = strings.NewReplacer(changes...).Replace(h.Contracts)
	r := &rig{tb: t, store: st, opts: gateway.Options{Store: st, Tools: h.Definitions(), OwnPaths: []string{"/state/writ"}, Version: "test",
		Policy: policy(t, "collections:\n"+hook.Declared+"tools:\n"+h.Contracts)}}
	r.start()
	t.Cleanup(r.stop)
	_, s, err := r.gw.OpenSession(testContext(t), "local", downstream.CarrierStdio)
	if err != nil {
		t.Fatal(err)
	}
	return &hosted{rig: r, t: t, host: h, s: s}
}

// call is the call of a tool as the gateway gets it.
func (h *hosted) call(id, tool, arguments string) gateway.HostCall {
	c := h.host.Call(tool, strictjson.Of([]byte(arguments)), true)
	return gateway.HostCall{ID: id, Call: c.Call, Names: c.Names, Dir: "/proj", Elsewhere: c.Moved}
}

func (h *hosted) before(id, tool, arguments, want string) gateway.Verdict {
	h.t.Helper()
	v, err := h.gw.Before(testContext(h.t), h.s, "local", h.call(id, tool, arguments), false)
	if err != nil {
		h.t.Fatalf("%s %s: %v", tool, arguments, err)
	}
	got := "deny"
	switch {
	case v.Allowed:
		got = "pass"
	case v.Asks:
		got = "ask"
	}
	if got != want || v.Record == "" || v.Allowed != (v.Rejection == nil) {
		h.t.Errorf("%s %s: %s, want %s: %+v", tool, arguments, got, want, v.Rejection)
	}
	return v
}

func (h *hosted) after(id, tool, arguments, file string) (string, error) {
	return h.gw.After(h.s, h.call(id, tool, arguments), hook.Result([]byte(`{"ok":true}`), file))
}

const edit = `{"file_path":"/proj/a.go","old_string":"x","new_string":"y"}`

// TestHeld: a client's own calls are judged by what it was told before, and what comes
// back counts once, for the call that was judged.
func TestHeld(t *testing.T) {
	h := newHosted(t, onMaps(t))
	h.before("1", "Bash", `{"command":"ls"}`, "pass")
	h.before("2", "Bash", `{"command":"curl -d @x https://example.org"}`, "ask")
	h.before("3", "Edit", edit, "ask")
	h.before("4", "Bash", `{"command":"cat /state/writ/log.key"}`, "deny")
	h.before("5", "Bash", `{"command":"cd /state && rm -r writ"}`, "deny")
	h.before("6", "Read", `{"file_path":"/state/writ/log.key"}`, "deny")
	h.before("7", "Unheard", `{"x":1}`, "ask")
	h.before("8", "WebFetch", `{"url":"https://example.org/a","prompt":"p"}`, "ask")
	h.before("81", "Bash", `{"command":"cat > x <<'EOF'\na\n\tb\nEOF"}`, "ask")
	h.before("82", "Bash", `{"command":"echo \u202e"}`, "ask")
	h.before("83", "Bash", `{"command":"rm -r writ", "run_in_background": true}`, "ask")
	own := h.call("84", "Bash", `{"command":"rm -r writ"}`)
	own.Dir = "/state"
	if v, err := h.gw.Before(testContext(t), h.s, "local", own, false); err != nil || v.Allowed || v.Asks {
		t.Errorf("%+v %v", v, err)
	}
	h.before("9", "WebSearch", `{"query":"how to sort"}`, "pass")
	h.before("10", "Read", `{"file_path":"/proj/a.go"}`, "pass")

	ev, err := h.after("10", "Read", `{"file_path":"/proj/a.go"}`, "/proj/a.go")
	if err != nil || !strings.HasPrefix(ev, h.s.PublicID()+"/ev") {
		t.Fatalf("%q %v", ev, err)
	}
	if _, err := h.after("10", "Read", `{"file_path":"/proj/a.go"}`, "/proj/b.go"); !errors.Is(err, gateway.ErrNotHeld) {
		t.Errorf("a result counted twice: %v", err)
	}
	h.before("11", "Edit", edit, "pass")
	if _, err := h.after("11", "Edit", edit, ""); err != nil {
		t.Error(err)
	}
	h.before("12", "Edit", edit, "pass") // and again
	h.before("13", "Edit", strings.ReplaceAll(edit, "a.go", "b.go"), "ask")
	h.before("14", "Edit", strings.ReplaceAll(edit, "/proj/a.go", "/state/writ/sessions/x"), "deny")

	// A person let it pass where the client asked him: what comes of it vouches for nothing.
	write := `{"file_path":"/proj/new.go","content":"x"}`
	h.before("20", "Write", write, "ask")
	if ev, err := h.after("20", "Write", write, "/proj/new.go"); err != nil || ev != "" {
		t.Errorf("%q %v", ev, err)
	}
	h.before("21", "Write", write, "ask")

	// What was never judged, and what was another call, has no result that counts.
	if _, err := h.after("nobody", "Read", `{"file_path":"/proj/c.go"}`, "/proj/c.go"); !errors.Is(err, gateway.ErrNotHeld) {
		t.Error(err)
	}
	h.before("22", "Read", `{"file_path":"/proj/c.go"}`, "pass")
	if _, err := h.after("22", "Read", `{"file_path":"/proj/d.go"}`, "/proj/d.go"); err != nil {
		t.Error(err)
	}
	h.before("23", "Edit", strings.ReplaceAll(edit, "a.go", "d.go"), "ask")

	// The same call under its name gets the same answer, another one none.
	v := h.before("24", "Bash", `{"command":"pwd"}`, "pass")
	if again := h.before("24", "Bash", `{"command":"pwd","description":"once more"}`, "pass"); again.Record != v.Record {
		t.Errorf("%s, then %s", v.Record, again.Record)
	}
	if _, err := h.gw.Before(testContext(t), h.s, "local", h.call("24", "Bash", `{"command":"whoami"}`), false); !errors.Is(err, gateway.ErrOtherCall) {
		t.Error(err)
	}

	// What is on record stays so; a result that comes after a restart finds no call.
	h.before("30", "Read", `{"file_path":"/proj/e.go"}`, "pass")
	h.restart()
	if _, err := h.after("30", "Read", `{"file_path":"/proj/e.go"}`, "/proj/e.go"); !errors.Is(err, gateway.ErrNotHeld) {
		t.Error(err)
	}
	h.before("31", "Edit", edit, "pass")
	h.before("32", "Edit", strings.ReplaceAll(edit, "a.go", "e.go"), "ask")
}

// TestHeldTyped: what the user typed vouches for his client's own tools too.
func TestHeldTyped(t *testing.T) {
	h := newHosted(t, onMaps(t))
	h.before("1", "Bash", `{"command":"make lint"}`, "ask")
	if _, err := h.gw.Turn(testContext(t), h.s, "please run `make lint` and fix /proj/a.go"); err != nil {
		t.Fatal(err)
	}
	h.before("2", "Bash", `{"command":"make lint","description":"runs it"}`, "pass")
	h.before("3", "Bash", `{"command":"make lint; rm x"}`, "ask")
	h.before("4", "Edit", edit, "pass")
}

// TestHeldConversations: what was typed vouches in the conversation it was typed in, which
// another gateway of the same client knows too.
func TestHeldConversations(t *testing.T) {
	h := newHosted(t, onSQLite(t))
	in := func(conversation, id, want string) {
		t.Helper()
		call := h.call(id, "Bash", `{"command":"make lint"}`)
		call.Conversation = conversation
		v, err := h.gw.Before(testContext(t), h.s, "local", call, false)
		if err != nil || v.Allowed != (want == "pass") {
			t.Errorf("%s in %q: %v %v, want %s", id, conversation, v.Allowed, err, want)
		}
	}
	say := func(conversation string) {
		t.Helper()
		if _, err := h.gw.TurnOf(testContext(t), h.s, conversation, "please run `make lint`"); err != nil {
			t.Fatal(err)
		}
	}
	say("a")
	in("a", "1", "pass")
	h.restart()
	in("a", "2", "pass")
	in("", "3", "pass") // by whoever names none: that of the newest
	in("b", "4", "deny")
	in("a", "5", "deny") // what was said there is over
	say("b")
	in("b", "6", "pass")
	if err := h.gw.Converse(testContext(t), h.s, "b"); err != nil {
		t.Fatal(err)
	}
	in("", "7", "pass")
	if err := h.gw.Converse(testContext(t), h.s, "c"); err != nil {
		t.Fatal(err)
	}
	in("", "8", "deny")
	h.restart()
	in("c", "9", "deny")
	say("c")
	in("c", "10", "pass")
	say("d")
	in("d", "11", "pass")
}

// TestHeldListedCommand: the operator lets a command pass, and nothing that begins so.
func TestHeldListedCommand(t *testing.T) {
	h := newHosted(t, onMaps(t), "/command: { role: query, from: [user] }", "/command: { role: query, from: [user, const: [make lint, go test ./...]] }")
	h.before("1", "Bash", `{"command":"go test ./...","description":"d"}`, "pass")
	h.before("2", "Bash", `{"command":"go test ./... -exec ./x"}`, "ask")
	h.before("3", "Bash", `{"command":"make lint; rm x"}`, "ask")
	h.before("4", "Bash", `{"command":"make lint","dangerouslyDisableSandbox":true}`, "ask")
	h.before("5", "Bash", `{"command":"make lint","run_in_background":true}`, "pass")
	h.before("6", "Bash", `{"command":"make lint","unheard":"x"}`, "ask")
}

// TestHeldEdits: a file that the agent changed in one session can be read and changed in
// the next.
func TestHeldEdits(t *testing.T) {
	h := newHosted(t, onMaps(t))
	for range 3 {
		h.before("1", "Read", `{"file_path":"/proj/a.go"}`, "pass")
		if _, err := h.after("1", "Read", `{"file_path":"/proj/a.go"}`, "/proj/a.go"); err != nil {
			t.Fatal(err)
		}
		h.before("2", "Edit", edit, "pass")
		if _, err := h.after("2", "Edit", edit, ""); err != nil {
			t.Fatal(err)
		}
		var err error
		if _, h.s, err = h.gw.OpenSession(testContext(t), "local", downstream.CarrierStdio); err != nil {
			t.Fatal(err)
		}
	}
}

// TestHeldBounded: calls that nobody tells the end of take bounded memory.
func TestHeldBounded(t *testing.T) {
	h := newHosted(t, onMaps(t))
	for i := range 1002 {
		h.before(fmt.Sprint(i), "Bash", `{"command":"ls"}`, "pass")
	}
	for id, want := range map[string]error{"0": gateway.ErrNotHeld, "1": gateway.ErrNotHeld, "2": nil, "1001": nil} {
		if _, err := h.after(id, "Bash", `{"command":"ls"}`, ""); !errors.Is(err, want) {
			t.Errorf("%s: %v", id, err)
		}
	}
}

// TestHeldListed: no client of MCP is shown them, nor can call them.
func TestHeldListed(t *testing.T) {
	h := newHosted(t, onMaps(t))
	r := &downstream.Request{Method: "tools/list", Era: downstream.Legacy, Session: h.s, Principal: "local"}
	if reply := h.gw.Handle(testContext(t), r); strings.Contains(string(reply.Result), "Bash") {
		t.Errorf("%s", reply.Result)
	}
	r = &downstream.Request{Method: "tools/call", Era: downstream.Legacy, Session: h.s, Principal: "local",
		Params: strictjson.Of([]byte(`{"name":"Read","arguments":{"file_path":"/proj/a.go"}}`))}
	if reply := h.gw.Handle(testContext(t), r); reply.Err == nil && !strings.Contains(string(reply.Result), string(writ.NameUnknown)) {
		t.Errorf("%s", reply.Result)
	}
}
