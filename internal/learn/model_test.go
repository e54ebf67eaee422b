package learn_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/writ-project/writ/internal/learn"
)

const modelPolicy = `pins: optional
tools:
  a/list: { effect: read, arguments: plain, outputs: [ { at: /rows/*/id, label: external }, { at: /rows/*/owner, label: external }, { at: /rows/*/code, label: system } ] }
  a/text: { effect: read, arguments: plain }
  a/act: { effect: write, args: { /x: { role: selector, from: [user] }, /y/*: { role: target, from: [user] } } }
`

const modelTools = `{"a":[{"name":"list","inputSchema":{"type":"object","properties":{"of":{"type":"string"}}},"outputSchema":{"type":"object"}},
{"name":"text","inputSchema":{"type":"object","properties":{"of":{"type":"string"}}}},
{"name":"act","inputSchema":{"type":"object","properties":{"x":{"type":"string"},"y":{"type":"array","items":{"type":"string"}}}}}]}`

// TestModel: over random sessions, what is proposed is the same twice, makes no call fewer
// pass, and lets pass no value that nobody returned and none of another field; and the
// field that explains most of an argument explains what a plain search says.
func TestModel(t *testing.T) {
	proposed, tried := 0, 0
	for seed := range 1000 {
		r := rand.New(rand.NewPCG(uint64(seed), 7))
		pick := func(from []string) string { return from[r.IntN(len(from))] }
		pool := []string{"AAAA-1111", "BBBB-2222", "CCCC-3333", "DDDD-4444", "EEEE-5555", "FFFF-6666", "12", "open", "true"}
		var script strings.Builder
		plain := &plainSearch{n: map[string]map[string]int{}}
		for range 1 + r.IntN(3) {
			script.WriteString("session\n")
			plain.begin()
			for range 2 + r.IntN(8) {
				switch name := pick([]string{"list", "list", "text", "act", "act", "act"}); name {
				case "act":
					x, y := pick(pool), pick(pool)
					args := fmt.Sprintf(`{"x":%q,"y":[%q]}`, x, y)
					word := "refused"
					if r.IntN(2) == 0 {
						word = "call"
					}
					plain.ask("a/act /x", x)
					plain.ask("a/act /y/*", y)
					plain.say(x, y)
					fmt.Fprintf(&script, "%s a/act %s\n", word, args)
					if word == "call" {
						script.WriteString("result {\"content\":[]}\n")
					}
				default:
					args, of := "{}", ""
					if r.IntN(3) == 0 {
						of = pick(pool)
						args = fmt.Sprintf(`{"of":%q}`, of)
						plain.ask("a/"+name+" /of", of)
						plain.say(of)
					}
					id, owner, code := pick(pool), pick(pool), pick(pool)
					body := fmt.Sprintf(`{"rows":[{"id":%q,"owner":%q,"code":%q}]}`, id, owner, code)
					result := `{"structuredContent":` + body + `}`
					if name == "text" {
						quoted, _ := json.Marshal(body)
						result = `{"content":[{"type":"text","text":` + string(quoted) + `}]}`
					}
					fmt.Fprintf(&script, "call a/%s %s\nresult %s\n", name, args, result)
					for i, v := range []string{id, owner, code} {
						if v != of {
							plain.returned("a/"+name+"/rows/*/"+[]string{"id", "owner", "code"}[i], v)
						}
					}
				}
			}
		}
		parts := map[string]string{"policy.yaml": modelPolicy, "tools.json": modelTools, "sessions": script.String()}
		p, sessions := world(t, parts)
		found := learn.From(p, sessions)
		if again := tell(learn.From(p, sessions)); again != tell(found) {
			t.Fatalf("seed %d: twice\n%s\n%s", seed, tell(found), again)
		}
		if found.After.Passed < found.Before.Passed || found.Invented.Passed+found.Misplaced.Passed > 0 {
			t.Fatalf("seed %d:\n%s%s", seed, script.String(), tell(found))
		}
		proposed += len(found.Fields)
		tried += found.Invented.Tried + found.Misplaced.Tried
		for _, f := range found.Fields {
			for _, e := range f.Feeds {
				at, field := e.Tool+" "+e.Arg, f.Tool+f.Pointer
				if n := plain.n[at][field]; e.Seen > n || e.Seen < 1 {
					t.Fatalf("seed %d: %s of %s: %d, a plain search says %d\n%s", seed, at, field, e.Seen, n, script.String())
				}
				if f.Saves < 1 {
					t.Fatalf("seed %d: %s saves nothing", seed, field)
				}
			}
		}
	}
	if proposed < 100 || tried < 100 {
		t.Errorf("%d fields, %d controls: nothing is tried", proposed, tried)
	}
}

// plainSearch remembers all that was returned and said in a session.
type plainSearch struct {
	fields map[string][]string
	said   map[string]bool
	n      map[string]map[string]int
}

func (p *plainSearch) begin() { p.fields, p.said = map[string][]string{}, map[string]bool{} }

func (p *plainSearch) say(values ...string) {
	for _, v := range values {
		if len(p.fields[v]) == 0 {
			p.said[v] = true
		}
	}
}

func (p *plainSearch) returned(field, v string) {
	if len(v) < 9 || p.said[v] || slices.Contains(p.fields[v], field) {
		return
	}
	p.fields[v] = append(p.fields[v], field)
}

func (p *plainSearch) ask(arg, v string) {
	for _, f := range p.fields[v] {
		if p.n[arg] == nil {
			p.n[arg] = map[string]int{}
		}
		p.n[arg][f]++
	}
}
