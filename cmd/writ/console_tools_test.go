package main

import (
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/writ-project/writ/contracts"
	"github.com/writ-project/writ/gate"
	"github.com/writ-project/writ/internal/mcp/upstream"
	"github.com/writ-project/writ/policy"
)

// TestReached: how a server is reached is told without what may be a secret.
func TestReached(t *testing.T) {
	for want, s := range map[string]upstream.Config{
		"over stdio, started as npx with 3 arguments": {Command: []string{"/usr/bin/npx", "-y", "server", "--key=secret"}},
		"over stdio, started as server":               {Command: []string{"server"}, Env: map[string]string{"KEY": "secret"}},
		"over HTTP at https://example.test:8443":      {URL: "https://user:secret@example.test:8443/secret/mcp?key=secret#secret", Header: map[string]string{"Authorization": "secret"}},
		"over HTTP":                                   {URL: "https://secret\x7f"},
	} {
		if got := reached(&s); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
}

// TestContractShown: of a tool is told what its contract accepts, where that stands, and what
// its definition was made otherwise; of one without a contract how to begin one.
func TestContractShown(t *testing.T) {
	all := contracts.All()
	source := all[slices.IndexFunc(all, func(c *contracts.Contract) bool { return c.Name == "filesystem" })].At("files")
	source += `  other/act:
    effect: send
    args:
      /a: { role: target, type: email, from: [user, output: other/look#/from, approval, said_by: other/look#/from] }
      /b: { role: control, from: [const: [true, "x"]] }
      /c: { role: enum }
      /n: { role: amount, max: 5 }
  other/look:
    effect: read
    outputs:
      - { at: /from, label: party, type: email }
      - { at: /code, label: system, secret: true, one_shot: true, lifetime: 10m }
`
	p, faults := policy.Parse("policy", []byte(source))
	if len(faults) > 0 {
		t.Fatal(faults)
	}
	b, err := os.ReadFile("../../contracts/filesystem/tools.json")
	if err != nil {
		t.Fatal(err)
	}
	var made struct {
		Tools []struct{ Definition json.RawMessage }
	}
	if err := json.Unmarshal(b, &made); err != nil {
		t.Fatal(err)
	}
	var defs []gate.Definition
	for _, d := range made.Tools {
		raw := d.Definition
		if strings.Contains(string(raw), `"name":"write_file"`) {
			raw = []byte(strings.Replace(string(raw), `"properties":{`, `"properties":{"force":{"type":"boolean"},`, 1))
		}
		defs = append(defs, gate.Definition{Server: "files", Kind: gate.ToolKind, Raw: raw})
	}
	for _, raw := range []string{`{"name":"act","inputSchema":{"type":"object","properties":{"a":{"type":"string"},"d":{"type":"string"}}}}`, `{"name":"look","inputSchema":{"type":"object"}}`,
		`{"name":"new","description":"<img src=x>\n  other/act:\n    effect: read","inputSchema":{"type":"object","properties":{"to":{"type":"string"}}}}`} {
		defs = append(defs, gate.Definition{Server: "other", Kind: gate.ToolKind, Raw: []byte(raw)})
	}
	cat, _ := gate.NewCatalogue(defs, p)

	o := &files{policy: p, state: "/s p", config: "/c/writ.yaml", file: "/c/policy.yaml"}
	changed := o.contractOf(cat, "files/write_file")
	if changed.Pin != "changed" || changed.State != "closed" || !strings.Contains(changed.Of, "filesystem") || !slices.ContainsFunc(changed.Unlike, func(l string) bool { return strings.Contains(l, "force") }) {
		t.Errorf("%+v", changed)
	}
	if want := []string{"writ tools approve files/write_file --config /c/writ.yaml --state '/s p'", "writ reload --state '/s p'"}; !slices.Equal(changed.Approve, want) {
		t.Errorf("it is approved by %q, want %q", changed.Approve, want)
	}
	if built := (&files{policy: p}).contractOf(cat, "files/write_file"); built.Approve != nil || strings.Contains(built.Why, "writ tools approve") {
		t.Errorf("of the built-in policy's: %+v", built)
	}
	if at := strings.Split(source, "\n"); at[changed.Line-1] != "  files/write_file:" || !strings.HasPrefix(at[changed.Arguments[0].Line-1], "      "+changed.Arguments[0].At+":") {
		t.Errorf("line %d, %+v", changed.Line, changed.Arguments)
	}
	act := o.contractOf(cat, "other/act")
	if act.Pin != "unpinned" || !slices.Equal(act.Unnamed, []string{"d"}) {
		t.Errorf("%+v", act)
	}
	for i, want := range []string{
		"/a target: what the user typed; what other/look returned at /from; what a person says yes to; what is of one whom the user named, by other/look /from; compared as email",
		`/b control: one of true, "x"`, "/c enum: what its schema lists", "/n amount: what the user typed; what a tool returned; at most 5",
	} {
		if r := act.Arguments[i]; r.At+" "+r.Is+": "+strings.Join(r.Says, "; ") != want {
			t.Errorf("%+v, want %s", r, want)
		}
	}
	look := o.contractOf(cat, "other/look")
	for i, want := range []string{"/from party: compared as email", "/code system: a secret; for one act, within 10m0s"} {
		if r := look.Outputs[i]; r.At+" "+r.Is+": "+strings.Join(r.Says, "; ") != want {
			t.Errorf("%+v, want %s", r, want)
		}
	}
	fresh := o.contractOf(cat, "other/new")
	if fresh.Pin != "no contract" || fresh.State != "closed" || !strings.HasPrefix(string(fresh.Drafted), "  other/new:\n") || strings.Contains(string(fresh.Drafted), "\n  other/act:") {
		t.Errorf("%+v\n%s", fresh, fresh.Drafted)
	}
	if with, faults := policy.Parse("policy", []byte(source+string(fresh.Drafted)+"\n")); len(faults) > 0 || with.Contracts["other/new"] == nil {
		t.Errorf("the lines are none of a policy: %v", faults)
	}
	if o.contractOf(cat, "other/none") != nil || o.contractOf(cat, "") != nil || o.contractOf(nil, "x/y") != nil {
		t.Error("a tool that is not there")
	}
}
