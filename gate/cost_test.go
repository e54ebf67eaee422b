package gate_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/writ-project/writ/gate"
	"github.com/writ-project/writ/internal/strictjson"
	"github.com/writ-project/writ/provenance"
)

// BenchmarkManyByMany judges one read with n arguments that the model made up
// and a result of n leaves (D02, D04): what it costs for one argument and one
// leaf must not depend on n.
func BenchmarkManyByMany(b *testing.B) {
	p, c := newWorld(b, `
pins: optional
collections: { path: { closed: true } }
tools:
  q/lookup: { effect: read, outputs: [ { at: /hits/*, label: system } ] }
  q/write: { effect: write, args: { /path: { role: target, collection: path, from: [{const: ["x"]}] }, /text: { role: content, content: local } } }
`, `{"q":[{"name":"lookup","inputSchema":{"type":"object","properties":{"terms":{"type":"array","items":{"type":"string"}}}},"outputSchema":{"type":"object","properties":{"hits":{"type":"array","items":{"type":"string"}}}}},
{"name":"write","inputSchema":{"type":"object","properties":{"path":{"type":"string"},"text":{"type":"string"}}}}]}`)
	at := time.Date(2026, 11, 22, 9, 0, 0, 0, time.UTC)
	list := func(format string, n int) string {
		all := make([]string, n)
		for i := range all {
			all[i] = fmt.Sprintf(format, i)
		}
		return `["` + strings.Join(all, `","`) + `"]`
	}
	for _, n := range []int{1_000, 10_000, 99_000} {
		args, result := []byte(`{"terms":`+list("t%015d", n)+`}`), []byte(`{"content":[],"structuredContent":{"hits":`+list("h%015d", n)+`}}`)
		for _, after := range []string{"read", "acts"} {
			b.Run(fmt.Sprintf("after=%s/n=%d", after, n), func(b *testing.B) {
				for b.Loop() {
					s := gate.NewSession("s_a", [32]byte{1}, provenance.Caps{})
					decide := func(tool, args string) gate.Decision {
						d := gate.Decide(gate.Input{Policy: p, Catalogue: c, Session: s, Call: gate.Call{Server: "q", Tool: tool, Arguments: strictjson.Of([]byte(args))}, Time: at})
						if !d.Allowed() {
							b.Fatalf("refused: %+v", d.Outcome)
						}
						s.Decided(&d)
						return d
					}
					if after == "acts" {
						for i := range 20 {
							decide("write", `{"path":"x","text":"`+strings.Repeat(fmt.Sprintf("the text of act %d, ", i), n/1000)+`"}`)
						}
					}
					d := decide("lookup", string(args))
					o := s.Observe(&d, gate.Result{Evidence: s.Next(), Status: gate.OK, Value: strictjson.Of(result)})
					if !o.Admissible {
						b.Fatal(o.Why)
					}
					s.Commit(o)
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/leaf")
			})
		}
	}
}

// BenchmarkManyTurns decides acts after many turns of the user: what he typed, a day
// he named, an amount, and a model's text with links.
func BenchmarkManyTurns(b *testing.B) {
	p, c := newWorld(b, `
pins: optional
collections: { contact: {} }
tools:
  m/send:
    effect: send
    args:
      /to: { role: target, type: email, collection: contact }
      /at: { role: time }
      /sum: { role: amount, type: decimal, words: [pay], forms: [a+b, a*p%+c] }
      /body: { role: content, content: open }
`, `{"m":[{"name":"send","inputSchema":{"type":"object","properties":{"to":{"type":"string"},"at":{"type":"string"},"sum":{"type":"number"},"body":{"type":"string"}}}}]}`)
	at := time.Date(2026, 11, 22, 9, 0, 0, 0, time.UTC)
	for _, turns := range []int{1, 1_000} {
		s := gate.NewSession("s_a", [32]byte{1}, provenance.Caps{})
		for i := range turns {
			text := fmt.Sprintf("Write to kim%d@corp.example on %s at noon, and pay $%d.50. The menu is at https://menu%d.example/x", i, at.AddDate(0, 0, i%300).Format("2006-01-02"), i+1, i)
			s.Commit(s.Turn(s.Next(), []byte(text), at))
		}
		for name, args := range map[string]string{
			"accepted": fmt.Sprintf(`{"to":"kim0@corp.example","at":"2026-11-22 12:00","sum":%d.5,"body":"Dear Kim, the menu is at https://menu0.example/x. %s"}`, turns, strings.Repeat("See you there. ", 100)),
			"refused":  `{"to":"eve@corp.example","at":"2027-12-24 12:00","sum":77.77,"body":"Dear Kim, look at https://evil.example/x"}`,
		} {
			b.Run(fmt.Sprintf("turns=%d/%s", turns, name), func(b *testing.B) {
				for b.Loop() {
					d := gate.Decide(gate.Input{Policy: p, Catalogue: c, Session: s, Call: gate.Call{Server: "m", Tool: "send", Arguments: strictjson.Of([]byte(args))}, Time: at})
					if d.Allowed() != (name == "accepted") {
						b.Fatalf("%+v", d.Outcome.Rejection)
					}
				}
			})
		}
	}
}

// BenchmarkJoined decides an act on n items of an order, each exchanged for a variant
// of its product (R37): what it costs for one must not depend on n.
func BenchmarkJoined(b *testing.B) {
	p, c := newWorld(b, `
pins: optional
collections: { order: { closed: true }, item: { closed: true }, product: { closed: true } }
tools:
  s/order: { effect: read, outputs: [ { at: /id, label: system, collection: order }, { at: /items/*/id, label: system, collection: item }, { at: /items/*/product, label: system, collection: product } ] }
  s/product: { effect: read, outputs: [ { at: /id, label: system, collection: product }, { at: /variants/*/id, label: system, collection: item } ] }
  s/exchange:
    effect: write
    same_record: [/order, /old/*]
    args:
      /order: { role: selector, collection: order }
      /old/*: { role: selector, collection: item, max_items: 100 }
      /new/*: { role: selector, collection: item, max_items: 100, of: /old/*, by: product }
`, `{"s":[{"name":"order","inputSchema":{"type":"object"},"outputSchema":{"type":"object"}},{"name":"product","inputSchema":{"type":"object"},"outputSchema":{"type":"object"}},
{"name":"exchange","inputSchema":{"type":"object","properties":{"order":{"type":"string"},"old":{"type":"array","items":{"type":"string"}},"new":{"type":"array","items":{"type":"string"}}}}}]}`)
	at := time.Date(2026, 11, 22, 9, 0, 0, 0, time.UTC)
	for _, n := range []int{1, 10, 50} {
		s := gate.NewSession("s_a", [32]byte{1}, provenance.Caps{})
		show := func(tool, result string) {
			d := gate.Decide(gate.Input{Policy: p, Catalogue: c, Session: s, Call: gate.Call{Server: "s", Tool: tool}, Time: at})
			s.Decided(&d)
			s.Commit(s.Observe(&d, gate.Result{Evidence: s.Next(), Status: gate.OK, Value: strictjson.Of([]byte(`{"structuredContent":` + result + `}`))}))
		}
		var items, old, other []string
		for i := range n {
			items = append(items, fmt.Sprintf(`{"id":"item-%d-0","product":"product-%d"}`, i, i))
			old, other = append(old, fmt.Sprintf(`"item-%d-0"`, i)), append(other, fmt.Sprintf(`"item-%d-39"`, i))
			var variants []string
			for k := range 40 {
				variants = append(variants, fmt.Sprintf(`{"id":"item-%d-%d","size":%d,"color":"red"}`, i, k, k))
			}
			show("product", fmt.Sprintf(`{"id":"product-%d","variants":[%s]}`, i, strings.Join(variants, ",")))
		}
		show("order", `{"id":"order-1","items":[`+strings.Join(items, ",")+`]}`)
		args := []byte(`{"order":"order-1","old":[` + strings.Join(old, ",") + `],"new":[` + strings.Join(other, ",") + `]}`)
		b.Run(fmt.Sprint("n=", n), func(b *testing.B) {
			for b.Loop() {
				d := gate.Decide(gate.Input{Policy: p, Catalogue: c, Session: s, Call: gate.Call{Server: "s", Tool: "exchange", Arguments: strictjson.Of(args)}, Time: at})
				if !d.Allowed() {
					b.Fatalf("%+v", d.Outcome.Rejection)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/item")
		})
	}
}
