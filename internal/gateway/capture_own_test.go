package gateway_test

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v4"
	"pgregory.net/rapid"

	writ "github.com/writ-project/writ"
	"github.com/writ-project/writ/internal/gateway"
	"github.com/writ-project/writ/internal/mcp/downstream"
	"github.com/writ-project/writ/internal/strictjson"
)

// say puts a turn on record in a session of its own, or in the one given.
func say(t interface{ Fatal(...any) }, r *rig, s downstream.Session, turn string) downstream.Session {
	ctx := context.Background()
	if s == nil {
		s, _ = r.gw.FindSession(ctx, "loopback", r.mint())
	}
	if _, err := r.gw.Turn(ctx, s, turn); err != nil {
		t.Fatal(err)
	}
	return s
}

// TestCaptureOwnWords (R6, P06, M01): what is captured of a turn is the user's
// only where the gate takes it for his: the cases are those of its reader.
func TestCaptureOwnWords(t *testing.T) {
	b, err := os.ReadFile("../../provenance/testdata/own_words.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var cases []struct {
		Form, Turn, Quote string
		Own               bool
	}
	if err := yaml.Load(b, &cases, yaml.WithKnownFields(), yaml.WithUniqueKeys()); err != nil {
		t.Fatal(err)
	}
	r := newRig(t, onMaps(t), policy(t, "tools: {}"))
	shown := map[writ.Label]int{}
	for _, c := range cases {
		if c.Turn == "" {
			continue
		}
		s := say(t, r, nil, c.Turn)
		got, ok, err := r.gw.Capture(context.Background(), s.PublicID(), 0, c.Quote)
		if err != nil {
			t.Fatal(err)
		}
		if !ok { // too short to show anything
			if len(c.Quote) >= 8 {
				t.Errorf("R6 %s: %q in %q is not captured", c.Form, c.Quote, c.Turn)
			}
			continue
		}
		want := writ.External
		if c.Own {
			want = writ.User
		}
		if got.Label != want || got.Whole != (c.Quote == c.Turn) || got.Server != "" || got.Evidence.Number != 1 {
			t.Errorf("R6 %s: %q in %q: %+v, want %v", c.Form, c.Quote, c.Turn, got, want)
		}
		shown[want]++
	}
	if shown[writ.User] < 5 || shown[writ.External] < 20 {
		t.Errorf("the cases show little: %v", shown)
	}
}

// TestCaptureOwnWordsModel: turns are drawn of lines whose writer is known by
// construction, and quotes of any words of them. A quote is the user's if and
// only if it stands somewhere in nothing but his words.
func TestCaptureOwnWordsModel(t *testing.T) {
	words := rapid.SampledFrom([]string{"transfer", "DE00-4711-22", "the", "house", "kim@acme.example", "INV-100", "ältere", "17"})
	r := newRig(t, onMaps(t), policy(t, "tools: {}"))
	shown := map[writ.Label]int{}
	rapid.Check(t, func(t *rapid.T) {
		line := func() string { return strings.Join(rapid.SliceOfN(words, 1, 6).Draw(t, "line"), " ") }
		var text strings.Builder
		var own []bool // of each byte
		put := func(his bool, s string) {
			if text.Len() > 0 { // the break is his between two lines of his
				before := own[len(own)-1]
				text.WriteByte('\n')
				own = append(own, his && before)
			}
			text.WriteString(s)
			own = append(own, slices.Repeat([]bool{his}, len(s))...)
		}
		quoted := false
		blocks := rapid.Permutation([]string{"<note>\n%s\n</note>", "```\n%s\n```", "<!-- %s -->"}).Draw(t, "blocks")
		for range rapid.IntRange(1, 7).Draw(t, "lines") {
			switch k := rapid.IntRange(0, 5).Draw(t, "kind"); {
			case k == 0:
				put(false, "> "+line())
				if quoted = rapid.Bool().Draw(t, "goes on"); !quoted { // an empty line ends it
					put(false, "")
				}
			case k == 1 && len(blocks) > 0: // one of each: between two of one kind nothing is his
				put(false, fmt.Sprintf(blocks[0], line()))
				blocks = blocks[1:]
			default:
				put(!quoted, line())
			}
		}
		turn := text.String()
		var starts, ends []int
		for i := range turn {
			blank := func(at int) bool { return at < 0 || at == len(turn) || turn[at] == ' ' || turn[at] == '\n' }
			if !blank(i) && blank(i-1) {
				starts = append(starts, i)
				ends = append(ends, i+strings.IndexAny(turn[i:]+" ", " \n"))
			}
		}
		s := say(t, r, nil, turn)
		for range 6 {
			from := rapid.IntRange(0, len(starts)-1).Draw(t, "from")
			to := min(from+rapid.IntRange(0, 4).Draw(t, "more"), len(ends)-1)
			quote := turn[starts[from]:ends[to]]
			his := false
			for i := range turn {
				if slices.Contains(starts, i) && strings.HasPrefix(turn[i:], quote) && slices.Contains(ends, i+len(quote)) {
					his = his || !slices.Contains(own[i:i+len(quote)], false)
				}
			}
			got, ok, err := r.gw.Capture(context.Background(), s.PublicID(), 0, quote)
			switch {
			case err != nil:
				t.Fatal(err)
			case !ok && his && len(quote) >= 8:
				t.Fatalf("%q in %q is not captured", quote, turn)
			case ok && got.Label == writ.User && !his, ok && got.Label != writ.User && his && len(quote) >= 8: // a short one shows nothing but where it is a line
				t.Fatalf("%q in %q is captured as %v; his own: %v", quote, turn, got.Label, his)
			case ok && got.Label != writ.User && got.Label != writ.External:
				t.Fatalf("%q in %q is captured as %v", quote, turn, got.Label)
			case ok:
				shown[got.Label]++
			}
		}
	})
	if shown[writ.User] == 0 || shown[writ.External] == 0 {
		t.Errorf("the draw shows nothing: %v", shown)
	}
}

// TestCaptureVouches: a turn that does not vouch at the gate is captured as what
// anybody might have written: one that could not be taken in, one that lapsed,
// also after a restart; what the user says anew is his own.
func TestCaptureVouches(t *testing.T) {
	c := &clock{now: time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)}
	r := &rig{tb: t, store: onSQLite(t)}
	r.opts = gateway.Options{Store: r.store, Policy: policy(t, "tools: {}"), Version: "test", Clock: c.Now}
	r.start()
	t.Cleanup(func() { r.stop() })
	ctx := testContext(t)
	secret := r.mint()
	s, _ := r.gw.FindSession(ctx, "loopback", secret)
	want := func(when string, label writ.Label, worth ...bool) {
		t.Helper()
		s, _ := r.gw.FindSession(ctx, "loopback", secret)
		got, ok, err := r.gw.Capture(ctx, s.PublicID(), 0, "my desk is number 12")
		if err != nil || !ok || got.Label != label {
			t.Errorf("%s: %+v %v %v, want %v", when, got, ok, err, label)
		}
		seen, err := r.gw.Sightings(ctx, s.PublicID(), 9)
		var shown []bool
		for _, x := range seen {
			shown = append(shown, x.Admissible)
		}
		if err != nil || !slices.Equal(shown, worth) {
			t.Errorf("%s: shown to vouch %v, want %v (%v)", when, shown, worth, err)
		}
	}
	say(t, r, s, strings.Repeat("a ", 64<<10)+"my desk is number 12")
	want("D04: too long for a turn", writ.External, false)
	say(t, r, s, "Remember: my desk is number 12.")
	want("said", writ.User, true, false)
	r.restart()
	want("after a restart", writ.User, true, false)
	c.advance(31 * time.Minute)
	s, _ = r.gw.FindSession(ctx, "loopback", secret)
	say(t, r, s, "What do you know of me?") // which is when it lapses
	want("in another conversation", writ.External, true, false, false)
	r.restart()
	want("and after a restart", writ.External, true, false, false)
	s, _ = r.gw.FindSession(ctx, "loopback", secret)
	say(t, r, s, "I told you: my desk is number 12!")
	want("said again", writ.User, true, true, false, false)
}

// TestCaptureLapses: the call that records is itself what ends the other
// conversation; it finds the user's words no longer his.
func TestCaptureLapses(t *testing.T) {
	ctx := testContext(t)
	c := &clock{now: time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)}
	r := newRig(t, onSQLite(t), policy(t, insidePolicy))
	r.opts.Clock = c.Now
	r.opts.Inside = &capturer{capture: func(ctx context.Context, by gateway.Caller, _ []byte) string {
		c, ok, err := by.Capture(ctx, 0, "my desk is number 12")
		return fmt.Sprint(ok, c.Label, err)
	}}
	r.restart()
	secret := r.mint()
	s, _ := r.gw.FindSession(ctx, "loopback", secret)
	say(t, r, s, "Remember: my desk is number 12.")
	w := overHTTP(ctx, r, true, web{session: secret})
	for _, wait := range []struct {
		minutes time.Duration
		want    string
	}{{0, "true user <nil>"}, {29, "true user <nil>"}, {31, "true external <nil>"}, {0, "true external <nil>"}} {
		c.advance(wait.minutes * time.Minute)
		if got := text(strictjson.Get(w.call(ctx, "record_observation", `{"payload":{}}`).result, "structuredContent"), "said"); got != wait.want {
			t.Errorf("after %d minutes: %s, want %s", wait.minutes, got, wait.want)
		}
	}
}

// TestCaptureRedactedOwnWords (M09, R6): what a secret was taken out of is the
// user's where the rest of it is, and a secret that reaches over the end of his
// words makes nothing his.
func TestCaptureRedactedOwnWords(t *testing.T) {
	ctx := testContext(t)
	r := newRig(t, onMaps(t), policy(t, insidePolicy))
	r.opts.Inside = &capturer{capture: func(ctx context.Context, by gateway.Caller, payload []byte) string {
		text, _ := strictjson.Text(strictjson.Get(payload, "raw_payload"))
		c, ok, err := by.Capture(ctx, 0, text)
		return fmt.Sprint(by.Redacted, ok, c.Label, c.Whole, err)
	}}
	r.restart()
	for _, c := range []struct{ turn, quote, want string }{
		{"my code is s3cr3t-4711 at home", "code is s3cr3t-4711 at home", "true true user false <nil>"},
		{"> my code is s3cr3t-4711 at home", "code is s3cr3t-4711 at home", "true true external false <nil>"},
		{"<x>my code</x>\nmy code is s3cr3t-4711 at home", "code is s3cr3t-4711 at home", "true true user false <nil>"},
		{"my code is s3cr3t-4711 <x>at home</x>", "code is s3cr3t-4711 <x>at home", "true true external false <nil>"},
		{"my code is s3cr3t-4711 at home", "code is s3cr3t-4711 at work", "true false model false <nil>"},
	} {
		secret := r.mint()
		s, _ := r.gw.FindSession(ctx, "loopback", secret)
		say(t, r, s, c.turn)
		w := overHTTP(ctx, r, true, web{session: secret})
		got := w.call(ctx, "record_observation", `{"payload":{"raw_payload":`+string(strictjson.Quote(c.quote))+`}}`)
		if said := text(strictjson.Get(got.result, "structuredContent"), "said"); said != c.want {
			t.Errorf("%q in %q: %s, want %s", c.quote, c.turn, said, c.want)
		}
	}
}

// TestCaptureShadow: what shadow mode let pass lends no labels to the memory,
// which enforcing sessions read too; what would have been allowed does.
func TestCaptureShadow(t *testing.T) {
	ctx := testContext(t)
	up := newScripted(t, "toy", true)
	up.list("tools/list", `{"tools":[{"name":"find","inputSchema":{"type":"object","properties":{"at":{"type":"string"}}},"outputSchema":{"type":"object"}}]}`)
	r := newRig(t, onSQLite(t), policy(t, `
pins: optional
tools:
  toy/find: { effect: read, outputs: [{ at: /id, label: system, type: id, authoritative: true }] }
`), up.config(true))
	r.stop()
	r.opts.Shadow = true
	r.start()
	secret := r.mint()
	w := overHTTP(ctx, r, true, web{session: secret})
	s, _ := r.gw.FindSession(ctx, "loopback", secret)
	up.reply(`"result":{"content":[],"structuredContent":{"id":"item-4711"}}`)
	passed(t, w.call(ctx, "find", `{"at":"home"}`))
	up.reply(`"result":{"content":[],"structuredContent":{"id":"item-4712"}}`)
	passed(t, w.call(ctx, "find", `{"at":13}`)) // which its schema does not allow
	for quote, want := range map[string]writ.Label{"item-4711": writ.System, "item-4712": writ.Model} {
		if got, ok, err := r.gw.Capture(ctx, s.PublicID(), 0, quote); err != nil || !ok || got.Label != want {
			t.Errorf("%s: %+v %v %v, want %v", quote, got, ok, err, want)
		}
	}
}
