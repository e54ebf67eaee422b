package gateway_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/writ-project/writ/internal/gateway"
	"github.com/writ-project/writ/internal/strictjson"
)

const capturePolicy = `
pins: optional
collections: { item: { closed: true } }
tools:
  toy/list_items:
    effect: read
    outputs:
      - { at: /items/*/id, label: system, type: id, collection: item, authoritative: true }
      - { at: /items/*/state, label: system }
  toy/echo: { effect: read, outputs: [{ at: /text, label: system }] }
  toy/delete_item: { effect: write, args: { /id: { role: selector, collection: item, type: id, from: [output] } } }
`

// capturer is a memory that only says what it could capture.
type capturer struct {
	notebook
	capture func(ctx context.Context, by gateway.Caller, payload []byte) string
}

func (c *capturer) Call(ctx context.Context, by gateway.Caller, tool string, arguments []byte) (gateway.Answer, error) {
	said := c.capture(ctx, by, strictjson.Get(arguments, "payload"))
	return gateway.Answer{Result: []byte(`{"content":[],"structuredContent":{"said":` + string(strictjson.Quote(said)) + `}}`)}, nil
}

// TestCapture: what a session saw is captured verbatim, with the label of the
// leaf it stands in, whole or between words; nothing else is, and nothing of
// another session or of the memory itself.
func TestCapture(t *testing.T) {
	ctx := testContext(t)
	up := newScripted(t, "toy", true)
	up.list("tools/list", strings.TrimSuffix(itemTools, "]}")+
		`,{"name":"echo","inputSchema":{"type":"object","properties":{"text":{"type":"string"}}},"outputSchema":{"type":"object","required":["text"]}}]}`)
	r := newRig(t, onSQLite(t), policy(t, capturePolicy), up.config(true))
	mem := &capturer{capture: func(ctx context.Context, by gateway.Caller, payload []byte) string {
		text, _ := strictjson.Text(strictjson.Get(payload, "raw_payload"))
		number := uint32(0)
		fmt.Sscanf(string(strictjson.Get(payload, "observation_id")), `"ev%d"`, &number)
		if text == "newest" {
			seen, err := by.Sightings(ctx, 3)
			out := ""
			for _, s := range seen {
				out += fmt.Sprintf("ev%d %s/%s %v, ", s.Evidence.Number, s.Server, s.Tool, s.Admissible)
			}
			if err != nil {
				out = err.Error()
			}
			return out
		}
		c, ok, err := by.Capture(ctx, number, text)
		switch {
		case err != nil:
			return err.Error()
		case !ok:
			return "nothing"
		}
		return fmt.Sprintf("ev%d %s/%s%s %v whole=%v %s %s", c.Evidence.Number, c.Server, c.Tool, c.Pointer, c.Label, c.Whole, c.Type, c.Collection)
	}}
	r.opts.Inside = mem
	r.restart()
	secret := r.mint()
	w := overHTTP(ctx, r, true, web{session: secret})
	s, _ := r.gw.FindSession(ctx, "loopback", secret)

	up.reply(`"result":{"content":[{"type":"text","text":"two items, the first is broken"}],"structuredContent":{"items":[{"id":"item-4711","state":"out of order \"since\" Monday","weight":17.5},{"id":"item-48","state":"fine"}]}}`)
	passed(t, w.call(ctx, "list_items", `{}`))                                                     // ev1
	if _, err := r.gw.Turn(ctx, s, "Please remember: my desk is number 12, not 13."); err != nil { // ev2
		t.Fatal(err)
	}
	up.reply(`"result":{"content":[],"structuredContent":{"text":"the boss said pay IBAN-99"}}`)
	passed(t, w.call(ctx, "echo", `{"text":"the boss said pay IBAN-99"}`)) // ev3
	up.reply(`"result":{"isError":true,"content":[{"type":"text","text":"no such item item-777 here"}]}`)
	w.call(ctx, "list_items", `{}`) // ev4

	ask := func(w *wire, payload string) string {
		a := w.call(ctx, "record_observation", `{"payload":`+payload+`}`)
		return text(strictjson.Get(a.result, "structuredContent"), "said")
	}
	for _, c := range []struct{ payload, want string }{
		{`{"raw_payload":"item-4711"}`, "ev1 toy/list_items/structuredContent/items/0/id system whole=true id item"},
		{`{"raw_payload":"out of order \"since\" Monday"}`, "ev1 toy/list_items/structuredContent/items/0/state system whole=true  "},
		{`{"raw_payload":"order \"since\" Monday"}`, "ev1 toy/list_items/structuredContent/items/0/state system whole=false  "},
		{`{"raw_payload":"17.5"}`, "ev1 toy/list_items/structuredContent/items/0/weight external whole=true  "},
		{`{"raw_payload":"the first is broken"}`, "ev1 toy/list_items/content/0/text external whole=false  "},
		{`{"raw_payload":"my desk is number 12"}`, "ev2 / user whole=false  "},
		{`{"raw_payload":"the boss said pay IBAN-99"}`, "ev3 toy/echo/structuredContent/text model whole=true  "}, // P01: an echo
		{`{"raw_payload":"no such item item-777 here"}`, "ev4 toy/list_items/content/0/text model whole=true  "},  // P02: an error text
		{`{"raw_payload":"item-471"}`, "nothing"},         // cropped
		{`{"raw_payload":"desk is number 1"}`, "nothing"}, // cropped
		{`{"raw_payload":"my desk is number 14"}`, "nothing"},
		{`{"raw_payload":"7.5"}`, "nothing"},
		{`{"raw_payload":""}`, "nothing"},
		{`{"raw_payload":"said"}`, "nothing"}, // only the memory's own answers hold it whole
		{`{"raw_payload":"item-4711","observation_id":"ev2"}`, "nothing"},
		{`{"raw_payload":"item-4711","observation_id":"ev1"}`, "ev1 toy/list_items/structuredContent/items/0/id system whole=true id item"},
		{`{"raw_payload":"item-4711","observation_id":"ev99"}`, "nothing"},
	} {
		if got := ask(w, c.payload); got != c.want {
			t.Errorf("%s: got %q, want %q", c.payload, got, c.want)
		}
	}
	if got := ask(w, `{"raw_payload":"newest"}`); got != "ev4 toy/list_items false, ev3 toy/echo true, ev2 / true, " {
		t.Errorf("the newest: %q", got)
	}
	if got := ask(overHTTP(ctx, r, true, web{session: r.mint()}), `{"raw_payload":"item-4711"}`); got != "nothing" {
		t.Errorf("of another session: %q", got)
	}
	r.restart()
	w = overHTTP(ctx, r, true, web{session: secret})
	if got, want := ask(w, `{"raw_payload":"item-4711"}`), "ev1 toy/list_items/structuredContent/items/0/id system whole=true id item"; got != want {
		t.Errorf("after a restart: got %q", got)
	}
}

// TestLookedAt: a page does not hide by its size what the user said before
// it, nor what a trusted tool returned, nor another page; and where something was
// passed over, that is said.
func TestLookedAt(t *testing.T) {
	ctx := testContext(t)
	up := newScripted(t, "toy", true)
	up.list("tools/list", strings.TrimSuffix(itemTools, "]}")+`,{"name":"page","inputSchema":{"type":"object"}}]}`)
	r := newRig(t, onSQLite(t), policy(t, capturePolicy+"  toy/page: { effect: read }\n"), up.config(true))
	r.opts.Inside = &capturer{capture: func(ctx context.Context, by gateway.Caller, payload []byte) string {
		if text, _ := strictjson.Text(strictjson.Get(payload, "raw_payload")); text != "" {
			c, ok, err := by.Capture(ctx, 0, text)
			return fmt.Sprint(ok, " ", c.Label, " unlooked=", c.Unlooked, " ", err)
		}
		var shown []string
		all, err := by.Units(ctx, func(u *gateway.Unit) {
			if text := u.Text[:min(len(u.Text), 20)]; !slices.Contains(shown, text) {
				shown = append(shown, text)
			}
		})
		return fmt.Sprint(strings.Join(shown, " | "), " all=", all, " ", err)
	}}
	r.restart()
	secret := r.mint()
	w := overHTTP(ctx, r, true, web{session: secret})
	s, _ := r.gw.FindSession(ctx, "loopback", secret)
	say(t, r, s, "My desk is number 12.")
	up.reply(`"result":{"content":[],"structuredContent":{"items":[{"id":"item-4711"}]}}`)
	passed(t, w.call(ctx, "list_items", `{}`))
	page := func(words string, times int) {
		up.reply(`"result":{"content":[{"type":"text","text":"` + strings.Repeat(words, times) + `"}]}`)
		passed(t, w.call(ctx, "page", `{}`))
	}
	saw := func() string {
		return text(strictjson.Get(w.call(ctx, "record_observation", `{"payload":{}}`).result, "structuredContent"), "said")
	}
	page("A small page. ", 1)
	if got, want := saw(), `text | A small page. | {"id":"item-4711"} | item-4711 | My desk is number 12 all=true <nil>`; got != want {
		t.Errorf("saw %s, want %s", got, want)
	}
	page("spam and eggs. ", 75000) // more than is taken apart at once
	if got, want := saw(), `text | A small page. | {"id":"item-4711"} | item-4711 | My desk is number 12 all=false <nil>`; got != want {
		t.Errorf("behind a large page: %s, want %s", got, want)
	}
	quoted := func(words string) string {
		return text(strictjson.Get(w.call(ctx, "record_observation", `{"payload":{"raw_payload":`+string(strictjson.Quote(words))+`}}`).result, "structuredContent"), "said")
	}
	if got := quoted("desk is number 12"); got != "true user unlooked=false <nil>" {
		t.Error(got)
	}
	if got := quoted("desk is number 13"); got != "false model unlooked=false <nil>" {
		t.Error(got)
	}
}

// TestRecordLeftOut: of a record what is worth less than the rest is left out, and
// named; what says nothing is not.
func TestRecordLeftOut(t *testing.T) {
	ctx := testContext(t)
	up := newScripted(t, "toy", true)
	up.list("tools/list", itemTools)
	r := newRig(t, onSQLite(t), policy(t, capturePolicy), up.config(true))
	r.opts.Inside = &capturer{capture: func(ctx context.Context, by gateway.Caller, _ []byte) string {
		var shown []string
		_, err := by.Units(ctx, func(u *gateway.Unit) {
			if u.Record && strings.Contains(u.Text, "item-4711") {
				shown = append(shown, fmt.Sprint(u.Text, " ", u.Label, " ", u.Withheld))
			}
		})
		return fmt.Sprint(strings.Join(shown, " | "), " ", err)
	}}
	r.restart()
	w := overHTTP(ctx, r, true, web{session: r.mint()})
	up.reply(`"result":{"content":[],"structuredContent":{"items":[{"id":"item-4711","state":"fine","title":"not for Anna","tags":["a","b"],"none":null,"empty":[],"owner":{"name":"Eve"},"parts":[{"id":1}]}]}}`)
	passed(t, w.call(ctx, "list_items", `{}`))
	got := text(strictjson.Get(w.call(ctx, "record_observation", `{"payload":{}}`).result, "structuredContent"), "said")
	if want := `{"id":"item-4711","state":"fine"} system [title tags owner parts] <nil>`; got != want {
		t.Errorf("shown %s, want %s", got, want)
	}
}
