package gateway_test

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/writ-project/writ/gate"
	"github.com/writ-project/writ/internal/draft"
	"github.com/writ-project/writ/internal/gateway"
	"github.com/writ-project/writ/internal/strictjson"
	writpolicy "github.com/writ-project/writ/policy"
)

const ticketTools = `{"tools":[` +
	`{"name":"list_tickets","annotations":{"readOnlyHint":true},"inputSchema":{"type":"object","properties":{"query":{"type":"string"},"limit":{"type":"integer"},"state":{"type":"string"}}},"outputSchema":{"type":"object","properties":{"tickets":{"type":"array","items":{"type":"object","properties":{"id":{"type":"string"},"title":{"type":"string"},"ref":{"type":"string"}}}}}}},` +
	`{"name":"comment_ticket","inputSchema":{"type":"object","properties":{"id":{"type":"string"},"body":{"type":"string"}},"required":["id","body"]}},` +
	`{"name":"label_ticket","inputSchema":{"type":"object","properties":{"id":{"type":"string"},"ref":{"type":"string"}},"required":["id","ref"]}}]}`

var noSchema = regexp.MustCompile(`,"outputSchema":\{.*?\}\}\}\}\}\}`)

// tickets is the list of some tickets, as data or as most servers answer.
func tickets(inText bool, ids ...string) string {
	var out []string
	for _, id := range ids {
		out = append(out, fmt.Sprintf(`{"id":%q,"title":"the door of %s","ref":"R-%s"}`, id, id, strings.ToLower(id)))
	}
	all := `{"tickets":[` + strings.Join(out, ",") + `]}`
	if inText {
		return `"result":{"content":[{"type":"text","text":` + string(strictjson.Quote(all)) + `}]}`
	}
	return `"result":{"content":[],"structuredContent":` + all + `}`
}

// TestNextDay: a server without a contract, under the draft untouched. A comment is words
// of the agent's, and lowers all that the server says from then on (R38): who says that
// strangers do not write the ids is asked again the next day, and may say then that the
// server gives them; who says so at once is asked once.
func TestNextDay(t *testing.T) {
	const ours, server = "from now on, and strangers cannot write there", "from now on, and the server itself gives what stands there"
	for _, c := range []struct {
		name   string
		lists  string   // what the list is asked with
		says   []string // each day
		asked  []int
		grown  string
		posted int
		inText bool
	}{
		{"the server", `{}`, []string{server, "", ""}, []int{1, 0, 0}, "server;", 6, false},
		{"found by the agent's words", `{"query":"a loose hinge","limit":25}`, []string{server, "", ""}, []int{1, 0, 0}, "server;", 6, false},
		{"our own people, then the server", `{}`, []string{ours, server, ""}, []int{1, 1, 0}, "ours;server;", 6, false},
		{"our own people, and then nobody", `{}`, []string{ours, "", ""}, []int{1, 1, 1}, "ours;", 4, false},
		{"found by its state", `{"state":"open","limit":25}`, []string{server, "", ""}, []int{1, 0, 0}, "server;", 6, false},
		{"the server, in a text", `{}`, []string{server, "", ""}, []int{1, 0, 0}, "server;", 6, true},
		{"our own people, then the server, in a text", `{}`, []string{ours, server, ""}, []int{1, 1, 0}, "ours;server;", 6, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			ctx := testContext(t)
			r, up, _ := askedRig(t)
			ticketTools := ticketTools
			if c.inText {
				ticketTools = noSchema.ReplaceAllString(ticketTools, "")
			}
			up.list("tools/list", ticketTools)
			var defs []gate.Definition
			for _, d := range strictjson.Of([]byte(ticketTools)).Get("tools").Elements() {
				defs = append(defs, gate.Definition{Server: "toy", Raw: d.Raw()})
			}
			cat, _ := gate.NewCatalogue(defs, policy(t, "pins: optional\ntools: {}\n"))
			r.opts.Policy = policy(t, draft.Policy(cat).Text())
			grown := ""
			r.opts.Grow = func(ctx context.Context, lines []writpolicy.Grown, record func() error) error {
				p, ok := r.opts.Policy.With(lines)
				if err := record(); err != nil || !ok {
					t.Errorf("%v %v", err, lines)
				}
				grown += lines[0].Writes + ";"
				r.opts.Policy = p
				_, err := r.gw.Reload(ctx, gateway.Setup{Policy: p, Servers: r.opts.Servers})
				return err
			}
			posted := 0
			for day, says := range c.says {
				r.restart()
				w, asked := r.as(ctx, 1, "kim"), 0
				w.ask = func(_ string, params []byte) string {
					if asked++; says == "" {
						return `{"action":"decline"}`
					}
					return `{"action":"accept","content":{"answer":"` + says + `"}}`
				}
				up.answerWith(tickets(c.inText, "T-1041", "T-1042", "T-1043"))
				passed(t, w.call(ctx, "list_tickets", c.lists))
				up.take()
				for _, id := range []string{"T-1042", "T-1043"} {
					up.answerWith(`"result":{"content":[]}`)
					w.call(ctx, "comment_ticket", `{"id":"`+id+`","body":"the hinge of day `+fmt.Sprint(day)+` is loose, as in T-1043"}`)
					posted += len(up.take())
				}
				if asked != c.asked[day] {
					t.Errorf("day %d: asked %d times", day, asked)
				}
				// A number that no ticket has passes on no day.
				w.ask = func(string, []byte) string { return `{"action":"decline"}` }
				if a := w.call(ctx, "comment_ticket", `{"id":"T-9999","body":"the hinge is loose"}`); !strings.Contains(refusedFor(a), "approval.refused") {
					t.Errorf("%s %s", a.result, a.err)
				}
			}
			if grown != c.grown || posted != c.posted {
				t.Errorf("%d comments, grown: %s", posted, grown)
			}
		})
	}
}

// TestYesAndThenFromNowOn: under the draft untouched, a person says yes to one call and "from
// now on" to a later one of its kind, on that day or another. The next day nobody is asked:
// what he said yes to lowered a place that counts no more while he keeps the line. What
// is taken back counts again, and so does what an act says in words of the agent's.
func TestYesAndThenFromNowOn(t *testing.T) {
	const yes, ours, server = "yes", "from now on, and strangers cannot write there", "from now on, and the server itself gives what stands there"
	closeTool := strings.TrimSuffix(ticketTools, "]}") + `,{"name":"close_ticket","inputSchema":{"type":"object","properties":{"id":{"type":"string"}},"required":["id"]}}]}`
	for _, c := range []struct {
		name   string
		says   [][]string // each day, to what is asked: no to all else
		asked  []int
		closed int
		words  bool // a comment that he said yes to on the first day
		remove int  // the day before which the line is taken back, 0 for none
		inText bool
	}{
		{"on one day", [][]string{{yes, ours}, {}, {}}, []int{2, 0, 0}, 9, false, 0, false},
		{"on two days", [][]string{{yes, yes, yes}, {yes, ours}, {}}, []int{3, 2, 0}, 9, false, 0, false},
		{"on three days", [][]string{{yes, yes, yes}, {yes, yes, yes}, {ours}, {}}, []int{3, 3, 1, 0}, 12, false, 0, false},
		{"never", [][]string{{yes}, {yes}}, []int{3, 3}, 2, false, 0, false},
		{"in a text", [][]string{{yes, ours}, {}, {}}, []int{2, 0, 0}, 9, false, 0, true},
		{"the server", [][]string{{yes, server}, {}, {}}, []int{2, 0, 0}, 9, false, 0, false},
		{"taken back", [][]string{{yes, ours}, {}, {}}, []int{2, 0, 3}, 6, false, 2, false},
		{"after words", [][]string{{yes, yes, ours}, {}}, []int{3, 3}, 2, true, 0, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			ctx := testContext(t)
			r, up, _ := askedRig(t)
			closeTool := closeTool
			if c.inText {
				closeTool = noSchema.ReplaceAllString(closeTool, "")
			}
			up.list("tools/list", closeTool)
			var defs []gate.Definition
			for _, d := range strictjson.Of([]byte(closeTool)).Get("tools").Elements() {
				defs = append(defs, gate.Definition{Server: "toy", Raw: d.Raw()})
			}
			cat, _ := gate.NewCatalogue(defs, policy(t, "pins: optional\ntools: {}\n"))
			draft := policy(t, draft.Policy(cat).Text())
			r.opts.Policy = draft
			r.opts.Grow = func(ctx context.Context, lines []writpolicy.Grown, record func() error) error {
				p, ok := r.opts.Policy.With(lines)
				if err := record(); err != nil || !ok {
					t.Errorf("%v %v", err, lines)
				}
				if len(lines) != 1 { // no call beside it, which a line needs that does not count later
					t.Errorf("%+v", lines)
				}
				r.opts.Policy = p
				_, err := r.gw.Reload(ctx, gateway.Setup{Policy: p, Servers: r.opts.Servers})
				return err
			}
			closed := 0
			for day, says := range c.says {
				if day > 0 && day == c.remove {
					r.opts.Policy = draft
				}
				r.restart()
				w, asked := r.as(ctx, 1, "kim"), 0
				w.ask = func(string, []byte) string {
					if asked++; asked > len(says) {
						return `{"action":"decline"}`
					}
					return `{"action":"accept","content":{"answer":"` + says[asked-1] + `"}}`
				}
				up.answerWith(tickets(c.inText, "T-1041", "T-1042", "T-1043"))
				passed(t, w.call(ctx, "list_tickets", `{}`))
				up.take()
				calls := []string{"T-1041", "T-1042", "T-1043"}
				if c.words && day == 0 {
					up.answerWith(`"result":{"content":[]}`)
					passed(t, w.call(ctx, "comment_ticket", `{"id":"T-1041","body":"the hinge is loose"}`))
					up.take()
					calls = calls[:2]
				}
				for _, id := range calls {
					up.answerWith(`"result":{"content":[]}`)
					w.call(ctx, "close_ticket", `{"id":"`+id+`"}`)
					closed += len(up.take())
				}
				if asked != c.asked[day] {
					t.Errorf("day %d: asked %d times", day, asked)
				}
				w.ask = func(string, []byte) string { return `{"action":"decline"}` }
				if a := w.call(ctx, "close_ticket", `{"id":"T-9999"}`); !strings.Contains(refusedFor(a), "approval.refused") {
					t.Errorf("%s %s", a.result, a.err)
				}
			}
			if closed != c.closed {
				t.Errorf("%d are closed", closed)
			}
		})
	}
}
