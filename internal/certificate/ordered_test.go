package certificate

import (
	"encoding/json"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/writ-project/writ/gate"
	"github.com/writ-project/writ/policy"
	"github.com/writ-project/writ/provenance"
)

const orderedPolicy = `
pins: optional
collections: { twig: {}, leaf: {}, file: { closed: true } }
tools:
  s/secret: { effect: read, outputs: [ { at: /users/*, label: system, secret: true } ] }
  s/make: { effect: write, no_args: allow, args: { /at: { role: control, from: [const: [x, y]] },
    /twig: { role: target, collection: twig, from: [user, { derived: fresh, phrases: [make a twig] }], begins: [fix-], makes: true, in: [/at] },
    /also: { role: target, collection: twig, from: [{ derived: fresh, phrases: [make a twig] }], begins: [fix-], makes: true, in: [/at] } } }
  s/pay: { effect: [write, transfer], no_args: allow, args: { /at: { role: control, from: [const: [x, y]] },
    /twig: { role: target, collection: twig, from: [{ derived: fresh, phrases: [make a twig] }], begins: [fix-], makes: true, in: [/at] } } }
  s/use: { effect: [write, send], no_args: user, phrases: [use the twig], args: { /at: { role: control, from: [const: [x, y], user] }, /twig: { role: target, collection: twig, from: [output] } } }
  s/run: { effect: [write, send], no_args: user, phrases: [use the twig], args: { /at: { role: control, place: true, from: [const: [x, y], user] }, /twig: { role: target, collection: twig, from: [output] } } }
  s/leaf: { effect: [write, send], no_args: allow, args: { /at: { role: control, from: [const: [x, y]] }, /twig: { role: target, collection: leaf, from: [output] } } }
  s/get: { effect: egress, no_args: allow, args: { /at: { role: control, from: [const: [x, y]] }, /twig: { role: target, collection: twig, from: [output] } } }
  s/jot: { effect: write, args: { /at: { role: control, from: [const: [x, y]] }, /file: { role: target, type: path, collection: file, from: [const: [/srv/x]] }, /twig: { role: target, collection: twig, from: [output] }, /note: { role: content, content: local } } }
  s/tell: { effect: [write, send], no_args: allow, args: { /at: { role: control, from: [const: [x, y]] }, /twig: { role: target, collection: twig, from: [output] }, /text: { role: content, content: open } } }
  s/post: { effect: [write, send], args: { /who: { role: target, from: [user] }, /at: { role: control, from: [const: [x, y]] },
    /twig: { role: target, collection: twig, from: [output, { derived: fresh, phrases: [make a twig] }], begins: [fix-], makes: true, in: [/at] }, /text: { role: content, content: open } } }
  o/use: { effect: [write, send], no_args: allow, args: { /at: { role: control, from: [const: [x, y]] }, /twig: { role: target, collection: twig, from: [output] } } }
`

// TestOrderedNames: of a name that the user ordered, and of what was made under it, the gate
// accepts just that of which some certificate verifies.
func TestOrderedNames(t *testing.T) {
	p, faults := policy.Parse("policy.yaml", []byte(orderedPolicy))
	if p == nil {
		t.Fatal(faults)
	}
	var defs []gate.Definition
	for _, tool := range []string{"s/secret", "s/make", "s/pay", "s/use", "s/run", "s/leaf", "s/get", "s/jot", "s/tell", "s/post", "o/use"} {
		server, name, _ := strings.Cut(tool, "/")
		properties := map[string]any{}
		for _, a := range []string{"at", "twig", "also", "file", "note", "text", "who"} {
			properties[a] = map[string]any{}
		}
		raw, _ := json.Marshal(map[string]any{"name": name, "inputSchema": map[string]any{"type": "object", "properties": properties}, "outputSchema": map[string]any{"type": "object"}})
		defs = append(defs, gate.Definition{Server: server, Raw: raw})
	}
	c, _ := gate.NewCatalogue(defs, p)
	const yes, no = true, false
	steps := []struct {
		say, tool, args string
		want            bool
	}{
		{tool: "s/make", args: `"twig":"fix-a"`},
		{say: "don't make a twig"},
		{tool: "s/make", args: `"twig":"fix-a"`},
		{say: "make a twig for 'kim'"},
		{tool: "s/pay", args: `"twig":"fix-a"`, want: no},
		{tool: "s/make", args: `"twig":"fix-a","also":"fix-b"`, want: no},
		{tool: "s/make", args: `"twig":"main"`, want: no},
		{tool: "s/make", args: `"twig":"fix-a/b/c"`, want: no},
		{tool: "s/make", args: `"twig":"fix-a b"`, want: no},
		{tool: "s/make", args: `"twig":"fix-one.example"`, want: no},
		{tool: "s/make", args: `"twig":"fix` + strings.Repeat("-word", 26) + `"`, want: no},
		{tool: "s/make", args: `"at":"x","twig":"fix-a","also":"fix-a"`, want: yes},
		{tool: "s/make", args: `"at":"x","twig":"fix-b"`, want: no},
		{tool: "s/leaf", args: `"at":"x","twig":"fix-a"`, want: no},
		{tool: "o/use", args: `"at":"x","twig":"fix-a"`, want: no},
		{tool: "s/get", args: `"at":"x","twig":"fix-a"`, want: no},
		{tool: "s/jot", args: `"at":"y","file":"/srv/x","twig":"fix-a","note":"n"`, want: no},
		{tool: "s/jot", args: `"at":"x","file":"/srv/x","twig":"fix-a","note":"n"`, want: yes},
		{tool: "s/tell", args: `"at":"x","twig":"fix-a","text":"hello"`, want: yes},
		{tool: "s/post", args: `"at":"x","who":"kim","twig":"fix-a","text":"hello"`, want: yes},
		{tool: "s/post", args: `"at":"y","who":"eve","twig":"fix-a","text":"hello"`, want: no},
		{tool: "s/use", args: `"at":"x","twig":"fix-a"`, want: no},
		{tool: "s/run", args: `"at":"x","twig":"fix-a"`, want: no},
		{say: "use the twig"},
		{tool: "s/use", args: `"at":"x","twig":"fix-a"`, want: no},
		{tool: "s/run", args: `"at":"z","twig":"fix-a"`, want: no},
		{tool: "s/run", args: `"at":"x","twig":"fix-a"`, want: yes},
		{say: "use the twig at x"},
		{tool: "s/use", args: `"twig":"fix-a"`, want: no},
		{tool: "s/use", args: `"at":"y","twig":"fix-a"`, want: no},
		{tool: "s/use", args: `"at":"x","twig":"fix-a"`, want: yes},
		{tool: "s/make", args: `"at":"y","twig":"fix-a"`, want: no},
		{say: "make a twig, and one in 'file'"},
		{tool: "s/make", args: `"twig":"file"`, want: yes},
		{tool: "s/make", args: `"twig":"fix-c"`, want: no},
		{tool: "s/leaf", args: `"twig":"file"`, want: no},
		{tool: "s/use", args: `"twig":"file"`, want: no},
		{say: "make a twig"},
		{tool: "s/make", args: `"twig":"fix-c"`, want: yes},
		{tool: "s/jot", args: `"file":"/srv/x","twig":"fix-c","note":"n"`, want: yes},
		{tool: "s/jot", args: `"at":"x","file":"/srv/x","twig":"fix-c","note":"n"`, want: no},
		{say: "make a twig"},
		{tool: "s/secret", want: yes},
		{tool: "s/make", args: `"twig":"fix-d"`, want: no},
	}
	key := [32]byte{7}
	w := &world{Rand: rand.New(rand.NewPCG(1, 1)), t: t, policy: p, catalogue: c, at: time.Unix(1_800_000_000, 0).UTC(),
		shown: map[string][]string{}, gate: gate.NewSession("s_ordered", key, provenance.Caps{}), told: New("s_ordered", key)}
	for _, s := range steps {
		if s.say != "" {
			w.say(s.say)
			continue
		}
		var args []string
		if s.args != "" {
			args = append(args, s.args)
		}
		before := w.allowed
		w.call(map[string]int{}, s.tool, args)
		for n := 0; s.tool == "s/secret" && !w.told.secrets && n < 20; n++ {
			w.call(map[string]int{}, s.tool, args) // until it has one in it
		}
		if got := w.allowed > before; s.tool != "s/secret" && got != s.want {
			t.Errorf("%s %s: allowed %v, want %v", s.tool, s.args, got, s.want)
		}
	}
	if !w.told.secrets || t.Failed() {
		t.Errorf("secrets %v:\n%s", w.told.secrets, strings.Join(w.script, "\n"))
	}
}
