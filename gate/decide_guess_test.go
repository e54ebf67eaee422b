package gate_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	writ "github.com/writ-project/writ"
	"github.com/writ-project/writ/gate"
	"github.com/writ-project/writ/internal/strictjson"
	"github.com/writ-project/writ/policy"
	"github.com/writ-project/writ/provenance"
)

// oracleWorld has twelve acts that select from one collection at two pointers
// each, one that takes many values at once, one that makes members, one of
// another collection, and two listings.
func oracleWorld(t testing.TB) (*policy.Policy, *gate.Catalogue) {
	var p, d strings.Builder
	p.WriteString("pins: optional\ncollections: { c: { closed: true }, d: { closed: true } }\ntools:\n")
	tool := func(name, contract, properties, output string) {
		fmt.Fprintf(&p, "  s/%s: { %s }\n", name, contract)
		if d.Len() > 0 {
			d.WriteByte(',')
		}
		fmt.Fprintf(&d, `{"name":%q,"inputSchema":{"type":"object","properties":{%s}}%s}`, name, properties, output)
	}
	typed := `,"outputSchema":{"type":"object"}`
	lists := "effect: read, outputs: [ { at: /c/*, label: system, collection: c, authoritative: true }, { at: /d/*, label: system, collection: d, authoritative: true } ]"
	tool("list", lists, "", typed)
	tool("find", lists, `"q":{"type":"string"}`, typed)
	for i := range 12 {
		tool(fmt.Sprint("act", i), "effect: write, args: { /a: { role: selector, collection: c, from: [output] }, /b: { collection: c } }", `"a":{"type":"string"},"b":{"type":"string"}`, "")
	}
	tool("many", "effect: write, args: { /ids/*: { role: selector, collection: c, from: [output] } }", `"ids":{"type":"array","items":{"type":"string"}}`, "")
	tool("other", "effect: write, args: { /a: { role: selector, collection: d, from: [output] } }", `"a":{"type":"string"}`, "")
	tool("make", "effect: write, args: { /name: { role: target, from: [user] } }, outputs: [ { at: /id, label: system, collection: c } ]", `"name":{"type":"string"}`, typed)
	return newWorld(t, p.String(), `{"s":[`+d.String()+`]}`)
}

// G01 to G04, G07, G09: whatever an agent does without news of the collection,
// it is told of at most five different values at one pointer, and of fifty in
// the session, that the set does not hold them; and where a pointer is closed, a
// member is answered as what is none.
func TestNoOracle(t *testing.T) {
	policy, catalogue := oracleWorld(t)
	rapid.Check(t, func(t *rapid.T) {
		s := gate.NewSession("s_oracle", [32]byte{5}, provenance.Caps{})
		decide := func(tool, args string) gate.Decision {
			return gate.Decide(gate.Input{Policy: policy, Catalogue: catalogue, Session: s, Time: time.Unix(0, 0),
				Call: gate.Call{Server: "s", Tool: tool, Arguments: strictjson.Of([]byte(args))}})
		}
		do := func(tool, args, result string) gate.Decision {
			d := decide(tool, args)
			s.Decided(&d)
			if d.Allowed() {
				s.Commit(s.Observe(&d, gate.Result{Evidence: s.Next(), Status: gate.OK, Value: strictjson.Of([]byte(`{"structuredContent":` + result + `}`))}))
			}
			return d
		}
		s.Commit(s.Turn(s.Next(), []byte("make new-one, new-two"), time.Unix(0, 0)))
		secret := []string{"member-1", "member-2", "member-3"}
		do("list", "{}", `{"c":["member-1","member-2","member-3"],"d":["other-1"]}`)
		known := slices.Clone(secret)        // what any result or act of the session held
		told := map[string]map[string]bool{} // by pointer: values said not to be there
		number := 0
		value := func() string {
			if rapid.IntRange(0, 4).Draw(t, "right") == 0 {
				return rapid.SampledFrom(secret).Draw(t, "member")
			}
			return fmt.Sprint("guess-", rapid.IntRange(0, 400).Draw(t, "guess"))
		}
		for range rapid.IntRange(20, 200).Draw(t, "steps") {
			var d gate.Decision
			tool, args := "", map[string]any{}
			switch rapid.IntRange(0, 19).Draw(t, "what") {
			case 0: // old values again, by either listing; a stranger's text beside them
				do(rapid.SampledFrom([]string{"list", "find"}).Draw(t, "list"), "{}", `{"c":["member-1","member-3"],"d":["other-1"],"note":"guess-7"}`)
				continue
			case 1: // an own creation, which is listed then
				number++
				id := fmt.Sprint("made-", number)
				if made := do("make", `{"name":"new-one"}`, `{"id":"`+id+`"}`); made.Allowed() {
					secret, known = append(secret, id), append(known, id)
				}
				do("list", "{}", `{"c":["`+strings.Join(secret, `","`)+`"]}`)
				continue
			case 2: // news of another collection
				number++
				do("list", "{}", fmt.Sprintf(`{"d":["other-%d"]}`, number+1))
				delete(told, "other/a")
				continue
			case 3: // a read that repeats the guess
				g := value()
				do("find", `{"q":"`+g+`"}`, `{"q":"`+g+`"}`)
				continue
			case 4:
				if rapid.IntRange(0, 9).Draw(t, "news") == 0 {
					number++
					id := fmt.Sprint("news-", number)
					do("find", "{}", `{"c":["`+id+`"]}`)
					secret, known = append(secret, id), append(known, id)
					for p := range told {
						if p != "other/a" {
							delete(told, p)
						}
					}
				}
				continue
			case 5, 6:
				tool = "many"
				var ids []string
				for range rapid.IntRange(1, 12).Draw(t, "values") {
					if v := value(); !slices.Contains(ids, v) {
						ids = append(ids, v)
					}
				}
				args["ids"] = ids
			case 7:
				tool, args["a"] = "other", value()
			default:
				tool = fmt.Sprint("act", rapid.IntRange(0, 11).Draw(t, "act"))
				args["a"] = value()
				if rapid.Bool().Draw(t, "both") {
					args["b"] = value()
				}
			}
			raw, _ := json.Marshal(args)
			d = do(tool, string(raw), `{}`)
			if d.Outcome.Rejection == nil {
				continue
			}
			if d.Outcome.Rejection.Code != writ.MissingProvenance {
				// Nothing is told any more: a member and what is none look the same.
				for _, v := range []string{secret[0], "guess-401"} {
					other := map[string]any{}
					for k, was := range args {
						if other[k] = v; k == "ids" {
							ids := slices.Clone(was.([]string))
							ids[len(ids)-1] = v
							if other[k] = ids; slices.Contains(was.([]string)[:len(ids)-1], v) {
								other[k] = was
							}
						}
					}
					shut := map[string]bool{}
					for _, f := range d.Outcome.Rejection.Failures {
						shut[f.Pointer] = f.Reason == writ.PolicyPointerClosed || f.Reason == writ.PolicySessionClosed
					}
					for k := range args {
						if k != "ids" && !shut["/"+k] && !shut[""] {
							other[k] = args[k] // this one passed
						}
					}
					raw, _ := json.Marshal(other)
					again := decide(tool, string(raw))
					a, _ := json.Marshal(d.Outcome)
					b, _ := json.Marshal(again.Outcome)
					if string(a) != string(b) {
						t.Fatalf("%s %s tells more than\n%s\n%s", raw, b, args, a)
					}
				}
				continue
			}
			for _, f := range d.Outcome.Rejection.Failures {
				name := strings.Split(f.Pointer, "/")[1]
				v, ok := args[name].(string)
				if !ok {
					var i int
					fmt.Sscanf(f.Pointer, "/ids/%d", &i)
					v = args["ids"].([]string)[i]
				}
				p := tool + "/" + name
				if told[p] == nil {
					told[p] = map[string]bool{}
				}
				told[p][v] = true
				if slices.Contains(known, v) && tool != "other" {
					t.Fatalf("%s: a member was refused as %s", v, f.Reason)
				}
			}
			all := 0
			for p, vs := range told {
				if all += len(vs); len(vs) > 5 {
					t.Fatalf("%s: %d values told", p, len(vs))
				}
			}
			if all > 50 {
				t.Fatalf("%d values told in the session", all)
			}
		}
	})
}
